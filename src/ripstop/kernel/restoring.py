"""Runs of a journal that was put back from a copy: what they did after the copy was made is not on record.

- Such a run is held: nothing of it is performed before a person has said what became of it. One question per run; the
  open commands stay as they are, so that a keyed call keeps its key.
- What the person says decides about calls that have an effect: those that were open in the copy, and those that the run
  asks for later, which it may have made before. Pure calls are simply made again.
- What the run asked for after the copy is not known: any number of calls, in any order, with any arguments. So a later
  call cannot be told from one that was made then, whatever its number, and the other side cannot tell either: its key
  ends with a mark that no key from that time has. Only a call that was open in the copy has the key that it had.
- A call that is in doubt for that reason is asked about as any other doubt; `GO_ON` says that the run has come to where
  it was.
- A run that it starts later may have been started before, too: its calls are asked about from the first one on.
- A run that had ended, and that can be resumed, may have been resumed since: it is not held, but if it is resumed, its
  calls are asked about.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from .effects import AskAgent, AskPerson, CallTool, Command, PersonAnswered, Say
from .events import Forked, Record, Repeated, Restored
from .run import RESTORED, HeldRun, Marks, Run
from .shown_calls import can_be_shown, size_of_arguments

HAPPENED, ASK, CONTINUE, END = "happened", "ask", "continue", "end"
"""What a person may say about a run of a restored journal."""
CHOICES = {
    HAPPENED: "What was open has happened since; ask me about later calls that must not be repeated",
    ASK: "I do not know: ask me about every call that must not be repeated",
    CONTINUE: "Nothing has happened since: continue",
    END: "End the run",
}
GO_ON = "go on"
GO_ON_LABEL = "It did not happen, and nothing after it: do it, and ask no more"
MOST_NAMED = 5
"""Open calls that the question names."""


def is_held(run: Run[Any]) -> bool:
    """Whether nothing of a run may be performed."""
    return run.held is not None and run.held.question != 0


def may_have_happened(run: Run[Any], number: int) -> bool:
    """Whether a call may have been made after the copy, so that it must not be made blindly."""
    held = run.held
    if held is None or number in held.again:
        return False
    return held.said != CONTINUE or number in held.begun or number < held.went_on


def has_its_key(run: Run[Any], number: int) -> bool:
    """Whether a call, if it was made after the copy, had the key that it has now: it was open in the copy."""
    return run.held is None or number < run.held.at


def is_where_it_was(held: HeldRun) -> bool:
    """Whether nothing that the run asks for from now on may have happened before."""
    return held.said == CONTINUE and not held.went_on


def may_repeat_what_followed(run: Run[Any], at: int) -> bool:
    """Whether a fork at this record may ask for what the run did after the copy was made."""
    return run.held is not None and not is_where_it_was(run.held) and at < run.held.at


def acts_outside(command: Command) -> bool:
    """Whether a command may have an effect that no journal has on record; a run that it starts has its own doubts."""
    kind = type(command)
    return kind is CallTool or kind is AskAgent or (type(command) is Say and bool(command.channel))


def mark_of(run: Run[Any], number: int) -> str:
    """What the key of a command ends with."""
    return mark_at(run.marks, number)


def mark_at(marks: Marks, number: int) -> str:
    """The mark that is in force at a record. A copy and the journal it was made of have different ones behind it."""
    return next((mark for at, mark in reversed(marks) if number > at), "")


def marks_in(records: Iterable[Record]) -> Marks:
    """The marks of a run, with the records from which on they are in force."""
    marked = ((record.number, record.event) for record in records)
    return tuple((at, event.mark) for at, event in marked if isinstance(event, Restored | Forked) and event.mark)


def key_of(run_id: str, number: int, mark: str) -> str:
    """The idempotency key of a command."""
    return f"{run_id}/{number}~{mark}" if mark else f"{run_id}/{number}"


def has_happened(run: Run[Any], number: int) -> bool:
    """Whether a person has said that this call, which was open in the copy, was made since."""
    held = run.held
    return held is not None and held.said == HAPPENED and number < held.at and number not in held.again


def question_about_copy(run: Run[Any], fact: Restored, calls: Mapping[str, Mapping[str, Any]]) -> AskPerson:
    """Args:
    calls: The calls of tools that are made if the run continues, each with its arguments. If they are too long to be
        shown, it cannot simply continue.
    """
    named = list(calls)
    more = f" and {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
    opened = f" Open in the copy: {', '.join(named[:MOST_NAMED])}{more}." if named else ""
    question = f"{fact.evidence} This run had not ended when the copy was made, and may have gone on since.{opened}"
    shown = {name: dict(arguments) for name, arguments in calls.items()}
    asked = AskPerson(
        question=f"{question} What became of it?",
        purpose=RESTORED,
        title="restored from a copy",
        about=tuple(number for number, one in run.open.items() if type(one.command) is CallTool)[:MOST_NAMED],
        choices=CHOICES,
        arguments=shown or None,
    )
    if can_be_shown(shown):
        return asked
    size = f"The arguments of these calls have {size_of_arguments(shown):,} bytes, too many to be shown together"
    return replace(
        asked,
        question=f"{question} {size}, so each call is asked about by itself. What became of it?",
        choices={choice: label for choice, label in CHOICES.items() if choice != CONTINUE},
        arguments=None,
    )


def after_answer(held: HeldRun, answer: Any) -> HeldRun:
    """What is known after the person's answer; a question that nobody answered says least."""
    said = answer.choice if type(answer) is PersonAnswered else ASK
    if said == CONTINUE and held.earlier:  # nothing since this copy; but since an earlier one
        said = ASK
    return replace(held, question=0, said=said, words=answer.text if type(answer) is PersonAnswered else "")


def after_repeat(held: HeldRun, event: Repeated) -> HeldRun:
    """What is known after a person wants a call made again."""
    held = replace(held, again=(*held.again, event.number))
    return replace(held, said=CONTINUE, went_on=event.number) if event.goes_on else held
