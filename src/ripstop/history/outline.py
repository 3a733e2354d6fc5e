"""The outline of a run, grown record by record: a line for each turn, what is open, and how much went wrong.

- A turn begins with the command that asks an agent (unless it continues a turn) or starts a workflow, or with a message
  that comes while nothing is under way; the first agent that is asked because of it takes that turn. What comes before
  the next one belongs to it. What happens before the first turn is a line of its own if it is worth one.
- What was open when a run was forked is asked again by the fork, which never made it: no turn, no time, no trouble.
- Whatever it is grown by, step by step or all at once, the outline of the same records is the same.
- It knows no style: `where` is the style's picture, `way` and `condition` are what it explains, `gist` is what its
  reader of words finds in a reply.
"""

import asyncio
from array import array
from bisect import bisect_right
from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, overload
from weakref import WeakValueDictionary

from msgspec import Struct

from ripstop.engine.engine import Engine
from ripstop.engine.ports import RunInfo
from ripstop.engine.soundness import reading
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
from ripstop.kernel.errors import RecordNotFound, RunNotFound
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
    TurnRestarted,
    Withdrawn,
)
from ripstop.kernel.prompt import Prompt
from ripstop.kernel.resuming import Way
from ripstop.kernel.run import Run
from ripstop.kernel.style import Style
from ripstop.text.diagrams.diagram import Chapter, Diagram

from .narration import cut, first_words, is_trouble, trouble
from .timeline import TimelineEntry, Why, entries, explain_step
from .turn_table import CallTable, TurnLine, TurnTable

# A run as it was at some of its records, so that any record is reached without folding all that came before it.
#
# Runs are immutable and share what did not change, so a snapshot costs little more than what changed since the one
# before. Of a very long run fewer are kept, further apart.


INTERVAL = 1000
"""Records between two snapshots."""
MAX_SNAPSHOTS = 64
"""Snapshots of one run at regular intervals; when there are more, every second one is dropped."""
MOST_RECENT = 8
"""Places where somebody looked last: what they look at next is near."""


class Snapshots:
    def __init__(self) -> None:
        self._regular: list[Run[Any]] = []
        self._interval = INTERVAL
        self._recent: deque[Run[Any]] = deque(maxlen=MOST_RECENT)

    def __len__(self) -> int:
        return len(self._regular)

    def pass_by(self, run: Run[Any]) -> None:
        """Keep a run if it is time for a snapshot. Called after each record, in order."""
        if run.length % self._interval:
            return
        self._regular.append(run)
        if len(self._regular) > MAX_SNAPSHOTS:
            self._regular = self._regular[1::2]
            self._interval *= 2

    def remember(self, run: Run[Any]) -> None:
        """Keep a run where somebody looks, for a while."""
        if all(run.length != known.length for known in self._recent):
            self._recent.append(run)

    def nearest(self, length: int) -> Run[Any] | None:
        """The latest snapshot at or before a record; `None`: the run has to be folded from its beginning."""
        at = bisect_right(self._regular, length, key=lambda run: run.length)
        known = [run for run in (*self._regular[max(0, at - 1) : at], *self._recent) if run.length <= length]
        return max(known, key=lambda run: run.length, default=None)


# Where the steps of a run begin: a fact, and all that was decided on it.


