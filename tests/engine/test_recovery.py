"""After a process died: what is repeated, what is asked, what a person is asked, and what fires once."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ripstop.engine.performers import Kind, Request
from ripstop.kernel.doubts import AGAIN, GIVE_UP, HAPPENED
from ripstop.kernel.effects import (
    AskAgent,
    AskPerson,
    CallTool,
    Failed,
    Limits,
    RunFinished,
    SetTimer,
    StartRun,
    TimerFired,
    ToolReturned,
)
from ripstop.kernel.errors import UsageError
from ripstop.kernel.events import Answered, Doubted, DoubtResolved, Repeated
from ripstop.kernel.run import fingerprint
from ripstop.testing import Errands, FakeClock
from tests.engine.world import Does, World, a_world, rings, until

TOOL = CallTool(tool="pay", arguments={"euros": 5})


def answered(events: list[Any], to: int) -> list[Any]:
    return [event.answer for event in events if isinstance(event, Answered | DoubtResolved) and event.to == to]


async def die_in_the_middle(path: Path, kind: Kind) -> Request:
    """A process begins the tool of run `r` (record 3) and dies. Returns what the tool was asked."""

    async def for_ever(request: Request) -> None:
        await asyncio.Event().wait()

    world = World(path)
    tool = Does(for_ever, kind=kind)
    await world.work({CallTool: tool})
    await world.start("r", (TOOL,))
    await until(lambda: bool(tool.asked))
    await world.abandon()
    return tool.asked[0]


@pytest.mark.parametrize("kind", [Kind.PURE, Kind.KEYED])
def test_a_repeatable_effect_is_repeated_with_the_same_key_and_says_so(tmp_path: Path, kind: Kind) -> None:
    async def story() -> None:
        first = await die_in_the_middle(tmp_path / "j.db", kind)
        tool = Does(kind=kind)
        async with a_world(tmp_path / "j.db") as world:
            await world.work({CallTool: tool})
            await world.ended("r")
            (fact,) = [event for event in await world.events("r") if isinstance(event, Answered)]
        (second,) = tool.asked
        assert second.key == first.key == "r/3"
        assert second.arguments == first.arguments == {"euros": 5}
        assert fact.attempt == 2
        assert (first.repeated, second.repeated) == (False, True)

    asyncio.run(story())


@pytest.mark.parametrize(("happened", "calls"), [(True, 0), (False, 1)])
def test_a_probeable_effect_is_asked_and_repeated_only_if_it_did_not_happen(
    tmp_path: Path, happened: bool, calls: int
) -> None:
    async def story() -> None:
        await die_in_the_middle(tmp_path / "j.db", Kind.PROBEABLE)
        found = ToolReturned(value="it had happened")
        tool = Does(kind=Kind.PROBEABLE, probe=lambda request: found if happened else None)
        async with a_world(tmp_path / "j.db") as world:
            await world.work({CallTool: tool})
            await world.ended("r")
            assert answered(await world.events("r"), 3) == [found if happened else ToolReturned(value="done")]
        assert len(tool.probed) == 1
        assert len(tool.asked) == calls

    asyncio.run(story())


def test_a_probe_that_fails_leaves_the_effect_in_doubt_and_the_worker_alive(tmp_path: Path) -> None:
    async def story() -> None:
        await die_in_the_middle(tmp_path / "j.db", Kind.PROBEABLE)

        def nobody_there(request: Request) -> ToolReturned:
            raise ConnectionError("nobody there")

        tool = Does(kind=Kind.PROBEABLE, probe=nobody_there)
        async with a_world(tmp_path / "j.db") as world:
            worker = await world.work({CallTool: tool})
            await world.until("r", lambda view: view.status == "waiting")
            (question,) = await world.desk()
            assert worker.failure is None
        assert question.command.about == (3,)
        assert tool.asked == []

    asyncio.run(story())


async def doubted(world: World, tool: Does) -> int:
    """The worker finds the unsafe effect and asks; returns the question's number."""
    await world.work({CallTool: tool})
    await world.until("r", lambda view: view.status == "waiting")
    (question,) = await world.desk()
    assert question.command.about == (3,)
    assert "'pay'" in question.command.question and "r/3" in question.command.question
    assert tool.asked == [], "it is never repeated blindly"
    return question.number


