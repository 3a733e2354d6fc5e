"""What people and other processes do with paused runs: retry them twice, hold them, cancel them, fork them, wait."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ripstop.engine.engine import View
from ripstop.engine.performers import Request, TryAgain, Unavailable
from ripstop.engine.ports import RunQuery
from ripstop.history.waits import held_back_in, waits_for
from ripstop.kernel.effects import (
    AgentReplied,
    AskAgent,
    AskPerson,
    CallTool,
    Command,
    Limits,
    StartRun,
    ToolReturned,
)
from ripstop.kernel.events import Restored, RetryRequested
from ripstop.kernel.outages import GIVE_UP, LONGEST_PAUSE
from ripstop.kernel.restoring import CONTINUE
from ripstop.kernel.run import OUTAGE, RESTORED
from ripstop.testing import Errands, FakeClock
from tests.engine.test_refused_calls import Server, agent, paused
from tests.engine.world import Does, World, a_world, until

ADA, BEN, TOOL = AskAgent(agent="ada"), AskAgent(agent="ben"), CallTool(tool="hammer")
NO_KEY = Unavailable("The key is not set.", fault="definition")


class SlowServer(Server):
    """A server that takes its time, once it is back."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__(error)
        self.may_answer = asyncio.Event()

    def __call__(self, request: Request) -> Any:
        super().__call__(request)

        async def answer() -> AgentReplied:
            await self.may_answer.wait()
            return AgentReplied(text="hello")

        return answer()


# Retried by several


def test_a_call_that_is_being_made_is_not_made_twice_because_it_is_retried(tmp_path: Path) -> None:
    async def story() -> None:
        server = SlowServer(NO_KEY)
        async with a_world(tmp_path / "j.db") as one, a_world(tmp_path / "j.db") as other:
            await one.work({AskAgent: agent(server)})
            await one.start("r", (ADA,))
            await paused(one)
            server.error = None
            await one.engine.retry("r", by="ann")
            await until(lambda: server.asked == 2)
            second = SlowServer()
            worker = await other.work({AskAgent: agent(second)})
            await other.engine.retry("r", by="ben")
            assert await other.journal.next_due(offers=worker.offers) is None
            server.may_answer.set()
            second.may_answer.set()
            await one.ended("r")
            assert (server.asked, second.asked) == (2, 0)
            assert await one.journal.verify() == []

    asyncio.run(story())


def test_a_call_that_a_worker_tries_again_by_itself_is_not_made_twice_either(tmp_path: Path) -> None:
    async def story() -> None:
        server, clock = SlowServer(TryAgain("down")), FakeClock()
        async with a_world(tmp_path / "j.db", clock) as one, a_world(tmp_path / "j.db", clock) as other:
            first = await one.work({AskAgent: agent(server)}, attempts=1)
            await one.start("r", (ADA,))
            await paused(one)
            server.error = None
            clock.pass_by(LONGEST_PAUSE)
            first.wake()
            await until(lambda: server.asked == 2)
            second = SlowServer()
            worker = await other.work({AskAgent: agent(second)})
            await other.engine.retry("r", by="ben")
            assert await other.journal.next_due(offers=worker.offers) is None
            assert [type(fact) for fact in await one.events("r")].count(RetryRequested) == 1
            server.may_answer.set()
            second.may_answer.set()
            await one.ended("r")
            assert (server.asked, second.asked) == (2, 0)
            assert await one.journal.verify() == []

    asyncio.run(story())


def test_a_retry_of_a_run_that_nothing_refused_changes_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        server = SlowServer()
        async with a_world(tmp_path / "j.db") as world:
            await world.work({AskAgent: agent(server)})
            await world.start("r", (ADA,))
            await until(lambda: server.asked == 1)
            before = await world.events("r")
            await world.engine.retry("r")
            assert await world.events("r") == before
            server.may_answer.set()
            await world.ended("r")
            assert server.asked == 1

    asyncio.run(story())


