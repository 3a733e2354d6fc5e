"""A small real world for tests: a SQLite file, an engine, a worker, and performers that do what a test says."""

import asyncio
import inspect
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from ripstop.journals.sqlite.journal import SqliteJournal
from ripstop.kernel.codec import Codec
from ripstop.kernel.effects import Answer, Command, Limits, RunFinished, StartRun, TimerFired, ToolReturned
from ripstop.kernel.events import Answered
from ripstop.kernel.run import Run
from ripstop.runtime.definitions import LoadDefinition
from ripstop.runtime.engine import Engine, View
from ripstop.runtime.ports import Clock, Kind, Performer, Request
from ripstop.runtime.worker import Worker
from ripstop.testing import ERRAND_EVENTS, Errands, ErrandStyle

CODEC = Codec(ERRAND_EVENTS)


def now() -> int:
    return time.time_ns() // 1000


class Does:
    """Performs with a function of the request, sync or async, and remembers what it was asked."""

    def __init__(
        self,
        do: Callable[[Request], Any] = lambda request: ToolReturned(value="done"),
        kind: Kind = Kind.PURE,
        provider: str = "",
        probe: Callable[[Request], Answer | None] | None = None,
    ) -> None:
        self._do = do
        self._kind = kind
        self._provider = provider
        self._probe = probe
        self.asked: list[Request] = []
        self.probed: list[Request] = []

    async def perform(self, request: Request) -> Answer | None:
        self.asked.append(request)
        answer: Answer | Awaitable[Answer | None] | None = self._do(request)
        return await answer if inspect.isawaitable(answer) else answer

    def kind(self, command: Command) -> Kind:
        return self._kind

    def provider(self, request: Request) -> str:
        return self._provider

    async def probe(self, request: Request) -> Answer | None:
        self.probed.append(request)
        assert self._probe is not None, "nobody said what to find"
        return self._probe(request)


def rings() -> Does:
    """A performer of timers."""
    return Does(lambda request: TimerFired())


def bears(engine: Engine, children: Mapping[str, Errands]) -> Does:
    """A performer that starts child runs, and answers once they have ended."""

    async def bear(request: Request) -> Answer | None:
        assert isinstance(request.command, StartRun)
        child = f"{request.run_id}.{request.number}"
        if child not in {info.run_id for info in await engine.runs()}:
            content = children[request.command.workflow].content()
            await engine.start(child, "errands", content, parent=(request.run_id, request.number), depth=1)
        run = (await engine.look(child)).run
        if run.ended is None:
            return None
        return RunFinished(run=child, outcome=run.ended.outcome, because=run.ended.because)

    return Does(bear)


class World:
    def __init__(self, path: Path, clock: Clock = now, load: LoadDefinition = ErrandStyle.load) -> None:
        self.clock = clock
        self.journal = SqliteJournal(path, CODEC)
        self.engine = Engine(self.journal, {"errands": ErrandStyle()}, load, clock)
        self.worker: Worker | None = None

    async def work(self, performers: Mapping[type, Performer], **options: Any) -> Worker:
        self.worker = Worker(self.engine, performers, self.clock, **options)
        await self.worker.start()
        return self.worker

    async def start(self, run_id: str, *rounds: tuple[Command, ...], limits: Limits = Limits()) -> Run[Any]:
        return await self.engine.start(run_id, "errands", Errands(rounds=rounds).content(), limits=limits)

    async def ended(self, run_id: str) -> View:
        """The run, when it has ended."""
        return await self.until(run_id, lambda view: view.run.ended is not None)

    async def until(self, run_id: str, holds: Callable[[View], bool]) -> View:
        async with asyncio.timeout(6):
            while not holds(view := await self.engine.look(run_id)):
                if self.worker and self.worker.failure:
                    raise self.worker.failure
                await asyncio.sleep(0.002)
        return view

    async def events(self, run_id: str) -> list[Any]:
        return [record.event for record in await self.journal.read(run_id)]

    async def abandon(self) -> None:
        """Go away as a killed process does: nothing is given back, and the lock of the worker is gone."""
        assert self.worker is not None
        threads = [self.worker._sweeper, *self.worker._threads]
        self.worker._stopping = True
        for thread in threads:
            if thread:
                thread.cancel()
        await asyncio.gather(*(thread for thread in threads if thread), return_exceptions=True)
        holder = self.worker.holder
        self.worker = None
        self.engine.dispatcher = None
        await self.journal.close()
        # closing removes the lock's file; a killed process leaves it behind, unlocked
        self.journal._liveness._file(holder).touch()


@asynccontextmanager
async def a_world(path: Path, clock: Clock = now, load: LoadDefinition = ErrandStyle.load) -> AsyncIterator[World]:
    world = World(path, clock, load)
    try:
        yield world
    finally:
        if world.worker:
            await world.worker.stop(grace=0)
        await world.journal.close()


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(6):
        while not holds():
            await asyncio.sleep(0.002)


def answers(events: list[object]) -> list[Answered]:
    return [event for event in events if isinstance(event, Answered)]
