"""Following a run: until it is settled, or record by record as it happens.

- A family is followed as a whole: a run that waits for a child moves as long as the child does.
- A question that an ancestor shows has been asked when it is there, and not when its own run waits for the answer.
- Reading every second costs too much with thousands of runs, so a run is read again when a step was appended that
  may have settled it, when another process has written, and now and then.
- A command that no worker holds and that this worker cannot take, because it does not offer what the command needs or
  because a performer has asked a person, moves nothing.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from ripstop.kernel.effects import AskPerson, Command, Say, StartRun
from ripstop.kernel.errors import RunForgotten, RunNotFound
from ripstop.kernel.events import Asked, CancelRequested, ChildSpoke, Doubted, Ended, Event, Record
from ripstop.kernel.outbox import child_id, needs_of, surfaces
from ripstop.kernel.registry import QUESTION_STYLE
from ripstop.kernel.run import Run, is_shared, waits_for

from .engine import Engine, View
from .live import Appended, LiveEvent
from .ports import RunQuery
from .worker import Worker

POLL_INTERVAL = 1.0
"""Seconds between two checks whether another process has written."""
LONGEST_BLIND = 30.0
"""Seconds after which the run is read again, even if no other process seems to have written."""
LAST_WORDS = 2.0
"""Seconds that the messages of a run that has ended get, before it is returned all the same."""
MAX_QUEUED = 1000
"""Live events that wait for a slow reader; then it is given records from the journal instead."""


async def until_settled(engine: Engine, worker: Worker, run_id: str) -> View:
    """Return when the run has ended, is stuck, or waits for a person, a timer, or what no worker here offers.

    The last is in `View.needs`. Messages of a run that has ended get a moment to be delivered; the rest is delivered
    later, by any worker that serves their channel. A worker that does not work on the run only watches, so it waits for
    others to offer it.
    """
    family = _Family(engine, worker, run_id)
    blind, stalled, ended = POLL_INTERVAL, False, 0.0
    try:
        while True:
            family.turned.clear()
            if worker.failure:
                raise worker.failure
            seen = worker.foreign_writes
            view = await engine.look(run_id)
            if not await family.moves(view):
                return view
            if view.run.is_settled:  # it has nothing left but messages
                ended = ended or time.monotonic()
                if time.monotonic() - ended >= LAST_WORDS:
                    return view
                blind = POLL_INTERVAL
            if await _news(family.turned, worker, seen, blind):
                blind, stalled = POLL_INTERVAL, False
                continue
            blind = min(blind * 2, LONGEST_BLIND)
            if not worker.works_on(run_id) or await family.moves(await engine.look(run_id), look_closely=True):
                stalled = False
            elif stalled:
                return replace(view, needs=tuple(dict.fromkeys(family.needs)))
            else:  # another process may be about to take it, or may have just done it: look once more
                blind, stalled = POLL_INTERVAL, True
    finally:
        family.close()


async def _news(turned: asyncio.Event, worker: Worker, seen: int, blind: float) -> bool:
    """Return when the run should be read again; false if only time has passed."""
    waited = 0.0
    while waited < blind and not worker.failure:
        if worker.foreign_writes != seen:
            return True
        try:
            async with asyncio.timeout(POLL_INTERVAL):  # wait_for can swallow a cancellation
                await turned.wait()
            return True
        except TimeoutError:
            waited += POLL_INTERVAL
    return bool(worker.failure) or worker.foreign_writes != seen


class _Family:
    """A run, its children, and the named runs that they wait for."""

    def __init__(self, engine: Engine, worker: Worker, run_id: str) -> None:
        self._engine = engine
        self._worker = worker
        self._run_id = run_id
        self.turned = asyncio.Event()
        """Set when a step was appended after which nothing may be left to do."""
        self.needs: list[str] = []
        """What its commands need that the worker does not offer, as it was found last."""
        self._watched: dict[str, Callable[[], None]] = {}
        self._watch(run_id)

    def close(self) -> None:
        for stop in self._watched.values():
            stop()

    def _watch(self, run_id: str) -> None:
        """A run shows what its descendants do, too; but a named run is in no one's family."""
        if run_id not in self._watched:
            self._watched[run_id] = self._engine.live.watch(self._see, run_id)

    def _see(self, event: LiveEvent) -> None:
        if isinstance(event, Appended) and _can_settle([record.event for record in event.records]):
            self.turned.set()

    async def moves(self, view: View, look_closely: bool = False) -> bool:
        """Whether a worker has something to do for the run, or for one that it waits for.

        Args:
            look_closely: Nothing has happened for a while: look at every command, whether anything can come of it.
        """
        self.needs.clear()
        return await self._moves(view, look_closely, {view.run.id})

    async def _moves(self, view: View, look_closely: bool, seen: set[str]) -> bool:
        run = view.run
        offers = self._worker.offers
        heard = run.started.surface is not None
        if any(isinstance(c, Say) and needs_of(c) in offers and (c.channel or heard) for c in _open_commands(view)):
            return True
        if view.status == "working" and not (look_closely and await self._is_stalled(view)):
            return True
        if run.ended and not run.is_settled and not (look_closely and not await self._engine.journal.held(run.id)):
            return True  # a call that was cut off is about to be reported, and then the run to its parent
        if not look_closely and await self._asks_unheard(run):
            return True
        started = {n: opened.command for n, opened in run.open.items() if isinstance(opened.command, StartRun)}
        late = {n: command for n, command in run.late.items() if isinstance(command, StartRun)}
        for number, command in (started | late).items():
            name, shared = child_id(run.id, number, command), is_shared(run.id, command)
            if name in seen or (shared and number in late):  # what it does without this run is for others
                continue
            if not name.startswith(f"{self._run_id}."):
                self._watch(name)
            try:
                child = await self._engine.look(name)
            except RunNotFound:
                return True  # it is starting just now
            # settled, or stopped although others share it: the parent learns of it in a moment
            is_over = child.run.is_settled or (shared and child.run.asks_about_verdict)
            if is_over or await self._moves(child, look_closely, seen | {name}):
                return True
            if number in late and not await self._is_cancelled(name):
                return True  # a worker is to cancel it
        return False

    async def _asks_unheard(self, run: Run[Any]) -> bool:
        """Whether a question of the run has still to appear in the ancestor that shows it."""
        if run.started.surface is None:
            return False
        asked = {
            number
            for number, opened in run.open.items()
            if isinstance(opened.command, AskPerson) and surfaces(run, opened.command)
        }
        if not asked:
            return False
        ancestor, started = run.started.surface
        records = await self._engine.journal.read(ancestor, after=started)
        told = (record.event for record in records)
        return not asked <= {one.number for one in told if isinstance(one, ChildSpoke) and one.run == run.id}

    async def _is_cancelled(self, run_id: str) -> bool:
        """Whether a run that its parent does not need any more has heard of it; if it waits then, it has to."""
        records = await self._engine.journal.read(run_id)
        return any(isinstance(record.event, CancelRequested) for record in records)

    async def _is_stalled(self, view: View) -> bool:
        """Whether nothing can come of all that a run wants to have done."""
        run = view.run
        held = await self._engine.journal.held(run.id)
        asking = await self._asking(run.id)
        for number, opened in run.open.items():
            command = opened.command
            if waits_for(command) != "worker" or isinstance(command, Say):
                continue
            if number in run.waiting or number in run.doubts.values():
                continue
            needs = needs_of(command)
            if number in held:
                return False
            if needs not in self._worker.offers:
                self.needs.append(needs)
            elif number not in asking:
                return False
        return True

    async def _asking(self, run_id: str) -> set[int]:
        """The commands of a run whose performers have asked a person and wait for the answer."""
        page = await self._engine.runs(
            RunQuery(parent=run_id, styles=(QUESTION_STYLE,), statuses=("waiting",), size=1000)
        )
        return {int(info.run_id.removeprefix(f"{run_id}.").partition(".")[0]) for info in page.items}


