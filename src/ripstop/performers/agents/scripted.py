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
from collections import OrderedDict
from collections.abc import Iterable
from math import ceil
from pathlib import Path

from ripstop.kernel.effects import AgentReplied, AskAgent, ToolCall
from ripstop.kernel.events import Answered, Asked, Forked, Record, Withdrawn
from ripstop.runtime.live import Live, Token
from ripstop.runtime.performers import Refused, Request, TryAgain

from .script_file import Script, ScriptLine, read_script

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
        if line is None:
            raise Refused(self._script.ran_out(command.agent), fault="agent")
        if line.error:
            await asyncio.sleep(line.delay)
            raise _trouble(line, command.agent)
        await self._say(request, line)
        if not line.calls:
            return line.reply
        calls = tuple(
            ToolCall(id=f"call_{request.number}_{index}", tool=call.tool, arguments=call.args)
            for index, call in enumerate(line.calls)
        )
        return AgentReplied(text=line.reply.text, calls=calls, usage=line.reply.usage)

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
        calls: set[int] = set()
        for record in records:
            match record.event:
                case Asked(command=AskAgent(agent=agent)):
                    asked[record.number] = agent
                    calls.add(record.number)
                    self.line_for(record.number, agent, 1)
                case Answered(to=to, attempt=attempt) if to in asked:
                    self.line_for(to, asked.pop(to), attempt)
                    self._unsettled.discard(to)
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
