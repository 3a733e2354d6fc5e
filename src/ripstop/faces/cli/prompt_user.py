"""Asks the person at the terminal what a run waits for, and answers with what is typed.

- Only questions of the run that is followed, and of those that it started. A question that is meant for somebody
  (`to`) is asked only if that is the user; whether the user has a role is not known here.
- The whole line is the choice or its label; any other text is what the question makes of it, as in `ripstop answer`.
- `later`, or Ctrl-D, leaves a question on the desk.
- The question stays on the desk while it is asked here. If somebody else is quicker, the run goes on with that answer.
"""

import asyncio
import os
import sys
import termios
from collections.abc import Coroutine
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from ripstop.engine.people import already_answered
from ripstop.engine.ports import DeskQuery
from ripstop.kernel.desk_kinds import DOUBTED, GUARDED
from ripstop.kernel.doubts import HAPPENED
from ripstop.kernel.errors import UsageError
from ripstop.kernel.questions import choice_named, read_field
from ripstop.kernel.resuming import STOP

from .blocks import print_indented
from .desk import answer_or_keep, answer_with_copy, recorded_answer, show_item
from .errors import error_report
from .init import EditedCopy
from .log import all_questions
from .options import user_name
from .terminal import console_for, say, show_prompt
from .words import field_words, one_of

if TYPE_CHECKING:
    from ripstop.engine.engine import Engine
    from ripstop.engine.ports import Question
    from ripstop.history.desk import DeskItem
    from ripstop.kernel.effects import AskPerson, Field

    from .screen import Screen


# Lines that a person types, read without holding up the work of this process.
#
# - Lines that are pasted at once are one text: the second must not answer the next question.
# - What was typed before a question was shown is not an answer to it: an empty line would be one.
# - The terminal itself edits the line (backspace, Ctrl-U), and cuts one that is too long; that is noticed.


LONGEST_LINE = 4095 if sys.platform == "linux" else 1023
"""Bytes of a line that a terminal passes on, with its newline."""
PASTED = 0.05
"""Seconds within which the rest of a pasted text follows its first line."""
MAX_ANSWER_BYTES = 4_000_000
"""Bytes of an answer."""


def forget_typed() -> None:
    """Drop what was typed and not read yet."""
    termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


async def typed_text() -> str | None:
    """The next line that a person types, or the lines that they paste; `None` for Ctrl-D on an empty line.

    Without the newline at the end. Raises `UsageError` for a line that the terminal has cut, and for too many lines.
    """
    piece = text = await _line(None)
    while piece.endswith(b"\n") and (piece := await _line(PASTED)):
        text += piece
        if len(text) > MAX_ANSWER_BYTES:
            forget_typed()
            raise UsageError(f"An answer has at most {MAX_ANSWER_BYTES:,} bytes. Put it into a file: --file FILE.")
    return text.removesuffix(b"\n").decode("utf-8", "replace") if text else None


async def _line(patience: float | None) -> bytes:
    """The next line; empty if there is none in time, for Ctrl-D, and if the terminal is gone."""
    loop, handle, ready = asyncio.get_running_loop(), sys.stdin.fileno(), asyncio.Event()
    loop.add_reader(handle, ready.set)
    try:
        async with asyncio.timeout(patience):
            await ready.wait()
        line = os.read(handle, LONGEST_LINE + 1)
    except (TimeoutError, OSError):  # EIO: the terminal was closed
        return b""
    finally:
        loop.remove_reader(handle)
    if len(line) >= LONGEST_LINE:
        forget_typed()
        raise UsageError(f"The terminal has cut this line: it passes on {LONGEST_LINE:,} bytes. Break it into several.")
    return line


LATER = "later"
LINES_SHOWN = 300
"""Lines of a document that are shown before a question."""
CHECK_INTERVAL = 1.0
"""Seconds between two checks whether somebody else has answered."""


class _Left(Exception):
    """The person leaves the question on the desk."""