def test_all_refused_calls_of_a_run_are_made_again_at_once(tmp_path: Path) -> None:
    async def story() -> None:
        server = Server(NO_KEY)
        async with a_world(tmp_path / "j.db") as world:
            await world.work({AskAgent: agent(server)})
            await world.start("r", (ADA, BEN))
            await world.until("r", lambda view: len([one for one in view.run.refused if one.paused]) == 2)
            assert len(await world.desk()) == 2
            server.error = None
            await world.engine.retry("r")
            await world.ended("r")
            assert (server.asked, await world.desk()) == (4, [])
            assert await world.journal.verify() == []

    asyncio.run(story())


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_retry_does_not_wait_for_the_end_of_the_stop_that_a_provider_asked_for(
    tmp_path: Path, elsewhere: bool
) -> None:
    """Its worker, such as that of the web desk, holds all calls to the provider back; other runs continue, too."""

    async def story() -> None:
        server = Server(TryAgain("429", after=500.0, provider_wide=True))
        async with a_world(tmp_path / "j.db") as world, a_world(tmp_path / "j.db") as other:
            worker = await world.work({AskAgent: agent(server)}, attempts=1)
            await world.start("r", (ADA,))
            await paused(world)
            assert worker.held()["acme"] > 400
            await world.start("another", (ADA,))
            server.error = None
            await (other if elsewhere else world).engine.retry("r", by="ann")
            await world.ended("r")
            await world.ended("another")
            assert (server.asked, worker.held()) == (3, {})

    asyncio.run(story())


# Held


async def restored(world: World) -> None:
    await world.engine.tell("r", Restored(copy="c", evidence="Put back from a copy."))


async def about(world: World, purpose: str) -> int:
    (number,) = [one.number for one in await world.desk() if one.command.purpose == purpose]
    return number


def test_nothing_of_a_held_run_is_retried_before_a_person_has_spoken(tmp_path: Path) -> None:
    async def story() -> None:
        server = Server(NO_KEY)
        async with a_world(tmp_path / "j.db") as world:
            worker = await world.work({AskAgent: agent(server)})
            await world.start("r", (ADA,))
            await paused(world)
            await restored(world)
            assert (await world.engine.look("r")).status == "waiting"
            server.error = None
            await world.engine.retry("r", by="ann")
            worker.wake()
            assert await world.journal.next_due(offers=worker.offers) is None
            assert server.asked == 1
            await world.engine.answer("r", await about(world, RESTORED), choice=CONTINUE, by="ann")
            await world.ended("r")
            assert (server.asked, await world.desk()) == (2, [])
            assert await world.journal.verify() == []

    asyncio.run(story())


def test_a_run_that_was_held_is_paused_again_and_waits_for_a_retry(tmp_path: Path) -> None:
    """That the journal was restored does not put a key right."""

    async def story() -> None:
        server = Server(NO_KEY)
        async with a_world(tmp_path / "j.db") as world:
            worker = await world.work({AskAgent: agent(server)})
            await world.start("r", (ADA,))
            await paused(world)
            await worker.stop()
            await restored(world)
            await world.engine.answer("r", await about(world, RESTORED), choice=CONTINUE, by="ann")
            assert (await world.engine.look("r")).status == "paused"
            assert await world.journal.next_due(offers=worker.offers) is None
            assert await about(world, OUTAGE)
            await world.engine.retry("r")
            server.error = None
            await world.work({AskAgent: agent(server)})
            await world.ended("r")
            assert server.asked == 2
            assert await world.journal.verify() == []

    asyncio.run(story())


# Time, ends and forks


def has_paused(times: int, view: View) -> bool:
    return sum(one.pauses for one in view.run.refused) == times


def has_refused(times: int, view: View) -> bool:
    return sum(one.tries for one in view.run.refused) == times


def test_a_pause_uses_up_no_seconds_however_often_it_is_tried_again(tmp_path: Path) -> None:
    async def story() -> None:
        server, clock = Server(TryAgain("down")), FakeClock()
        async with a_world(tmp_path / "j.db", clock) as world:
            worker = await world.work(world.family({AskAgent: agent(server)}), attempts=1)
            await world.start("r", (ADA,), (ADA,), limits=Limits(seconds=60))
            for times in range(1, 6):
                await world.until("r", partial(has_paused, times))
                clock.pass_by(LONGEST_PAUSE)
                worker.wake()
            assert (await world.engine.look("r")).run.work.counted == 0
            server.error = None
            clock.pass_by(LONGEST_PAUSE)
            worker.wake()
            view = await world.ended("r")
            assert view.status == "completed"
            assert await world.journal.verify() == []

    asyncio.run(story())


