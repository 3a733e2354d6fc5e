"""One run that cannot be worked on is set aside; the others go on."""

import asyncio
import logging
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from ripstop.engine.performers import Request
from ripstop.engine.ports import RunQuery, Tree
from ripstop.kernel.effects import CallTool, StartRun, ToolReturned
from ripstop.kernel.errors import UsageError
from ripstop.kernel.registry import Registry
from ripstop.kernel.run import Run
from ripstop.testing import ERRANDS, Errands
from tests.engine.clerk_style import Clerk
from tests.engine.world import Does, World, a_world

TOOL = CallTool(tool="t")


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "ripstop.worker")


def damage(path: Path, run_id: str) -> None:
    """Change what a record says, as a bad disk would."""
    db = sqlite3.connect(path)
    with db:
        key = db.execute("SELECT key FROM runs WHERE id = ?", (run_id,)).fetchone()[0]
        db.execute("UPDATE records SET body = replace(body, 'hammer', 'hummer') WHERE run = ?", (key,))
    db.close()


async def set_aside(world: World, run_id: str) -> str:
    async with asyncio.timeout(25):
        while not (info := await world.journal.run(run_id)) or not info.set_aside:
            await asyncio.sleep(0.005)
    return info.set_aside


def test_runs_of_an_unknown_style_and_damaged_ones_are_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "j.db"

    async def story() -> None:
        async with a_world(path) as world:
            await world.start_definition("foreign", Clerk(rounds=((TOOL,),)))
            await world.start("damaged", (CallTool(tool="hammer"),))
            for number in range(5):
                await world.start(f"healthy{number}", (TOOL,), (TOOL,))
        damage(path, "damaged")
        async with a_world(path, registry=Registry([ERRANDS])) as world:
            worker = await world.work({CallTool: Does()})
            for number in range(5):
                await world.ended(f"healthy{number}")
            assert "'clerk'" in await set_aside(world, "foreign")
            assert "not what was written" in await set_aside(world, "damaged")
            assert worker.failure is None
            page = await world.engine.runs(RunQuery(statuses=("set_aside",)))
            assert sorted(info.run_id for info in page.items) == ["damaged", "foreign"]

    asyncio.run(story())


def test_what_one_worker_cannot_do_is_left_to_those_that_can(tmp_path: Path) -> None:
    path = tmp_path / "j.db"

    async def story() -> None:
        async with a_world(path, registry=Registry([ERRANDS])) as without, a_world(path) as world:
            await without.work({CallTool: Does()})
            for number in range(4):
                await world.start_definition(f"r{number}", Clerk(rounds=((TOOL,), (TOOL,))))
                await set_aside(world, f"r{number}")
            async with a_world(path) as able:
                await able.work({CallTool: Does()})
                for number in range(4, 8):
                    await world.start_definition(f"r{number}", Clerk(rounds=((TOOL,), (TOOL,))))
                for number in range(8):
                    await world.ended(f"r{number}")
            assert await world.journal.counts() == {"completed": 8}

    asyncio.run(story())


def test_what_a_person_has_not_allowed_here_is_done_where_it_is_allowed(tmp_path: Path) -> None:
    path = tmp_path / "j.db"

    async def refuse(run: Run[Any]) -> None:
        raise UsageError("This folder has not been agreed to.")

    async def story() -> None:
        async with a_world(path) as starter, a_world(path) as one, a_world(path) as other:
            await one.work({CallTool: Does()}, admit=refuse)
            await starter.start("r", (TOOL,), (TOOL,))
            assert "agreed" in await set_aside(one, "r")
            await other.work({CallTool: Does()})
            assert (await other.ended("r")).status == "completed"

    asyncio.run(story())


def test_a_worker_does_not_spin_over_what_is_set_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "j.db"

    async def story() -> None:
        async with a_world(path) as world:
            await world.start_definition("foreign", Clerk(rounds=((TOOL,),)))
        async with a_world(path, registry=Registry([ERRANDS])) as world:
            await world.work({CallTool: Does()})
            await set_aside(world, "foreign")
            claims = 0
            claim = world.journal.claim

            async def counted(*given: object, **options: object) -> object:
                nonlocal claims
                claims += 1
                return await claim(*given, **options)  # type: ignore[arg-type]

            monkeypatch.setattr(world.journal, "claim", counted)
            await asyncio.sleep(0.3)
            assert claims <= 2

    asyncio.run(story())


