"""The state of a document's run: the document, who works on it, and what was found in its file."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ripstop.kernel.effects import (
    AgentReplied,
    AskAgent,
    AskPerson,
    CallTool,
    PersonAnswered,
    RunFinished,
    StartRun,
    ToolReturned,
)
from ripstop.kernel.errors import UsageError
from ripstop.kernel.events import Answered, Asked, Event, Heard, Resumed, ResumeRequested, Withdrawn
from ripstop.kernel.questions import name_problem
from ripstop.kernel.result import handed_on, read_result
from ripstop.kernel.run import Open

from .. import reply
from .. import turn as turns
from ..turn import Turn
from .calls import PUBLISH, SEND, PublishCall, PublishedDocument
from .definition import Policy
from .document import HEADERS, LEGAL, HandoffDocument, Malformed, interactions, line_of, read, write
from .events import (
    AgentFailed,
    AgentsChanged,
    Assignment,
    DocumentDrafted,
    EditAccepted,
    EditFound,
    EditRefused,
    FileRenamed,
    TransitionMade,
    TransitionRefused,
    TransitionRequested,
    WorkRequested,
)
from .markdown import as_id, either, one_line
from .texts import next_words

# A new document, in English or Chinese.


class _Words(Struct, frozen=True):
    created: str
    assigned: str
    waiting: str
    conditions: tuple[str, ...]


_WORDS = {
    "en": _Words(
        "created",
        "assigned to {owner}",
        "{owner} accepts the task",
        ("the task is done", "more than {limit} interactions", "a message contains [WORKFLOW_END]"),
    ),
    "zh": _Words(
        "新建文档",
        "交给{owner}",
        "等{owner}接手",
        ("工作已经做完", "交互多于{limit}次", "消息里出现[WORKFLOW_END]"),
    ),
}


def draft(
    id: str,
    creator: str,
    owner: str,
    task: str,
    at: str,
    next_action: str = "",
    conditions: Sequence[str] = (),
    language: str = "en",
    limit: int = 10,
) -> HandoffDocument:
    """A new document. What is not given is said in the words of `language`: `en` or `zh`."""
    if language not in _WORDS:
        raise UsageError(f"There are no words for a document in {language!r}; there are for {either([*_WORDS])}.")
    words = _WORDS[language]
    values = ("pending", one_line(owner), one_line(creator), one_line(at), one_line(at), "0")
    header = "".join(f"{key}: {value}".rstrip() + "\n" for key, value in zip(HEADERS, values, strict=True))
    document = read(f"# Workflow: {as_id(id)}\n{header}")
    document = document.with_task(task).with_bullet(at, creator, words.created, "pending", "pending")
    if document.owner != document.previous:
        document = document.with_bullet(at, creator, words.assigned.format(owner=document.owner), "pending", "pending")
    document = document.with_next_action(next_action or words.waiting.format(owner=document.owner))
    return document.with_conditions(conditions or [condition.format(limit=limit) for condition in words.conditions])


# Which transitions are legal, and who may make them.
#
# | action    | from        | to          | by        | counts |
# |-----------|-------------|-------------|-----------|--------|
# | assign    | pending     | pending     | anybody   | no     |
# | accept    | pending     | in_progress | the owner | yes    |
# | pass      | in_progress | pending     | the owner | yes    |
# | complete  | in_progress | completed   | the owner | yes    |
# | terminate | not final   | terminated  | anybody   | no     |
#
# `completed` and `terminated` are final.


PENDING, IN_PROGRESS, COMPLETED, TERMINATED = "pending", "in_progress", "completed", "terminated"
FINAL = (COMPLETED, TERMINATED)


class Rule(Struct, frozen=True):
    before: tuple[str, ...]
    after: str
    by_owner: bool = False
    """Only the owner may."""
    names_owner: bool = False
    """It says who owns the document from now on."""
    counts: bool = False
    """It is an interaction."""


RULES = {
    "assign": Rule((PENDING,), PENDING, names_owner=True),
    "accept": Rule((PENDING,), IN_PROGRESS, by_owner=True, counts=True),
    "pass": Rule((IN_PROGRESS,), PENDING, by_owner=True, names_owner=True, counts=True),
    "complete": Rule((IN_PROGRESS,), COMPLETED, by_owner=True, counts=True),
    "terminate": Rule((PENDING, IN_PROGRESS), TERMINATED),
}


def why_not(document: HandoffDocument, action: str, by: str, to: str = "") -> str:
    """Why an action is not legal now; empty if it is."""
    rule = RULES.get(action)
    if rule is None:
        return f"there is no action {action!r}; there are: {', '.join(RULES)}"
    status = document.status
    if status not in rule.before:
        return f"{status}→{rule.after} ({action}) is not legal; from {status} one may: {_may(status)}"
    if rule.by_owner and by != document.owner:
        who = repr(by) if by else "a person without a name"
        return f"{who} may not {action} it, because it belongs to {document.owner!r}"
    if rule.names_owner and not to.strip():
        return f"{action} needs the name of the new owner"
    # who owns it already was let in by an older version, perhaps, and must be able to pass it on
    for name in (to, by if by != document.owner else ""):
        if problem := name_problem(name):
            return problem
    return ""


def check_names(document: HandoffDocument) -> None:
    """Refuse a new document that names somebody who cannot have that name. Raises `Malformed`."""
    for header, name in (("Current_Owner", document.owner), ("Previous_Owner", document.previous)):
        if problem := name_problem(name):
            raise Malformed(line_of(document, header), f"{problem}.")


def action_for(before: str, after: str, new_owner: bool) -> str:
    """The action that leads from one status to another; empty if none does."""
    for action, rule in RULES.items():
        if before in rule.before and after == rule.after and (action != "assign" or new_owner):
            return action
    return ""


def legal_from(status: str) -> str:
    """The changes that are legal from a status, as they are written."""
    return ", ".join(f"{status}→{after}" for after in LEGAL[status]) or f"none, because {status} is final"


def _may(status: str) -> str:
    return ", ".join(action for action, rule in RULES.items() if status in rule.before) or "nothing; it is final"


RESULT = "Result"
"""The section that holds what came out of the task."""
_TOOLS = {PUBLISH: "publish", SEND: "reply"}
WRITES = tuple(_TOOLS.values())
"""What kinds of things the engine itself owes the world."""
UNWRITTEN, FAILED, OWNED = "handoff.unwritten", "handoff.failed", "handoff.owned"
"""Purposes of the style's questions: the file cannot be written; an agent has failed too often; a person owns it."""
OWNERS_MOVES = ("complete", "pass")
"""What only the owner may do, as choices of the question to a person who owns it."""
LONGEST_RESULT = 100_000
"""Characters of last words that are kept as a result: a document must fit into its file."""
VIEWS = 20
"""How many of the last views of the document are remembered, for edits that were made in an older one."""