async def started_child(world: World, rounds: tuple[tuple[Command, ...], ...]) -> str:
    """The child of a run that has 60 seconds."""
    started = (StartRun(workflow="child"),)
    await world.start("r", started, limits=Limits(seconds=60), children={"child": Errands(rounds=rounds)})
    await world.until("r.3", lambda view: view.run is not None)
    return "r.3"


def test_a_pause_of_a_child_uses_up_no_seconds_of_its_parent(tmp_path: Path) -> None:
    async def story() -> None:
        server, clock = Server(TryAgain("down")), FakeClock()
        async with a_world(tmp_path / "j.db", clock) as world:
            worker = await world.work(world.family({AskAgent: agent(server)}), attempts=1)
            child = await started_child(world, ((ADA,),))
            for times in range(1, 4):
                await world.until(child, partial(has_paused, times))
                clock.pass_by(LONGEST_PAUSE)
                worker.wake()
            server.error = None
            clock.pass_by(LONGEST_PAUSE)
            worker.wake()
            view = await world.ended("r")
            assert (view.status, view.run.work.counted) == ("completed", 0)
            assert await world.journal.verify() == []

    asyncio.run(story())


def test_a_child_that_waits_for_a_person_uses_up_no_seconds_of_its_parent(tmp_path: Path) -> None:
    async def story() -> None:
        clock = FakeClock()
        async with a_world(tmp_path / "j.db", clock) as world:
            worker = await world.work(world.family())
            child = await started_child(world, ((AskPerson(question="?"),), (ADA,)))
            await world.until(child, lambda view: view.status == "waiting")
            clock.pass_by(LONGEST_PAUSE)
            worker.wake()
            (asked,) = await world.desk()
            await world.engine.answer(asked.run_id, asked.number, "yes")
            view = await world.ended("r")
            assert (view.status, view.run.work.counted) == ("completed", 0)

    asyncio.run(story())


def test_seconds_in_which_a_call_is_refused_and_tried_again_are_not_time_at_work(tmp_path: Path) -> None:
    """A run whose time is shorter than the patience is paused by an outage, not ended by its limit."""

    async def story() -> None:
        server, clock = Server(TryAgain("down", after=30.0)), FakeClock()
        async with a_world(tmp_path / "j.db", clock) as world:
            worker = await world.work(world.family({AskAgent: agent(server)}), attempts=5)
            await world.start("r", (ADA,), limits=Limits(seconds=60))
            for times in range(1, 6):
                await world.until("r", partial(has_refused, times))
                clock.pass_by(30.0)
                worker.wake()
            assert (await world.engine.look("r")).status == "paused"

    asyncio.run(story())


@pytest.mark.parametrize("how", ["cancel", "cancel child", "give up"])
def test_a_paused_family_can_be_ended_and_leaves_the_desk(tmp_path: Path, how: str) -> None:
    async def story() -> None:
        server = Server(NO_KEY)
        async with a_world(tmp_path / "j.db") as world:
            await world.work(world.family({AskAgent: agent(server)}))
            children = {"child": Errands(rounds=((ADA,),))}
            await world.start("r", (StartRun(workflow="child"), StartRun(workflow="child")), children=children)
            ids = [f"r.{number}" for number in (await world.engine.look("r")).run.open]
            for child in ids:
                await paused(world, child)
            assert (await world.engine.look("r")).status == "waiting"
            if how == "cancel":
                await world.engine.cancel("r", by="ann")
            for child in ids if how == "cancel child" else ():
                await world.engine.cancel(child, by="ann")
            for asked in await world.desk() if how == "give up" else ():
                await world.engine.answer(asked.run_id, asked.number, choice=GIVE_UP, by="ann")
            for one in ("r", *ids):
                await world.ended(one)
            await world.until("r", lambda view: not view.run.open)
            assert (server.asked, await world.desk()) == (2, [])
            assert await world.journal.verify() == []

    asyncio.run(story())


