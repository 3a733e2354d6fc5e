"""The outline of a run, grown record by record: a line for each turn, what is open, and how much went wrong.

- A turn begins with the command that asks an agent (unless it continues a turn) or starts a workflow, or with a message
  that comes while nothing is under way; the first agent that is asked because of it takes that turn. What comes before
  the next one belongs to it. What happens before the first turn is a line of its own if it is worth one.
- Whatever it is grown by, step by step or all at once, the outline of the same records is the same.
- It knows no style: `where` is the style's picture, `way` and `condition` are what it explains, `gist` is what its
  reader of words finds in a reply.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, overload

from msgspec import Struct

from ripstop.kernel.effects import (
    AgentReplied,
    AskAgent,
    AskPerson,
    CallTool,
    Command,
    Failed,
    RunFinished,
    Say,
    StartRun,
)
from ripstop.kernel.events import (
    KERNEL_EVENTS,
    Answered,
    Asked,
    ChildSpoke,
    DoubtResolved,
    Ended,
    Event,
    Forked,
    GuardTripped,
    Heard,
    Record,
    Withdrawn,
)
from ripstop.kernel.run import Run
from ripstop.kernel.style import Style

from .step_starts import StepStarts
from .telling import cut, first_words, is_trouble, trouble
from .turn_table import CallTable, TurnLine, TurnTable

__all__ = ["OpenCommand", "Outline", "TurnLine"]

LONGEST_GIST = 160
LONGEST_WAY = 80
MOST_LATE = 200
"""Commands that were withdrawn and can still be answered, for what they cost."""
MICROSECONDS = 1_000_000
KERNEL = frozenset(KERNEL_EVENTS)
CLOSING = frozenset({DoubtResolved, Withdrawn, Ended, Forked})
"""Events besides an answer after which commands are not open any more."""


class OpenCommand(Struct, frozen=True, gc=False):
    """A command that is not answered yet."""

    number: int
    at: int
    """When it was asked, in microseconds."""
    command: Command
    in_doubt: bool = False
    """It may have taken effect, and a person is asked."""


class _Working(Struct):
    """What is under way in a turn."""

    calls: int
    since: int


class Outline(Sequence[TurnLine]):
    """The lines of a run, the oldest first."""

    def __init__(self, style: Style[Any]) -> None:
        self.style = style
        self.run: Run[Any] | None = None
        """The run after the last record."""
        self.trouble = 0
        """How many records are trouble."""
        self.calls = CallTable()
        """When agents, tools and workflows were at work: what lanes are drawn from."""
        self.steps = StepStarts()
        self._table = TurnTable()
        self._explains = type(style).explain is not Style.explain
        self._has_opening = False
        """Whether the first line is what happened before the first turn."""
        self._began = 0
        self._verdict = 0
        """The record with the last verdict of a guard."""
        self._open: dict[int, tuple[int, int]] = {}
        """Command at work → its row, and that of its call."""
        self._late: dict[int, int] = {}
        """Command withdrawn → its row."""
        self._working: dict[int, _Working] = {}
        self._message: int | None = None
        """The row that began with a message, if it is the last one."""
        self._is_taken = False
        """Whether an agent was asked because of it."""

    # Looking

    @property
    def records(self) -> int:
        return self.run.length if self.run else 0

    @property
    def turns(self) -> int:
        """How many turns were begun, those that were restarted included."""
        return self._table.rows - self._has_opening

    @property
    def last_word(self) -> int:
        """The record that says why the run is where it is: a guard's verdict, or the last one."""
        return self._verdict if self.run and self.run.verdict else self.records

    @property
    def open(self) -> tuple[OpenCommand, ...]:
        """What is open: what is under way, and what waits for a person or the clock."""
        if self.run is None:
            return ()
        doubted = self.run.doubts.values()
        return tuple(OpenCommand(n, one.at, one.command, n in doubted) for n, one in self.run.open.items())

    @property
    def troubled(self) -> list[TurnLine]:
        """The lines with trouble."""
        return [self._line(row) for row in self._table.troubled]

    def __len__(self) -> int:
        return self._table.rows

    @overload
    def __getitem__(self, index: int) -> TurnLine: ...

    @overload
    def __getitem__(self, index: slice) -> list[TurnLine]: ...

    def __getitem__(self, index: int | slice) -> TurnLine | list[TurnLine]:
        rows = range(self._table.rows)[index]
        return self._line(rows) if isinstance(rows, int) else [self._line(row) for row in rows]

    def __iter__(self) -> Iterator[TurnLine]:
        return (self._line(row) for row in range(self._table.rows))

    def place_of(self, number: int) -> int | None:
        """The place among the lines of the one that a record belongs to; `None` if none does."""
        row = bisect_right(self._table.first, number) - 1
        return row if row >= 0 and number <= self.records else None

    def _line(self, row: int) -> TurnLine:
        last = self._table.first[row + 1] - 1 if row + 1 < self._table.rows else self.records
        return self._table.line(row, row if self._has_opening else row + 1, last)

    # Growing

    def add(self, record: Record, run: Run[Any]) -> None:
        """Take in the next record; `run` is the run right after it."""
        event, at, before = record.event, record.at, self.run
        self._began = self._began or at
        self.run = run
        kind = type(event)
        if event.is_fact:
            self.steps.add(record.number)
        if kind is Asked:
            self._asked(record.number, at, event.command, run)  # type: ignore[attr-defined]
        elif kind is Answered:
            self._answered(event, at)  # type: ignore[arg-type]
        elif kind in CLOSING:
            self._close_others(run, at)
        elif kind is Heard:
            self._heard(record, event, run)  # type: ignore[arg-type]
        elif kind is ChildSpoke:
            self._row()
        elif kind not in KERNEL and self._explains and before is not None and self._table.rows:
            self._decided(record.number, event, before)
        if is_trouble(record):
            self._trouble(record, before)
        if self._has_opening and self._table.rows == 1 and not self._working:
            self._table.ended[0] = at

    def _row(self) -> int:
        """The row of what happens now; before the first turn, that of the opening."""
        if not self._table.rows:
            self._has_opening = True
            self._table.add(1, self._began, "", "")
        return self._table.rows - 1

    def _asked(self, number: int, at: int, command: Command, run: Run[Any]) -> None:
        if type(command) is AskAgent:
            if command.continues is None:
                row = self._begin(number, at, command.agent, run)
            else:
                place = self.place_of(command.continues)
                row = self._row() if place is None else place
            self._work(row, number, command.agent, at)
        elif type(command) is StartRun:
            self._work(self._begin(number, at, command.workflow, run), number, command.workflow, at)
        elif type(command) is CallTool:
            row = self._row()
            self._table.add_tool(row, command.tool)
            self._work(row, number, "", at)
            self._name_actor(row, run)
        elif type(command) is AskPerson:
            self._row()
        elif type(command) is Say:
            row = self._row()
            if row == self._message and command.text:
                self._table.set_gist(row, cut(command.text, LONGEST_GIST))
            self._name_actor(row, run)

    def _begin(self, number: int, at: int, agent: str, run: Run[Any]) -> int:
        where, last = cut(self.style.picture(run).where, LONGEST_WAY), self._table.rows - 1
        # all records of a step have the same time: it has ended right now, or it is under way
        if last == self._message and not self._is_taken and self._table.ended[last] in (0, at):
            self._is_taken = True
            self._table.name(last, agent, where)
            return last
        self._message = None
        return self._table.add(number if self._table.rows else 1, at, agent, where)

    def _heard(self, record: Record, heard: Heard, run: Run[Any]) -> None:
        if self._working:
            return
        first = record.number if self._table.rows else 1
        row = self._table.add(first, record.at, "", cut(self.style.picture(run).where, LONGEST_WAY))
        self._table.ended[row] = record.at
        self._table.set_gist(row, cut(heard.text, LONGEST_GIST))
        self._message, self._is_taken = row, False

    def _name_actor(self, row: int, run: Run[Any]) -> None:
        """Of a turn that no agent has taken: whose it is, as the style says."""
        if row == self._message and not self._is_taken and not self._table.has_name(row):
            picture = self.style.picture(run)
            self._table.name(row, cut(picture.whose_turn, LONGEST_WAY), cut(picture.where, LONGEST_WAY))

    def _work(self, row: int, number: int, lane: str, at: int) -> None:
        self._open[number] = row, self.calls.open(number, lane, at)
        working = self._working.get(row)
        if working is None:
            self._working[row] = _Working(1, at)
        else:
            working.calls += 1
        self._table.ended[row] = 0

    def _answered(self, event: Answered, at: int) -> None:
        answer, opened = event.answer, self._open.get(event.to)
        row = opened[0] if opened else self._late.pop(event.to, None)
        if row is None:
            return  # an answer of a person, a timer or a message
        tokens = event.retried.tokens
        if type(answer) is AgentReplied or type(answer) is RunFinished or type(answer) is Failed:
            tokens += answer.usage.tokens
        self._table.add_tokens(row, tokens)
        if not opened:
            return
        if type(answer) is AgentReplied:
            said = first_words(self.style, answer.text, LONGEST_GIST)
        else:
            said = cut(answer.because, LONGEST_GIST) if type(answer) is RunFinished else ""
        if said:
            self._table.set_gist(row, said)
        self._close(event.to, event.began, at)

    def _close_others(self, run: Run[Any], at: int) -> None:
        for number in [number for number in self._open if number not in run.open]:
            self._late[number] = self._open[number][0]
            self._close(number, 0, at)
        while len(self._late) > MOST_LATE:
            del self._late[next(iter(self._late))]

    def _close(self, number: int, began: int, at: int) -> None:
        row, call = self._open.pop(number)
        self.calls.close(call, began, at)
        working = self._working[row]
        if working.calls > 1:
            working.calls -= 1
            return
        del self._working[row]
        # until another process took it over, nothing was done
        self._table.seconds[row] += max(0, at - max(working.since, began)) / MICROSECONDS
        self._table.ended[row] = at

    def _decided(self, number: int, event: Event, before: Run[Any]) -> None:
        lead = self.style.led_to(before.state, event)
        if lead is None:
            return
        row = self._table.rows - 1
        if lead.because and not self._table.gist(row):
            self._table.set_gist(row, cut(lead.because, LONGEST_GIST))
        self._table.set_way(row, cut(lead.way, LONGEST_WAY), cut(lead.condition, LONGEST_GIST), number)

    def _trouble(self, record: Record, before: Run[Any] | None) -> None:
        self.trouble += 1
        event, row = record.event, self._row()
        if type(event) is GuardTripped:
            self._verdict = record.number
        if isinstance(event, Answered) and (number := event.to) and before is not None:
            place = self.place_of(number) if number in before.open or number in before.late else None
            row = row if place is None else place
        self._table.add_trouble(row, trouble(record, before))
        if isinstance(event, GuardTripped | Ended) and not self._table.decided[row]:
            self._table.decided[row] = record.number
