"""One pace per provider, shared by all runs."""

import asyncio
import logging
import math
from pathlib import Path
from time import monotonic

import pytest

from ripstop.engine.performers import Request, TryAgain
from ripstop.engine.rate_limit import LONGEST_PAUSE, Departure, RateLimit, pause_before_retry
from ripstop.engine.shared_pauses import SharedPauses
from ripstop.kernel.effects import AgentReplied, AskAgent, CallTool
from ripstop.security.files import make_private_folder
from tests.engine.world import Does, a_world, until

TOOL, AGENT = CallTool(tool="hammer"), AskAgent(agent="ada")


class Times:
    """A clock that is moved on by whoever sleeps."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr("ripstop.engine.rate_limit.asyncio.sleep", self._sleep)

    def __call__(self) -> float:
        return self.now

    async def _sleep(self, seconds: float) -> None:
        self.now += seconds


async def depart(limit: RateLimit, provider: str) -> Departure:
    departure = await limit.wait(provider)
    assert departure
    return departure


def test_keeps_one_pace_per_provider_over_all_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    time = Times(monkeypatch)

    async def story() -> list[float]:
        limit, went = RateLimit({"acme": 2.0}, now=time), list[float]()
        for provider in ("acme", "acme", "acme", "other"):
            departure = await limit.wait(provider)
            went.append(time.now)
            if departure:
                departure.left()
        return went

    assert asyncio.run(story()) == [0.0, 2.0, 4.0, 4.0]


@pytest.mark.req("S3-92")
def test_the_pause_counts_from_when_a_request_has_left(monkeypatch: pytest.MonkeyPatch) -> None:
    time = Times(monkeypatch)

    async def story() -> None:
        limit = RateLimit({"acme": 2.0}, now=time)
        first = await depart(limit, "acme")
        time.now = 5.0  # libraries were imported, a connection was opened
        second = asyncio.create_task(depart(limit, "acme"))
        await asyncio.sleep(0)
        assert not second.done(), "it waits for the first, whose request has not left yet"
        first.left()
        first.left()
        await second
        assert time.now == 7.0

    asyncio.run(story())


def test_a_call_that_is_cancelled_while_it_waits_holds_up_no_other() -> None:
    async def story() -> None:
        limit = RateLimit({"acme": 0.001})
        first = await depart(limit, "acme")
        second = asyncio.create_task(depart(limit, "acme"))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.wait({second})
        first.left()
        (await depart(limit, "acme")).left()

    asyncio.run(story())


# Several processes: each has a limit of its own, and all have one folder. Locks of files know no threads, so here two
# limits of one process stand for two processes.


@pytest.mark.req("S3-92")
def test_processes_keep_the_pause_of_one_another(tmp_path: Path) -> None:
    async def story() -> None:
        here, there = (
            RateLimit({"acme": 0.05}, shared=SharedPauses(tmp_path / "pauses", make_private_folder)) for _ in range(2)
        )
        first = await depart(here, "acme")
        second = asyncio.create_task(depart(there, "acme"))
        assert not (await asyncio.wait({second}, timeout=0.1))[0], "the request of the first has not left"
        left_at = monotonic()
        first.left()
        await second
        assert monotonic() - left_at >= 0.05

    asyncio.run(story())


@pytest.mark.parametrize("entry", [b"1e300 2", b"nan nan", b"inf 2", b"nonsense", b"", b"\xff" * 500])
def test_a_pause_from_before_the_machine_was_started_is_over(tmp_path: Path, entry: bytes) -> None:
    async def story() -> None:
        (tmp_path / "acme").write_bytes(entry)
        (await depart(RateLimit({"acme": 600.0}, shared=SharedPauses(tmp_path, make_private_folder)), "acme")).left()

    asyncio.run(story())


def test_where_pauses_cannot_be_shared_a_process_keeps_its_own(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        (tmp_path / "file").touch()
        limit = RateLimit({"acme": 0.001}, shared=SharedPauses(tmp_path / "file", make_private_folder))
        for _ in range(2):
            (await depart(limit, "acme")).left()

    asyncio.run(story())
    assert len(caplog.messages) == 1 and "not shared" in caplog.messages[0]


def test_a_provider_that_says_too_many_is_left_alone_by_all_runs(tmp_path: Path) -> None:
    async def story() -> None:
        calls: list[str] = []

        def limited(request: Request) -> AgentReplied:
            calls.append(request.run_id)
            raise TryAgain("too many", after=600.0, provider_wide=True)

        async with a_world(tmp_path / "j.db") as world:
            worker = await world.work({AskAgent: Does(limited, provider="acme"), CallTool: Does()}, concurrency=8)
            await world.start("first", (AGENT,))
            await until(lambda: bool(worker.held()))
            await world.start("second", (AGENT,))
            await world.start("tool", (TOOL,))
            await world.ended("tool")
            assert calls == ["first"], "the others are not held up, this provider is"

    asyncio.run(story())


def test_calls_go_out_again_when_the_provider_wanted_them(monkeypatch: pytest.MonkeyPatch) -> None:
    time = Times(monkeypatch)

    async def story() -> None:
        limit = RateLimit(now=time)
        limit.pause("acme", 5.0)
        assert await limit.wait("acme") and time.now == 5.0
        assert await limit.wait("acme") is None, "there is no limit any more"

    asyncio.run(story())


def test_a_stop_grows_with_refusals_in_a_row_and_is_short_again_after_a_success() -> None:
    time, stops = 0.0, list[float]()
    limit = RateLimit(now=lambda: time)

    def stop_after(times: int) -> float:
        stops.append(float(times))
        return 0.0

    def refuse(made: float) -> None:
        limit.refused("acme", made, stop_after)

    for time in (1.0, 2.0, 3.0):
        refuse(made=time - 0.5)
    refuse(made=1.5)  # made beside the others, so it says nothing new
    limit.served("acme", made=0.5)  # made before any of them
    time = 4.0
    refuse(made=3.5)
    limit.served("acme", made=1.5)
    refuse(made=4.0)
    limit.refused("", 5.0, stop_after)
    assert stops == [1.0, 2.0, 3.0, 3.0, 4.0, 1.0]


@pytest.mark.parametrize(
    ("wanted", "usual", "seconds"),
    [
        (None, 1.0, 1.0),
        (None, 5000.0, LONGEST_PAUSE),
        (7.5, 3.0, 7.5),
        (0.0, 3.0, 3.0),
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
