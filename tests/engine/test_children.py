"""Children: started once, paid for once, shared by name, resumed, and given a part of the budget."""

import asyncio
from pathlib import Path
from typing import Any

from ripstop.engine.performers import Request
from ripstop.history.runs import run_document
from ripstop.history.waits import waits_for
from ripstop.kernel.effects import (
    AgentReplied,
    AskAgent,
    AskPerson,
    CallTool,
    Failed,
    Limits,
    RunFinished,
    StartRun,
    ToolReturned,
    Usage,
)
from ripstop.kernel.events import Allowed, Answered, Asked, Resumed, ResumeRequested
from ripstop.testing import Errands
from tests.engine.clerk_style import Clerk
from tests.engine.world import Does, World, a_world, answers, until

AGENT, PERSON = AskAgent(agent="ada"), AskPerson(question="Well?")
PLAN = StartRun(workflow="plan", name="plan:7")


def costs(tokens: int = 5) -> Does:
    return Does(lambda _: AgentReplied(text="hello", usage=Usage(input_tokens=tokens)), tools=())


def finished(events: list[Any]) -> list[RunFinished]:
    return [event.answer for event in events if isinstance(event, Answered) and isinstance(event.answer, RunFinished)]


def test_a_named_child_is_started_once_and_paid_for_by_its_starter(tmp_path: Path) -> None:
    async def story() -> None:
        plan = {"plan": Clerk(rounds=((AGENT,), (PERSON,), (AGENT,)), result={"steps": 3})}
        asks = Clerk(rounds=((PLAN,),))
        async with a_world(tmp_path / "j.db") as world, a_world(tmp_path / "j.db") as other:
            for one in (world, other):
                await one.work(one.family({AskAgent: costs()}))
            for number in range(6):
                await (world if number % 2 else other).start_definition(f"r{number}", asks, children=plan)
            await world.until("plan:7", lambda view: view.status == "waiting")
            (question,) = await world.desk()
            await world.engine.answer("plan:7", question.number, "yes")
            views = [await world.ended(f"r{number}") for number in range(6)]
            assert [view.run.state.joined for view in views] == [({"steps": 3},)] * 6
            payers = [view.run.id for view in views if view.run.spent.calls]
            plan_run = (await world.engine.look("plan:7")).run
            assert payers == [plan_run.payer.partition("/")[0]]
            assert sum(view.run.spent.usage.tokens for view in views) == plan_run.spent.usage.tokens == 10
            assert sum(isinstance(event, Asked) for event in await world.events("plan:7")) == 3
            late = await world.start_definition("late", asks, children=plan)
            view = await world.ended("late")
            assert view.run.state.joined == ({"steps": 3},) and view.run.spent.calls == 0, late

    asyncio.run(story())


def test_a_waiting_parent_shows_what_its_family_has_spent(tmp_path: Path) -> None:
    async def story() -> None:
        tree = {
            "child": Errands(rounds=((AGENT,), (StartRun(workflow="leaf"), PLAN))),
            "leaf": Errands(rounds=((AGENT,), (PERSON,))),
            "plan": Errands(rounds=((AGENT,), (PERSON,))),
        }
        async with a_world(tmp_path / "j.db") as world:
            await world.work(world.family({AskAgent: costs()}))
            await world.start("r", (AGENT,), (StartRun(workflow="child"),), children=tree)
            for run_id in ("r.6.6", "plan:7"):
                await world.until(run_id, lambda view: view.status == "waiting")
            await world.start("other", (PLAN,), children=tree)
            shown = [await run_document(world.engine, await world.engine.look(run)) for run in ("r", "r.6", "other")]
            usages = [one["usage"] for one in shown]
            assert [(one["calls"], one["input_tokens"]) for one in usages] == [
                (4, 20),
                (3, 15),
                (0, 0),
            ]
            for question in await world.desk():
                await world.engine.answer(question.run_id, question.number, "yes")
            view = await world.ended("r")
            assert (await run_document(world.engine, view))["usage"]["calls"] == view.run.spent.calls == 4

    asyncio.run(story())


def test_cancelling_one_waiter_leaves_a_named_child_alone(tmp_path: Path) -> None:
    async def story() -> None:
        plan = {"plan": Errands(rounds=((AGENT,), (PERSON,)))}
        async with a_world(tmp_path / "j.db") as world:
            await world.work(world.family({AskAgent: costs()}))
            await world.start("starter", (PLAN,), children=plan)
            await world.until("plan:7", lambda view: view.status == "waiting")
            await world.start("waiter", (PLAN,), children=plan)
            await world.until("waiter", lambda view: view.status == "waiting")
            await world.engine.cancel("waiter")
            await world.until("waiter", lambda view: view.run.is_settled)
            await world.engine.cancel("starter")
            assert (await world.engine.look("plan:7")).run.ended is None
            (question,) = await world.desk()
            await world.engine.answer("plan:7", question.number, "yes")
            view = await world.until("starter", lambda view: view.run.is_settled)
            assert view.run.spent.usage.tokens == 5, "its starter pays, cancelled or not"
            assert (await world.engine.look("waiter")).run.spent.calls == 0

    asyncio.run(story())


