"""What people do with runs: the fact that an action becomes, and why a question cannot be answered any more."""

from collections.abc import Mapping, Sequence
from typing import Any

from ripstop.kernel.effects import AskPerson, PersonAnswered
from ripstop.kernel.errors import AlreadyAnswered, MessageIdUsed, QuestionClosed, QuestionWithdrawn, UsageError
from ripstop.kernel.events import Answered, Asked, Fact, Heard, Record, Withdrawn
from ripstop.kernel.folding import heard_at
from ripstop.kernel.questions import read_field
from ripstop.kernel.run import Run
from ripstop.kernel.style import Style

from .ports import Journal


def action_fact(
    style: Style[Any], run: Run[Any], name: str, fields: Mapping[str, Any], by: str, seen: int | None
) -> Fact:
    """The fact of an action. Raises `UsageError` that says what is possible now.

    Args:
        seen: The length of the run when the person saw it; `None`: any.
    """
    if seen is not None and seen != run.length:
        raise UsageError(f"{run.id} has changed since you looked at it (record {seen}). Look again, then decide.")
    actions = {action.name: action for action in style.people.actions(run)}
    if name not in actions:
        can = f"possible now: {', '.join(actions)}" if actions else "nothing can be done with it now"
        raise UsageError(f"{name!r} is not possible with {run.id}; {can}.")
    known = actions[name].fields
    for field in fields:
        if field not in known:
            raise UsageError(f"{name!r} has no field {field!r}; it takes: {', '.join(known) or 'nothing'}.")
    for field, described in known.items():
        if described.required and field not in fields:
            raise UsageError(f"{name!r} needs the field {field!r}.")
    given = {field: read_field(field, known[field], value) for field, value in fields.items()}
    fact = style.people.act(run, name, given, by)
    owner = actions[name].by
    if owner and by != owner:  # the style itself may have said more about it
        raise UsageError(f"Only {owner!r} can {name} {run.id}; {f'{by!r} cannot' if by else 'say who does it'}.")
    return fact


def already_answered(run: Run[Any], number: int, records: Sequence[Record]) -> UsageError:
    """The error to raise: who answered what and when; if it was withdrawn, which questions of the run are open now."""
    run_id = run.id
    asked = records[number - 1].event if 1 <= number <= len(records) else None
    if not isinstance(asked, Asked) or not isinstance(asked.command, AskPerson):
        return UsageError(f"{run_id}/{number} is not an open question.")
    for record in records:
        event = record.event
        if isinstance(event, Answered) and event.to == number and isinstance(event.answer, PersonAnswered):
            said = event.answer
            return AlreadyAnswered(run_id, number, said.choice, said.text, said.by, record.at)
        if isinstance(event, Withdrawn) and event.number == number:
            now = [f"{run_id}/{one}" for one, opened in run.open.items() if isinstance(opened.command, AskPerson)]
            return QuestionWithdrawn(run_id, number, event.because, record.at, now)
    return QuestionClosed(f"{run_id}/{number} is not an open question any more.")


async def check_heard(journal: Journal, run: Run[Any], sent: Heard) -> None:
    """Raise `MessageIdUsed` if what was heard under a message's id is another message."""
    number = heard_at(run, sent.id) if sent.id else 0
    for record in await journal.read(run.id, after=number - 1, most=1) if number else ():
        heard = record.event
        if isinstance(heard, Heard) and _parts(heard) != _parts(sent):
            raise MessageIdUsed(run.id, sent.id)


def _parts(heard: Heard) -> tuple[object, ...]:
    return heard.text, heard.channel, heard.attachments
