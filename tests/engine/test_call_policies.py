"""How a definition wants calls made: the time between two of them, who is exempt, what is tried again."""

import asyncio

import pytest

from ripstop.engine.live import Live, LiveEvent, RateLimited
from ripstop.engine.rate_limit import RateLimit
from ripstop.kernel.style import CallPolicy
from ripstop.styles.pipeline.definition import Pipeline, PipelineStage
from ripstop.styles.pipeline.kit import KIT

FLOW = Pipeline("flow", (PipelineStage(name="idea", agent="idea", draft="artifacts/idea.md"),))


@pytest.mark.req("S3-92", "S3-94")
def test_a_pipeline_waits_two_seconds_between_calls_and_retries_only_rate_limits() -> None:
    policy = KIT.style.uses(FLOW).calls
    assert (policy.interval_for("openai"), policy.retry) == (2.0, "rate_limit")
    assert policy.interval_for("script") == 0.0, "scripted agents need not wait"


def test_a_rate_limit_that_a_definition_sets_holds_for_scripted_agents_too() -> None:
    flow = Pipeline("flow", FLOW.stages, rate_limit=0.5)
    assert KIT.style.uses(flow).calls.interval_for("script") == 0.5
    assert CallPolicy(interval=3.0).interval_for("anything") == 3.0


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_call_that_has_to_wait_is_shown_and_one_that_need_not_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, live, seen = Clock(), Live(), list[LiveEvent]()
    limit = RateLimit(now=clock)

    async def sleep(seconds: float) -> None:
        clock.now += seconds

    monkeypatch.setattr(asyncio, "sleep", sleep)
    live.watch(seen.append)

    async def call_twice() -> None:
        departure = await limit.wait("openai", 2.0, live, ("todo-1", 7))
        assert departure and not seen
        departure.left()
        await limit.wait("openai", 2.0, live, ("todo-1", 9))

    asyncio.run(call_twice())
    assert seen == [RateLimited("todo-1", 9, "openai", 2.0)]
    assert clock.now == 2.0


def test_all_runs_of_a_process_share_the_limit_of_a_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    limit = RateLimit(now=clock)
    gone: list[tuple[str, float]] = []

    async def sleep(seconds: float) -> None:
        clock.now += seconds

    monkeypatch.setattr(asyncio, "sleep", sleep)

    async def call(run: str) -> None:
        departure = await limit.wait("openai", 2.0)
        assert departure
        departure.left()
        gone.append((run, clock.now))

    async def work() -> None:
        for run in ("one", "two", "one", "two"):
            await call(run)

    asyncio.run(work())
    assert gone == [("one", 0.0), ("two", 2.0), ("one", 4.0), ("two", 6.0)]