def test_a_failed_named_child_is_resumed_exactly_once_per_question(tmp_path: Path) -> None:
    """A waiter that is woken by the end of the child it resumed must not resume it again, for ever."""

    async def story() -> None:
        plan = {"plan": Clerk(rounds=((AGENT,),), outcome="failed", resumable=True)}
        async with a_world(tmp_path / "j.db") as world:
            await world.work(world.family({AskAgent: costs()}))
            for number in (1, 2, 3):
                await world.start(f"r{number}", (PLAN,), children=plan)
                view = await world.ended(f"r{number}")
                (answer,) = finished(await world.events(f"r{number}"))
                assert (answer.outcome, answer.calls, answer.usage.tokens) == ("failed", 1, 5)
                assert view.run.spent.calls == 1
            await asyncio.sleep(0.1)
            resumed = [e for e in await world.events("plan:7") if isinstance(e, ResumeRequested)]
            assert [event.by for event in resumed] == ["r2/3", "r3/3"]

    asyncio.run(story())


def test_several_waiters_of_a_failing_child_learn_of_it_together(tmp_path: Path) -> None:
    async def story() -> None:
        free = asyncio.Event()

        async def wait(_: Request) -> AgentReplied:
            await free.wait()
            return AgentReplied(text="no", usage=Usage(input_tokens=5))

        plan = {"plan": Clerk(rounds=((AGENT,),), outcome="failed", resumable=True)}
        async with a_world(tmp_path / "j.db") as world:
            agent = Does(wait, tools=())
            await world.work(world.family({AskAgent: agent}))
            for number in range(5):
                await world.start(f"r{number}", (PLAN,), children=plan)
            await until(lambda: bool(agent.asked))
            free.set()
            for number in range(5):
                await world.ended(f"r{number}")
            assert len(agent.asked) == 1
            assert not [e for e in await world.events("plan:7") if isinstance(e, ResumeRequested)]

    asyncio.run(story())


def test_a_former_child_continues_with_what_its_parent_has_left(tmp_path: Path) -> None:
    async def story() -> None:
        child = {"child": Errands(rounds=((AGENT,), (AGENT,), (AGENT,), (AGENT,)))}
        async with a_world(tmp_path / "j.db") as world:
            await world.work(world.family({AskAgent: costs()}))
            again = StartRun(workflow="child", name="r.3")
            await world.start("r", (StartRun(workflow="child"),), (again,), limits=Limits(calls=2), children=child)
            view = await world.ended("r")
            assert view.run.ended is not None and view.run.ended.outcome == "limit"
            assert (view.run.spent.calls, (await world.engine.look("r.3")).run.spent.calls) == (2, 2)
            await world.engine.resume("r", {"calls": 3})
            view = await world.ended("r")
            assert view.run.ended is not None and view.run.ended.outcome == "completed"
            child_run = (await world.engine.look("r.3")).run
            assert (child_run.spent.calls, view.run.spent.calls) == (4, 4), "counted once"
            assert view.run.spent.usage.tokens == child_run.spent.usage.tokens == 20
            assert sum(isinstance(event, Resumed) for event in await world.events("r.3")) == 1
            assert await world.run_ids() == ["r", "r.3"]

    asyncio.run(story())


def test_a_child_gets_a_slice_and_the_rest_stays_with_its_parent(tmp_path: Path) -> None:
    async def story() -> None:
        child = {"child": Errands(rounds=((AGENT,),) * 9)}
        wide = (StartRun(workflow="child", limits=Limits(calls=2)), StartRun(workflow="child", limits=Limits(calls=9)))
        async with a_world(tmp_path / "j.db") as world:
            await world.work(world.family({AskAgent: costs()}))
            await world.start("r", wide, limits=Limits(calls=5), children=child)
            view = await world.ended("r")
            limits = [(await world.engine.look(run)).run.limits.calls for run in ("r.3", "r.4")]
            assert limits == [2, 3], "what is left when the first has its part"
            assert view.run.spent.calls == 5
            assert [answer.outcome for answer in finished(await world.events("r"))] == ["limit", "limit"]

    asyncio.run(story())


