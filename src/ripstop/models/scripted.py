"""An agent that says what a script says, so that examples, tests and benchmarks need no model.

- A script is a JSONL file (one reply a line), or a folder `PATH/<agent>/NN_reply.txt`.
- Every run starts at the top. An agent gets the next unused line that names it or names no agent.
- Which lines are used follows from the run's journal: a command uses a line when it is asked, in the
  order of the journal, and every attempt at it gets the same line. Only after a line with the error
  `rate_limit` or `timeout` does the next attempt use the next line. So a run that was killed
  and resumed gets the same replies. A fork gives back what was asked and not answered.
- The journal is read once per run and process, and again only when another process has continued the
  run; otherwise a call costs the same however long the run is.
- A reply with a `delay` comes in pieces over that time if somebody watches, as a model's would.
"""

import asyncio
import errno
import json
import os
import re
from collections import OrderedDict
from collections.abc import Iterable
from math import ceil
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ripstop.engine.live import Live, Token
from ripstop.engine.performers import PromptTooLong, Refused, Request, TryAgain
from ripstop.kernel.effects import AgentReplied, AskAgent, ToolCall, Usage
from ripstop.kernel.errors import DefinitionError, Unwritable
from ripstop.kernel.events import Allowed, Answered, Asked, Forked, Record, Reopened, Withdrawn
from ripstop.kernel.text_limits import plain
from ripstop.security.files import SYMBOLIC_LINK, read_plain_file

from .chat_reply import UnreadableArguments, arguments_in

# Reads the scripts of scripted agents, and says with file:line what is wrong with one.
#
# A line is an object: `agent`, `reply`, `calls` [{tool, args}], `error`, `delay` (seconds), `usage`.
# At least one of `reply`, `calls` and `error` must be there. Blank lines count for nothing.
#
# A folder of `NN_reply.txt` files is a recording of a run that has happened: its replies are marked `recorded`, so that
# a style does not ask the agent to correct one. The lines of a JSONL file are not: a script can contain the correction.


KEYS = ("agent", "reply", "calls", "error", "delay", "usage", "finish")
FINISHES = ("stop", "length")
ERRORS = ("rate_limit", "timeout", "refused", "context_length")
PASSING = ("rate_limit", "timeout")
"""Errors that another attempt gets over."""
USAGE_KEYS = ("input_tokens", "output_tokens", "money")
MAX_BYTES = 64_000_000
LONGEST_DELAY = 86_400
"""Seconds that a line can have an agent wait."""
MOST_USED = 2**53
"""Tokens, or money, of one line."""
LONGEST_SHOWN = 80
REPLY_FILE = re.compile(r"(\d+)_reply\.txt")


class Call(Struct, frozen=True):
    tool: str
    args: dict[str, Any]
    malformed: str = ""


class ScriptLine(Struct, frozen=True):
    where: str
    """file:line, or the file of a folder."""
    agent: str
    """Empty: for anybody."""
    reply: AgentReplied
    calls: tuple[Call, ...] = ()
    error: str = ""
    delay: float = 0.0

    @property
    def passing(self) -> bool:
        return self.error in PASSING


class Script:
    def __init__(self, path: Path, lines: tuple[ScriptLine, ...]) -> None:
        self.lines = lines
        self._path = path
        self._queues: dict[str, list[int]] = {}
        self._named = {line.agent for line in lines}

    def queue(self, agent: str) -> list[int]:
        """The lines that this agent may get, in order."""
        known = agent if agent in self._named else ""
        queue = self._queues.get(known)
        if queue is None:
            queue = self._queues[known] = [i for i, line in enumerate(self.lines) if line.agent in ("", known)]
        return queue

    def ran_out(self, agent: str) -> str:
        own = sum(line.agent == agent for line in self.lines)
        anybody = sum(line.agent == "" for line in self.lines)
        return (
            f"The script {str(self._path)!r} has no line left for agent {agent!r}. Lines in it: {len(self.lines)}; for "
            f"this agent: {own}; for any agent: {anybody}. This run has used all that it can. Add a line for it."
        )


def script_path(name: str) -> Path:
    """The file or folder that `script:PATH` names."""
    return Path(os.path.expanduser(name))  # pathlib's raises for an unknown user