def test_an_unsafe_effect_in_doubt_is_a_question_that_survives_a_restart(tmp_path: Path) -> None:
    async def story() -> None:
        await die_in_the_middle(tmp_path / "j.db", Kind.UNSAFE)
        async with a_world(tmp_path / "j.db") as world:
            number = await doubted(world, Does(kind=Kind.UNSAFE))
        async with a_world(tmp_path / "j.db") as world:
            again = await doubted(world, Does(kind=Kind.UNSAFE))
            assert again == number
            assert sum(isinstance(event, Doubted) for event in await world.events("r")) == 1
            with pytest.raises(UsageError, match="choose from happened, again, give up"):
                await world.engine.answer("r", number, "perhaps")

    asyncio.run(story())


@pytest.mark.parametrize(
    ("choice", "calls", "check"),
    [
        (HAPPENED, 0, lambda answer: answer == ToolReturned(value="the bank says so")),
        (AGAIN, 1, lambda answer: answer == ToolReturned(value="done")),
        (GIVE_UP, 0, lambda answer: isinstance(answer, Failed) and answer.fault == "ours"),
    ],
)
def test_a_person_settles_the_doubt(tmp_path: Path, choice: str, calls: int, check: Callable[[object], bool]) -> None:
    async def story() -> None:
        await die_in_the_middle(tmp_path / "j.db", Kind.UNSAFE)
        tool = Does(kind=Kind.UNSAFE)
        async with a_world(tmp_path / "j.db") as world:
            number = await doubted(world, tool)
            await world.engine.answer("r", number, "the bank says so", choice=choice, by="ada")
            await world.ended("r")
            events = await world.events("r")
            assert await world.desk() == []
            with pytest.raises(UsageError, match="answered already, by ada"):
                await world.engine.answer("r", number, choice=choice)
        (answer,) = answered(events, 3)
        assert check(answer), answer
        assert len(tool.asked) == calls
        assert any(isinstance(event, Repeated) for event in events) == (choice == AGAIN)

    asyncio.run(story())