def test_a_child_that_was_not_pinned_fails_by_its_definition(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            await world.work(world.family())
            await world.start("r", (StartRun(workflow="nobody"),))
            await world.ended("r")
            (answer,) = answers(await world.events("r"))
            assert isinstance(answer.answer, Failed) and answer.answer.fault == "definition"

    asyncio.run(story())


def test_a_named_child_keeps_its_definitions_when_its_starter_is_forgotten(tmp_path: Path) -> None:
    async def story() -> None:
        tree = {
            "plan": Errands(rounds=((PERSON,), (StartRun(workflow="leaf"),))),
            "leaf": Errands(rounds=((AGENT,),)),
        }
        async with a_world(tmp_path / "j.db") as world:
            await world.work(world.family({AskAgent: costs()}))
            await world.start("starter", (PLAN,), children=tree)
            await world.until("plan:7", lambda view: view.status == "waiting")
            await world.engine.answer("plan:7", (await world.desk())[0].number, "yes")
            await world.ended("starter")
            await world.journal.forget(["starter"], world.clock())
            await world.engine.fork("plan:7", 5, "again")
            view = await world.ended("again")
            assert view.run.ended is not None and view.run.ended.outcome == "completed"
            assert finished(await world.events("again"))[0].outcome == "completed"

    asyncio.run(story())


def test_a_childs_call_of_an_unoffered_tool_is_left_to_another_worker(tmp_path: Path) -> None:
    async def story() -> None:
        child = {"child": Errands(rounds=((CallTool(tool="pay"),), (CallTool(tool="t"),)))}
        async with a_world(tmp_path / "j.db") as one, a_world(tmp_path / "j.db") as two:
            pay = Does(lambda _: ToolReturned(value="paid"), tools=("pay",))
            other = Does(tools=("t",))
            await one.work(one.family({CallTool: other}))
            await two.work(two.family({CallTool: pay}))
            await one.start("r", (StartRun(workflow="child"),), children=child)
            await one.ended("r")
            assert [request.key for request in pay.asked] == ["r.3/3"]
            assert [request.key for request in other.asked] == ["r.3/6"]

    asyncio.run(story())


def test_nothing_is_left_in_the_outbox_of_a_finished_family(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        await world.work(world.family({AskAgent: costs()}))
        tree = {
            "child": Errands(rounds=((StartRun(workflow="leaf"), StartRun(workflow="leaf")), (PLAN,))),
            "leaf": Errands(rounds=((AGENT,),)),
            "plan": Errands(rounds=((AGENT,),)),
        }
        await world.start("r", (StartRun(workflow="child"), PLAN), children=tree)
        view = await world.ended("r")
        assert view.run.spent.calls == 3
        assert await world.journal.next_due(offers=["", "tool:t"]) is None
        assert await world.journal.verify() == []

    async def in_a_world() -> None:
        async with a_world(tmp_path / "j.db") as world:
            await story(world)

    asyncio.run(in_a_world())


def test_children_that_cannot_share_a_budget_take_turns_and_nothing_is_exceeded(tmp_path: Path) -> None:
    async def story() -> None:
        child = StartRun(workflow="child")
        tree = {"child": Errands(rounds=((AGENT,), (PERSON,), (AGENT,)))}
        async with a_world(tmp_path / "j.db") as world:
            await world.work(world.family({AskAgent: costs()}))
            await world.start("r", (child, child, AGENT), children=tree, limits=Limits(calls=6))
            for number in (3, 4):
                name = f"r.{number}"
                view = await world.until(name, lambda view: view.status == "waiting")
                parent = await world.engine.look("r")
                assert parent.status == "waiting"
                assert f"the part of the budget of r that is set aside for {name}" in await waits_for(
                    world.engine, parent
                )
                await world.engine.answer(name, next(iter(view.run.open)), "go on")
            run = (await world.ended("r")).run
            assert run.ended is not None and (run.ended.outcome, run.spent.calls) == ("completed", 5)
            assert sum(isinstance(event, Allowed) for event in await world.events("r")) == 2
            assert await world.journal.verify() == []

    asyncio.run(story())


def test_a_command_that_waits_for_its_budget_survives_the_process(tmp_path: Path) -> None:
    async def story() -> None:
        tree = {"child": Errands(rounds=((PERSON,),))}
        async with a_world(tmp_path / "j.db") as first:
            await first.work(first.family({AskAgent: costs()}))
            await first.start("r", (StartRun(workflow="child"), AGENT), children=tree, limits=Limits(calls=2))
            await first.until("r.3", lambda view: view.status == "waiting")
            await first.abandon()
        async with a_world(tmp_path / "j.db") as world:
            assert await world.journal.verify() == []
            await world.work(world.family({AskAgent: costs()}))
            (question,) = await world.desk()
            await world.engine.answer(question.run_id, question.number, "go on")
            run = (await world.ended("r")).run
            assert run.ended is not None and (run.ended.outcome, run.spent.calls) == ("completed", 1)
            assert await world.journal.verify() == []

    asyncio.run(story())
