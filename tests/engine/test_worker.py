"""The worker: how many at once, what is tried again, and what a failure becomes."""

import asyncio
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from ripstop.engine.live import LiveEvent, Retrying
from ripstop.engine.performers import Kind, Refused, Request, TryAgain
from ripstop.kernel.effects import AgentReplied, AskAgent, CallTool, Failed, ToolReturned
from tests.engine.world import Does, a_world, answers

TOOL, AGENT = CallTool(tool="hammer"), AskAgent(agent="ada")


def test_never_does_more_at_once_than_it_may(tmp_path: Path) -> None:
    async def story() -> None:
        at_once, most = 0, 0

        async def count(request: Request) -> ToolReturned:
            nonlocal at_once, most
            at_once += 1
            most = max(most, at_once)
            await asyncio.sleep(0.002)
            at_once -= 1
            return ToolReturned(value=1)

        async with a_world(tmp_path / "j.db") as world:
            await world.work({CallTool: Does(count)}, concurrency=3)
            await asyncio.gather(*(world.start(f"r{number}", (TOOL, TOOL)) for number in range(10)))
            for number in range(10):
                await world.ended(f"r{number}")
        assert most == 3

    asyncio.run(story())


FULL = """
import asyncio, sys
from pathlib import Path
from ripstop.kernel.effects import CallTool, ToolReturned
from ripstop.engine.ports import ALL, Tree
from tests.engine.world import Does, a_world

async def slowly(request):
    await asyncio.sleep(0.01)
    return ToolReturned(value=1)

async def main(path, only):
    async with a_world(Path(path)) as world:
        for number in range(4):
            await world.start(f"r{number}", (CallTool(tool="t"),))
        await world.work({CallTool: Does(slowly)}, concurrency=1, scope=Tree(only) if only else ALL)
        await world.ended(only or "r3")
        print(sum(info.status == "completed" for info in (await world.engine.runs()).items))

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize(("only", "done"), [("", 4), ("r2", 1)])
def test_takes_up_what_was_left_bit_by_bit_when_it_is_full(tmp_path: Path, only: str, done: int) -> None:
    # in a process of its own: when this breaks, the loop spins and no timeout inside it can fire
    command = [sys.executable, "-c", FULL, str(tmp_path / "j.db"), only]
    path = {"PYTHONPATH": ":".join([str(Path(__file__).parents[2]), *sys.path])}
    told = subprocess.run(command, env=path, capture_output=True, text=True, timeout=240)
    assert told.stdout == f"{done}\n", told.stderr


CUT_SHORT = """
import asyncio, sys
from pathlib import Path
from tests.engine.world import World

async def main(path, turns):
    world = World(Path(path))
    worker = await world.work({})
    await asyncio.sleep(0.01)
    worker.wake()
    for _ in range(int(turns)):
        await asyncio.sleep(0)
    raise SystemExit(7)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize("turns", [0, 1, 2, 3])
def test_does_not_keep_a_process_alive_whose_main_function_failed(tmp_path: Path, turns: int) -> None:
    command = [sys.executable, "-c", CUT_SHORT, str(tmp_path / "j.db"), str(turns)]
    path = {"PYTHONPATH": ":".join([str(Path(__file__).parents[2]), *sys.path])}
    assert subprocess.run(command, env=path, timeout=240).returncode == 7


# Trying again


@pytest.mark.req("S3-92")
def test_tries_again_only_what_surely_had_no_effect_with_growing_pauses(tmp_path: Path) -> None:
    async def story() -> None:
        def fails_thrice(request: Request) -> AgentReplied:
            if request.attempt < 4:
                raise TryAgain("too many requests")
            return AgentReplied(text="at last")

        agent = Does(fails_thrice, provider="acme")
        pauses: list[float] = []

        def watch(sight: LiveEvent) -> None:
            if isinstance(sight, Retrying):
                pauses.append(sight.seconds)

        async with a_world(tmp_path / "j.db") as world:
            world.engine.live.watch(watch)
            await world.work({AskAgent: agent}, backoff=0.001)
            await world.start("r", (AGENT,))
            await world.ended("r")
            (answer,) = answers(await world.events("r"))
        assert [request.attempt for request in agent.asked] == [1, 2, 3, 4]
        assert {request.key for request in agent.asked} == {"r/3"}
        assert pauses == [0.001, 0.002, 0.004]
        assert answer.answer == AgentReplied(text="at last")
        assert answer.attempt == 4

    asyncio.run(story())


