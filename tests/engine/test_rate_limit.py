"""One pace per provider, shared by all runs."""

import asyncio
import logging
import math
from pathlib import Path

import pytest

from ripstop.engine.performers import Request, TryAgain
from ripstop.engine.rate_limit import LONGEST_PAUSE, RateLimit, pause_before_retry
from ripstop.kernel.effects import AgentReplied, AskAgent, CallTool
from tests.engine.world import Does, a_world, until

TOOL, AGENT = CallTool(tool="hammer"), AskAgent(agent="ada")


def test_keeps_one_pace_per_provider_over_all_runs() -> None:
    async def story() -> None:
        time = 0.0
        slept: list[float] = []
        pace = RateLimit({"acme": 2.0}, now=lambda: time)

        async def wait(provider: str) -> float:
            nonlocal time
            waiting = asyncio.ensure_future(pace.wait(provider))
            await asyncio.sleep(0)
            if not waiting.done():
                slept.append(time)
                time = pace._free[provider]
                waiting.cancel()
                await pace.wait(provider)
            return time

        assert [await wait("acme") for _ in range(3)] == [0.0, 2.0, 4.0]
        assert await wait("other") == 4.0
        assert len(slept) == 2

    asyncio.run(story())


def test_a_provider_that_says_too_many_is_left_alone_by_all_runs(tmp_path: Path) -> None:
    async def story() -> None:
        calls: list[tuple[str, float]] = []
        loop = asyncio.get_running_loop()

        def limited(request: Request) -> AgentReplied:
            calls.append((request.run_id, loop.time()))
            if len(calls) == 1:
                raise TryAgain("too many", after=0.15, provider_wide=True)
            return AgentReplied(text="ok")

        async with a_world(tmp_path / "j.db") as world:
            await world.work({AskAgent: Does(limited, provider="acme"), CallTool: Does()}, concurrency=8)
            await world.start("first", (AGENT,))
            await until(lambda: len(calls) == 1)
            await asyncio.sleep(0.01)
            await world.start("second", (AGENT,))
            await world.start("tool", (TOOL,))
            await world.ended("tool")
            assert len(calls) == 1, "the others are not held up, this provider is"
            await world.ended("first")
            await world.ended("second")
        assert min(at for _, at in calls[1:]) - calls[0][1] >= 0.15

    asyncio.run(story())


@pytest.mark.parametrize(
    ("wanted", "usual", "seconds"),
    [
        (None, 1.0, 1.0),
        (None, 5000.0, LONGEST_PAUSE),
        (7.5, 3.0, 7.5),
        (0.0, 3.0, 0.0),
        (1e300, 1.0, LONGEST_PAUSE),
        (math.inf, 2.0, 2.0),
        (math.nan, 2.0, 2.0),
        (-5.0, 2.0, 2.0),
    ],
)
def test_the_pause_before_a_retry_is_bounded(wanted: float | None, usual: float, seconds: float) -> None:
    assert pause_before_retry(wanted, usual) == seconds


def test_a_long_wait_is_logged_once_and_told_until_it_is_over(caplog: pytest.LogCaptureFixture) -> None:
    time = 100.0
    pace = RateLimit(now=lambda: time)
    pace.pause("acme", 4.9)
    assert (pace.held(), caplog.messages) == ({}, [])
    for seconds in (600.0, 601.0, 2.0):
        pace.pause("acme", seconds)
    pace.pause("", 600.0)
    assert pace.held() == {"acme": 600}
    assert caplog.messages == ["All calls to acme wait for 600 s: it says that there were too many."]
    time = 699.5
    assert pace.held() == {"acme": 1}
    time = 700.0
    assert pace.held() == {}
    pace.pause("acme", 30.0)
    assert len(caplog.messages) == 2


def test_a_worker_tells_which_provider_holds_its_runs_up(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def limited(request: Request) -> AgentReplied:
        raise TryAgain("too many", after=1e9, provider_wide=True)

    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            worker = await world.work({AskAgent: Does(limited, provider="acme")})
            await world.start("first", (AGENT,))
            await until(lambda: bool(worker.held()))
            await world.start("second", (AGENT,))
            assert [*worker.held()] == ["acme"] and worker.held()["acme"] > 590
        (line,) = [one for one in caplog.records if one.levelno == logging.WARNING]
        assert "acme" in line.getMessage() and "600 s" in line.getMessage()

    asyncio.run(story())
