"""What stops: a call whose run was cancelled, a worker that is told to, one that lost its lease or its journal."""

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest

from ripstop.engine.performers import Request
from ripstop.kernel.effects import AgentReplied, AskAgent, CallTool, Failed, ToolReturned
from ripstop.kernel.errors import JournalError
from tests.engine.world import Does, World, a_world, answers, until

TOOL, AGENT = CallTool(tool="hammer"), AskAgent(agent="ada")


def test_cancelling_a_run_stops_the_call_that_it_waits_for(tmp_path: Path) -> None:
    async def story() -> None:
        stopped = asyncio.Event()

        async def for_ever(request: Request) -> AgentReplied:
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()
            return AgentReplied()

        agent = Does(for_ever)
        async with a_world(tmp_path / "j.db") as world:
            worker = await world.work({AskAgent: agent})
            await world.start("r", (AGENT,))
            await until(lambda: bool(agent.asked))
            run = await world.engine.cancel("r", by="ada")
            assert run.ended is not None and run.ended.outcome == "stopped"
            async with asyncio.timeout(25):
                await stopped.wait()
                await worker.idle()
            assert worker.failure is None
            (late,) = answers(await world.events("r"))
            assert isinstance(late.answer, Failed) and "no longer needed" in late.answer.reason
            assert (await world.engine.look("r")).run.ended == run.ended, "a late answer decides nothing"

    asyncio.run(story())


def test_what_was_still_waiting_for_its_turn_is_not_done_after_its_run_was_cancelled(tmp_path: Path) -> None:
    async def story() -> None:
        free = asyncio.Event()

        async def wait(request: Request) -> ToolReturned:
            await free.wait()
            return ToolReturned(value=1)

        tool = Does(wait)
        async with a_world(tmp_path / "j.db") as world:
            worker = await world.work({CallTool: tool}, concurrency=1)
            await world.start("first", (TOOL,))
            await until(lambda: bool(tool.asked))
            await world.start("second", (TOOL,))
            await world.engine.cancel("second")
            free.set()
            await world.ended("first")
            await worker.idle()
        assert [request.run_id for request in tool.asked] == ["first"]

    asyncio.run(story())


def test_a_graceful_stop_lets_calls_finish_and_gives_the_rest_back(tmp_path: Path) -> None:
    async def story() -> None:
        free = asyncio.Event()

        async def wait(request: Request) -> ToolReturned:
            await free.wait()
            return ToolReturned(value=request.run_id)

        tool = Does(wait)
        async with a_world(tmp_path / "j.db") as world:
            worker = await world.work({CallTool: tool}, concurrency=1)
            await world.start("first", (TOOL,), (TOOL,))
            await until(lambda: bool(tool.asked))
            await world.start("second", (TOOL,))
            stopping = asyncio.ensure_future(worker.stop(grace=5))
            await asyncio.sleep(0.01)
            free.set()
            await stopping
            assert len(tool.asked) == 1, "nothing new was begun"
            assert len(answers(await world.events("first"))) == 1, "what ran could finish"
            world.worker = None
            await world.work({CallTool: tool})
            await world.ended("first")
            await world.ended("second")
        assert sorted(request.key for request in tool.asked) == ["first/3", "first/6", "second/3"]

    asyncio.run(story())


def test_what_was_not_done_within_the_grace_is_resumed_by_another_worker(tmp_path: Path) -> None:
    async def story() -> None:
        async def slow_at_first(request: Request) -> ToolReturned:
            if request.attempt == 1:
                await asyncio.Event().wait()
            return ToolReturned(value="resumed")

        tool = Does(slow_at_first)
        async with a_world(tmp_path / "j.db") as world:
            worker = await world.work({CallTool: tool})
            await world.start("r", (TOOL,))
            await until(lambda: bool(tool.asked))
            await worker.stop(grace=0)
            world.worker = None
            assert answers(await world.events("r")) == []
            await world.work({CallTool: tool})
            await world.ended("r")
            (answer,) = answers(await world.events("r"))
        assert answer.answer == ToolReturned(value="resumed")
        assert answer.attempt == 2

    asyncio.run(story())


def test_an_answer_that_comes_after_the_lease_was_lost_is_not_recorded(tmp_path: Path) -> None:
    async def story() -> None:
        free = asyncio.Event()

        async def wait(request: Request) -> ToolReturned:
            await free.wait()
            return ToolReturned(value="too late")

        tool = Does(wait)
        async with a_world(tmp_path / "j.db") as world:
            worker = await world.work({CallTool: tool})
            await world.start("r", (TOOL,))
            await until(lambda: bool(tool.asked))
            other = World(tmp_path / "j.db")
            later = other.clock() + 3600 * 1_000_000
            worker_id = await other.journal.enrol(later)
            (task,) = await other.journal.claim(worker_id, later, 1, offers=["tool:hammer"])
            assert (task.number, task.doubtful) == (3, True)
            free.set()
            await worker.idle()
            assert worker.failure is None
            assert answers(await world.events("r")) == []
            await other.journal.close()

    asyncio.run(story())


def fills(world: World, at: int) -> Does:
    """An agent with long answers; the disk is full from one of its calls on."""

    def fill(request: Request) -> AgentReplied:
        if len(agent.asked) == at:
            world.journal._writing.execute("PRAGMA max_page_count = 1")
        return AgentReplied(text="x" * 50_000)

    agent = Does(fill)
    return agent


def test_a_journal_that_fails_makes_the_worker_give_up_and_say_why(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            agent = fills(world, at=3)
            worker = await world.work({AskAgent: agent})
            await world.start("r", *[(AGENT,)] * 9)
            with pytest.raises(JournalError, match="disk is full"):
                async with asyncio.timeout(25):
                    await worker.idle()
            assert len(agent.asked) == 3, "nothing more was begun"
            assert len(answers(await world.events("r"))) == 2, "what was acknowledged is there"
            world.journal._writing.execute("PRAGMA max_page_count = 100000")

    asyncio.run(story())


def test_a_service_goes_on_when_a_full_disk_has_room_again(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            agent = fills(world, at=3)
            worker = await world.work({AskAgent: agent}, patient=True)
            await world.start("r", *[(AGENT,)] * 9)
            await until(lambda: len(agent.asked) == 3)
            await asyncio.sleep(0.2)
            assert worker.failure is None and len(answers(await world.events("r"))) == 2
            world.journal._writing.execute("PRAGMA max_page_count = 100000")
            await world.ended("r")
            assert len(agent.asked) == 9, "what was performed while the disk was full is not performed again"

    asyncio.run(story())


def test_a_service_whose_disk_is_full_can_be_stopped(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            agent = fills(world, at=1)
            worker = await world.work({AskAgent: agent}, patient=True)
            await world.start("r", (AGENT,))
            await until(lambda: len(agent.asked) == 1)
            world.worker = None
            async with asyncio.timeout(25):
                with suppress(JournalError):  # it cannot give back what it has in hand
                    await worker.stop(0)

    asyncio.run(story())