def read_script(path: Path) -> Script:
    try:
        lines = _read_folder(path) if path.is_dir() else _read_file(path)
    except OSError as error:
        raise DefinitionError(
            f"The script {str(error.filename or path)!r} cannot be read: {error.strerror}. "
            "`script:PATH` wants a JSONL file, or a folder with <agent>/NN_reply.txt files."
        ) from error
    return Script(path, lines)


def _read_folder(path: Path) -> tuple[ScriptLine, ...]:
    lines = []
    for folder in sorted(entry for entry in path.iterdir() if entry.is_dir()):
        if folder.is_symlink():
            raise OSError(errno.ELOOP, SYMBOLIC_LINK, str(folder))
        replies = [(int(found[1]), file) for file in folder.iterdir() if (found := REPLY_FILE.fullmatch(file.name))]
        for _, file in sorted(replies):
            reply = AgentReplied(text=_text(file, one_name=True), recorded=True)
            lines.append(ScriptLine(where=str(file), agent=folder.name, reply=reply))
    if not lines:
        raise DefinitionError(
            f"The script folder {str(path)!r} has no replies. Put them into <agent>/01_reply.txt, 02_reply.txt, …"
        )
    return tuple(lines)


def _read_file(path: Path) -> tuple[ScriptLine, ...]:
    lines = tuple(
        _ScriptReader(f"{path}:{number}").line(text)
        for number, text in enumerate(_text(path).split("\n"), start=1)
        if text.strip()
    )
    if not lines:
        raise DefinitionError(f'{path}:1: the script is empty. Write one object a line: {{"agent": "x", "reply": "…"}}')
    return lines


def _text(path: Path, one_name: bool = False) -> str:
    try:
        return read_plain_file(path, MAX_BYTES, one_name).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DefinitionError(f"{path}: not UTF-8 at byte {error.start}. Save the file as UTF-8.") from error


class _ScriptReader:
    """Checks one line; every problem begins with its position."""

    def __init__(self, where: str) -> None:
        self._where = where

    def line(self, text: str) -> ScriptLine:
        try:
            found = json.loads(text)
            made = plain(found)
        except (Unwritable, RecursionError) as error:
            raise self._wrong(f"this cannot be kept in a journal: {error}") from error
        except ValueError as error:
            raise self._wrong(f'not JSON ({error}); a line is an object like {{"agent": "x", "reply": "…"}}') from error
        if not isinstance(found, dict):
            raise self._wrong(f'{_shown(found)} is not an object; write {{"agent": "x", "reply": "…"}}')
        self._known(found, KEYS, "key")
        if not any(key in found for key in ("reply", "calls", "error")):
            raise self._wrong("the line says nothing; give it `reply`, `calls` or `error`")
        trouble = self._string(found, "error")
        if "error" in found and trouble not in ERRORS:
            raise self._wrong(f"`error` is {trouble!r}; it can be {', '.join(ERRORS)}")
        line = ScriptLine(
            where=self._where,
            agent=self._string(found, "agent"),
            reply=AgentReplied(
                text=self._string(found, "reply"),
                usage=self._usage(found.get("usage", {})),
                cut=self._finish(found) == "length",
            ),
            calls=self._calls(found.get("calls", [])),
            error=trouble,
            delay=self._number(found.get("delay", 0), "delay", LONGEST_DELAY),
        )
        if made != found:
            raise self._wrong("half a character (a lone surrogate such as \\ud800), or a number such as NaN or 1e999")
        return line

    def _wrong(self, problem: str) -> DefinitionError:
        return DefinitionError(f"{self._where}: {problem}")

    def _known(self, found: dict[str, Any], keys: tuple[str, ...], what: str) -> None:
        for key in found:
            if key not in keys:
                raise self._wrong(f"unknown {what} {key!r}; known are {', '.join(keys)}")

    def _string(self, found: dict[str, Any], key: str) -> str:
        value = found.get(key, "")
        if not isinstance(value, str):
            raise self._wrong(f'`{key}` is {_shown(value)}; it must be a text in quotes, like "{key}": "…"')
        return value

    def _finish(self, found: dict[str, Any]) -> str:
        finish = self._string(found, "finish") or "stop"
        if finish not in FINISHES:
            raise self._wrong(f"`finish` is {finish!r}; it can be {', '.join(FINISHES)}")
        return finish

    def _number(self, value: Any, key: str, most: int) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
            raise self._wrong(f"`{key}` is {_shown(value)}; it must be a number, from 0 to {most}")
        return value

    def _calls(self, found: Any) -> tuple[Call, ...]:
        if not isinstance(found, list):
            raise self._wrong(
                f'`calls` is {_shown(found)}; it must be a list like [{{"tool": "read_file", "args": {{}}}}]'
            )
        calls = []
        for call in found:
            if not isinstance(call, dict) or not isinstance(call.get("tool"), str) or not call["tool"]:
                raise self._wrong(f'a call is {_shown(call)}; it must be like {{"tool": "read_file", "args": {{}}}}')
            self._known(call, ("tool", "args"), "key of a call")
            args, malformed = call.get("args", {}), ""
            if isinstance(args, str):  # as a model wrote them
                try:
                    args = arguments_in(args)
                except UnreadableArguments as error:
                    args, malformed = {}, str(error)
            if not isinstance(args, dict):
                raise self._wrong(f'`args` of {call["tool"]!r} is {_shown(args)}; it must be like {{"path": "a.txt"}}')
            calls.append(Call(tool=call["tool"], args=args, malformed=malformed))
        return tuple(calls)

    def _usage(self, found: Any) -> Usage:
        if not isinstance(found, dict):
            raise self._wrong(f'`usage` is {_shown(found)}; it must be an object like {{"input_tokens": 10}}')
        self._known(found, USAGE_KEYS, "key of `usage`")
        for key in ("input_tokens", "output_tokens"):
            if isinstance(found.get(key, 0), float):
                raise self._wrong(f"`{key}` is {found[key]!r}; tokens are whole numbers")
        numbers = {key: self._number(found.get(key, 0), key, MOST_USED) for key in USAGE_KEYS}
        usage = Usage(int(numbers["input_tokens"]), int(numbers["output_tokens"]))
        # another 0.0 than the default would be written into every record
        return replace(usage, money=float(numbers["money"])) if numbers["money"] else usage


