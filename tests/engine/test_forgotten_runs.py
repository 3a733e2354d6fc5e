"""A run that was forgotten is refused by name and day, also by a process that still has it in memory."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ripstop.engine import engine as runs
from ripstop.engine.engine import Engine
from ripstop.engine.following import follow
from ripstop.engine.ports import Entry, Journal
from ripstop.journals.memory import MemoryJournal
from ripstop.journals.sqlite.journal import SqliteJournal
from ripstop.kernel.effects import AskPerson, CallTool
from ripstop.kernel.errors import Conflict, RunDamaged, RunForgotten
from ripstop.kernel.events import Answered, Fact
from ripstop.testing import Errands
from tests.engine.world import CODEC, REGISTRY, Does, a_world, now, until

PERSON = AskPerson(question="Well?")
DEFINITION = Errands(rounds=((PERSON,),)).content()
DAY = 1_790_000_000_000_000
"""2026-09-21."""
ASKS: dict[str, Callable[[Engine], Any]] = {
    "look": lambda engine: engine.look("r"),
    "history": lambda engine: engine.history("r"),
    "start": lambda engine: engine.start("r", "errands", DEFINITION),
    "start with a key": lambda engine: engine.start("r", "errands", DEFINITION, key="k"),
    "hear": lambda engine: engine.hear("r", "hello?", id="m2"),
    "hear what it has heard": lambda engine: engine.hear("r", "hello", id="m1"),
    "cancel": lambda engine: engine.cancel("r"),
    "resume": lambda engine: engine.resume("r"),
    "answer": lambda engine: engine.answer("r", 3, "yes"),
    "fork": lambda engine: engine.fork("r", None, "f"),
    "fork to its id": lambda engine: engine.fork("other", None, "r"),
}


@asynccontextmanager
async def opened(kind: str, folder: Path) -> AsyncIterator[tuple[Journal, Callable[[], Engine]]]:
    """A journal, and what opens it as another process would."""
    path = folder / "j.db"
    first: Journal = MemoryJournal(CODEC) if kind == "memory" else SqliteJournal(path, CODEC)
    journals = [first]

    def another() -> Engine:
        if kind == "sqlite":
            journals.append(SqliteJournal(path, CODEC))
        return Engine(journals[-1], REGISTRY, now)

    try:
        yield first, another
    finally:
        for journal in journals:
            await journal.close()


@pytest.mark.parametrize("asked", ASKS)
@pytest.mark.parametrize("cached", ["at work", "ended", "not"])
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_refuses_whatever_is_asked_of_a_forgotten_run(tmp_path: Path, kind: str, cached: str, asked: str) -> None:
    async def story() -> None:
        async with asyncio.timeout(25), opened(kind, tmp_path) as (journal, another):
            here, there = another(), another()
            await here.start("other", "errands", DEFINITION)
            await here.start("r", "errands", DEFINITION)
            await here.hear("r", "hello", id="m1")
            await there.cancel("r")
            if cached == "ended":
                await here.look("r")
            await journal.forget(["r"], DAY)
            engine = another() if cached == "not" else here
            with pytest.raises(
                RunForgotten, match=r"Run 'r' was forgotten on 2026-09-21, and its id is not used again\."
            ) as refused:
                await ASKS[asked](engine)
            assert refused.value.run_id == "r"
            assert await journal.read("r") == []

    asyncio.run(story())


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_gives_up_where_every_append_conflicts_and_nothing_is_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    async def story() -> None:
        async with asyncio.timeout(25), opened(kind, tmp_path) as (journal, _):
            engine = Engine(journal, REGISTRY, now)
            await engine.start("r", "errands", DEFINITION)
            tried = []

            async def conflict(entry: Entry) -> None:
                tried.append(entry)
                raise Conflict(entry.run_id)

            monkeypatch.setattr(journal, "append", conflict)
            with pytest.raises(RunDamaged, match="takes no step after the last one"):
                await engine.hear("r", "hello")
            assert len(tried) == runs.MOST_VAIN_CONFLICTS + 1

    asyncio.run(story())


def test_a_follower_of_a_run_that_is_forgotten_meanwhile_comes_to_its_end(tmp_path: Path) -> None:
    async def story() -> None:
        async with asyncio.timeout(25), a_world(tmp_path / "j.db") as world:
            await world.start("r", (PERSON,))
            seen = []

            async def watch() -> None:
                async for one in follow(world.engine, "r"):
                    seen.append(one)

            async with a_world(tmp_path / "j.db") as other, asyncio.TaskGroup() as tasks:
                tasks.create_task(watch())
                await until(lambda: len(seen) == 3)
                await asyncio.sleep(0)  # it has looked at the run, and waits
                await other.engine.cancel("r")
                await other.journal.forget(["r"], DAY)
            assert len(seen) == 3
            with pytest.raises(RunForgotten):
                await anext(follow(world.engine, "r"))

    asyncio.run(story())


def test_a_late_answer_of_a_forgotten_run_does_not_stop_the_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            worker = await world.work({CallTool: Does()})
            tell = world.engine.tell

            async def forgotten(run_id: str, fact: Fact, *more: Any, **named: Any) -> Any:
                if run_id == "r" and isinstance(fact, Answered):
                    raise RunForgotten(run_id, DAY)
                return await tell(run_id, fact, *more, **named)

            monkeypatch.setattr(world.engine, "tell", forgotten)
            await world.start("r", (CallTool(tool="hammer"),))
            await until(lambda: "was forgotten on" in caplog.text)
            await world.start("other", (CallTool(tool="hammer"),))
            assert (await world.ended("other")).status == "completed"
            assert worker.failure is None and "aside" not in caplog.text

    asyncio.run(story())
