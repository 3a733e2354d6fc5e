"""A small real world for tests: a SQLite file, an engine, a worker, and performers that do what a test says."""

import asyncio
import inspect
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from ripstop.engine.children import ChildAnswers, Children
from ripstop.engine.engine import Engine, View
from ripstop.engine.messages import Deliver, Messages
from ripstop.engine.performers import Kind, Performer, Request
from ripstop.engine.pinned_definitions import digest_of
from ripstop.engine.ports import Clock, DeskQuery, Question, RunQuery
from ripstop.engine.worker import Worker
from ripstop.journals.sqlite.journal import SqliteJournal
from ripstop.kernel.effects import (
    AgentReplied,
    Answer,
    AnswerChild,
    AskAgent,
    AskPerson,
    CallTool,
    Command,
    Limits,
    Say,
    SetTimer,
    StartRun,
    TimerFired,
    ToolReturned,
)
from ripstop.kernel.errors import RunNotFound
from ripstop.kernel.events import Answered, Pin
from ripstop.kernel.outages import RetryPolicy
from ripstop.kernel.registry import Registry
from ripstop.kernel.run import Run
from ripstop.testing import ERRANDS, Errands
from tests.engine.clerk_style import CLERK, Clerk

REGISTRY = Registry([ERRANDS, CLERK])
CODEC = REGISTRY.codec
TOOLS = ("hammer", "pay", "t")
"""What `Does` offers, unless a test says otherwise."""


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
        tools: Sequence[str] = TOOLS,
    ) -> None:
        self._do = do
        self._kind = kind
        self._provider = provider
        self._probe = probe
        self._tools = tools
        self.asked: list[Request] = []
        self.probed: list[Request] = []

    async def perform(self, request: Request) -> Answer | None:
        self.asked.append(request)
        answer: Answer | Awaitable[Answer | None] | None = self._do(request)
        return await answer if inspect.isawaitable(answer) else answer

    def kind(self, command: Command) -> Kind:
        return self._kind

    def offers(self) -> Sequence[str]:
        return [f"tool:{name}" for name in self._tools]

    def provider(self, request: Request) -> str:
        return self._provider

    async def probe(self, request: Request) -> Answer | None:
        self.probed.append(request)
        assert self._probe is not None, "nobody said what to find"
        return self._probe(request)


def rings() -> Does:
    """A performer of timers."""
    return Does(lambda request: TimerFired(), tools=())


def says(text: str = "hello") -> Does:
    return Does(lambda request: AgentReplied(text=text), tools=())


class World:
    def __init__(self, path: Path, clock: Clock = now, registry: Registry = REGISTRY) -> None:
        self.clock = clock
        self.journal = SqliteJournal(path, registry.codec)
        self.engine = Engine(self.journal, registry, clock)
        self.worker: Worker | None = None

    async def work(
        self, performers: Mapping[type, Performer], attempts: int = 5, backoff: float = 1.0, **options: Any
    ) -> Worker:
        retry = RetryPolicy(attempts=attempts, pause=backoff, longest=max(60.0, backoff))
        self.worker = Worker(self.engine, performers, retry=retry, **options)
        await self.worker.start()
        return self.worker

    def family(
        self, performers: Mapping[type, Performer] | None = None, channels: dict[str, Deliver] | None = None
    ) -> dict[type, Performer]:
        """Performers of everything that runs of a family do with each other, and those given."""
        messages = Messages(self.engine, channels)
        return {
            StartRun: Children(self.engine),
            Say: messages,
            AskPerson: messages,
            AnswerChild: ChildAnswers(self.engine),
            SetTimer: rings(),
            AskAgent: says(),
            CallTool: Does(),
            **(performers or {}),
        }

    async def start(
        self,
        run_id: str,
        *rounds: tuple[Command, ...],
        limits: Limits = Limits(),
        children: Mapping[str, Errands] | None = None,
        **options: Any,
    ) -> Run[Any]:
        return await self.start_definition(run_id, Errands(rounds=rounds), limits, children, **options)

    async def start_definition(
        self,
        run_id: str,
        definition: Errands,
        limits: Limits = Limits(),
        children: Mapping[str, Errands] | None = None,
        **options: Any,
    ) -> Run[Any]:
        return await self.engine.start(
            run_id,
            style_of(definition),
            definition.content(),
            limits=limits,
            pinned=pins(definition, children) if children else b"",
            definitions={digest_of(child.content()): child.content() for child in (children or {}).values()},
            **options,
        )

    async def ended(self, run_id: str) -> View:
        """The run, when it has ended."""
        return await self.until(run_id, lambda view: view.run.ended is not None)

    async def until(self, run_id: str, holds: Callable[[View], bool]) -> View:
        async with asyncio.timeout(25):
            while True:
                if self.worker and self.worker.failure:
                    raise self.worker.failure
                with suppress(RunNotFound):  # a child that is not started yet
                    view = await self.engine.look(run_id)
                    if holds(view):
                        return view
                await asyncio.sleep(0.002)

    async def events(self, run_id: str) -> list[Any]:
        return [record.event for record in await self.journal.read(run_id)]

    async def desk(self, query: DeskQuery = DeskQuery()) -> list[Question]:
        return (await self.engine.desk(query)).items

    async def run_ids(self) -> list[str]:
        return sorted(info.run_id for info in (await self.engine.runs(RunQuery(size=1000))).items)

    async def abandon(self) -> None:
        """Go away as a killed process does: nothing is given back, and the lock of the worker is gone."""
        assert self.worker is not None
        runner, sweeper = self.worker._runner, self.worker._sweeper
        runner.stopping = True
        tasks = [task for task in (sweeper._task, *runner._tasks) if task]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.worker = None
        self.engine.dispatcher = None
        await self.journal.close()  # leaves the lock's file behind, unlocked


def style_of(definition: Errands) -> str:
    return "clerk" if isinstance(definition, Clerk) else "errands"


def pins(root: Errands, children: Mapping[str, Errands]) -> bytes:
    """Every workflow of a family, as each of its definitions names them."""
    named = {name: Pin(style_of(child), digest_of(child.content())) for name, child in children.items()}
    return msgspec.json.encode({digest_of(one.content()): named for one in (root, *children.values())})


@asynccontextmanager
async def a_world(path: Path, clock: Clock = now, registry: Registry = REGISTRY) -> AsyncIterator[World]:
    world = World(path, clock, registry)
    try:
        yield world
    finally:
        if world.worker:
            await world.worker.stop(grace=0)
        await world.journal.close()


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(25):
        while not holds():
            await asyncio.sleep(0.002)


def answers(events: list[object]) -> list[Answered]:
    return [event for event in events if isinstance(event, Answered)]
