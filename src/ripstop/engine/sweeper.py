"""Finds work in the outbox: what other workers left, timers, and what waits for a worker that offers what it needs.

- It sleeps until something is due, it is woken, or another process has written; it never scans what waits.
- A run that cannot be read, is of a style that is not known here, or wants what its user has not allowed (`admit`), is
  set aside with a warning before anything of it is performed: the others continue. That is one worker's word: each
  other one tries for itself, once.
- Commands that other processes have withdrawn while they are performed here are cancelled.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from msgspec.structs import replace

from ripstop.kernel.errors import JournalError, Unreachable, UsageError
from ripstop.kernel.events import Record
from ripstop.kernel.run import Run

from .command_runner import MICROS, CommandRunner
from .engine import Engine
from .entries import Job
from .failpoints import failpoint
from .ports import STORE_PAUSE, All, ClaimedCommand, Prefixed, Scope, Tree
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
MOST_REFUSED = 1_000
"""Runs that are remembered as set aside here. After that many, what others set aside is left alone, too."""


class Sweeper:
    def __init__(
        self,
        engine: Engine,
        runner: CommandRunner,
        scope: Scope,
        offers: Sequence[str],
        admit: Admit | None = None,
    ) -> None:
        self._engine = engine
        self._journal = engine.journal
        self._runner = runner
        self._clock = engine.clock
        self._scope = scope
        self._offers = offers
        self._admit = admit
        self._admitted: set[str] = set()
        self._refused: set[str] = set()
        """What this worker has set aside, and does not try again by itself."""
        self._included: dict[str, None] = {}
        """Runs outside the scope whose families it works on, because this process has moved them."""
        self.worker_id = 0
        """The worker's number in the journal."""
        self._task: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._full = False
        """There was no room; it is to look again when there is some."""
        self.foreign_writes = 0
        """How often it has noticed that another process may have written."""

    def start(self) -> None:
        self._runner.on_room = self._room_again
        self._runner.on_retry = self.wake_by
        self._runner.on_unusable = self._unusable
        self._task = asyncio.create_task(self._sweep_for_ever(), name="ripstop-sweeper")

    async def stop(self) -> None:
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def include(self, run_id: str) -> None:
        """Work on the family of a run, too, until the run is over."""
        if not self.works_on(run_id):
            self._included[run_id] = None
            self.wake()

    def works_on(self, run_id: str) -> bool:
        """Whether what is due in the run is looked for here, as far as its id says which family it belongs to."""
        scope, name = self._scope, run_id
        if isinstance(scope, All):
            return True
        while name:
            if name in self._included:
                return True
            name = name.rpartition(".")[0]
        if isinstance(scope, Tree):
            return f"{run_id}.".startswith(f"{scope.run_id}.") or scope.run_id.startswith(f"{run_id}.")
        return isinstance(scope, Prefixed) and run_id.startswith(scope.bounds[0])

    def _scopes(self) -> list[Scope]:
        return [self._scope, *map(Tree, self._included)]

    def _forget_ended(self) -> None:
        """Forget the runs in which nothing can become due any more."""
        for run_id in list(self._included):
            run = self._engine.known(run_id)
            if run and run.is_settled and not run.open and not run.late:
                del self._included[run_id]

    @asynccontextmanager
    async def beating(self) -> AsyncIterator[None]:
        """Give signs of life for as long as this is open. Nothing is claimed any more."""
        task = asyncio.create_task(self._beat_for_ever(), name="ripstop-heartbeat")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

    async def _beat_for_ever(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT)
            try:
                await self._journal.heartbeat(self.worker_id, self._clock())
            except JournalError as error:  # its answers cannot be recorded either, and that is reported
                log.debug("No sign of life: %s", error)

    def wake(self) -> None:
        self._wake.set()

    def wake_by(self, seconds: float) -> None:
        if seconds <= HEARTBEAT:  # it never sleeps longer, and learns of what is due whenever it looks
            self._wake.set()

    def _room_again(self) -> None:
        if self._full and self._runner.room > 0:
            self.wake()

    async def _sweep_for_ever(self) -> None:
        beat, told = self._clock(), ""
        while not self._runner.stopping:
            try:
                if self._clock() - beat >= HEARTBEAT * MICROS:
                    beat = self._clock()
                    if not await self._journal.heartbeat(self.worker_id, beat):
                        self.worker_id = await self._journal.enrol(beat)
                await self._cut_off_unneeded()
                await self._sweep()
                await self._sleep(beat)
            except Unreachable as error:
                if not self._runner.waits_now():
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
        self._runner.give_up(error)
        self._runner.abandon()

    async def _cut_off_unneeded(self) -> None:
        if self._runner.busy:
            for run_id, number in await self._journal.superseded(self.worker_id):
                self._runner.withdraw(run_id, number)

    async def _sweep(self) -> None:
        room = self._runner.room
        if room <= 0:
            return
        failpoint("worker.before_claim")
        worker_id = self.worker_id
        jobs = []
        for scope in self._scopes():
            for task in await self._journal.claim(
                worker_id, self._clock(), room, scope, self._offers, self._remembered
            ):
                failpoint("worker.after_claim")
                log.info("%s/%s: taken by worker %d", task.run_id, task.number, worker_id)
                job = await self._job(task, worker_id)
                if job:
                    jobs.append(job)
            if (room := self._runner.room - len(jobs)) <= 0:
                break
        self._runner.dispatch(jobs)
        self._forget_ended()

    async def _job(self, task: ClaimedCommand, worker_id: int) -> Job | None:
        try:
            if task.records:
                await self._engine.take_in(task.run_id, list[Record](task.records))
            opened = await self._engine.opened(task.run_id, task.number, task.superseded)
            if opened is None and not task.superseded:  # perhaps not needed any more since it was claimed
                task = replace(task, superseded=True)
                opened = await self._engine.opened(task.run_id, task.number, superseded=True)
            if not task.superseded:  # what is only to be cleaned up changes nothing
                await self._check_admitted(task.run_id)
                if task.set_aside:
                    await self._journal.set_aside(task.run_id, "")
        except (*UNUSABLE, UsageError) as error:
            await self._set_aside(task.run_id, task.number, worker_id, error)
            return None
        if opened is None:
            # too old to be reported, or settled in the meantime; then the journal has dropped it from the outbox
            await self._journal.park(task, worker_id, self._clock())
            return None
        return Job(
            task.run_id,
            task.number,
            opened,
            worker_id,
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
        await self._set_aside(job.run_id, job.number, job.worker_id, error)

    async def _set_aside(self, run_id: str, number: int, worker_id: int, error: Exception) -> None:
        if isinstance(self._scope, Tree):
            await self._journal.give_back(run_id, number, worker_id)
            raise error  # its caller waits for this very run
        log.log(logging.DEBUG if run_id in self._refused else logging.ERROR, "Setting %s aside: %s", run_id, error)
        if len(self._refused) < MOST_REFUSED:
            self._refused.add(run_id)
        # in this order: who takes it next sees that it is set aside, and takes that back
        await self._journal.set_aside(run_id, str(error))
        await self._journal.give_back(run_id, number, worker_id)

    @property
    def _remembered(self) -> set[str] | None:
        """What `Journal.claim` is told of the runs that were refused here."""
        return self._refused if len(self._refused) < MOST_REFUSED else None

    async def next_due(self) -> int | None:
        """When the next command that it would take is due."""
        found = [await self._journal.next_due(scope, self._offers, self._remembered) for scope in self._scopes()]
        return min((due for due in found if due is not None), default=None)

    async def _sleep(self, beat: int) -> None:
        """Wait until a timer is due, the sweeper is woken, or another process has written."""
        until = beat + round(HEARTBEAT * MICROS)
        self._full = self._runner.room <= 0
        due = None if self._full else await self.next_due()
        until = until if due is None else min(until, due)
        while not self._runner.stopping:
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