def _open_commands(view: View) -> Iterator[Command]:
    return (opened.command for opened in view.run.open.values())


def _can_settle(step: Sequence[Event]) -> bool:
    """Whether nothing may be left to do after a step: reading a run after every one would cost too much."""
    asks_a_worker = False
    for event in step:
        if isinstance(event, Ended | Doubted):
            return True
        if isinstance(event, Asked) and not isinstance(event.command, Say):  # no run waits for its messages
            if waits_for(event.command) != "worker":
                return True
            asks_a_worker = True
    return not asks_a_worker


async def follow(engine: Engine, run_id: str, after: int = 0) -> AsyncIterator[Record | LiveEvent]:
    """A run's records after number `after`, each once and in order, and its live events, until it ends.

    Works across processes: what another one writes is read from the journal, without its live events. A run that was
    forgotten before raises `RunForgotten`; one that is forgotten meanwhile has ended.
    """
    queue: asyncio.Queue[LiveEvent] = asyncio.Queue(MAX_QUEUED)
    missed = is_followed = False

    def watch(event: LiveEvent) -> None:
        nonlocal missed
        if event.run_id != run_id:
            return
        if queue.full():
            missed = True
        else:
            queue.put_nowait(event)

    stop = engine.live.watch(watch, run_id)
    try:
        while True:
            missed = False
            for record in await engine.journal.read(run_id, after=after):
                after = record.number
                yield record
            try:
                run = (await engine.look(run_id)).run
            except RunForgotten:
                if is_followed:
                    return
                raise
            is_followed = True
            if run.ended and run.length <= after:
                return
            if run.length > after:
                continue
            async for event in _until_appended(queue):
                yield event
                if missed and queue.empty():
                    break
    finally:
        stop()


async def _until_appended(queue: "asyncio.Queue[LiveEvent]") -> AsyncIterator[LiveEvent]:
    """Live events until a step was appended, here or, as far as can be known, by another process."""
    until = time.monotonic() + POLL_INTERVAL
    while (left := until - time.monotonic()) > 0:
        try:
            async with asyncio.timeout(left):
                event = await queue.get()
        except TimeoutError:
            return
        if isinstance(event, Appended):
            return
        yield event
