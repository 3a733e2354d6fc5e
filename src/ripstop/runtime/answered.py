"""Why a question cannot be answered: it was answered already, or it is not an open question."""

from collections.abc import Sequence

from ripstop.kernel.effects import AskPerson, PersonAnswered
from ripstop.kernel.errors import AlreadyAnswered, QuestionClosed, UsageError
from ripstop.kernel.events import Answered, Asked, Record


def already_answered(run_id: str, number: int, records: Sequence[Record]) -> UsageError:
    """The error to raise; with who answered what and when, if it was answered."""
    asked = records[number - 1].event if 1 <= number <= len(records) else None
    if not isinstance(asked, Asked) or not isinstance(asked.command, AskPerson):
        return UsageError(f"{run_id}/{number} is not an open question.")
    for record in records:
        event = record.event
        if isinstance(event, Answered) and event.to == number and isinstance(event.answer, PersonAnswered):
            said = event.answer
            return AlreadyAnswered(run_id, number, said.choice, said.text, said.by, record.at)
    return QuestionClosed(f"{run_id}/{number} is not an open question any more: it was withdrawn.")
