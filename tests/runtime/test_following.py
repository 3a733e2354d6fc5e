"""Following runs until nothing more happens to them by itself."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ripstop.kernel.effects import AskPerson, CallTool, StartRun, ToolReturned
from ripstop.runtime.following import until_settled
from ripstop.testing import Errands
from tests.runtime.world import Does, World, a_world, bears

TOOL = CallTool(tool="t")


def counted(world: World, calls: Counter[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Count what is read of the journal."""
    for name in ("read", "runs"):

        def call(*args: Any, name: str = name, real: Any = getattr(world.journal, name), **options: Any) -> Any:
            calls[name] += 1
            return real(*args, **options)

        monkeypatch.setattr(world.journal, name, call)


async def follow_many(path: Path, runs: int, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    calls: Counter[str] = Counter()

    async def slowly(_: object) -> Any:
        await asyncio.sleep(0.01)
        return ToolReturned(value="done")

    async with a_world(path) as world:
        worker = await world.work({CallTool: Does(slowly)})
        for index in range(runs):
            await world.start(f"r{index}", (TOOL,), (TOOL,))
        counted(world, calls, monkeypatch)
        views = await asyncio.gather(*(until_settled(world.engine, worker, f"r{index}") for index in range(runs)))
        assert {view.status for view in views} == {"completed"}
    return calls


def test_following_reads_a_run_as_often_however_many_are_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = asyncio.run(follow_many(tmp_path / "few.db", 5, monkeypatch))
    many = asyncio.run(follow_many(tmp_path / "many.db", 50, monkeypatch))
    assert many["read"] / 50 <= few["read"] / 5 + 1
    assert many["runs"] == few["runs"] == 0


def test_following_a_parent_waits_for_its_child_without_listing_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        calls: Counter[str] = Counter()
        children = {"asks": Errands(rounds=((TOOL,), (AskPerson(question="Shall I?"),)))}
        async with a_world(tmp_path / "j.db") as world:
            worker = await world.work({CallTool: Does(), StartRun: bears(world.engine, children)})
            await world.start("r", (StartRun(workflow="asks"),))
            await worker.idle()
            counted(world, calls, monkeypatch)
            view = await until_settled(world.engine, worker, "r")
            assert view.status == "waiting"
            (question,) = await world.engine.desk()
            assert question.run_id == "r.3"
        assert calls["runs"] == 0

    asyncio.run(story())


def test_following_notices_what_another_process_does(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as ours, a_world(tmp_path / "j.db") as theirs:
            worker = await ours.work({}, only="nothing of ours")
            await theirs.start("r", (TOOL,))
            following = asyncio.create_task(until_settled(ours.engine, worker, "r"))
            await asyncio.sleep(0)
            await theirs.work({CallTool: Does()})
            async with asyncio.timeout(10):
                assert (await following).status == "completed"

    asyncio.run(story())
