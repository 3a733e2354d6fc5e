"""The one door to a run: starting, answering, forking, and two doors to the same run."""

import asyncio
import hashlib
from pathlib import Path

import pytest

from ripstop.engine.performers import Kind, Request
from ripstop.engine.ports import Tree
from ripstop.engine.run_cache import RunCache
from ripstop.kernel.effects import AgentReplied, AskAgent, AskPerson, CallTool, Limits, SetTimer, ToolReturned
from ripstop.kernel.errors import RunAlreadyStarted, RunHasEnded, RunNotFound, UsageError
from ripstop.kernel.events import Answered, Asked, Doubted, Ended, Forked, Withdrawn
from ripstop.kernel.run import DEADLINE, fingerprint
from ripstop.testing import Errands
from tests.engine.world import Does, World, a_world, says

AGENT, TOOL, PERSON = (
    AskAgent(agent="ada"),
    CallTool(tool="hammer"),
    AskPerson(question="Well?", choices={"yes": "", "no": ""}),
)


def test_says_that_there_is_no_such_run_or_style_or_answer(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            with pytest.raises(RunNotFound, match="There is no run 'nobody'"):
                await world.engine.look("nobody")
            with pytest.raises(RunNotFound):
                await world.engine.cancel("nobody")
            with pytest.raises(RunNotFound):
                await world.engine.fork("nobody", 1, "new")
            with pytest.raises(UsageError, match="errands"):
                await world.engine.start("r", "ballet", Errands().content())
            await world.start("r", (PERSON,))
            with pytest.raises(RunAlreadyStarted):
                await world.start("r", (PERSON,))
            with pytest.raises(UsageError, match="choose from yes, no"):
                await world.engine.answer("r", 3, "perhaps")
            with pytest.raises(UsageError, match="r/2 is not an open question"):
                await world.engine.answer("r", 2, "yes")
            await world.engine.answer("r", 3, "yes")
            with pytest.raises(RunHasEnded, match="Fork it"):
                await world.engine.hear("r", "hello?")

    asyncio.run(story())


def test_two_engines_on_one_file_move_the_same_run_without_losing_anything(tmp_path: Path) -> None:
    async def story() -> None:
        questions = tuple(AskPerson(question=str(number)) for number in range(20))
        async with a_world(tmp_path / "j.db") as one, a_world(tmp_path / "j.db") as two:
            await one.start("r", questions)
            numbers = [question.number for question in await two.desk()]
            await asyncio.gather(
                *(world.engine.answer("r", n, "yes") for n, world in zip(numbers, [one, two] * 10, strict=True))
            )
            views = await one.engine.look("r"), await two.engine.look("r")
            assert views[0].run == views[1].run
            assert views[0].run.ended is not None
            assert sum(isinstance(event, Answered) for event in await one.events("r")) == 20
            assert await one.journal.verify() == []

    asyncio.run(story())


def test_a_run_that_was_forgotten_is_read_again(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            world.engine._cache = RunCache(2)
            for number in range(6):
                await world.start(f"r{number}", (PERSON,))
            assert len(world.engine._cache) <= 2
            for number in range(6):
                run = await world.engine.answer(f"r{number}", 3, "yes")
                assert run.ended is not None

    asyncio.run(story())


def test_looking_at_a_run_that_is_not_there_leaves_nothing_in_memory(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            for number in range(5):
                with pytest.raises(RunNotFound):
                    await world.engine.look(f"nobody-{number}")
            assert len(world.engine._cache) == 0

    asyncio.run(story())


# Forks


async def talked(world: World) -> None:
    """Run `r`: 1 Started, 2 RoundBegan, 3 AskAgent, 4 answer, 5 RoundBegan, 6 AskPerson, 7 answer, 8 Ended."""
    await world.work({AskAgent: says("hello"), CallTool: Does()})
    await world.start("r", (AGENT,), (PERSON,))
    await world.until("r", lambda view: view.status == "waiting")
    await world.engine.answer("r", 6, "yes")
    assert len(await world.events("r")) == 8


def test_a_fork_at_a_fact_decides_on_it_anew(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            await talked(world)
            run = await world.engine.fork("r", 4, "f")
            events = await world.events("f")
            assert events[:4] == (await world.events("r"))[:4]
            assert events[4] == Forked(run="r", at=4)
            assert events[6] == Asked(command=PERSON)
            assert [opened.command for opened in run.open.values()] == [PERSON]
            await world.engine.answer("f", 7, "no")
            assert (await world.ended("f")).run.state.answers == ("hello", "")
            assert len(await world.events("r")) == 8, "the run it came from is untouched"
            assert await world.journal.verify() == []

    asyncio.run(story())


@pytest.mark.parametrize("at", [5, 6])
def test_a_fork_within_a_step_goes_on_from_its_end_and_asks_anew(tmp_path: Path, at: int) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            await talked(world)
            await world.engine.fork("r", at, "f")
            events = await world.events("f")
            assert events[6:8] == [
                Forked(run="r", at=6),
                Withdrawn(number=6, because="asked again by the fork", unmade=True),
            ]
            assert [question.run_id for question in await world.desk()] == ["f"]
            await world.engine.answer("f", 10, "no")
            await world.ended("f")

    asyncio.run(story())


@pytest.mark.parametrize("at", [None, 8])
def test_a_fork_after_the_end_decides_on_the_last_fact_anew(tmp_path: Path, at: int | None) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            await talked(world)
            longer = Errands(rounds=((AGENT,), (PERSON,), (TOOL,))).content()
            await world.engine.fork("r", at, "f", definition=longer)
            view = await world.ended("f")
            events = await world.events("f")
            assert events[7] == Forked(run="r", at=7, definition=hashlib.sha256(longer).hexdigest())
            assert Asked(command=TOOL) in events
            assert isinstance(events[-1], Ended)
            assert view.run.definition == hashlib.sha256(longer).hexdigest()
            assert view.run.started == (await world.engine.look("r")).run.started

    asyncio.run(story())


def test_a_fork_of_a_fork_shares_all_that_came_before(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            await talked(world)
            await world.engine.fork("r", 4, "f")
            await world.engine.fork("f", None, "g")
            assert (await world.events("g"))[:4] == (await world.events("r"))[:4]
        async with a_world(tmp_path / "j.db") as world:  # from the file alone
            question = next(question for question in await world.desk() if question.run_id == "g")
            await world.engine.answer("g", question.number, "yes")
            one, two = await world.engine.look("r"), await world.engine.look("g")
            assert one.run.state == two.run.state
            assert one.run.ended == two.run.ended
            assert await world.journal.verify() == []

    asyncio.run(story())


def test_a_fork_can_be_given_new_limits(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            await talked(world)
            await world.engine.fork("r", 1, "f", limits=Limits(turns=0))
            view = await world.ended("f")
            assert view.run.ended is not None and view.run.ended.outcome == "limit"

    asyncio.run(story())


def test_a_fork_must_have_a_new_name_and_a_record_that_is_there(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            await talked(world)
            with pytest.raises(RunAlreadyStarted):
                await world.engine.fork("r", 4, "r")
            for number in (0, 9, -1):
                with pytest.raises(UsageError, match="records 1 to 8"):
                    await world.engine.fork("r", number, "f")

    asyncio.run(story())


def test_a_fork_at_a_fact_does_not_wait_for_ever_for_what_was_open_beside_it(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:

            async def slow_hammer(request: Request) -> ToolReturned:
                if request.run_id == "r":
                    await asyncio.Event().wait()
                return ToolReturned(value="done")

            await world.work({AskAgent: says("hello"), CallTool: Does(slow_hammer)})
            await world.start("r", (TOOL, AGENT))  # the agent answers (record 5) while the hammer (3) is open
            await world.until("r", lambda view: view.run.length == 5)
            await world.engine.fork("r", 5, "f")
            view = await world.ended("f")
            assert view.run.ended is not None and view.run.ended.outcome == "completed"

    asyncio.run(story())


def test_a_fork_at_a_fact_keeps_its_deadline(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            await world.start("r", (AGENT,), (AGENT,), limits=Limits(seconds=3600))
            await world.engine.tell("r", Answered(to=3, answer=AgentReplied(text="hello")))
            await world.engine.fork("r", 5, "f")
            run = (await world.engine.look("f")).run
            clock = [n for n, o in run.open.items() if isinstance(o.command, SetTimer) and o.command.name == DEADLINE]
            worker_id = await world.journal.enrol(world.clock())
            later = world.clock() + 7200 * 1_000_000
            due = await world.journal.claim(worker_id, later, 99, Tree("f"))
            agent = [n for n, o in run.open.items() if isinstance(o.command, AskAgent)]
            assert clock and sorted(task.number for task in due) == sorted(clock + agent)

    asyncio.run(story())


def test_history_tells_where_the_run_stood_after_every_record(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            await talked(world)
            told = await world.engine.history("r")
            assert [record.number for record, _ in told] == [run.length for _, run in told] == list(range(1, 9))
            assert fingerprint(told[-1][1]) == fingerprint((await world.engine.look("r")).run)

    asyncio.run(story())


def test_a_fork_leaves_what_is_in_doubt_to_a_person(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            await world.start("r", (TOOL, AGENT))
            await world.engine.tell("r", Doubted(to=3, evidence="it was begun"))
            await world.engine.tell("r", Answered(to=4, answer=AgentReplied(text="hello")))
            fact = (await world.engine.look("r")).run.length
            while not isinstance((await world.journal.read("r"))[fact - 1].event, Answered):
                fact -= 1
            await world.engine.fork("r", fact, "f")
            tool = Does(kind=Kind.UNSAFE)
            worker = await world.work({CallTool: tool, AskAgent: says("hello")}, scope=Tree("f"))
            await worker.idle()
            assert tool.asked == [], "nobody said that it may be done again"
            (question,) = [one for one in await world.desk() if one.run_id == "f"]
            assert await world.journal.verify() == []
            await world.engine.answer("f", question.number, "again")
            view = await world.ended("f")
            assert view.run.ended is not None and view.run.ended.outcome == "completed"
            assert len(tool.asked) == 1

    asyncio.run(story())