class StepStarts:
    """The numbers of the facts of a run, four bytes each."""

    def __init__(self) -> None:
        self._numbers = array("I")

    def add(self, number: int) -> None:
        self._numbers.append(number)

    def around(self, number: int, length: int) -> tuple[int, int]:
        """The first and the last record of the step that a record is in, of a run with so many records."""
        at = bisect_right(self._numbers, number)
        first = self._numbers[at - 1] if at else 1
        return first, self._numbers[at] - 1 if at < len(self._numbers) else length


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
    last: int
    """When one of its calls was answered last; else when the first was asked."""
    made: int
    """When something of the turn was done last; 0 for never."""
    begins: int
    """The command that the turn began with, if that is under way; else 0."""


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
        self._explains = type(style).view.explain is not Style.view.explain
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
        self._forks = False
        """Whether the last fact is a fork."""
        self._asked_again: set[int] = set()
        """Records that restart a turn because the run was forked in the middle of it."""
        self._unmade: set[int] = set()
        """Rows of which nothing was made."""

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

    def is_trouble(self, record: Record) -> bool:
        """Whether something went wrong. A turn that a fork begins again was never interrupted."""
        return is_trouble(record) and record.number not in self._asked_again

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
        return self._table.line(row, row if self._has_opening else row + 1, last, self._waits(row))

    def _waits(self, row: int) -> bool:
        """Whether nothing is under way in a row but calls that were refused."""
        refused = {one.to for one in self.run.refused if one.tries} if self.run else set()
        under_way = {number for number, (of, _) in self._open.items() if of == row} if refused else set()
        return bool(under_way) and under_way <= refused

    # Growing

    def add(self, record: Record, run: Run[Any]) -> None:
        """Take in the next record; `run` is the run right after it."""
        event, at, before = record.event, record.at, self.run
        self._began = self._began or at
        self.run = run
        kind = type(event)
        if event.is_fact:
            self.steps.add(record.number)
            self._forks = kind is Forked
        elif self._forks and kind is TurnRestarted:
            self._asked_again.add(record.number)
        if kind is Asked:
            self._asked(record.number, at, event.command, run)  # type: ignore[attr-defined]
        elif kind is Answered:
            self._answered(event, at)  # type: ignore[arg-type]
        elif kind in CLOSING:
            self._closed(event, run, at)
        elif kind is Heard:
            self._heard(record, event, run)  # type: ignore[arg-type]
        elif kind is ChildSpoke:
            self._row()
        elif kind not in KERNEL and self._explains and before is not None and self._table.rows:
            self._decided(record.number, event, before)
        if self.is_trouble(record):
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
                self._work(self._begin(number, at, command.agent, run), number, command.agent, at, begins=True)
            else:
                place = self.place_of(command.continues)
                self._work(self._row() if place is None else place, number, command.agent, at)
        elif type(command) is StartRun:
            row = self._begin(number, at, command.workflow, run)
            self._work(row, number, command.workflow, at, begins=True)
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
        where, last = cut(self.style.view.picture(run).where, LONGEST_WAY), self._table.rows - 1
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
        row = self._table.add(first, record.at, "", cut(self.style.view.picture(run).where, LONGEST_WAY))
        self._table.ended[row] = record.at
        self._table.set_gist(row, cut(heard.text, LONGEST_GIST))
        self._message, self._is_taken = row, False

    def _name_actor(self, row: int, run: Run[Any]) -> None:
        """Of a turn that no agent has taken: whose it is, as the style says."""
        if row == self._message and not self._is_taken and not self._table.has_name(row):
            picture = self.style.view.picture(run)
            self._table.name(row, cut(picture.whose_turn, LONGEST_WAY), cut(picture.where, LONGEST_WAY))

    def _work(self, row: int, number: int, lane: str, at: int, begins: bool = False) -> None:
        self._open[number] = row, self.calls.open(number, lane, at)
        working = self._working.get(row)
        if working is None:
            self._working[row] = _Working(1, at, at, self._table.ended[row], number if begins else 0)
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

    def _closed(self, event: Event, run: Run[Any], at: int) -> None:
        if isinstance(event, Withdrawn) and event.unmade:
            return self._unmake(event.number, at)
        if isinstance(event, Forked):
            self._begin_again(at)
        return self._close_others(run, at)

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
            working.last = working.made = at
            return
        del self._working[row]
        # until another process took it over, nothing was done
        self._table.seconds[row] += max(0, at - max(working.since, began)) / MICROSECONDS
        self._table.ended[row] = at

    def _begin_again(self, at: int) -> None:
        """What is open in a fork is under way there since it was forked."""
        for row, working in self._working.items():
            self._table.seconds[row] += (working.last - working.since) / MICROSECONDS
            working.since = working.last = at
        for _, call in self._open.values():
            self.calls.begin_again(call, at)

    def _unmake(self, number: int, at: int) -> None:
        """Leave out a command that was open when the run was forked, and the turn that began with it."""
        if number not in self._open:
            return
        row, call = self._open.pop(number)
        self.calls.drop(call)
        working = self._working[row]
        if working.calls > 1:
            working.calls -= 1
            return
        del self._working[row]
        self._table.ended[row] = working.made or self._table.began[row]
        if working.begins != number:
            return
        if row == self._message:  # it was said, and is answered only now
            self._is_taken, self._table.ended[row] = False, at
            return
        self._unmade.add(row)
        while (last := self._table.rows - 1) in self._unmade and not self._table.has_trouble(last):
            self._unmade.discard(last)
            self._table.drop_last()

    def _decided(self, number: int, event: Event, before: Run[Any]) -> None:
        lead = self.style.view.transition(before.state, event)
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


