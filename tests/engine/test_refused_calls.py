"""Calls of models that are refused: counted once, ridden out, and if that does not help, the run is paused."""

import asyncio
from functools import partial
from pathlib import Path

import pytest

from ripstop.engine.engine import View
from ripstop.engine.performers import InDoubt, Kind, Request, TryAgain, Unavailable
from ripstop.history.desk import desk_item
from ripstop.history.outages import outages
from ripstop.history.runs import run_document
from ripstop.kernel.effects import AgentReplied, AskAgent, CallTool, Failed, Limits, ToolReturned
from ripstop.kernel.errors import QuestionClosed, RunHasEnded
from ripstop.kernel.events import Answered, CallRefused, Ended, RetryRequested
from ripstop.kernel.outages import GIVE_UP, RETRY, RetryPolicy, pause_of_outage
from ripstop.testing import FakeClock
from tests.engine.world import Does, World, a_world

AGENT, TOOL = AskAgent(agent="ada"), CallTool(tool="hammer")


async def hangs(_: Request) -> AgentReplied:
    await asyncio.sleep(60)
    raise AssertionError


class Server:
    """A model server that can be down."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.asked = 0

    def __call__(self, request: Request) -> AgentReplied:
        self.asked += 1
        if self.error:
            raise self.error
        return AgentReplied(text="hello")


def agent(server: Server) -> Does:
    return Does(server, provider="acme", tools=())


async def paused(world: World, run_id: str = "r") -> None:
    await world.until(run_id, lambda view: view.status == "paused")


def has_paused_after(refusals: int, view: View) -> bool:
    return view.status == "paused" and view.run.refused[0].count == refusals


def has_met(refusals: int, view: View) -> bool:
    return bool(view.run.refused) and view.run.refused[0].count == refusals


def test_an_outage_pauses_the_run_and_says_who_how_often_and_what_is_next(tmp_path: Path) -> None:
    async def story() -> None:
        server = Server(TryAgain("no answer"))
        async with a_world(tmp_path / "j.db") as world:
            await world.work({AskAgent: agent(server)}, attempts=3, backoff=0.001)
            await world.start("r", (AGENT,))
            await paused(world)
            (one,) = (await world.engine.look("r")).run.refused
            assert (one.count, one.by, one.reason, one.pauses) == (3, "acme", "no answer", 1)
            assert one.again > one.since > 0
            (asked,) = await world.desk()
            assert asked.command.title == "acme" and "no answer" in asked.command.question
            assert await world.journal.verify() == []

    asyncio.run(story())


def test_a_person_is_asked_again_once_a_call_waits_for_him_and_always_told_the_present_reason(tmp_path: Path) -> None:
    """The desk would say that the server is down while the key is not accepted, which only a person can put right."""

    async def story() -> None:
        server, clock = Server(TryAgain("answered 503")), FakeClock()
        async with a_world(tmp_path / "j.db", clock) as world:
            worker = await world.work({AskAgent: agent(server)}, attempts=1)
            await world.start("r", (AGENT,))
            asked: list[int] = []
            errors = (TryAgain("answered 502"), Unavailable("answered 401", fault="definition"))
            for refusals, error in enumerate((*errors, None), start=1):
                await world.until("r", partial(has_met, refusals))
                (question,) = await world.desk()
                asked.append(question.number)
                (row,) = (await run_document(world.engine, await world.engine.look("r")))["waiting"]
                item = await desk_item(world.engine, question)
                assert item.outage is not None and item.question == row["question"]
                assert item.question == f"The call of ada is refused by acme: {item.outage.reason}"
                assert item.outage.reason == f"answered {(503, 502, 401)[refusals - 1]}"
                if error:
                    server.error = error
                    clock.pass_by(pause_of_outage(refusals))
                    worker.wake()
            assert asked[0] == asked[1] != asked[2], "what is tried again by itself is asked about once"
            with pytest.raises(QuestionClosed, match=f"Open now: r/{asked[2]}"):
                await world.engine.answer("r", asked[0], choice=GIVE_UP)
            server.error = None
            await world.engine.answer("r", asked[2], choice=RETRY)
            await world.ended("r")
            assert (await world.desk(), await world.journal.verify()) == ([], [])

    asyncio.run(story())


def test_an_outage_is_told_from_its_first_refusal_however_often_a_person_has_it_retried(tmp_path: Path) -> None:
    async def story() -> None:
        server, clock = Server(TryAgain("it is down")), FakeClock()
        async with a_world(tmp_path / "j.db", clock) as world:
            await world.work({AskAgent: agent(server)}, attempts=1)
            await world.start("r", (AGENT,))
            await paused(world)
            began = outages((await world.engine.look("r")).run, "r", True)[0].since
            for times in (2, 3):
                clock.pass_by(60.0)
                await world.engine.retry("r", by="ann")
                await world.until("r", partial(has_paused_after, times))
            view = await world.engine.look("r")
            (told,) = outages(view.run, "r", True)
            assert (told.refusals, told.since) == (3, began)
            assert view.run.refused[0].tries == 1, "patience counts anew"

    asyncio.run(story())


def test_an_answer_to_a_question_that_was_replaced_names_the_one_that_is_open_now(tmp_path: Path) -> None:
    async def story() -> None:
        server = Server(TryAgain("it is down"))
        async with a_world(tmp_path / "j.db") as world:
            await world.work({AskAgent: agent(server)}, attempts=1)
            await world.start("r", (AGENT,))
            await paused(world)
            (first,) = await world.desk()
            await world.engine.retry("r", by="ann")
            await world.until("r", partial(has_paused_after, 2))
            (second,) = await world.desk()
            with pytest.raises(QuestionClosed, match=rf"it was withdrawn.*\. Open now: r/{second.number}\.$"):
                await world.engine.answer("r", first.number, choice=GIVE_UP)

    asyncio.run(story())


def test_a_server_that_asks_to_be_called_at_once_does_not_use_up_the_patience_at_once(tmp_path: Path) -> None:
    async def story() -> None:
        clock = FakeClock()
        async with a_world(tmp_path / "j.db", clock) as world:
            await world.work({AskAgent: agent(Server(TryAgain("down", after=0.0)))}, attempts=7, backoff=1.0)
            await world.start("r", (AGENT,))
            view = await world.until("r", lambda view: bool(view.run.refused))
            (one,) = view.run.refused
            assert (one.tries, one.again - clock()) == (1, 1_000_000)

    asyncio.run(story())


@pytest.mark.parametrize("way", ["retry", "answer"])
def test_a_paused_run_completes_when_it_is_retried(tmp_path: Path, way: str) -> None:
    async def story() -> None:
        server = Server(Unavailable("The key is not set.", fault="definition"))
        async with a_world(tmp_path / "j.db") as world:
            await world.work({AskAgent: agent(server)})
            await world.start("r", (AGENT,))
            await paused(world)
            assert server.asked == 1
            assert (await world.engine.look("r")).run.refused[0].again == 0
            server.error = None
            if way == "retry":
                await world.engine.retry("r", by="ann")
            else:
                (asked,) = await world.desk()
                await world.engine.answer(asked.run_id, asked.number, choice=RETRY, by="ann")
            await world.ended("r")
            assert await world.desk() == []
            assert await world.journal.verify() == []

    asyncio.run(story())


def test_a_person_can_give_a_refused_call_up(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            await world.work({AskAgent: agent(Server(Unavailable("no quota", fault="definition")))})
            await world.start("r", (AGENT,))
            await paused(world)
            (asked,) = await world.desk()
            await world.engine.answer(asked.run_id, asked.number, choice=GIVE_UP, by="ann")
            view = await world.until("r", lambda view: view.run.ended is not None)
            assert not view.run.refused and not view.run.open
            assert await world.journal.verify() == []

    asyncio.run(story())


@pytest.mark.parametrize("refusal", [TryAgain("429"), TryAgain("a filter withheld the reply", most=3)], ids=str)
def test_stopped_workers_do_not_use_up_the_patience(tmp_path: Path, refusal: TryAgain) -> None:
    """A worker that was stopped often meets one refusal: that is one, however many attempts there were."""

    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            for number in range(5):
                hanging = Does(hangs, provider="acme", tools=())
                worker = await world.work({AskAgent: hanging}, attempts=2, backoff=0.001)
                if number == 0:
                    await world.start("r", (AGENT,))
                while not hanging.asked:
                    await asyncio.sleep(0.001)
                await worker.stop(grace=0.0)
            server = Server(refusal)
            await world.work({AskAgent: agent(server)}, attempts=2, backoff=0.05)
            while not server.asked:
                await asyncio.sleep(0.001)
            server.error = None
            view = await world.ended("r")
            assert view.status == "completed"
            refused = [one for one in await world.events("r") if isinstance(one, CallRefused)]
            assert len(refused) == 1 and refused[0].attempt == 6

    asyncio.run(story())


def test_time_without_a_worker_does_not_use_up_the_patience(tmp_path: Path) -> None:
    async def story() -> None:
        server, clock = Server(TryAgain("429")), FakeClock()
        async with a_world(tmp_path / "j.db", clock) as world:
            for refusals in (1, 2):
                worker = await world.work({AskAgent: agent(server)}, attempts=3, backoff=1.0)
                if refusals == 1:
                    await world.start("r", (AGENT,))
                await world.until("r", partial(has_met, refusals))
                await worker.stop()
                assert (await world.engine.look("r")).status != "paused"
                clock.pass_by(3600.0)

    asyncio.run(story())


def test_a_refusal_that_does_not_pass_is_final_after_as_many_as_it_says(tmp_path: Path) -> None:
    async def story() -> None:
        server = Server(TryAgain("a filter withheld the reply", most=3))
        async with a_world(tmp_path / "j.db") as world:
            await world.work({AskAgent: agent(server)}, attempts=7, backoff=0.001)
            await world.start("r", (AGENT,))
            await world.ended("r")
            answers = [one.answer for one in await world.events("r") if isinstance(one, Answered)]
            assert server.asked == 3 and isinstance(answers[0], Failed) and "withheld" in answers[0].reason

    asyncio.run(story())


def test_refusals_are_counted_once_over_several_processes(tmp_path: Path) -> None:
    async def story() -> None:
        server = Server(TryAgain("down", after=0.0))
        async with a_world(tmp_path / "j.db") as world:
            await world.start("r", (AGENT,))
            for _ in range(3):
                worker = await world.work({AskAgent: agent(server)}, attempts=1000, backoff=0.001)
                before = server.asked
                while server.asked == before:
                    await asyncio.sleep(0.001)
                await worker.stop()
            refused = [one for one in await world.events("r") if isinstance(one, CallRefused)]
            assert len(refused) == server.asked
            assert (await world.engine.look("r")).run.refused[0].count == server.asked

    asyncio.run(story())


def test_a_paused_call_succeeds_by_itself_and_leaves_the_desk(tmp_path: Path) -> None:
    async def story() -> None:
        server, offset = Server(TryAgain("down")), 0
        async with a_world(tmp_path / "j.db", clock=lambda: 1_700_000_000_000_000 + offset) as world:
            await world.work({AskAgent: agent(server)}, attempts=1)
            await world.start("r", (AGENT,))
            await paused(world)
            server.error = None
            offset = round(pause_of_outage(1) * 1_000_000)
            world.worker.wake()  # type: ignore[union-attr]
            await world.ended("r")
            assert await world.desk() == []

    asyncio.run(story())


@pytest.mark.parametrize("retries", [1, 3])
def test_a_retry_makes_no_call_again_that_is_in_doubt_since_it_was_refused(tmp_path: Path, retries: int) -> None:
    """It was refused, so nothing had happened; but then it was made again, and nobody knows what came of that."""

    async def story() -> None:
        def pay(request: Request) -> ToolReturned:
            if request.attempt == 1:
                raise TryAgain("closed", after=0.001)
            raise InDoubt("no answer")

        async with a_world(tmp_path / "j.db") as world:
            bank = Does(pay, kind=Kind.UNSAFE)
            worker = await world.work({CallTool: bank}, backoff=0.001)
            await world.start("r", (TOOL,))
            await world.until("r", lambda view: bool(view.run.doubts))
            for _ in range(retries):
                await world.engine.retry("r", by="ann")
            await worker.idle()
            assert len(bank.asked) == 2 and len(await world.desk()) == 1
            assert RetryRequested not in [type(fact) for fact in await world.events("r")]
            assert await world.journal.verify() == []

    asyncio.run(story())


def test_a_run_that_ended_otherwise_cannot_be_retried(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            await world.work({AskAgent: agent(Server())})
            await world.start("r", (AGENT,))
            await world.ended("r")
            with pytest.raises(RunHasEnded):
                await world.engine.retry("r")
            assert sum(isinstance(one, Ended) for one in await world.events("r")) == 1

    asyncio.run(story())


def test_time_in_which_a_run_is_paused_is_not_time_at_work(tmp_path: Path) -> None:
    async def story() -> None:
        server, offset = Server(TryAgain("down")), 0
        async with a_world(tmp_path / "j.db", clock=lambda: 1_700_000_000_000_000 + offset) as world:
            await world.work({AskAgent: agent(server)}, attempts=1)
            await world.start("r", (AGENT,), limits=Limits(seconds=60))
            await paused(world)
            offset = 7_200_000_000
            server.error = None
            world.worker.wake()  # type: ignore[union-attr]
            view = await world.ended("r")
            assert view.status == "completed"

    asyncio.run(story())


@pytest.mark.parametrize(
    ("refusals", "waited", "pause", "used_up"),
    [(1, 0.0, 1.0, False), (6, 40.0, 32.0, False), (7, 40.0, 60.0, True), (2, 290.0, 20.0, True)],
)
def test_patience_is_used_up_by_refusals_or_by_time(refusals: int, waited: float, pause: float, used_up: bool) -> None:
    assert RetryPolicy().is_used_up(refusals, waited, pause) is used_up


def test_an_outage_of_a_minute_is_ridden_out_by_default() -> None:
    policy = RetryPolicy()
    assert sum(policy.pause_after(number) for number in range(1, policy.attempts)) >= 60
