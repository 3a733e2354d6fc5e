"""ripstop, the whole path: fact → decide → append → outbox → performer → answer.

Engine, Worker, graph style and SQLite journal as the command line uses them (WAL, synchronous=FULL).
Only the agent is ours: it answers at once, and it is `pure`, like every call of a model.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec

from ripstop.engine.engine import Engine
from ripstop.engine.performers import Kind, Request
from ripstop.engine.worker import Worker
from ripstop.journals.sqlite.journal import SqliteJournal
from ripstop.kernel.effects import AgentReplied, Answer, AskAgent, AskPerson, Command
from ripstop.kernel.events import Event, Started
from ripstop.kernel.registry import Registry
from ripstop.kernel.step import Step
from ripstop.kernel.style import News, Style, StyleKit
from ripstop.styles.graph.definition import Agent, Graph, State, Transition
from ripstop.styles.graph.kit import KIT as GRAPH

from .work import Figures, Log, Model, bytes_in, main, rate, resident

CONCURRENCY = 256
DATABASE = "journal.db"


class InstantAgent:
    def __init__(self, model: Model) -> None:
        self._model = model

    async def perform(self, request: Request) -> Answer | None:
        return AgentReplied(text=self._model.answer())

    def kind(self, command: Command) -> Kind:
        return Kind.PURE

    def offers(self) -> tuple[str, ...]:
        return ()

    def provider(self, request: Request) -> str:
        return ""

    async def probe(self, request: Request) -> Answer | None:
        return None


class Waiting(Style[str]):
    """A style whose run asks a person, and waits."""

    name = "waiting"

    def begin(self, definition: Any, started: Started) -> str:
        return started.input

    def evolve(self, state: str, number: int, event: Event) -> str:
        return state

    def decide(self, step: Step[str], news: News) -> None:
        if isinstance(news, Started):
            step.ask(AskPerson(question="May it go on?", choices={"yes": "", "no": ""}))


class Nothing(msgspec.Struct, frozen=True):
    """What the style that waits is defined by."""


REGISTRY = Registry([GRAPH, StyleKit(style=Waiting(), definition=Nothing)])


def now() -> int:
    return time.time_ns() // 1000


def ping_pong(steps: int) -> bytes:
    def state(name: str, other: str) -> State:
        prompt = "Go on with this: {{last_agent_content}}"
        return State(name=name, agent="player", prompt=prompt, transitions=(Transition(to=other, condition="go"),))

    graph = Graph(
        name="ping-pong",
        start="ping",
        max_turns=steps,
        initial_message="Begin.",
        agents=(Agent(name="player"),),
        states=(state("ping", "pong"), state("pong", "ping")),
    )
    return msgspec.json.encode(graph)


def with_engine(folder: Path, model: Model, work: Callable[[Engine, Worker], Awaitable[Figures]]) -> Figures:
    """Open the journal, let `work` use it, close it."""

    async def inside() -> Figures:
        journal = SqliteJournal(folder / DATABASE, REGISTRY.codec)
        engine = Engine(journal, REGISTRY, now)
        worker = Worker(engine, {AskAgent: InstantAgent(model)}, concurrency=CONCURRENCY)
        await worker.start()
        figures = await work(engine, worker)
        await worker.stop()
        await journal.close()
        return figures

    return asyncio.run(inside())


def concurrent(folder: Path, runs: int, steps: int, size: int = 500) -> Figures:
    async def work(engine: Engine, worker: Worker) -> Figures:
        definition = ping_pong(steps)
        began = time.perf_counter()
        await asyncio.gather(*(engine.start(f"run-{index}", "graph", definition) for index in range(runs)))
        await worker.idle()
        figures = rate(runs * steps, began)
        statuses = set(await engine.journal.counts())
        assert statuses == {"limit"}, statuses
        assert len(model.asked) == runs * steps, len(model.asked)
        return figures

    model = Model(size)
    figures = with_engine(folder, model, work)
    return {**figures, "bytes": bytes_in(folder)}


def single(folder: Path, steps: int) -> Figures:
    return concurrent(folder, runs=1, steps=steps)


def size_on_disk(folder: Path, steps: int, size: int) -> Figures:
    return concurrent(folder, runs=1, steps=steps, size=size)


def growth(folder: Path, steps: int, window: int) -> Figures:
    async def work(engine: Engine, worker: Worker) -> Figures:
        await engine.start("run", "graph", ping_pong(steps))
        await worker.idle()
        return model.growth(window)

    model = Model(log=Log(folder / DATABASE))
    figures = with_engine(folder, model, work)
    return {**figures, "bytes": bytes_in(folder)}


def fill(folder: Path, steps: int) -> Figures:
    """Take `steps` steps and be killed while the agent works on the next one."""

    async def work(engine: Engine, worker: Worker) -> Figures:
        await engine.start("run", "graph", ping_pong(steps + 10))
        await worker.idle()
        raise AssertionError("should have been killed")

    return with_engine(folder, Model(die_at=steps + 1), work)


def resume(folder: Path) -> Figures:
    async def work(engine: Engine, worker: Worker) -> Figures:
        await asyncio.sleep(60)
        raise AssertionError("the run was not taken up again within a minute")

    return with_engine(folder, Model(announce=True), work)


def waiting(folder: Path, runs: int, seconds: float) -> Figures:
    async def work(engine: Engine, worker: Worker) -> Figures:
        async def start(first: int, last: int) -> None:
            for begin in range(first, last, 100):
                batch = range(begin, min(begin + 100, last))
                await asyncio.gather(*(engine.start(f"run-{n}", "waiting", b"{}", input="hello") for n in batch))

        await start(0, 100)
        before = resident()
        await start(100, 100 + runs)
        grown = resident() - before
        assert await engine.journal.desk_count() == runs + 100
        used = time.process_time()
        await asyncio.sleep(seconds)
        return {"bytes_per_run": grown / runs, "cpu_share": (time.process_time() - used) / seconds, "runs": runs}

    return with_engine(folder, Model(), work)


if __name__ == "__main__":
    main(
        {
            "concurrent": concurrent,
            "single": single,
            "growth": growth,
            "bytes": size_on_disk,
            "fill": fill,
            "resume": resume,
            "waiting": waiting,
        }
    )