class TerminalPrompts:
    """A person at a terminal, and the questions that they have left on the desk."""

    def __init__(self, engine: "Engine", screen: "Screen", run_id: str) -> None:
        self._engine = engine
        self._screen = screen
        self._run_id = run_id
        self._left: set[tuple[str, int]] = set()

    async def ask(self) -> bool:
        """Ask what the run waits for now. Returns whether anything was answered, so that the run may go on."""
        moved = False
        with self._screen.held():
            while questions := await self._questions():
                moved |= await self._ask(questions[0])
        return moved

    async def _questions(self) -> "list[Question]":
        info = await self._engine.journal.run(self._run_id)
        found = await all_questions(self._engine, DeskQuery(root=info.root if info else self._run_id))
        return [
            one
            for one in found
            if (one.run_id == self._run_id or one.run_id.startswith(f"{self._run_id}."))
            and one.command.to in ("", user_name())
            and (one.run_id, one.number) not in self._left
        ]

    async def _ask(self, question: "Question") -> bool:
        """Ask one question until it is answered; false if it is left on the desk."""
        from ripstop.history.desk import desk_item

        item = await desk_item(self._engine, question)
        say()
        show_item(item, whole=True, most=LINES_SHOWN, with_command=False)
        _show_choices(item)
        forget_typed()
        with ExitStack() as stack:
            return await self._ask_until_answered(item, question.command, stack)

    async def _ask_until_answered(self, item: "DeskItem", ask: "AskPerson", stack: ExitStack) -> bool:
        """Ask one question, which is shown, until it is answered. An edited copy is closed by the stack."""
        copy: EditedCopy | None = None
        while True:
            try:
                said = await self._until_closed(item, _said(item, ask))
                if item.edit and said["choice"] == item.edit:
                    if copy is None:
                        copy = EditedCopy(item.document or "", f"{item.run}-{item.number}")
                        stack.callback(copy.close)
                    await answer_with_copy(self._engine, item.run, item.number, said, copy)
                else:
                    await answer_or_keep(self._engine, item.run, item.number, said)
            except _Left:
                self._left.add((item.run, item.number))
                say(f"{item.id} stays on the desk.")
                return False
            except UsageError as error:
                say(error_report(error).error)
                if not await self._is_open(item):
                    return True
            else:
                say(f"Answered: {await recorded_answer(self._engine, item.run, item.number)}.")
                return True

    async def _until_closed(self, item: "DeskItem", typing: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
        """What is typed. Raises `UsageError` if the question is answered elsewhere before that, or withdrawn."""
        task = asyncio.ensure_future(typing)
        try:
            while True:
                done, _ = await asyncio.wait([task], timeout=CHECK_INTERVAL)
                if done:
                    return task.result()
                if not await self._is_open(item):
                    say()
                    forget_typed()  # or the shell would get it
                    run = (await self._engine.look(item.run)).run
                    raise already_answered(run, item.number, await self._engine.journal.read(item.run))
        finally:
            task.cancel()
            await asyncio.wait([task])

    async def _is_open(self, item: "DeskItem") -> bool:
        return item.number in (await self._engine.look(item.run)).run.open


def _show_choices(item: "DeskItem") -> None:
    width = max(map(len, item.choices), default=0)
    for choice, label in item.choices.items():
        say(f"  {choice:{width}}", (f"  {label}" if label != choice else "", "dim"))
    other = f"; any other text is {item.other}" if item.other else ""
    empty = f"; Enter alone is {item.empty}" if item.empty else ""
    what = f"Type {one_of(item.choices)}{other}{empty}" if item.choices else "Type your answer"
    told = f"{what}. A line that ends with \\ goes on. `{LATER}` or Ctrl-D leaves it on the desk."
    print_indented(console_for(), 2, (told, "dim"))


async def _said(item: "DeskItem", ask: "AskPerson") -> dict[str, Any]:
    """What the person answers, as `Engine.answer` takes it. Raises `_Left`, or `UsageError` if it cannot be."""
    words = await _typed("> ")
    choice = choice_named(ask.choices, words)
    if not choice and words.strip().casefold() == LATER:
        raise _Left
    said: dict[str, Any] = {"words": "" if choice or not words.strip() else words, "choice": choice, "by": user_name()}
    if ask.choices and not choice:
        said["choice"] = choice = ask.other if words.strip() else ask.empty
        if not choice:
            raise UsageError(f"Type {one_of(ask.choices)}, or {LATER}.")
    elif choice and choice == ask.other:
        said["words"] = await _typed(f"{choice}: ")
    elif item.kind == DOUBTED and choice == HAPPENED:
        said["words"] = await _typed("What came of it? (Enter: nothing) ")
    if not choice or (choice not in (ask.empty, ask.edit) and not (item.kind == GUARDED and choice == STOP)):
        said["fields"] = {name: await _field(name, field) for name, field in ask.fields.items()}
    return said


async def _field(name: str, field: "Field") -> str:
    """A field of the answer; empty if it is left out."""
    print_indented(console_for(), 2, (f"{name}  ", "bold"), (field_words(field), "dim"))
    while True:
        text = await _typed(f"{name}: ")
        try:
            if text.strip():
                read_field(name, field, text.strip())
            elif field.required:
                raise UsageError(f"{name} is needed.")
        except UsageError as error:
            say(str(error))
        else:
            return text.strip()


async def _typed(prompt: str) -> str:
    """What is typed after a prompt, on as many lines as end with a backslash. Raises `_Left` for Ctrl-D."""
    text = ""
    while True:
        show_prompt((prompt, "bold"))
        typed = await typed_text()
        if typed is None:
            say()
            raise _Left
        if not typed.endswith("\\"):
            return text + typed
        text, prompt = f"{text}{typed[:-1]}\n", "… "
