"""What is recorded about a call besides its answer, and how a definition wants calls made."""

import asyncio
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ripstop.engine import command_runner
from ripstop.engine.performers import Refused, Request, TryAgain
from ripstop.engine.rate_limit import Departure, RateLimit
from ripstop.kernel.effects import AgentReplied, AskAgent, Failed, StartRun, Usage
from ripstop.kernel.events import CallRefused
from ripstop.testing import Errands
from tests.engine.clerk_style import Clerk
from tests.engine.world import Does, a_world, answers, until

AGENT = AskAgent(agent="ada")


def test_records_how_long_a_call_took_and_what_failed_before(tmp_path: Path) -> None:
    async def story() -> None:
        async def fails_twice(request: Request) -> AgentReplied:
            request.progress.begin(80)
            if request.attempt < 3:
                raise TryAgain(f"busy {request.attempt}", after=0.01)
            await asyncio.sleep(0.02)
            request.progress.receive(5)
            await asyncio.sleep(0.02)
            return AgentReplied(text="hello")

        async with a_world(tmp_path / "j.db") as world:
            await world.work({AskAgent: Does(fails_twice, tools=())})
            await world.start("r", (AGENT,))
            await world.ended("r")
            events = await world.events("r")
            (answer,) = answers(events)
        assert answer.attempt == 3
        assert [(one.reason, one.attempt) for one in events if isinstance(one, CallRefused)] == [
            ("busy 1", 1),
            ("busy 2", 2),
        ]
        assert 0.02 <= answer.first_token <= answer.took
        assert answer.took >= 0.04

    asyncio.run(story())


@pytest.mark.parametrize("error", [Refused("no"), ValueError("odd")], ids=lambda e: type(e).__name__)
def test_what_a_failed_call_cost_counts(tmp_path: Path, error: Exception) -> None:
    async def story() -> None:
        def fails(request: Request) -> AgentReplied:
            request.progress.begin(800, price=(1_000_000.0, 0.0))
            request.progress.receive(16)
            raise error

        async with a_world(tmp_path / "j.db") as world:
            await world.work({AskAgent: Does(fails, tools=())}, attempts=1)
            await world.start("r", (AGENT,))
            view = await world.ended("r")
            (answer,) = answers(await world.events("r"))
        cost = Usage(unreported_input=100, unreported_output=2, unreported_money=100.0)
        assert isinstance(answer.answer, Failed) and answer.answer.usage == cost
        assert view.run.spent.usage == cost

    asyncio.run(story())


def failing(attempts: int, pause: float) -> Does:
    """Costs 10 tokens each time; fails so often."""

    def call(request: Request) -> AgentReplied:
        request.progress.begin(80)
        request.progress.receive(0)
        if request.attempt <= attempts:
            raise TryAgain("busy", after=pause)
        return AgentReplied(text="hello", usage=Usage(input_tokens=10))

    return Does(call, tools=())


@pytest.mark.parametrize("fails", [2, 9], ids=["answered at last", "paused"])
def test_what_retried_attempts_cost_counts(tmp_path: Path, fails: int) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            await world.work({AskAgent: failing(fails, 0.01)}, attempts=3)
            await world.start("r", (AGENT,))
            view = await world.until("r", lambda view: view.run.ended is not None or view.status == "paused")
            assert view.run.spent.usage.counted_tokens == 30
            assert await world.journal.verify() == []

    asyncio.run(story())


def test_what_an_attempt_cost_counts_if_it_is_not_made_again(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            agent = failing(9, 60.0)
            await world.work(world.family({AskAgent: agent}))
            await world.start("r", (StartRun(workflow="w"),), children={"w": Errands(rounds=((AGENT,),))})
            await until(lambda: bool(agent.asked))
            while not any(isinstance(one, CallRefused) for one in await world.events("r.3")):
                await asyncio.sleep(0.002)
            await world.engine.cancel("r")
            view = await world.until("r", lambda view: view.run.is_settled)
            assert view.run.spent.usage.counted_tokens == 10

    asyncio.run(story())


def test_a_definition_sets_the_pause_between_calls_which_is_not_part_of_a_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed, waits = [0], RateLimit.wait

    async def wait(self: RateLimit, *args: Any) -> Departure | None:
        departure = await waits(self, *args)
        passed[0] += 3_600_000_000_000
        return departure

    async def story() -> None:
        calls: list[float] = []

        def speak(request: Request) -> AgentReplied:
            calls.append(time.monotonic())
            passed[0] += 5_000_000
            return AgentReplied(text="hello")

        async with a_world(tmp_path / "j.db") as world:
            await world.work({AskAgent: Does(speak, provider="acme", tools=())})
            slow = Clerk(rounds=((AGENT,), (AGENT,)), interval=0.1)
            await world.start_definition("slow", slow)
            await world.ended("slow")
            took = [one.took for one in answers(await world.events("slow"))]
            assert calls[1] - calls[0] >= 0.1
            assert took == [0.005, 0.005], "an hour was waited for the provider's turn"

    monkeypatch.setattr(RateLimit, "wait", wait)
    monkeypatch.setattr(command_runner, "time", SimpleNamespace(monotonic_ns=lambda: passed[0]))
    asyncio.run(story())


@pytest.mark.parametrize(("limited", "attempts"), [(True, 2), (False, 1)])
def test_a_definition_can_retry_only_rate_limits(tmp_path: Path, limited: bool, attempts: int) -> None:
    async def story() -> None:
        def once(request: Request) -> AgentReplied:
            if request.attempt == 1:
                raise TryAgain("later", after=0.001, provider_wide=limited)
            return AgentReplied(text="hello")

        async with a_world(tmp_path / "j.db") as world:
            agent = Does(once, provider="acme", tools=())
            await world.work({AskAgent: agent})
            await world.start_definition("r", Clerk(rounds=((AGENT,),), retry="rate_limit"))
            view = await world.until("r", lambda view: view.run.ended is not None or view.status == "paused")
        assert len(agent.asked) == attempts
        assert view.status == ("completed" if limited else "paused")
        assert limited or view.run.refused[0].again == 0

    asyncio.run(story())