def test_children_that_were_paused_side_by_side_are_retried_and_their_parent_completes(tmp_path: Path) -> None:
    async def story() -> None:
        server = Server(NO_KEY)
        async with a_world(tmp_path / "j.db") as world:
            await world.work(world.family({AskAgent: agent(server)}))
            started = tuple(StartRun(workflow="child") for _ in range(3))
            await world.start("r", started, children={"child": Errands(rounds=((ADA, BEN),))})
            ids = [f"r.{number}" for number in (await world.engine.look("r")).run.open]
            for child in ids:
                await world.until(child, lambda view: sum(one.paused for one in view.run.refused) == 2)
            server.error = None
            await asyncio.gather(*(world.engine.retry(child) for child in ids for _ in range(2)))
            view = await world.ended("r")
            assert (view.status, server.asked, await world.desk()) == ("completed", 12, [])
            assert await world.journal.verify() == []

    asyncio.run(story())


def test_a_fork_of_a_paused_run_makes_the_call_for_itself(tmp_path: Path) -> None:
    async def story() -> None:
        server = Server(NO_KEY)
        async with a_world(tmp_path / "j.db") as world:
            await world.work({AskAgent: agent(server), CallTool: Does()})
            await world.start("r", (TOOL,), (ADA,))
            await paused(world)
            length = (await world.engine.look("r")).run.length
            await world.engine.fork("r", length, "f")
            await paused(world, "f")
            (one,) = (await world.engine.look("f")).run.refused
            assert (one.count, {asked.run_id for asked in await world.desk()}) == (1, {"r", "f"})
            server.error = None
            await world.engine.retry("f")
            await world.ended("f")
            assert (await world.engine.look("r")).status == "paused"
            assert await world.journal.verify() == []

    asyncio.run(story())


# Calls that wait for what their run has not caused


def is_held_back(view: View) -> bool:
    return bool(view.run.held_back) and not view.run.work.deadline


def test_a_call_that_is_always_refused_holds_the_others_up_for_a_moment_only(tmp_path: Path) -> None:
    """Such as one that is too large: the provider has said nothing about the calls that it serves at once."""

    async def story() -> None:
        server = Server()

        def answers(request: Request) -> Any:
            if request.run_id == "large":
                raise TryAgain("Request too large", provider_wide=True)
            return server(request)

        async with a_world(tmp_path / "j.db", clock := FakeClock()) as world:
            worker = await world.work({AskAgent: Does(answers, provider="acme", tools=())}, attempts=1, backoff=0.01)
            await world.start("large", (ADA,))
            for attempt in range(3):
                await world.until("large", partial(has_paused_more_than, attempt))
                await world.start(f"small-{attempt}", (ADA,), (BEN,))
                await world.ended(f"small-{attempt}")
                clock.pass_by(LONGEST_PAUSE)
                worker.wake()
            assert server.asked == 6 and worker.held() == {}

    asyncio.run(story())


def has_paused_more_than(times: int, view: View) -> bool:
    return bool(view.run.refused) and view.run.refused[0].pauses > times


def test_a_run_says_that_its_call_waits_until_the_provider_takes_calls_again(tmp_path: Path) -> None:
    async def story() -> None:
        server = Server(TryAgain("429", after=500.0, provider_wide=True))
        async with a_world(tmp_path / "j.db") as world:
            await world.work(world.family({AskAgent: agent(server)}), attempts=1)
            await world.start("r", (ADA,))
            await paused(world)
            await world.start("another", (ADA,))
            await world.until("another", is_held_back)
            view, said = await world.engine.look("another"), ("acme to take calls again: another/3",)
            assert view.status == "working" and await waits_for(world.engine, view) == said
            runs = (await world.engine.runs(RunQuery())).items
            assert await held_back_in(world.engine, runs) == {"another": said}
            server.error = None
            await world.engine.retry("r", by="ann")
            view = await world.ended("another")
            assert await waits_for(world.engine, view) == ()
            assert await world.journal.verify() == []

    asyncio.run(story())


