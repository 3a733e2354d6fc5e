"""Finds work in the outbox: what other workers left, timers, and what waits for a worker that offers what it needs.

- It sleeps until something is due, it is woken, or another process has written; it never scans what waits.
- A run that cannot be read, is of a style that is not known here, or wants what its user has not allowed (`admit`), is
  set aside with a warning before anything of it is performed: the others continue.
- Commands that other processes have withdrawn while they are performed here are cancelled.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from msgspec.structs import replace

from ripstop.kernel.errors import Unreachable, UsageError
from ripstop.kernel.events import Record
from ripstop.kernel.run import Run

from .command_runner import MICROS, Hands
from .engine import Engine
from .entries import Job
from .failpoints import failpoint
from .ports import STORE_PAUSE, ClaimedCommand, Clock, Scope, Tree
from .soundness import UNUSABLE

log = logging.getLogger("ripstop.worker")

HEARTBEAT = 10.0
"""Seconds between two signs of life. A lease lasts three times as long."""
TICK = 0.5
"""Seconds between two looks at whether another process has written (one counter, no query)."""

Admit = Callable[[Run[Any]], Awaitable[None]]
"""Raises `UsageError` for a run that must not be worked on here, with what to do about it."""
KNOWN_RUNS = 10_000
"""Runs that are remembered as admitted."""


class Sweeper:
    def __init__(
        self,
        engine: Engine,
        hands: Hands,
        clock: Clock,
        scope: Scope,
        offers: Sequence[str],
        admit: Admit | None = None,
    ) -> None:
        self._engine = engine
        self._journal = engine.journal
        self._hands = hands
        self._clock = clock
        self._scope = scope
        self._offers = offers
        self._admit = admit
        self._admitted: set[str] = set()
        self.holder = 0
        """The worker's number in the journal."""
        self._task: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._full = False
        """There was no room; it is to look again when there is some."""
        self.foreign_writes = 0
        """How often it has noticed that another process may have written."""

    def start(self) -> None:
        self._hands.on_room = self._room_again
        self._hands.on_retry = self.wake_by
        self._hands.on_unusable = self._unusable
        self._task = asyncio.create_task(self._sweep_for_ever(), name="ripstop-sweeper")

    async def stop(self) -> None:
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def wake(self) -> None:
        self._wake.set()

    def wake_by(self, seconds: float) -> None:
        if seconds <= HEARTBEAT:  # it never sleeps longer, and learns of what is due whenever it looks
            self._wake.set()

    def _room_again(self) -> None:
        if self._full and self._hands.room > 0:
            self.wake()

    async def _sweep_for_ever(self) -> None:
        beat, told = self._clock(), ""
        while not self._hands.stopping:
            try:
                if self._clock() - beat >= HEARTBEAT * MICROS:
                    beat = self._clock()
                    if not await self._journal.heartbeat(self.holder, beat):
                        self.holder = await self._journal.enrol(beat)
                await self._cut_off_unneeded()
                await self._sweep()
                await self._sleep(beat)
            except Unreachable as error:
                if not self._hands.waits_now():
                    return self._give_up(error)
                if str(error) != told:
                    log.warning("%s It is tried again every %g s.", error, STORE_PAUSE)
                told = str(error)
                await asyncio.sleep(STORE_PAUSE)
            except Exception as error:  # whatever it is: otherwise the end of the sweeping would go unnoticed
                return self._give_up(error)
            else:
                told = ""

    def _give_up(self, error: Exception) -> None:
        self._hands.give_up(error)
        self._hands.abandon()

    async def _cut_off_unneeded(self) -> None:
        if self._hands.busy:
            for run_id, number in await self._journal.superseded(self.holder):
                self._hands.withdraw(run_id, number)

    async def _sweep(self) -> None:
        room = self._hands.room
        if room <= 0:
            return
        failpoint("worker.before_claim")
        holder = self.holder
        jobs = []
        for task in await self._journal.claim(holder, self._clock(), room, self._scope, self._offers):
            failpoint("worker.after_claim")
            job = await self._job(task, holder)
            if job:
                jobs.append(job)
        self._hands.dispatch(jobs)

    async def _job(self, task: ClaimedCommand, holder: int) -> Job | None:
        try:
            if task.records:
                await self._engine.take_in(task.run_id, list[Record](task.records))
            opened = await self._engine.opened(task.run_id, task.number, task.superseded)
            if opened is None and not task.superseded:  # perhaps not needed any more since it was claimed
                task = replace(task, superseded=True)
                opened = await self._engine.opened(task.run_id, task.number, superseded=True)
            if not task.superseded:  # what is only to be cleaned up changes nothing
                await self._check_admitted(task.run_id)
        except (*UNUSABLE, UsageError) as error:
            await self._set_aside(task.run_id, task.number, holder, error)
            return None
        if opened is None:
            # too old to be reported, or settled in the meantime; then the journal has dropped it from the outbox
            await self._journal.park(task, holder, self._clock())
            return None
        return Job(
            task.run_id,
            task.number,
            opened,
            holder,
            attempt=task.attempt,
            doubtful=task.doubtful,
            unsafe=task.unsafe,
            superseded=task.superseded,
            woken=task.woken,
            awaits=task.awaits,
        )

    async def _check_admitted(self, run_id: str) -> None:
        run = self._engine.known(run_id) if self._admit and run_id not in self._admitted else None
        if run is None or self._admit is None:
            return
        await self._admit(run)
        if len(self._admitted) >= KNOWN_RUNS:
            self._admitted.clear()
        self._admitted.add(run_id)

    async def _unusable(self, job: Job, error: Exception) -> None:
        await self._set_aside(job.run_id, job.number, job.holder, error)

    async def _set_aside(self, run_id: str, number: int, holder: int, error: Exception) -> None:
        await self._journal.give_back(run_id, number, holder)
        if isinstance(self._scope, Tree):
            raise error  # its caller waits for this very run
        log.error("Setting %s aside: %s", run_id, error)
        await self._journal.set_aside(run_id, str(error))

    async def _sleep(self, beat: int) -> None:
        """Wait until a timer is due, the sweeper is woken, or another process has written."""
        until = beat + round(HEARTBEAT * MICROS)
        self._full = self._hands.room <= 0
        if not self._full:
            due = await self._journal.next_due(self._scope, self._offers)
            if due is not None:
                until = min(until, due)
        while not self._hands.stopping:
            left = (until - self._clock()) / MICROS
            if self._journal.changed():
                self.foreign_writes += 1
                return
            if left <= 0:
                return
            try:
                async with asyncio.timeout(min(left, TICK)):  # wait_for can swallow a cancellation
                    await self._wake.wait()
            except TimeoutError:
                continue
            self._wake.clear()
            return