def test_what_was_asked_for_and_not_begun_is_simply_done(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            await world.start("r", (TOOL,))
        tool = Does(kind=Kind.UNSAFE)
        async with a_world(tmp_path / "j.db") as world:
            await world.work({CallTool: tool})
            await world.ended("r")
        assert [(request.attempt, request.repeated) for request in tool.asked] == [(1, False)]

    asyncio.run(story())


@pytest.mark.req("S2-92")
def test_a_resumed_run_ends_where_one_that_never_died_ends(tmp_path: Path) -> None:
    async def story() -> None:
        await die_in_the_middle(tmp_path / "j.db", Kind.PURE)
        async with a_world(tmp_path / "j.db") as world:
            await world.work({CallTool: Does()})
            resumed = await world.ended("r")
            await world.start("other", (TOOL,))
            whole = await world.ended("other")
        assert fingerprint(resumed.run) == fingerprint(whole.run)

    asyncio.run(story())


# Children


CHILD = {"child": Errands(rounds=((TOOL,),)), "asks": Errands(rounds=((AskPerson(question="Shall I?"),),))}


def test_a_child_runs_and_its_parent_learns_how_it_ended(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            await world.work(world.family())
            await world.start("r", (StartRun(workflow="child"),), children=CHILD)
            await world.ended("r")
            (answer,) = answered(await world.events("r"), 3)
            child = await world.journal.run("r.3")
        assert answer == RunFinished(run="r.3", outcome="completed", because="all errands are done")
        assert child is not None and (child.parent, child.status) == ("r", "completed")

    asyncio.run(story())


def test_a_childs_question_is_on_the_desk_and_the_parent_waits_without_a_worker(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            worker = await world.work(world.family())
            await world.start("r", (StartRun(workflow="asks"),), children=CHILD)
            await worker.idle()
            (question,) = await world.desk()
            assert (question.run_id, question.command.question) == ("r.3", "Shall I?")
            assert (await world.engine.look("r")).status == "waiting"
        async with a_world(tmp_path / "j.db") as world:
            await world.work(world.family())
            await world.engine.answer("r.3", question.number, "yes")
            view = await world.ended("r")
            assert view.run.ended is not None and view.run.ended.outcome == "completed"

    asyncio.run(story())


def test_a_crash_between_the_childs_end_and_the_parents_answer_loses_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            worker = await world.work(world.family())
            await world.start("r", (StartRun(workflow="asks"),), children=CHILD)
            await worker.idle()
            (question,) = await world.desk()
        async with a_world(tmp_path / "j.db") as world:  # no worker: the child ends, nobody tells the parent
            await world.engine.answer("r.3", question.number, "yes")
            assert (await world.engine.look("r.3")).run.ended is not None
            assert (await world.engine.look("r")).run.ended is None
        async with a_world(tmp_path / "j.db") as world:
            await world.work(world.family())
            await world.ended("r")
            assert len(answered(await world.events("r"), 3)) == 1

    asyncio.run(story())


def test_a_crash_after_the_child_began_does_not_start_it_twice(tmp_path: Path) -> None:
    async def story() -> None:
        async def for_ever(request: Request) -> None:
            await asyncio.Event().wait()

        world = World(tmp_path / "j.db")
        tool = Does(for_ever)
        await world.work(world.family({CallTool: tool}))
        await world.start("r", (StartRun(workflow="child"),), children=CHILD)
        await until(lambda: bool(tool.asked))
        await world.abandon()
        async with a_world(tmp_path / "j.db") as world:
            await world.work(world.family())
            await world.ended("r")
            assert await world.run_ids() == ["r", "r.3"]

    asyncio.run(story())


# Timers


TEA = SetTimer(name="tea", after=180)


@pytest.mark.req("S2-69")
def test_a_timer_fires_once_and_never_early_and_survives_a_restart(tmp_path: Path) -> None:
    async def story() -> None:
        clock = FakeClock()
        async with a_world(tmp_path / "j.db", clock) as world:
            clockwork = rings()
            worker = await world.work({SetTimer: clockwork})
            await world.start("r", (TEA,))
            await world.start("other", (SetTimer(name="later", after=9999),))
            clock.pass_by(179.999999)
            worker.wake()
            await asyncio.sleep(0.02)
            assert clockwork.asked == []
        clock.pass_by(3600)  # it falls due while nobody is there
        async with a_world(tmp_path / "j.db", clock) as world:
            clockwork = rings()
            worker = await world.work({SetTimer: clockwork})
            await world.ended("r")
            clock.pass_by(3600)
            worker.wake()
            await asyncio.sleep(0.02)
            assert [request.run_id for request in clockwork.asked] == ["r"]
            assert answered(await world.events("r"), 3) == [TimerFired()]
            assert (await world.engine.look("other")).status == "waiting"

    asyncio.run(story())


def test_a_timer_fires_by_itself_when_it_is_due(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            await world.work({SetTimer: rings()})
            await world.start("r", (SetTimer(name="soon", after=0.05),))
            await world.ended("r")
            first, *_, fired, _ = await world.journal.read("r")
        assert fired.at - first.at >= 50_000

    asyncio.run(story())


def test_a_short_timer_that_is_set_while_a_long_one_runs_is_not_held_up_by_it(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            await world.work({SetTimer: rings()})
            await world.start("long", (SetTimer(name="long", after=9999),))
            await asyncio.sleep(0.01)
            async with asyncio.timeout(25):
                await world.start("short", (SetTimer(name="short", after=0.01),))
                await world.ended("short")

    asyncio.run(story())


def test_a_deadline_ends_a_run_whose_agent_never_answers(tmp_path: Path) -> None:
    async def story() -> None:
        stopped = asyncio.Event()

        async def for_ever(request: Request) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()

        async with a_world(tmp_path / "j.db") as world:
            await world.work({SetTimer: rings(), AskAgent: Does(for_ever)})
            await world.start("r", (AskAgent(agent="ada"),), limits=Limits(seconds=0.05))
            view = await world.ended("r")
            assert view.run.ended is not None and view.run.ended.outcome == "limit"
            async with asyncio.timeout(25):
                await stopped.wait()

    asyncio.run(story())
