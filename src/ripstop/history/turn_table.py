"""The turns of a run and its calls, in columns: about 60 bytes a turn beside its gist, and 24 a call.

Texts that many turns have in common are kept once. What a page shows of a turn (`TurnLine`) is made when it is asked
for.
"""

from array import array
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

from msgspec import Struct

from ripstop.text.diagrams.lanes import LaneCall
from ripstop.text.translation import Told

T = TypeVar("T", bound=Hashable)

MOST_TOKENS = 2**62
MOST_TROUBLE = 5
"""Texts about trouble that are kept of one turn."""


class TurnLine(Struct, frozen=True, gc=False):
    """A turn on one line. Times are in microseconds."""

    index: int
    """Counted from 1; 0 for what happened before the first turn."""
    first: int
    last: int
    """Its first and its last record."""
    began: int
    ended: int
    """When nothing of it was under way any more; 0 while something is."""
    agent: str
    """Who took it: an agent, or the workflow that was started; empty for what no agent had to do with."""
    where: str
    gist: str
    """The first words for people of its last reply; of a turn that no agent took, of what was said in it."""
    way: str
    """Where its decision led; empty: nowhere, or there is none yet."""
    condition: str
    """The condition that held for it."""
    decided: int
    """The record whose reasons tell why; 0 for none."""
    tokens: int
    seconds: float
    """How long an agent, a tool or a child was at work in it, up to its last answer."""
    tools: tuple[str, ...]
    """The tools that were called in it."""
    trouble: tuple[Told, ...]
    """What went wrong in it, at most `MOST_TROUBLE` texts."""
    waits: bool = False
    """All that is under way in it was refused, and waits to be made again."""


class _Shared(Generic[T]):
    """Values that many turns have in common, each kept once and named by a number."""

    def __init__(self, empty: T) -> None:
        self._numbers: dict[T, int] = {empty: 0}
        self._values = [empty]

    def __getitem__(self, number: int) -> T:
        return self._values[number]

    def number(self, value: T) -> int:
        number = self._numbers.get(value)
        if number is None:
            number = self._numbers[value] = len(self._values)
            self._values.append(value)
        return number


class TurnTable:
    """Turns by their row, from 0; a row is added when a turn begins, and changed as long as anything comes of it."""

    def __init__(self) -> None:
        self.rows = 0
        self.first, self.decided = array("I"), array("I")
        self.began, self.ended, self.tokens = array("q"), array("q"), array("q")
        self.seconds = array("d")
        self._agent, self._where, self._way, self._condition = array("I"), array("I"), array("I"), array("I")
        self._tools = array("I")
        self._gist_at, self._gist_size = array("I"), array("H")
        self._gists = bytearray()
        self._last_gist = ""
        """That of the last row, which often changes before it is kept."""
        empty = (self._way, self._condition, self._tools, self._gist_at, self._gist_size, self.decided, self.tokens)
        self._append_zero = [column.append for column in (*empty, self.ended, self.seconds)]
        self._columns = (*empty, self.ended, self.seconds, self.first, self.began, self._agent, self._where)
        self._trouble: dict[int, list[Told]] = {}
        self._texts = _Shared("")
        self._troubles: _Shared[Told] = _Shared("")
        self._tool_names: _Shared[tuple[str, ...]] = _Shared(())

    def add(self, first: int, began: int, agent: str, where: str) -> int:
        """Add a row; returns it."""
        row = self.rows
        if row and self._last_gist:
            self._keep_gist(row - 1, self._last_gist)
            self._last_gist = ""
        for append in self._append_zero:
            append(0)
        self.first.append(first)
        self.began.append(began)
        self._agent.append(self._texts.number(agent))
        self._where.append(self._texts.number(where))
        self.rows = row + 1
        return row

    def drop_last(self) -> None:
        """Take back the last row, of which nothing came."""
        self.rows -= 1
        for column in self._columns:
            column.pop()
        if self.rows:
            at = self._gist_at[-1]
            self._last_gist = self._gists[at : at + self._gist_size[-1]].decode()
        else:
            self._last_gist = ""

    def has_trouble(self, row: int) -> bool:
        return row in self._trouble

    def name(self, row: int, agent: str, where: str) -> None:
        self._agent[row], self._where[row] = self._texts.number(agent), self._texts.number(where)

    def has_name(self, row: int) -> bool:
        return self._agent[row] != 0

    def gist(self, row: int) -> str:
        if row == self.rows - 1:
            return self._last_gist
        at = self._gist_at[row]
        return self._gists[at : at + self._gist_size[row]].decode()

    def set_gist(self, row: int, gist: str) -> None:
        if row == self.rows - 1:
            self._last_gist = gist
        else:
            self._keep_gist(row, gist)

    def set_way(self, row: int, way: str, condition: str, decided: int) -> None:
        self._way[row], self._condition[row] = self._texts.number(way), self._texts.number(condition)
        self.decided[row] = decided

    def add_tokens(self, row: int, tokens: int) -> None:
        if tokens > 0:
            self.tokens[row] = min(MOST_TOKENS, self.tokens[row] + tokens)

    def add_tool(self, row: int, tool: str) -> None:
        before = self._tool_names[self._tools[row]]
        if tool not in before:
            self._tools[row] = self._tool_names.number((*before, tool))

    def add_trouble(self, row: int, told: Told) -> None:
        known = self._trouble.setdefault(row, [])
        if len(known) < MOST_TROUBLE and told not in known:
            known.append(self._troubles[self._troubles.number(told)])

    @property
    def troubled(self) -> list[int]:
        """The rows with trouble."""
        return sorted(self._trouble)

    def line(self, row: int, index: int, last: int, waits: bool) -> TurnLine:
        texts = self._texts
        return TurnLine(
            index,
            self.first[row],
            last,
            self.began[row],
            self.ended[row],
            texts[self._agent[row]],
            texts[self._where[row]],
            self.gist(row),
            texts[self._way[row]],
            texts[self._condition[row]],
            self.decided[row],
            self.tokens[row],
            self.seconds[row],
            self._tool_names[self._tools[row]],
            tuple(self._trouble.get(row, ())),
            waits,
        )

    def _keep_gist(self, row: int, gist: str) -> None:
        body = gist.encode(errors="replace")
        self._gist_at[row], self._gist_size[row] = len(self._gists), len(body)
        self._gists += body


class CallTable:
    """Calls of agents, tools and workflows: when each was at work."""

    def __init__(self) -> None:
        self._number, self._lane = array("I"), array("I")
        self._start, self._end = array("q"), array("q")
        self._lanes = _Shared("")

    def __iter__(self) -> Iterator[LaneCall]:
        lanes = self._lanes
        for number, lane, start, end in zip(self._number, self._lane, self._start, self._end, strict=True):
            if number:
                yield LaneCall(lanes[lane], start, end, number)

    def begin_again(self, row: int, at: int) -> None:
        self._start[row] = at

    def drop(self, row: int) -> None:
        """Take back a call that was never made."""
        self._number[row] = 0

    def open(self, number: int, lane: str, at: int) -> int:
        """Add a call; returns its row. An empty lane is that of the tools."""
        self._number.append(number)
        self._lane.append(self._lanes.number(lane))
        self._start.append(at)
        self._end.append(0)
        return len(self._number) - 1

    def close(self, row: int, began: int, at: int) -> None:
        """It was at work until now, since it was asked or, if that is later, since `began`."""
        start = self._start[row]
        if not began <= start <= at:
            self._start[row] = min(at, max(start, began))
        self._end[row] = at