ACTIONS = ("pass", "complete", "terminate")
"""What an agent, or a workflow in its place, may do with a document that it has accepted."""


class Statement(Struct, frozen=True, gc=False):
    """What an agent or a person said with a transition."""

    message: str = ""
    next_action: str = ""
    result: str = ""
    number: int = 0
    """The number of its record."""
    text: str = ""
    """All of an agent's reply."""


class WorkflowStatement(Statement, frozen=True, gc=False):
    """What a workflow came to that worked in an agent's place."""

    action: str = ""
    """What it wants done with the document; empty: it does not say."""
    to: str = ""
    continued: str = ""
    """Its run, if that reached the limit of this run: it continues if the limit is raised."""


class HistoryEntry(Struct, frozen=True, gc=False):
    """A transition that was made, and the record that says so."""

    number: int
    made: TransitionMade


class HandoffState(Struct, frozen=True, gc=False):
    definition: Policy
    # under its first name wherever a state is written out: digests of old journals' states count on it
    document: HandoffDocument = msgspec.field(name="paper")
    file: str
    language: str
    """Of what is written into the document."""
    offset: int
    """Seconds east of Greenwich, for the times in the document."""
    said: Statement = Statement()
    """What came with the last fact."""
    turn: Turn | None = None
    assignments: dict[str, Assignment] = {}
    """How agents were told to work when they were asked to; see `assignment`."""
    ledger: tuple[HistoryEntry, ...] = ()
    """The transitions that this run made."""
    failures: int = 0
    """How often in a row an agent has failed at it."""
    views: tuple[tuple[int, HandoffDocument], ...] = ()
    """The documents that were published, by the number of the command."""
    found: str = ""
    """The text that was last found in the file and is not ours."""
    found_key: tuple[int, str] = (0, "")
    """The number of the view in which that edit was made, and the text's SHA-256."""
    sender: str = ""
    """Who sent that text in a message; empty if it was in the file."""
    judged: tuple[tuple[int, str], ...] = ()
    """The keys of the last edits that were taken over or refused. Two processes can find the same edit."""
    repeated: bool = False
    """The edit that was reported last has its verdict already."""
    notes: tuple[str, ...] = ()
    """What was put right in the last edit that was taken over."""
    over: str = ""
    """SHA-256 of the text in the file that may be replaced though it is not ours."""
    keep: str = ""
    """Set when that text was refused and is to be kept next to the file."""
    refusal: TransitionRefused | None = None
    """The last transition that was refused, and where that is recorded."""
    refused_at: int = 0
    refused_edit: EditRefused | None = None
    """The last edit, if it was refused."""
    edited_since_asked: bool = False
    """The document was edited while an agent worked on it."""
    before_end: str = IN_PROGRESS
    """The status before the document was terminated."""
    more_interactions: int = 0
    """By how much the limit was raised."""
    requested: TransitionRequested | None = None
    """The transition that was requested last and is not made yet."""
    resumed_by: str = ""
    """The person who wants the run to continue."""
    unwritten: int = 0
    """The question to a person why the file cannot be written, if that is open."""
    reply_to: str = ""
    """Who is notified when it is finished; empty for nobody."""
    reply: int = 0
    """The command that notifies them."""

    @property
    def count(self) -> int:
        return interactions(self.document)

    @property
    def most_interactions(self) -> int:
        return self.definition.max_interactions + self.more_interactions

    def workflow_of(self, agent: str) -> str:
        """The workflow that works in an agent's place; empty for an agent that works itself."""
        return next((role.workflow for role in self.definition.roles if role.name == agent), "")

    def assignment(self, agent: str) -> Assignment:
        """How an agent is told to work: as it was last asked to, else as its role says."""
        if agent in self.assignments:
            return self.assignments[agent]
        roles = {role.name: role for role in self.definition.roles}
        return Assignment(roles[agent].prompt, roles[agent].model, tuple(roles)) if agent in roles else Assignment()