def test_a_stop_that_another_run_has_caused_is_not_time_at_work(tmp_path: Path) -> None:
    """All calls to a provider are held back when it says "too many" to one of them."""

    async def story() -> None:
        server, clock = Server(TryAgain("429", after=500.0, provider_wide=True)), FakeClock()
        async with a_world(tmp_path / "j.db", clock) as world:
            worker = await world.work(world.family({AskAgent: agent(server)}), attempts=1)
            await world.start("r", (ADA,))
            await paused(world)
            await world.start("another", (ADA,), limits=Limits(seconds=60))
            await world.until("another", is_held_back)
            clock.pass_by(LONGEST_PAUSE)
            worker.wake()
            server.error = None
            await world.engine.retry("r", by="ann")
            view = await world.ended("another")
            assert (view.status, view.run.held_back, view.run.work.counted < 60_000_000) == ("completed", {}, True)
            assert await world.journal.verify() == []

    asyncio.run(story())


def test_a_call_that_was_held_back_ends_with_the_time_of_its_run_once_it_is_made(tmp_path: Path) -> None:
    async def story() -> None:
        server, clock = SlowServer(TryAgain("429", after=500.0, provider_wide=True)), FakeClock()
        async with a_world(tmp_path / "j.db", clock) as world:
            worker = await world.work(world.family({AskAgent: agent(server)}), attempts=1)
            await world.start("r", (ADA,))
            await paused(world)
            await world.start("another", (ADA,), limits=Limits(seconds=60))
            await world.until("another", is_held_back)
            server.error = None
            await world.engine.retry("r", by="ann")
            await world.until("another", lambda view: not view.run.held_back and view.run.work.deadline > 0)
            clock.pass_by(60.0)
            worker.wake()
            assert (await world.ended("another")).status == "limit"
            server.may_answer.set()
            await world.ended("r")

    asyncio.run(story())


@pytest.mark.parametrize("command", [ADA, TOOL])
def test_the_time_of_a_run_ends_also_the_attempt_after_a_refusal(tmp_path: Path, command: Command) -> None:
    async def story() -> None:
        made = asyncio.Event()

        async def slow(request: Request) -> Any:
            if request.attempt == 1:
                raise TryAgain("closed", after=0.001)
            made.set()
            await asyncio.sleep(3600)

        clock = FakeClock()
        async with a_world(tmp_path / "j.db", clock) as world:
            worker = await world.work(world.family({type(command): Does(slow)}), backoff=0.001)
            await world.start("r", (command,), limits=Limits(seconds=60))
            await world.until("r", lambda view: bool(view.run.refused))
            clock.pass_by(1.0)
            worker.wake()
            await made.wait()
            await world.until("r", lambda view: view.run.work.deadline > 0)
            clock.pass_by(60.0)
            worker.wake()
            view = await world.ended("r")
            assert view.status == "limit"
            assert 60_000_000 <= view.run.work.counted < 62_000_000
            assert await world.journal.verify() == []

    asyncio.run(story())


def test_a_call_that_waits_for_a_persons_word_is_not_at_work(tmp_path: Path) -> None:
    async def story() -> None:
        async def asks_first(request: Request) -> Any:
            said = await request.ask("permission", AskPerson(question="May I?"))
            return said and ToolReturned(value="done")

        clock = FakeClock()
        async with a_world(tmp_path / "j.db", clock) as world:
            worker = await world.work(world.family({CallTool: Does(asks_first)}))
            await world.start("r", (TOOL,), limits=Limits(seconds=60))
            await world.until("r", is_held_back)
            clock.pass_by(LONGEST_PAUSE)
            worker.wake()
            (asked,) = await world.desk()
            await world.engine.answer(asked.run_id, asked.number, "yes")
            view = await world.ended("r")
            assert (view.status, view.run.work.counted) == ("completed", 0)
            assert await world.journal.verify() == []

    asyncio.run(story())