def _shown(value: object) -> str:
    """A wrong value as a message shows it, however large it is."""
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


REMEMBERED_RUNS = 4096
REMEMBERED_COMMANDS = 256
"""Per run. An attempt at a command that was asked longer ago is looked up in the journal again."""
THINKING = 0.3
"""The part of a delay that passes before the first piece of a reply is shown."""
PIECES_A_SECOND = 15


class ScriptedAgent:
    def __init__(self, path: str | Path, live: Live | None = None) -> None:
        """`live`: is shown the pieces of replies that take time."""
        self._script = read_script(Path(path))
        self._live = live
        self._runs: OrderedDict[str, _ScriptPosition] = OrderedDict()

    async def perform(self, request: Request) -> AgentReplied:
        command = request.command
        assert isinstance(command, AskAgent), command
        reading = await self._reading(request)
        line = reading.line_for(request.number, command.agent, request.attempt)
        reading.forget_old()
        request.progress.left()
        if line is None:
            raise Refused(self._script.ran_out(command.agent), fault="agent")
        if line.error:
            await asyncio.sleep(line.delay)
            if not line.passing:
                self._runs.pop(request.run_id, None)  # the run may be retried; then its journal says what comes next
            raise _trouble(line, command.agent)
        await self._say(request, line)
        if not line.calls:
            return line.reply
        calls = tuple(
            ToolCall(id=f"call_{request.number}_{index}", tool=call.tool, arguments=call.args, malformed=call.malformed)
            for index, call in enumerate(line.calls)
        )
        return replace(line.reply, calls=calls)

    async def close(self) -> None:
        self._runs.clear()

    async def _say(self, request: Request, line: ScriptLine) -> None:
        """Take the time that a reply takes, and show it piece by piece to those who watch."""
        text, live = line.reply.text, self._live
        if not (line.delay and text and live and live.watched):
            if line.delay:
                await asyncio.sleep(line.delay)
            request.progress.receive(len(text))
            return
        await asyncio.sleep(line.delay * THINKING)
        speaking = line.delay * (1 - THINKING)
        size = ceil(len(text) / max(1, int(speaking * PIECES_A_SECOND)))
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        for piece in pieces:
            request.progress.receive(len(piece))
            live.show(Token(request.run_id, request.number, piece, request.attempt))
            await asyncio.sleep(speaking / len(pieces))

    async def _reading(self, request: Request) -> "_ScriptPosition":
        reading = self._runs.get(request.run_id)
        if reading is not None and reading.knows(request.number, request.ordinal):
            self._runs.move_to_end(request.run_id)
            return reading
        again = reading
        records = await request.history()
        reading = self._runs.get(request.run_id)
        if reading is again:  # no other call has read the journal meanwhile
            reading = self._runs[request.run_id] = _ScriptPosition(self._script, records)
            if len(self._runs) > REMEMBERED_RUNS:
                self._runs.popitem(last=False)
        assert reading is not None
        return reading


