"""A person who owns the document: it is on the desk until it has moved on.

- An owner who is not an agent is a person: no role of the definition, no role of the folder as far as that is known,
  and nobody whom a process asks to work as an agent.
- The person passes the document on, completes it or terminates it. Whoever answers has accepted it.
  The history says who that was, if it was not the owner: only the owner's name may stand before what only the owner may
  do.
- The question goes with what it is about: it is withdrawn when the document moves on in any other way.
"""

from ripstop.kernel.effects import AskPerson, Field, PersonAnswered
from ripstop.kernel.step import Step

from . import transitions
from .agents import is_handled
from .state import FINAL, OWNED, PENDING, RESULT, HandoffState, owner_asked
from .texts import UNNAMED

MAX_QUOTED = 2_000
"""Characters of a task, and of what is to be done next, that the question quotes; the document has all of it."""
CHOICES = {"complete": "Complete", "pass": "Hand over", "terminate": "Terminate"}
FIELDS = {
    "to": Field(label="To"),
    "next_action": Field(label="Next action"),
    "result": Field(label="Result"),
}


def ask_owner(step: Step[HandoffState], problem: str = "") -> None:
    """Have the document on the desk of its owner, if that is a person, and on no other.

    Args:
        problem: Why the last answer could not be followed.
    """
    wanted = None if step.run.ended else _question(step, problem)
    number = owner_asked(step.run.open)
    if number and wanted and not problem and _is_about_the_same(step.run.open[number].state, step.state):
        return
    if number:
        step.withdraw(number, "the document has moved on")
    if wanted is not None:
        step.ask_unguarded(wanted)


def _is_about_the_same(asked: HandoffState, now: HandoffState) -> bool:
    """Whether the document is still what its owner was asked about. The question may quote only the beginning of it."""
    then, document = asked.document, now.document
    return (
        then.owner == document.owner
        and then.task == document.task
        and then.next_action == document.next_action
        and then.section(RESULT) == document.section(RESULT)
    )


def _question(step: Step[HandoffState], problem: str) -> AskPerson | None:
    document = step.state.document
    if document.status in FINAL or is_handled(step) or not is_person(step.state, document.owner):
        return None
    return AskPerson(
        question="\n\n".join(filter(None, (_quoted(document.task), _quoted(document.next_action), problem))),
        purpose=OWNED,
        title=document.id,
        to=document.owner,
        choices=CHOICES,
        fields=FIELDS,
    )


def _quoted(text: str) -> str:
    stripped = text.strip()
    return stripped if len(stripped) <= MAX_QUOTED else f"{stripped[:MAX_QUOTED]}…"


def is_person(state: HandoffState, owner: str) -> bool:
    """Whether the owner is known not to be an agent."""
    roles = {role.name for role in state.definition.roles}
    if owner in roles or owner in state.assignments:
        return False
    agents = state.definition.agents
    return owner not in agents if agents is not None else bool(roles)


def after_owner(step: Step[HandoffState], answer: PersonAnswered) -> None:
    """Do what the owner has decided, as far as that is legal; otherwise say why not, and ask again."""
    document = step.state.document
    action, to = answer.choice, str(answer.fields.get("to", "")).strip()
    if action == "pass" and not to:
        return ask_owner(step, "Say to whom it is handed over.")
    by = answer.by or UNNAMED[step.state.language]
    if action == "terminate":
        return transitions.make(step, action, by, reason=answer.text)
    person = by if by != document.owner else ""
    if document.status == PENDING:
        if step.state.count >= step.state.most_interactions:
            step.stop(transitions.too_many(step.state))
        transitions.make(step, "accept", document.owner, silent=True, person=person)
    refusal = transitions.request(step, action, document.owner, to if action == "pass" else "", person=person)
    return ask_owner(step, f"{refusal[:1].upper()}{refusal[1:]}.") if refusal else None
