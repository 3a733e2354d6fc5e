"""A document on its way from owner to owner, and the rules that all documents follow, as diagrams.

- A node is an owner with the document in one status; `completed` and `terminated` are ends. So the state machine and
  the hand-overs are in one picture, and every owner has a colour.
- Steps are numbered from 1. What may come next is also drawn, but not as taken.
- Of a run the transitions on record are drawn. A file has only its history, which does not name new owners: there, the
  owner is the agent that acts next.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ripstop.kernel.errors import UsageError
from ripstop.text.diagrams.diagram import Chapter, Diagram, Edge, Journey, Node, journey
from ripstop.text.plurals import count

from .definition import Policy
from .document import HandoffDocument, Malformed, interactions, read
from .events import TransitionMade
from .state import COMPLETED, FINAL, IN_PROGRESS, PENDING, RULES, HandoffState, action_for

STEP = "step"
ANYBODY = "Anybody may terminate it before it is completed."


@dataclass(frozen=True, slots=True)
class OwnerNode:
    status: str
    owner: str = ""
    """Nobody's, once it is finished."""


@dataclass(frozen=True, slots=True)
class Taken:
    source: OwnerNode
    target: OwnerNode
    action: str


def draw_run(definition: Policy, chapters: Sequence[Chapter]) -> Diagram:
    """The document's way, from the transitions on record."""
    steps = [
        Taken(_place(one.before.state.document), _place(one.after.state.document), one.event.action)
        for one in chapters
        if isinstance(one.event, TransitionMade) and one.before is not None
    ]
    now: HandoffState = chapters[-1].after.state
    notes = (f"{now.count} of at most {count(now.most_interactions, 'interaction')}.", *_roles(definition))
    start = steps[0].source if steps else _place(now.document)
    return _diagram(now.document, start, steps, notes, journey(chapters, listening=now.document.status not in FINAL))


def draw_file(text: str, file: str) -> Diagram:
    """A document as its file shows it. Raises `UsageError` if the file is not a document."""
    try:
        document = read(text)
    except Malformed as error:
        raise UsageError(f"{file} is not a hand-off document: {error}.") from error
    steps = _history(document)
    notes = (f"Interactions: {interactions(document)}.",)
    ended = document.status in FINAL
    journey = Journey(document.id, document.status, ended=ended, kind="document")
    return _diagram(document, steps[0].source if steps else _place(document), steps, notes, journey)


def draw_definition(definition: Policy) -> Diagram:
    """The state machine of every document, from the table that the style follows."""
    statuses = (PENDING, IN_PROGRESS, *FINAL)
    nodes = tuple(Node(status, end=status in FINAL) for status in statuses)
    edges = tuple(
        Edge(statuses.index(before), statuses.index(rule.after), action)
        for action, rule in RULES.items()
        for before in rule.before
    )
    owners = ", ".join(action for action, rule in RULES.items() if rule.by_owner)
    notes = (f"Only the owner may: {owners}.", *_roles(definition))
    return Diagram("hand-off documents", nodes, edges, 0, "What may happen to a document.", notes, counted=STEP)


def _roles(definition: Policy) -> tuple[str, ...]:
    names = ", ".join(role.name for role in definition.roles)
    return (f"Roles here: {names}.",) if names else ()


def _place(document: HandoffDocument) -> OwnerNode:
    return OwnerNode(document.status) if document.status in FINAL else OwnerNode(document.status, document.owner)


def _history(document: HandoffDocument) -> list[Taken]:
    bullets = [bullet for bullet in document.history if bullet.before and bullet.after]
    steps: list[Taken] = []
    owner = document.owner
    for bullet in reversed(bullets):
        target = OwnerNode(bullet.after) if bullet.after in FINAL else OwnerNode(bullet.after, owner)
        action = action_for(bullet.before, bullet.after, new_owner=True)
        if action and RULES[action].by_owner:
            owner = bullet.agent
        source = OwnerNode(bullet.before) if bullet.before in FINAL else OwnerNode(bullet.before, owner)
        if source != target:
            steps.append(Taken(source, target, action or bullet.action))
    return steps[::-1]


def _diagram(
    document: HandoffDocument, start: OwnerNode, steps: Sequence[Taken], notes: tuple[str, ...], journey: Journey
) -> Diagram:
    here = _place(document)
    taken: dict[Taken, tuple[int, ...]] = {}
    for number, step in enumerate(steps, start=1):
        taken[step] = (*taken.get(step, ()), number)
    for coming in _coming(here):
        taken.setdefault(coming, ())
    ways = [place for step in taken for place in (step.source, step.target)]
    places = list(dict.fromkeys([start, *ways, here]))
    entered = [start, *(step.target for step in steps)]
    nodes = [Node(p.status, p.owner, end=p.status in FINAL, turns=entered.count(p)) for p in places]
    edges = [
        Edge(places.index(step.source), places.index(step.target), step.action, turns=turns)
        for step, turns in taken.items()
    ]
    return Diagram(
        name=document.id,
        nodes=tuple(Node(n.name, n.agent, n.end, 0 if n.end else n.turns) for n in nodes),
        edges=tuple(edges),
        start=places.index(start),
        description=" ".join(document.task.split()),
        notes=notes if here.status in FINAL else (*notes, ANYBODY),
        journey=Journey(
            journey.run, journey.status, journey.because, len(steps), journey.ended, places.index(here), journey.kind
        ),
        counted=STEP,
    )


def _coming(here: OwnerNode) -> list[Taken]:
    """What its owner may do next without naming anybody."""
    if here.status == PENDING:
        return [Taken(here, OwnerNode(IN_PROGRESS, here.owner), "accept")]
    return [Taken(here, OwnerNode(COMPLETED), "complete")] if here.status == IN_PROGRESS else []
