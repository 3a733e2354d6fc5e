"""A call that nobody needs any more: it is cut off, what it cost counts, and nothing is silently repeated."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ripstop.engine.performers import Kind, Request
from ripstop.engine.ports import ClaimedCommand
from ripstop.kernel.effects import AgentReplied, AskAgent, AskPerson, CallTool, Failed, StartRun, Usage
from ripstop.kernel.events import Answered, CancelRequested, Ended
from ripstop.testing import Errands
from tests.engine.clerk_style import Clerk
from tests.engine.world import Does, World, a_world, answers, until

AGENT, TOOL = AskAgent(agent="ada"), CallTool(tool="pay")
TREE = {
    "child": Errands(rounds=((StartRun(workflow="grandchild"),),)),
    "grandchild": Errands(rounds=((AGENT,), (AskPerson(question="Well?"),))),
}


async def streams(request: Request) -> AgentReplied:
    """Sends 800 bytes, gets 80 back, and then nothing more comes."""
    request.progress.begin(800)
    request.progress.receive(80)
    await asyncio.Event().wait()
    return AgentReplied()


async def outbox_of(world: World) -> list[tuple[str, int]]:
    rows = world.journal._reading.rows("SELECT runs.id, number FROM outbox JOIN runs ON runs.key = outbox.run")
    return [(str(row[0]), int(row[1])) for row in rows]


@pytest.mark.parametrize("elsewhere", [False, True], ids=["here", "another engine"])
def test_cancel_cuts_off_a_call_and_counts_what_it_cost(tmp_path: Path, elsewhere: bool) -> None:
    async def story() -> None:
        agent = Does(streams, tools=())
        async with a_world(tmp_path / "j.db") as world, a_world(tmp_path / "j.db") as other:
            worker = await world.work({AskAgent: agent})
            await world.start("r", (AGENT,))
            await until(lambda: bool(agent.asked))
            await (other if elsewhere else world).engine.cancel("r")
            view = await world.until("r", lambda view: not view.run.late)
            events = [type(event) for event in await world.events("r")]
            assert events[-3:] == [CancelRequested, Ended, Answered], "the call itself would never have returned"
            assert view.run.spent.usage == Usage(unreported_input=100, unreported_output=10)
            (late,) = answers(await world.events("r"))
            assert isinstance(late.answer, Failed) and late.answer.usage.counted_tokens == 110
            await worker.idle()
            assert (len(agent.asked), worker.failure, await outbox_of(world)) == (1, None, [])
            assert await world.journal.verify() == []

    asyncio.run(story())


@pytest.mark.parametrize("kind", [Kind.PURE, Kind.UNSAFE])
def test_a_superseded_call_whose_worker_died_fails_late(tmp_path: Path, kind: Kind) -> None:
    async def story() -> None:
        async def for_ever(request: Request) -> None:
            await asyncio.Event().wait()

        dead = World(tmp_path / "j.db")
        tool = Does(for_ever, kind=kind)
        await dead.work({CallTool: tool})
        await dead.start("r", (TOOL,))
        await until(lambda: bool(tool.asked))
        async with a_world(tmp_path / "j.db") as world:
            await world.engine.cancel("r")
            await dead.abandon()
            again = Does(kind=kind)
            worker = await world.work({CallTool: again})
            view = await world.until("r", lambda view: not view.run.late)
            await worker.idle()
            (late,) = answers(await world.events("r"))
            assert isinstance(late.answer, Failed)
            assert late.answer.uncertain is ("may have taken effect" in late.answer.reason) is (kind is Kind.UNSAFE)
            assert (again.asked, await outbox_of(world)) == ([], [])
            assert view.run.ended is not None and view.run.ended.outcome == "stopped"

    asyncio.run(story())


@pytest.mark.parametrize("kind", [Kind.PURE, Kind.KEYED, Kind.UNSAFE])
def test_an_agents_call_that_is_cut_off_is_uncertain_unless_it_is_pure(tmp_path: Path, kind: Kind) -> None:
    async def story() -> None:
        async def for_ever(request: Request) -> None:
            await asyncio.Event().wait()

        tool = Does(for_ever, kind=kind)
        async with a_world(tmp_path / "j.db") as world:
            await world.work({CallTool: tool})
            await world.start("r", (CallTool(tool="pay", agent="ada", arguments={}),))
            await until(lambda: bool(tool.asked))
            await world.engine.cancel("r")
            await world.until("r", lambda view: not view.run.late)
            (late,) = answers(await world.events("r"))
            assert isinstance(late.answer, Failed)
            assert late.answer.uncertain is (kind is not Kind.PURE), "asked for again, it would have another key"

    asyncio.run(story())


def test_a_waiting_call_is_reported_without_being_made(tmp_path: Path) -> None:
    async def story() -> None:
        free = asyncio.Event()

        async def wait(request: Request) -> AgentReplied:
            await free.wait()
            return AgentReplied(text="done")

        agent = Does(wait, tools=())
        async with a_world(tmp_path / "j.db") as world:
            await world.work({AskAgent: agent}, concurrency=1)
            await world.start("first", (AGENT,))
            await until(lambda: bool(agent.asked))
            await world.start("second", (AGENT,))
            await world.engine.cancel("second")
            free.set()
            await world.ended("first")
            await world.until("second", lambda view: not view.run.late)
            assert [request.run_id for request in agent.asked] == ["first"]
            assert await outbox_of(world) == []

    asyncio.run(story())


@pytest.mark.parametrize("elsewhere", [False, True], ids=["here", "another engine"])
def test_cancel_ends_a_whole_family_and_counts_all_its_costs(tmp_path: Path, elsewhere: bool) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world, a_world(tmp_path / "j.db") as other:
            agent = Does(streams, tools=())
            worker = await world.work(world.family({AskAgent: agent}))
            await world.start("r", (StartRun(workflow="child"),), children=TREE)
            await until(lambda: bool(agent.asked))
            await (other if elsewhere else world).engine.cancel("r", by="ann")
            view = await world.until("r", lambda view: view.run.is_settled)
            await worker.idle()
            assert worker.failure is None
            for run_id in ("r.3", "r.3.3"):
                run = (await world.engine.look(run_id)).run
                assert run.ended is not None and run.ended.outcome == "stopped"
            assert view.run.spent.usage == Usage(unreported_input=100, unreported_output=10)
            assert view.run.spent.calls == 1
            # told only when everything below has settled
            assert [answer.to for answer in answers(await world.events("r"))] == [3]
            assert (await outbox_of(world), await world.desk()) == ([], [])
            assert await world.journal.verify() == []

    asyncio.run(story())


def test_a_child_is_undone_whatever_state_its_parent_is_in(tmp_path: Path) -> None:
    async def story() -> None:
        child = {"child": Errands(rounds=((AskPerson(question="Well?"),),))}
        async with a_world(tmp_path / "j.db") as world:
            await world.work(world.family())
            parent = Clerk(rounds=((StartRun(workflow="child"),),), fault="start_child")
            await world.start_definition("r", parent, children=child)
            await world.until("r", lambda view: view.status == "waiting")
            await world.until("r.3", lambda view: view.status == "waiting")
            await world.engine.act("r", "stamp", {"times": 1})
            await world.engine.cancel("r")
            await world.until("r", lambda view: view.run.is_settled)
            assert (await world.engine.look("r.3")).run.ended is not None

    asyncio.run(story())


@pytest.mark.parametrize("named", ["", "plan:7"], ids=["own", "named"])
def test_a_fork_that_does_not_need_an_inherited_child_settles(tmp_path: Path, named: str) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            await world.work(world.family())
            await world.start("r", (StartRun(workflow="child", name=named),), children=TREE)
            await world.until("r", lambda view: view.status == "waiting")
            await world.until(f"{named or 'r.3'}.3", lambda view: view.status == "waiting")
            await world.engine.cancel("r")
            at = next(r.number for r in await world.journal.read("r") if isinstance(r.event, CancelRequested))
            await world.engine.fork("r", at, "again")
            view = await world.until("again", lambda view: view.run.is_settled)
            assert view.run.ended is not None and view.run.ended.outcome == "stopped"
            assert "again.3" not in await world.run_ids()
            assert await world.journal.verify() == []

    asyncio.run(story())


def test_cancel_before_a_child_began_starts_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            await world.start("r", (StartRun(workflow="child"),), children=TREE)
            await world.engine.cancel("r")
            await world.work(world.family())
            view = await world.until("r", lambda view: view.run.is_settled)
            assert view.run.spent.calls == 0
            assert await world.run_ids() == ["r"]

    asyncio.run(story())


def test_cancel_withdraws_a_question_that_a_worker_surfaces(tmp_path: Path) -> None:
    """A question that a worker holds at that moment must not stay on the desk."""

    async def story() -> None:
        free = asyncio.Event()

        async def surface(request: Request) -> None:
            await free.wait()

        slow = Does(surface, kind=Kind.KEYED)
        async with a_world(tmp_path / "j.db") as world:
            worker = await world.work(world.family({AskPerson: slow}))
            child = {"child": Errands(rounds=((AskPerson(question="Well?"),),))}
            await world.start("r", (StartRun(workflow="child", surface=True),), children=child)
            await until(lambda: bool(slow.asked))
            await world.engine.cancel("r")
            free.set()
            await world.until("r", lambda view: view.run.is_settled)
            await worker.idle()
            assert (await outbox_of(world), await world.desk()) == ([], [])

    asyncio.run(story())


@pytest.mark.parametrize("known", [True, False], ids=["known", "not known"])
@pytest.mark.parametrize("child", [True, False], ids=["child", "call"])
def test_a_command_withdrawn_between_claim_and_work_is_reported(tmp_path: Path, child: bool, known: bool) -> None:
    """The worker holds it: if it forgot about it, no other could ever take it."""

    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world, a_world(tmp_path / "j.db") as other:
            await world.start("r", (StartRun(workflow="child") if child else TOOL,), children=TREE)
            claim, cancelled = world.journal.claim, asyncio.Event()

            async def claim_and_cancel(*given: Any) -> list[ClaimedCommand]:
                tasks = await claim(*given)
                if tasks and not cancelled.is_set():
                    cancelled.set()
                    await other.engine.cancel("r")
                    if known:
                        await world.engine.look("r")
                return tasks

            world.journal.claim = claim_and_cancel  # type: ignore[method-assign, assignment]
            worker = await world.work(world.family({CallTool: Does()}))
            await other.until("r", lambda view: bool(view.run.ended) and not view.run.late)
            await worker.idle()
            assert await outbox_of(world) == []
            assert await world.journal.verify() == []

    asyncio.run(story())


def test_too_many_late_calls_leave_no_rows_behind(tmp_path: Path) -> None:
    async def story() -> None:
        async def for_ever(request: Request) -> None:
            await asyncio.Event().wait()

        dead = World(tmp_path / "j.db")
        tool = Does(for_ever)
        await dead.work({CallTool: tool}, concurrency=200)
        await dead.start("r", (TOOL,) * 130)
        await until(lambda: len(tool.asked) == 130)
        async with a_world(tmp_path / "j.db") as world:
            await world.engine.cancel("r")
            await dead.abandon()
            worker = await world.work({CallTool: Does()})
            await world.until("r", lambda view: not view.run.late)
            await worker.idle()
            assert await outbox_of(world) == []
            assert await world.journal.verify() == []
            assert sum(isinstance(event, Answered) for event in await world.events("r")) == 100

    asyncio.run(story())
