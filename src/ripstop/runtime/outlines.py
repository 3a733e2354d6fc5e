"""Outlines of the runs that people look at, and any part of those runs, without ever reading a whole run again.

- The first look at a run folds it once; from then on only what is new is read.
- A record in the middle is folded from the snapshot before it (`snapshots`).
- An LRU cache of `most` runs. Long work gives way to others between two slices of records.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from weakref import WeakValueDictionary

from msgspec import Struct

from ripstop.drawings.chapters import Chapter
from ripstop.drawings.diagram import Diagram
from ripstop.kernel.effects import AgentReplied
from ripstop.kernel.errors import RecordNotFound, RunNotFound
from ripstop.kernel.events import Answered, Record
from ripstop.kernel.prompt import Prompt
from ripstop.kernel.resuming import Way
from ripstop.kernel.run import Run

from .engine import Engine
from .outline import Outline
from .ports import RunInfo
from .snapshots import Snapshots
from .soundness import reading
from .timeline import TimelineEntry, Why, entries, explain_step

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
