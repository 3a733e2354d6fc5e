"""One answer to many questions: calls in doubt, and runs of a journal that was restored.

They are alike, and there can be hundreds of them after a restore. Any other question is about its own run, and is
answered by itself.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ripstop.engine.engine import Engine
from ripstop.engine.ports import MAX_PAGE, DeskQuery, Question
from ripstop.kernel.doubts import DOUBT_CHOICES
from ripstop.kernel.effects import CallTool
from ripstop.kernel.errors import QuestionClosed, RunDamaged, UsageError
from ripstop.kernel.restoring import CHOICES as RESTORED_CHOICES
from ripstop.kernel.restoring import GO_ON
from ripstop.kernel.run import DOUBT, RESTORED, Run
from ripstop.kernel.text_limits import shown

CHOICES = {DOUBT: (*DOUBT_CHOICES, GO_ON), RESTORED: tuple(RESTORED_CHOICES)}
"""What such questions can be answered with, by their purpose."""


LETS_CALLS = ("again", "continue")
"""Choices after which calls are made that the questions show."""
Agree = Callable[[list[Question]], Awaitable[bool]]


class BulkAnswers(Struct, frozen=True):
    answered: tuple[str, ...]
    """The questions, as `run/number`."""
    refused: dict[str, str]
    """Why others stay open."""


async def answer_all(
    engine: Engine,
    purpose: str,
    choice: str,
    words: str = "",
    by: str = "",
    tool: str = "",
    agree: Agree | None = None,
) -> BulkAnswers:
    """Give one answer to every open question of a purpose; with `tool` only where a call of it is in doubt, or open.

    Answers that were given stay if a later one is refused. Raises `UsageError` if no question accepts the answer, if
    `choice` is not one that such questions have, or if there are questions but none is about `tool`.

    Args:
        agree: Is shown the questions whose answer lets calls be made; if it does not agree, nothing is answered.
    """
    if choice not in CHOICES[purpose]:
        raise UsageError(f"{shown(choice)} is not an answer to them. Expected one of: {', '.join(CHOICES[purpose])}.")
    answered, refused, others = list[str](), dict[str, str](), set[str]()
    wanted = list[Question]()
    for question in await _questions(engine, purpose):
        try:
            tools = _tools((await engine.look(question.run_id)).run, question) if tool else set[str]()
        except RunDamaged as error:
            refused[_name(question)] = str(error)
            continue
        if tool and tool not in tools:
            others |= tools
        else:
            wanted.append(question)
    if agree and wanted and choice in LETS_CALLS and not await agree(wanted):
        return BulkAnswers((), {})
    for question in wanted:
        name = _name(question)
        try:
            await engine.answer(question.run_id, question.number, words, choice=choice, by=by)
            answered.append(name)
        except QuestionClosed:
            continue  # somebody was quicker
        except (UsageError, RunDamaged) as error:
            refused[name] = str(error)
    if refused and not answered:
        raise UsageError(next(iter(refused.values())))
    if others and not answered:
        raise UsageError(f"None of them is about a call of {shown(tool)}. They are about: {', '.join(sorted(others))}.")
    return BulkAnswers(tuple(answered), refused)


def _name(question: Question) -> str:
    return f"{question.run_id}/{question.number}"


async def _questions(engine: Engine, purpose: str) -> list[Question]:
    found, query = list[Question](), DeskQuery(purpose=purpose, size=MAX_PAGE)
    while True:
        page = await engine.desk(query)
        found += page.items
        if not page.next:
            return found
        query = replace(query, cursor=page.next)


def _tools(run: Run[Any], question: Question) -> set[str]:
    """The tools that a question is about: of the call in doubt, or of all calls that are open."""
    ask = question.command
    numbers = ask.about if ask.purpose == DOUBT else tuple(run.open)
    commands = (run.open[number].command for number in numbers if number in run.open)
    return {command.tool for command in commands if isinstance(command, CallTool)}