def sha(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def evolve(state: HandoffState, number: int, event: Event) -> HandoffState:
    if type(event) is Asked:
        return _asked(state, number, event)
    if type(event) is Answered or type(event) is Withdrawn:
        if type(event) is Answered:
            state = _answered(state, number, event)
        state = _closed(state, event)
        turn = turns.evolve(state.turn, number, event)
        if turn is state.turn:
            return state
        if turn is not None and type(event) is Answered and type(event.answer) is AgentReplied:
            whole = turn.exchanges[-1].reply.text  # of all its parts, if it was cut off
            state = replace(state, said=replace(said_by_agent(whole), number=number, text=whole))
        return replace(state, turn=turn)
    folded = _with_decision(state, number, event) or _with_fact(state, event)
    if folded is not None:
        return folded
    turn = turns.evolve(state.turn, number, event)
    return state if turn is state.turn else replace(state, turn=turn)


def _with_decision(state: HandoffState, number: int, event: Event) -> HandoffState | None:
    """The state after a decision of this style or a resume; `None` for any other event."""
    match event:
        case TransitionMade():
            return _after_transition(state, number, event)
        case TransitionRefused():
            return replace(state, refusal=event, refused_at=number, requested=None)
        case EditAccepted():
            return _after_edit(state, event)
        case EditRefused():
            return _judged(replace(state, refused_edit=event, keep=_tag(event), requested=None))
        case AgentFailed():
            return replace(state, failures=state.failures + 1)
        case DocumentDrafted():
            return replace(state, document=_dated(state, event), file=event.file)
        case Resumed(raises=raises):
            return replace(state, more_interactions=state.more_interactions + int(raises.get("interactions", 0)))
    return None


def _with_fact(state: HandoffState, event: Event) -> HandoffState | None:
    """The state after a fact that changes it; `None` for any other event."""
    match event:
        case TransitionRequested():
            said = Statement(event.message, event.next_action, event.result)
            return replace(state, said=said, requested=event)
        case EditFound():
            return _found(state, event.text, event.base, event.sender)
        case WorkRequested(agent=agent, assignment=given):
            assignments = state.assignments if given is None else {**state.assignments, agent: given}
            return replace(state, said=Statement(), assignments=assignments)
        case FileRenamed(file=file):
            return replace(state, file=file)
        case AgentsChanged(agents=agents):
            return replace(state, definition=replace(state.definition, agents=agents))
        case Heard(text=text):
            return replace(state, said=Statement(message=text))
        case ResumeRequested(by=by):
            return replace(state, resumed_by="" if "/" in by else by)  # with a slash: a command of another run
    return None


def _dated(state: HandoffState, event: DocumentDrafted) -> HandoffDocument:
    """The draft that the run began with, as the document that it becomes."""
    document, limit = state.document, state.most_interactions
    return draft(
        event.id, document.previous, document.owner, document.task, event.at, language=state.language, limit=limit
    )


def _tag(refused: EditRefused) -> str:
    """What the file is called that keeps a refused edit: when that was, and the line that was wrong."""
    return f"{refused.at.replace('-', '').replace(':', '').replace(' ', '-')}-line-{refused.line}"


def _judged(state: HandoffState) -> HandoffState:
    return replace(state, judged=(*state.judged[-VIEWS + 1 :], state.found_key))


def _asked(state: HandoffState, number: int, event: Asked) -> HandoffState:
    command = event.command
    if asked_of(command) == "publish":
        return replace(state, views=(*state.views[-VIEWS + 1 :], (number, state.document)))
    if asked_of(command) == "reply":
        return replace(state, reply=number)
    if isinstance(command, AskPerson) and command.purpose == UNWRITTEN:
        return replace(state, unwritten=number)
    turn = turns.evolve(state.turn, number, event)
    if isinstance(command, AskAgent):
        return replace(state, turn=turn, edited_since_asked=False)
    return state if turn is state.turn else replace(state, turn=turn)


def _closed(state: HandoffState, event: Withdrawn | Answered) -> HandoffState:
    """One of the style's commands is not open any more."""
    number = event.number if isinstance(event, Withdrawn) else event.to
    if number == state.unwritten:
        return replace(state, unwritten=0)
    if number == state.reply and isinstance(event, Withdrawn):
        return replace(state, reply=0)
    return state


def _after_edit(state: HandoffState, event: EditAccepted) -> HandoffState:
    found, was = read(event.text or state.found).gathered(), state.document
    document = _as_kept(state, found).with_header("Updated_At", event.at)
    new = found.history[len(was.history) :]
    said = Statement(
        next_action=document.next_action if document.next_action != was.next_action else "",
        text="\n".join(bullet.action for bullet in new),
    )
    state = _judged(replace(state, refusal=None, refused_edit=None, keep="", notes=event.notes))
    return replace(state, document=document, said=said, edited_since_asked=state.turn is not None)


def _as_kept(state: HandoffState, edited: HandoffDocument) -> HandoffDocument:
    """An edited document with the headers that only a transition changes as they were; the transition comes next."""
    was = state.document
    kept = {"Status": was.status, "Current_Owner": was.owner}
    if edited.previous != was.previous:
        kept["Previous_Owner"] = was.previous
    if edited.created != was.created:
        kept["Created_At"] = was.created
    if edited.count is not None:
        kept["Interaction_Count"] = str(state.count)
    return edited.with_headers(kept)


def _answered(state: HandoffState, number: int, event: Answered) -> HandoffState:
    answer = event.answer
    if isinstance(answer, RunFinished):
        return joined(state, number, event, None)
    if isinstance(answer, ToolReturned) and any(event.to == view for view, _ in state.views):
        published = msgspec.convert(answer.value, PublishedDocument)
        if published.found is None:
            return replace(state, over="", keep="")
        # an edit that has its verdict may be replaced: it was merged, or it is kept
        return replace(_found(state, published.found, published.base or 0, ""), over=sha(published.found))
    if isinstance(answer, PersonAnswered) and answer.choice in OWNERS_MOVES:
        given = {name: str(answer.fields.get(name, "")) for name in ("next_action", "result")}
        return replace(state, said=Statement(answer.text, number=number, **given), resumed_by=answer.by)
    if isinstance(answer, PersonAnswered):
        return replace(state, resumed_by=answer.by)
    return state


def joined(state: HandoffState, number: int, event: Answered, value: Any) -> HandoffState:
    """The end of a workflow that worked in the owner's place: its text and its files are the result so far."""
    finished, result = event.answer, read_result(value)
    assert isinstance(finished, RunFinished)
    data = result.data if isinstance(result.data, dict) else {}
    made = data.get("decisions", data)
    decisions = made if isinstance(made, dict) and made.get("action") in ACTIONS else {}
    to = _text(decisions.get("to")).strip() if decisions.get("action") == "pass" else ""
    said = WorkflowStatement(
        next_action=_text(decisions.get("next_action")),
        result=_text(decisions.get("result")) or handed_on(result.whole_text, finished),
        number=number,
        action=str(decisions.get("action", "")),
        to=to,
        continued=finished.run if finished.outcome == "limit" else "",
    )
    return replace(state, said=said)


def _found(state: HandoffState, text: str, base: int, sender: str) -> HandoffState:
    key = (base, sha(text))
    if key in state.judged:
        return replace(state, repeated=True)
    return replace(
        state,
        found=text,
        found_key=key,
        sender=sender,
        repeated=False,
        over=sha(text),
        keep="",
        notes=(),
        said=Statement(),
    )


def said_by_agent(text: str) -> Statement:
    """What an agent's reply says with its transition; nothing if it cannot be read."""
    try:
        content, decisions = reply.decided(text)
    except reply.NoReply:
        return Statement()
    return Statement(content, _text(decisions.get("next_action")), _text(decisions.get("result")))


def _text(value: object) -> str:
    return "" if value is None else value if isinstance(value, str) else repr(value)


def _after_transition(state: HandoffState, number: int, event: TransitionMade) -> HandoffState:
    document = document_after(state, event)
    over = event.after == event.before == "pending"
    return replace(
        state,
        document=document,
        turn=state.turn if over else None,
        failures=0,
        refusal=None,
        requested=None,
        reply=0,
        ledger=(*state.ledger, HistoryEntry(number, event)),
        before_end=event.before if event.after == "terminated" else state.before_end,
    )


def document_after(state: HandoffState, event: TransitionMade) -> HandoffDocument:
    """The document after a transition. Only the lines that it is about change."""
    document, said = state.document, Statement() if event.silent else state.said
    if not event.written:
        document = document.with_bullet(event.at, event.by, event.words, event.before, event.after)
        upcoming = said.next_action or (said.message if event.action in ("pass", "assign") else "")
        upcoming = upcoming or next_words(state.language, event.action, event.to)
        if upcoming.strip():
            document = document.with_next_action(upcoming)
        result = event.result or said.result or (said.message if event.action == "complete" else "")
        if result.strip():
            document = document.with_section(RESULT, result)
    changes = {"Status": event.after, "Updated_At": event.at}
    if event.to:
        changes |= {"Current_Owner": event.to, "Previous_Owner": event.by}
    if event.counts or document.count is None:
        changes["Interaction_Count"] = str(state.count + event.counts)
    return document.with_headers(changes)


def last_words(state: HandoffState, end_marker: str) -> str:
    """What was said with the end marker, below what had come out of the document before; empty if nothing was."""
    said = state.said
    texts = [text for text in (said.message, said.next_action, said.result) if text.strip()]
    texts = texts or [reply.without_thinking(said.text)]
    words = [text.replace(end_marker, "").strip() for text in texts]
    before = state.document.section(RESULT)
    kept = [before] if before and before not in words else []
    return "\n\n".join(text for text in dict.fromkeys([*kept, *words]) if text)[:LONGEST_RESULT]


def publishing(state: HandoffState) -> PublishCall:
    """What the document's file is to hold, and which text it may replace."""
    number, document = state.views[-1]
    return PublishCall(
        number=number,
        file=state.file,
        text=write(document),
        over=state.over,
        keep=state.keep,
        folder=state.definition.folder,
    )


def owner_asked(opened: Mapping[int, Open]) -> int:
    """The open question to the person who owns the document; 0 if there is none."""
    asked = (n for n, one in opened.items() if isinstance(one.command, AskPerson) and one.command.purpose == OWNED)
    return next(asked, 0)


def asked_of(command: object) -> str:
    """What kind of thing a command is to this style; empty for the kernel's own timer."""
    if isinstance(command, CallTool) and not command.agent and command.tool in _TOOLS:
        return _TOOLS[command.tool]
    if isinstance(command, (AskAgent, CallTool, StartRun)):
        return "agent"
    return "person" if isinstance(command, AskPerson) else ""
