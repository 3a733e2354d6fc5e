"""Effects that may or may not have happened, and what a person is asked about them.

- A call *in doubt* is still open: a person says what became of it, and the run continues with that answer.
- A call that was *cut off* is not open any more: its run was stopped, or did not need it. Nothing can be made of its
  answer, but the run that is resumed may make it again, so a person has to agree first. The same holds for the calls
  of its descendants.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from .effects import (
    AgentReplied,
    Answer,
    AnswerChild,
    AskAgent,
    AskPerson,
    CallTool,
    Command,
    CutOff,
    Failed,
    RunFinished,
    Said,
    Say,
    StartRun,
    ToolReturned,
)
from .events import GuardTripped
from .run import DOUBT, Run, is_shared
from .shown_calls import can_be_shown, digest_of_arguments, size_of_arguments

HAPPENED, AGAIN, GIVE_UP = "happened", "again", "give up"
"""What a person may say about an effect in doubt."""
DOUBT_CHOICES = {HAPPENED: "It happened", AGAIN: "Do it again", GIVE_UP: "Give it up"}
IN_DOUBT = "in_doubt"
"""The guard that has a person asked before a run continues that may repeat a call that was cut off."""
MOST_CUT_OFF = 20
"""Calls that were cut off and that a run remembers; the newest."""


def question_about_doubt(
    to: int,
    evidence: str,
    arguments: Mapping[str, Any] | None = None,
    more_choices: Mapping[str, str] | None = None,
) -> AskPerson:
    """Args:
    arguments: Of a call of a tool. If they are too long to be shown, it cannot be made again.
    """
    question = f"Did this call take effect? {evidence} Repeating it may not be safe."
    choices = {**DOUBT_CHOICES, **(more_choices or {})}
    asked = AskPerson(question=question, purpose=DOUBT, about=(to,), choices=choices)
    if arguments is None:
        return asked
    if can_be_shown(arguments):
        return replace(asked, arguments=dict(arguments), shown=digest_of_arguments(arguments))
    size = f"Its arguments have {size_of_arguments(arguments):,} bytes, too many to be shown, so it cannot be repeated."
    choices = {choice: label for choice, label in DOUBT_CHOICES.items() if choice != AGAIN}
    return replace(asked, question=f"{question} {size}", choices=choices)


def testimony(command: Command, words: str) -> Answer:
    """What a person saw, as the answer that the command was waiting for."""
    match command:
        case AskAgent():
            return AgentReplied(text=words)
        case Say() | AnswerChild():
            return Said()
        case StartRun():
            return RunFinished(run="", outcome="completed", because=words)
    return ToolReturned(value=words)


# Calls that were cut off


def cut_off_by(run: Run[Any], to: int, answer: Answer) -> tuple[CutOff, ...]:
    """The calls that were cut off and may have taken effect, as the answer to the command `to` reports."""
    if type(answer) is RunFinished:
        return answer.uncertain
    if type(answer) is Failed and answer.uncertain:
        return (CutOff(number=to, what=what_of(run.late.get(to))),)
    return ()


def given_up(run: Run[Any], numbers: Iterable[int]) -> tuple[CutOff, ...]:
    """The calls among the commands in doubt: they are not needed any more, so nobody says what became of them."""
    commands = {number: run.open[number].command for number in numbers if number in run.open}
    calls = {number: command for number, command in commands.items() if type(command) in (AskAgent, CallTool)}
    return tuple(CutOff(number=number, what=what_of(command)) for number, command in calls.items())


def cut_off_in(child: Run[Any]) -> tuple[CutOff, ...]:
    """The calls of a child and its descendants that were cut off, as its parent has to know them."""
    if child.ended is None or child.ended.outcome == "completed":
        return ()
    return tuple(call if call.run else replace(call, run=child.id) for call in child.uncertain)


def verdict_on_cut_off(run_id: str, calls: tuple[CutOff, ...]) -> GuardTripped:
    return GuardTripped(
        guard=IN_DOUBT,
        limit=0,
        value=len(calls),
        text=f"{describe_cut_off_calls(run_id, calls)} If the run continues, it may be made again.",
        evidence=tuple(call.number for call in calls if not call.run),
    )


def describe_cut_off_calls(run_id: str, calls: Iterable[CutOff]) -> str:
    named = [f"{call.what} ({call.run or run_id}/{call.number})".lstrip() for call in calls]
    if len(named) == 1:
        return f"A call was cut off at work and may have taken effect: {named[0]}."
    return f"{len(named)} calls were cut off at work, and each may have taken effect: {', '.join(named)}."


def is_stopping_children(run: Run[Any]) -> bool:
    """Whether children that it does not need any more have not reported yet, so that it is not known what they did."""
    return any(type(command) is StartRun and not is_shared(run.id, command) for command in run.late.values())


def what_of(command: Command | None) -> str:
    """The tool or the agent that is called; empty for other commands."""
    if type(command) is CallTool:
        return command.tool
    return command.agent if type(command) is AskAgent else ""