def test_keeps_to_the_pause_that_the_other_side_asks_for(tmp_path: Path) -> None:
    async def story() -> None:
        def once(request: Request) -> AgentReplied:
            if request.attempt == 1:
                raise TryAgain("wait", after=0.0123)
            return AgentReplied(text="ok")

        pauses: list[float] = []
        async with a_world(tmp_path / "j.db") as world:
            world.engine.live.watch(lambda sight: pauses.append(sight.seconds) if isinstance(sight, Retrying) else None)
            await world.work({AskAgent: Does(once)}, backoff=99)
            await world.start("r", (AGENT,))
            await world.ended("r")
        assert pauses == [0.0123]

    asyncio.run(story())


def test_a_tool_fails_after_so_many_refusals_and_says_how_many(tmp_path: Path) -> None:
    async def story() -> None:
        def never(request: Request) -> ToolReturned:
            raise TryAgain("overloaded")

        tool = Does(never)
        async with a_world(tmp_path / "j.db") as world:
            await world.work({CallTool: tool}, attempts=3, backoff=0.001)
            await world.start("r", (TOOL,))
            await world.ended("r")
            (answer,) = answers(await world.events("r"))
        assert len(tool.asked) == 3
        assert isinstance(answer.answer, Failed)
        assert "overloaded" in answer.answer.reason and "3 times" in answer.answer.reason

    asyncio.run(story())


def test_never_repeats_a_refusal(tmp_path: Path) -> None:
    async def story() -> None:
        def refuse(request: Request) -> ToolReturned:
            raise Refused("No such file.", fault="agent")

        tool = Does(refuse)
        async with a_world(tmp_path / "j.db") as world:
            await world.work({CallTool: tool}, backoff=0.001)
            await world.start("r", (TOOL,))
            await world.ended("r")
            (answer,) = answers(await world.events("r"))
        assert len(tool.asked) == 1
        assert answer.answer == Failed(reason="No such file.", fault="agent")

    asyncio.run(story())


@pytest.mark.req("S3-90")
def test_an_exception_in_a_performer_is_a_failed_answer_and_not_a_crash(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        def stumble(request: Request) -> ToolReturned:
            raise ZeroDivisionError("by zero")

        async with a_world(tmp_path / "j.db") as world:
            worker = await world.work({CallTool: Does(stumble)})
            await world.start("r", (TOOL,))
            await world.ended("r")
            await worker.idle()
            (answer,) = answers(await world.events("r"))
        assert answer.answer == Failed(reason="ZeroDivisionError: by zero", fault="ours")

    with caplog.at_level(logging.CRITICAL, "ripstop.worker"):
        asyncio.run(story())


def test_an_answer_that_cannot_be_recorded_is_the_tools_failure_and_not_a_crash(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            worker = await world.work({CallTool: Does(lambda request: ToolReturned(value=object()))})
            await world.start("r", (TOOL,))
            await world.ended("r")
            await worker.idle()
            (answer,) = answers(await world.events("r"))
        assert isinstance(answer.answer, Failed)

    asyncio.run(story())


def test_the_key_is_the_same_for_every_attempt_and_for_nothing_else(tmp_path: Path) -> None:
    async def story() -> None:
        def once(request: Request) -> ToolReturned:
            if request.attempt == 1:
                raise TryAgain("again")
            return ToolReturned(value=1)

        tool = Does(once, kind=Kind.KEYED)
        async with a_world(tmp_path / "j.db") as world:
            await world.work({CallTool: tool}, backoff=0.001)
            await world.start("r", (TOOL, TOOL))
            await world.ended("r")
        keys = [request.key for request in tool.asked]
        assert sorted(keys) == ["r/3", "r/3", "r/4", "r/4"]

    asyncio.run(story())