def test_what_was_set_aside_is_worked_on_when_it_is_put_back(tmp_path: Path) -> None:
    path = tmp_path / "j.db"

    async def story() -> None:
        async with a_world(path) as world:
            await world.start_definition("foreign", Clerk(rounds=((TOOL,),)))
        async with a_world(path, registry=Registry([ERRANDS])) as world:
            await world.work({CallTool: Does()})
            await set_aside(world, "foreign")
        async with a_world(path) as world:
            await world.work({CallTool: Does()})
            await world.engine.put_back("foreign")
            await world.ended("foreign")

    asyncio.run(story())


def test_a_parent_of_a_damaged_child_does_not_stop_the_worker(tmp_path: Path) -> None:
    path = tmp_path / "j.db"

    async def story() -> None:
        async def for_ever(request: Request) -> None:
            await asyncio.Event().wait()

        child = {"child": Errands(rounds=((CallTool(tool="hammer"),),))}
        async with a_world(path) as world:
            await world.work(world.family({CallTool: Does(for_ever)}))
            await world.start("r", (StartRun(workflow="child"),), children=child)
            await world.until("r.3", lambda view: view.status == "working")
        damage(path, "r.3")
        async with a_world(path) as world:
            await world.start("healthy", (TOOL,))
            await world.engine.cancel("r")
            worker = await world.work(world.family())
            await world.ended("healthy")
            await set_aside(world, "r.3")
            await set_aside(world, "r")
            assert worker.failure is None

    asyncio.run(story())


def test_a_worker_of_one_family_says_what_is_wrong_with_it(tmp_path: Path) -> None:
    path = tmp_path / "j.db"

    async def story() -> None:
        async with a_world(path) as world:
            await world.start_definition("foreign", Clerk(rounds=((TOOL,),)))
        async with a_world(path, registry=Registry([ERRANDS])) as world:
            worker = await world.work({CallTool: Does()}, scope=Tree("foreign"))
            async with asyncio.timeout(25):
                while worker.failure is None:
                    await asyncio.sleep(0.005)
            assert "'clerk'" in str(worker.failure)

    asyncio.run(story())


@pytest.mark.parametrize("fault", ["gist", "documents", "evolve"])
def test_a_bug_in_a_style_does_not_stop_the_worker(tmp_path: Path, fault: str) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            worker = await world.work({CallTool: Does()})
            await world.start_definition("bad", Clerk(rounds=((TOOL,), (TOOL,)), fault=fault))
            await world.start("good", (TOOL,), (TOOL,))
            await world.ended("good")
            if fault == "evolve":  # while it decides: the run fails
                view = await world.ended("bad")
                assert view.run.ended is not None and view.run.ended.outcome == "failed"
            else:
                assert "ZeroDivisionError" in await set_aside(world, "bad")
            assert worker.failure is None

    asyncio.run(story())


# What only another worker offers


def test_a_call_waits_for_a_worker_that_has_its_tool(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as one, a_world(tmp_path / "j.db") as two:
            without, has = Does(tools=("hammer",)), Does(tools=("pay",))
            worker = await one.work({CallTool: without})
            await one.start("r", (CallTool(tool="pay"),), (CallTool(tool="hammer"),))
            await worker.idle()
            await asyncio.sleep(0.05)
            assert without.asked == []
            await two.work({CallTool: has})
            await one.ended("r")
            assert [request.key for request in has.asked] == ["r/3"]
            assert [request.key for request in without.asked] == ["r/6"]

    asyncio.run(story())


@pytest.mark.parametrize("knows", ["calls it pure", "does not know it"])
def test_what_was_begun_as_unsafe_stays_unsafe(tmp_path: Path, knows: str) -> None:
    from ripstop.engine.performers import Kind
    from ripstop.kernel.events import Doubted

    async def story() -> None:
        async def for_ever(request: Request) -> None:
            await asyncio.Event().wait()

        dead = World(tmp_path / "j.db")
        tool = Does(for_ever, kind=Kind.UNSAFE, tools=("pay",))
        await dead.work({CallTool: tool})
        await dead.start("r", (CallTool(tool="pay"),))
        while not tool.asked:
            await asyncio.sleep(0.005)
        await dead.abandon()
        async with a_world(tmp_path / "j.db") as world:
            if knows == "does not know it":
                other = Does(tools=("hammer",))
                worker = await world.work({CallTool: other})
                await asyncio.sleep(0.1)
                assert other.asked == []
                assert not any(isinstance(event, ToolReturned) for event in await world.events("r"))
                await worker.stop(grace=0)
            pure = Does(kind=Kind.PURE, tools=("pay",))
            await world.work({CallTool: pure})
            await world.until("r", lambda view: view.status == "waiting")
            assert sum(isinstance(event, Doubted) for event in await world.events("r")) == 1
            assert pure.asked == []

    asyncio.run(story())