def _trouble(line: ScriptLine, agent: str) -> TryAgain | Refused:
    said = f"{line.where}: the script says that agent {agent!r} meets {line.error!r}"
    if line.error == "rate_limit":
        return TryAgain(said, provider_wide=True)
    if line.error == "timeout":
        return TryAgain(said)
    if line.error == "context_length":
        return PromptTooLong(f"{said}.")
    return Refused(said, fault="agent")


class _ScriptPosition:
    """How far one run has read the script."""

    __slots__ = ("_count", "_highest", "_next", "_script", "_taken", "_unsettled", "_used")

    def __init__(self, script: Script, records: Iterable[Record]) -> None:
        self._script = script
        self._used = bytearray(len(script.lines))
        self._next: dict[str, int] = {}
        self._taken: OrderedDict[int, list[int]] = OrderedDict()
        self._highest = 0
        self._count = 0
        self._unsettled: set[int] = set()
        self._replay(records)

    def knows(self, number: int, ordinal: int) -> bool:
        """Whether this command is the very next or remembered; else only the journal can tell its line.

        Another process may have gone on with the run in the meantime: then it is not the very next, or a
        command that we left with an error has used more lines there.
        """
        if number in self._taken:
            return True
        return number > self._highest and ordinal in (0, self._count + 1) and not self._unsettled

    def line_for(self, number: int, agent: str, attempt: int) -> ScriptLine | None:
        taken = self._taken.get(number)
        if taken is None:
            taken = self._taken[number] = []
            self._count += 1
            self._highest = max(self._highest, number)
        lines = self._script.lines
        while len(taken) < attempt and (not taken or lines[taken[-1]].passing):
            index = self._take(agent)
            if index is None:
                return None
            taken.append(index)
        if lines[taken[-1]].passing:
            self._unsettled.add(number)
        else:
            self._unsettled.discard(number)
        return lines[taken[-1]]

    def forget_old(self) -> None:
        while len(self._taken) > REMEMBERED_COMMANDS:
            self._taken.popitem(last=False)

    def _take(self, agent: str) -> int | None:
        queue = self._script.queue(agent)
        position = self._next.get(agent, 0)
        while position < len(queue) and self._used[queue[position]]:
            position += 1
        self._next[agent] = position
        if position == len(queue):
            return None
        self._used[queue[position]] = 1
        return queue[position]

    def _replay(self, records: Iterable[Record]) -> None:
        """Use up what earlier commands used up."""
        asked: dict[int, str] = {}
        calls: dict[int, str] = {}
        for record in records:
            match record.event:
                case Asked(command=AskAgent(agent=agent), waits=False):
                    asked[record.number] = calls[record.number] = agent
                    self.line_for(record.number, agent, 1)
                case Allowed(number=number, command=AskAgent(agent=agent)):
                    asked[number] = calls[number] = agent
                    self.line_for(number, agent, 1)
                case Answered(to=to, attempt=attempt) if to in asked:
                    self.line_for(to, asked.pop(to), attempt)
                    self._unsettled.discard(to)
                case Reopened(number=number) if number in calls:
                    asked[number] = calls[number]
                    if (index := self._take(calls[number])) is not None:
                        self._taken.setdefault(number, []).append(index)
                case Forked():
                    self._give_back(asked)
                    asked.clear()
                case Withdrawn(number=number, unmade=True) if number in calls:
                    self._count -= 1  # as the run counts its calls

    def _give_back(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            for index in self._taken.pop(number, ()):
                self._used[index] = 0
        self._next.clear()
