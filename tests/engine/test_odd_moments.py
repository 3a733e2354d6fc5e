"""What happens in odd moments: callers that go away, leases that run out, one bad step among many."""

import asyncio
from pathlib import Path

import pytest

from ripstop.engine.performers import Kind, Request
from ripstop.engine.ports import Tree
from ripstop.kernel.effects import AskPerson, CallTool, Failed, Limits, PersonAnswered, SetTimer, ToolReturned
from ripstop.kernel.errors import DefinitionError
from ripstop.kernel.events import Answered, DoubtResolved
from ripstop.kernel.registry import Registry
from ripstop.testing import ERRANDS
from tests.engine.world import Does, a_world, now, rings

TOOL = CallTool(tool="t")


@pytest.mark.parametrize("how", ["start", "answer"])
def test_what_a_caller_began_is_done_even_if_it_goes_away(tmp_path: Path, how: str) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            tool = Does()
            await world.work({CallTool: tool})
            if how == "start":
                caller = asyncio.create_task(world.start("r", (TOOL,)))
            else:
                await world.start("r", (AskPerson(question="?"),), (TOOL,))
                (question,) = await world.desk()
                caller = asyncio.create_task(world.engine.answer("r", question.number, "yes"))
            while not world.journal._commit._queue:
                await asyncio.sleep(0)
            caller.cancel()
            with pytest.raises(asyncio.CancelledError):
                await caller
            await world.ended("r")
            assert len(tool.asked) == 1

    asyncio.run(story())


def test_a_performer_that_is_cancelled_from_within_has_failed(tmp_path: Path) -> None:
    def do(_: Request) -> ToolReturned:
        raise asyncio.CancelledError("inside")

    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            await world.work({CallTool: Does(do)})
            await world.start("r", (TOOL,))
            view = await world.ended("r")
            (answered,) = [event for event in await world.events("r") if isinstance(event, Answered)]
            assert isinstance(answered.answer, Failed)
            assert "inside" in answered.answer.reason
            assert view.run.ended is not None

    asyncio.run(story())


@pytest.mark.parametrize("kind", [Kind.PURE, Kind.UNSAFE])
def test_who_lost_its_lease_cannot_answer_under_its_next_one(tmp_path: Path, kind: Kind) -> None:
    """As after a laptop slept: another worker has buried this one, which enrols anew and takes its command again."""
    time = [now()]

    async def story() -> None:
        path, gate, begun = tmp_path / "j.db", asyncio.Event(), 0

        async def slowly(_: Request) -> ToolReturned:
            nonlocal begun
            begun += 1
            me = begun
            await gate.wait()
            return ToolReturned(value=me)

        async with a_world(path, lambda: time[0]) as world, a_world(path, lambda: time[0]) as other:
            worker = await world.work({CallTool: Does(slowly, kind)})
            first = worker.worker_id
            await world.start("r", (TOOL,))
            while begun < 1:
                await asyncio.sleep(0.002)
            worker_id = await other.journal.enrol(time[0])
            time[0] += 40_000_000
            await other.journal.heartbeat(worker_id, time[0])
            await other.journal.claim(worker_id, time[0], 0)
            async with asyncio.timeout(25):
                while worker.worker_id == first or (begun < 2 and not await world.desk()):
                    worker.wake()
                    await asyncio.sleep(0.01)
            gate.set()
            if kind is Kind.UNSAFE:
                (question,) = await world.desk()
                await world.engine.answer("r", question.number, "seen", choice="happened")
            await world.ended("r")
            answers = [
                event
                for event in await world.events("r")
                if isinstance(event, Answered | DoubtResolved) and not isinstance(event.answer, PersonAnswered)
            ]
            assert [answer.answer for answer in answers] == [ToolReturned(value="seen" if kind is Kind.UNSAFE else 2)]
            assert worker.failure is None

    asyncio.run(story())


def test_a_limit_beyond_all_time_harms_nobody(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            await world.work({CallTool: Does(), SetTimer: rings()})
            endless = Limits(seconds=1e13)
            await asyncio.gather(
                world.start("bad", (TOOL, SetTimer(name="x", after=1e14)), limits=endless), world.start("good", (TOOL,))
            )
            await world.ended("good")
            assert (await world.engine.look("bad")).status == "waiting"

    asyncio.run(story())


class Refusing(Registry):
    def load(self, style: str, content: bytes) -> object:
        raise DefinitionError(f"a {style} of {len(content)} bytes from a newer version")


def test_an_unreadable_run_does_not_stop_the_worker(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            await world.start("r", (TOOL,))
        async with a_world(tmp_path / "j.db", registry=Refusing([ERRANDS])) as world:
            worker = await world.work({CallTool: Does()})
            await asyncio.sleep(0.05)
            assert worker.failure is None

    asyncio.run(story())


def test_a_worker_for_one_unreadable_run_says_so(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            await world.start("r", (TOOL,))
        async with a_world(tmp_path / "j.db", registry=Refusing([ERRANDS])) as world:
            worker = await world.work({CallTool: Does()}, scope=Tree("r"))
            async with asyncio.timeout(25):
                while worker.failure is None:
                    await asyncio.sleep(0.01)
            with pytest.raises(DefinitionError, match="newer version"):
                await worker.idle()

    asyncio.run(story())