# Outlines of the runs that people look at, and any part of those runs, without ever reading a whole run again.
#
# - The first look at a run folds it once; from then on only what is new is read.
# - A record in the middle is folded from the snapshot before it (`snapshots`).
# - An LRU cache of `most` runs. Long work gives way to others between two slices of records.


MOST_RUNS = 64
MOST_ENTRIES = 1000
"""Records that one window can have."""
CHUNK, SLICE = 25_000, 2000
"""Records that are read at once (every reading walks back from the end of the run), and that are folded at once."""
MOST_CHUNKS = 8
DRAWN = 2000
"""Records that a drawing of a run is made from, the last ones."""


class RunDrawing(Struct, frozen=True):
    """The way of a run through its workflow."""

    diagram: Diagram
    left_out: int = 0
    """How many records came before those that it is drawn from; turns are counted from there."""


class _Known:
    """A run that people look at."""

    def __init__(self, outline: Outline, created: int) -> None:
        self.outline = outline
        self.created = created
        self.snapshots = Snapshots()
        self.drawing: tuple[int, RunDrawing | None] = (0, None)
        """The length of the run that was drawn, and the drawing."""

    @property
    def length(self) -> int:
        return self.outline.records


class Outlines:
    def __init__(self, engine: Engine, most: int = MOST_RUNS) -> None:
        self._engine = engine
        self._most = most
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def of(self, run_id: str) -> Outline:
        """The outline of a run as it is in the journal now. Raises `RunNotFound` and what reading a run raises."""
        return (await self._current(run_id)).outline

    async def at(self, run_id: str, number: int) -> TimelineEntry:
        """A record with all that belongs to it. Raises `RecordNotFound`."""
        known = await self._with_record(run_id, number)
        return (await self._entries(run_id, known, number, number))[0]

    async def window(
        self,
        run_id: str,
        after: int | None = None,
        before: int | None = None,
        most: int = 300,
        with_prompts: bool = True,
    ) -> list[TimelineEntry]:
        """The records after number `after` and before `before`, and of them at most `most`.

        These are the first ones behind `after`; if it is left out, the last ones. `with_prompts=False` leaves out
        what was sent to agents, and whether it is genuine: both are rendered for every call.
        """
        known = await self._current(run_id)
        most = min(most, MOST_ENTRIES)
        first = 1 if after is None else max(0, after) + 1
        last = known.length if before is None else min(before - 1, known.length)
        first, last = (max(first, last - most + 1), last) if after is None else (first, min(last, first + most - 1))
        return await self._entries(run_id, known, first, last, with_prompts) if first <= last else []

    async def step(self, run_id: str, number: int) -> list[TimelineEntry]:
        """The records of the step that a record is in: a fact, and all that was decided on it."""
        known = await self._with_record(run_id, number)
        return await self._entries(run_id, known, *known.outline.steps.around(number, known.length))

    async def why(self, run_id: str, number: int) -> list[tuple[TimelineEntry, Why]]:
        """The records of that step, each with the reason for it."""
        step = await self.step(run_id, number)
        return list(zip(step, await explain_step(self._engine, step), strict=True))

    async def ways(self, run_id: str) -> list[Way]:
        """How a run can continue after its end, or in spite of a guard's verdict; none if it needs no way."""
        known = await self._current(run_id)
        return [way for _, why in await self.why(run_id, known.outline.last_word) for way in why.ways]

    async def drawing(self, run_id: str) -> RunDrawing | None:
        """A run in its workflow, from its last records; `None` if its style does not draw its runs."""
        known = await self._current(run_id)
        length, drawn = known.drawing
        if length != known.length:
            drawn = await self._draw(run_id, known)
            known.drawing = known.length, drawn
        return drawn

    # Keeping up with the journal

    async def _current(self, run_id: str) -> _Known:
        async with self._locks.setdefault(run_id, asyncio.Lock()):
            try:
                return await self._caught_up(run_id)
            except Exception:
                self._known.pop(run_id, None)  # it may have been left in the middle of a record
                raise

    async def _caught_up(self, run_id: str) -> _Known:
        info = await self._engine.journal.run(run_id)
        if info is None:
            raise RunNotFound(run_id)
        known = self._known.get(run_id)
        if known is not None and (known.created != info.created or known.length > info.length):
            known = None  # it was forgotten, and another one has its name
        if known is None or known.length < info.length:
            known = await self._grown(run_id, known, info)
        self._known[run_id] = known
        self._known.move_to_end(run_id)
        if len(self._known) > self._most:
            self._known.popitem(last=False)
        return known

    async def _grown(self, run_id: str, known: _Known | None, info: RunInfo) -> _Known:
        have = known.length if known else 0
        chunk = max(CHUNK, (info.length - have) // MOST_CHUNKS)
        while have < info.length:
            records = await self._engine.journal.read(run_id, after=have, most=chunk)
            if not records:
                raise RunNotFound(run_id)  # it was forgotten in between
            have = records[-1].number
            for at in range(0, len(records), SLICE):
                known = await self._take_in(run_id, known, records[at : at + SLICE], info)
                if records[-1].number > known.length:
                    await asyncio.sleep(0)
        assert known is not None and known.outline.run is not None
        known.snapshots.remember(known.outline.run)
        return known

    async def _take_in(self, run_id: str, known: _Known | None, records: Sequence[Record], info: RunInfo) -> _Known:
        folded = await self._engine.folded(run_id, records, known.outline.run if known else None)
        if known is None:
            known = _Known(Outline(self._engine.registry.kits[info.style].style), info.created)
        add, pass_by = known.outline.add, known.snapshots.pass_by
        with reading(run_id):
            for record, run in folded:
                add(record, run)
                pass_by(run)
        return known

    # Parts of a run

    async def _with_record(self, run_id: str, number: int) -> _Known:
        known = await self._current(run_id)
        if not 1 <= number <= known.length:
            raise RecordNotFound(run_id, number, known.length)
        return known

    async def _entries(
        self, run_id: str, known: _Known, first: int, last: int, with_prompts: bool = True
    ) -> list[TimelineEntry]:
        before, part = await self._part(run_id, known, first, last)
        late = await self._late_prompts(run_id, before, part) if with_prompts else {}
        with reading(run_id):
            return entries(known.outline.style, part, before, late, with_prompts)

    async def _part(
        self, run_id: str, known: _Known, first: int, last: int
    ) -> tuple[Run[Any] | None, list[tuple[Record, Run[Any]]]]:
        """The run right before some records, and those records, each with the run right after it."""
        before = known.snapshots.nearest(first - 1)
        records = await self._engine.journal.read(run_id, after=before.length if before else 0, before=last + 1)
        if not records or records[-1].number != last:
            raise RunNotFound(run_id)  # it was forgotten in between
        part: list[tuple[Record, Run[Any]]] = []
        for record, run in await self._engine.folded(run_id, records, before):
            if record.number < first:
                before = run
            else:
                part.append((record, run))
        if before:
            known.snapshots.remember(before)
        return before, part

    async def _late_prompts(
        self, run_id: str, before: Run[Any] | None, part: list[tuple[Record, Run[Any]]]
    ) -> dict[int, Prompt]:
        """The prompts of calls that were withdrawn, and answered afterwards: what was open then is open no more."""
        prompts: dict[int, Prompt] = {}
        asked = {record.number for record, _ in part}
        for record, run in part:
            event = record.event
            if type(event) is Answered and type(event.answer) is AgentReplied and event.answer.sent:
                to = event.to
                if before is not None and to in before.late and to not in asked:
                    sent = (await self.at(run_id, to)).prompt
                    prompts |= {to: sent} if sent else {}
            before = run
        return prompts

    async def _draw(self, run_id: str, known: _Known) -> RunDrawing | None:
        run = known.outline.run
        assert run is not None
        draw = self._engine.kit(run).draw_run
        if draw is None:
            return None
        left_out = max(0, known.length - DRAWN)
        before, part = await self._part(run_id, known, left_out + 1, known.length)
        chapters = []
        for record, after in part:
            chapters.append(Chapter(record.event, before, after))
            before = after
        with reading(run_id):
            diagram: Diagram = draw(self._engine.definition(run), chapters)
        if left_out:
            note = f"Drawn from the last {DRAWN:,} of {known.length:,} records only; turns are counted from there."
            diagram = replace(diagram, notes=(*diagram.notes, note))
        return RunDrawing(diagram, left_out)
