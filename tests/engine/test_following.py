"""Following runs until nothing more happens to them by itself."""

import asyncio
import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ripstop.engine.following import follow, until_settled
from ripstop.engine.live import Began, Token
from ripstop.engine.messages import DeliveredMessage, Messages
from ripstop.engine.performers import Request
from ripstop.engine.ports import NOTHING
from ripstop.kernel.effects import AgentReplied, Answer, AskAgent, AskPerson, CallTool, Say, StartRun, ToolReturned
from ripstop.kernel.errors import RunNotFound
from ripstop.kernel.events import Record
from ripstop.testing import Errands
from tests.engine.clerk_style import Clerk
from tests.engine.world import Does, World, a_world

TOOL = CallTool(tool="t")


def counted(world: World, calls: Counter[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Count what is read of the journal."""
    for name in ("read", "runs"):

        def call(*args: Any, name: str = name, real: Any = getattr(world.journal, name), **options: Any) -> Any:
            calls[name] += 1
            return real(*args, **options)

        monkeypatch.setattr(world.journal, name, call)


async def follow_many(path: Path, runs: int, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    calls: Counter[str] = Counter()

    async def slowly(_: object) -> Any:
        await asyncio.sleep(0.01)
        return ToolReturned(value="done")

    async with a_world(path) as world:
        worker = await world.work({CallTool: Does(slowly)})
        for index in range(runs):
            await world.start(f"r{index}", (TOOL,), (TOOL,))
        counted(world, calls, monkeypatch)
        views = await asyncio.gather(*(until_settled(world.engine, worker, f"r{index}") for index in range(runs)))
        assert {view.status for view in views} == {"completed"}
    return calls


def test_following_reads_a_run_as_often_however_many_are_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = asyncio.run(follow_many(tmp_path / "few.db", 5, monkeypatch))
    many = asyncio.run(follow_many(tmp_path / "many.db", 50, monkeypatch))
    assert many["read"] / 50 <= few["read"] / 5 + 1
    assert many["runs"] == few["runs"] == 0


def test_following_a_parent_waits_for_its_child_without_listing_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        calls: Counter[str] = Counter()
        children = {"asks": Errands(rounds=((TOOL,), (AskPerson(question="Shall I?"),)))}
        async with a_world(tmp_path / "j.db") as world:
            worker = await world.work(world.family())
            await world.start("r", (StartRun(workflow="asks"),), children=children)
            await worker.idle()
            counted(world, calls, monkeypatch)
            view = await until_settled(world.engine, worker, "r")
            assert view.status == "waiting"
            (question,) = await world.desk()
            assert question.run_id == "r.3"
        assert calls["runs"] == 0

    asyncio.run(story())


def test_following_notices_what_another_process_does(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as ours, a_world(tmp_path / "j.db") as theirs:
            worker = await ours.work({}, scope=NOTHING)
            await theirs.start("r", (TOOL,))
            following = asyncio.create_task(until_settled(ours.engine, worker, "r"))
            await asyncio.sleep(0)
            await theirs.work({CallTool: Does()})
            async with asyncio.timeout(25):
                assert (await following).status == "completed"

    asyncio.run(story())


def test_following_returns_with_the_tool_that_no_worker_here_offers(tmp_path: Path) -> None:
    async def story() -> None:
        child = {"pays": Errands(rounds=((CallTool(tool="pay"),),))}
        async with a_world(tmp_path / "j.db") as world:
            worker = await world.work(world.family({CallTool: Does(tools=("t",))}))
            await world.start("r", (TOOL, StartRun(workflow="pays")), children=child)
            async with asyncio.timeout(25):
                view = await until_settled(world.engine, worker, "r")
            assert (view.status, view.needs) == ("waiting", ("tool:pay",))

    asyncio.run(story())


def test_following_waits_for_a_tool_that_another_worker_has_in_hand(tmp_path: Path) -> None:
    async def story() -> None:
        async def slowly(_: object) -> ToolReturned:
            await asyncio.sleep(1.5)
            return ToolReturned(value="paid")

        async with a_world(tmp_path / "j.db") as ours, a_world(tmp_path / "j.db") as theirs:
            worker = await ours.work({CallTool: Does(tools=("t",))})
            await theirs.work({CallTool: Does(slowly, tools=("pay",))})
            await ours.start("r", (CallTool(tool="pay"),))
            async with asyncio.timeout(25):
                view = await until_settled(ours.engine, worker, "r")
            assert view.status == "completed"

    asyncio.run(story())


def test_following_returns_when_a_performer_waits_for_a_person(tmp_path: Path) -> None:
    async def story() -> None:
        async def asks(request: Request) -> ToolReturned | None:
            said = await request.ask("k", AskPerson(question="May I?"))
            return ToolReturned(value=said.text) if said else None

        async with a_world(tmp_path / "j.db") as world:
            worker = await world.work({CallTool: Does(asks)})
            await world.start("r", (TOOL,))
            async with asyncio.timeout(25):
                view = await until_settled(world.engine, worker, "r")
                assert (view.status, view.needs) == ("working", ())
                (question,) = await world.desk()
                await world.engine.answer(question.run_id, question.number, "yes")
                assert (await until_settled(world.engine, worker, "r")).status == "completed"

    asyncio.run(story())


def test_following_notices_a_question_of_a_named_child(tmp_path: Path) -> None:
    async def story() -> None:
        plan = {"plan": Errands(rounds=((TOOL,), (AskPerson(question="Shall I?"),)))}

        async def slowly(_: object) -> ToolReturned:
            await asyncio.sleep(0.2)
            return ToolReturned(value="done")

        async with a_world(tmp_path / "j.db") as world:
            worker = await world.work(world.family({CallTool: Does(slowly)}))
            await world.start("r", (StartRun(workflow="plan", name="plan:7"),), children=plan)
            async with asyncio.timeout(25):
                view = await until_settled(world.engine, worker, "r")
            assert view.status == "waiting"
            assert [question.run_id for question in await world.desk()] == ["plan:7"]

    asyncio.run(story())


def test_following_waits_until_a_question_appears_where_it_is_shown(tmp_path: Path) -> None:
    class SlowMessages(Messages):
        async def perform(self, request: Request) -> Answer | None:
            await asyncio.sleep(0.2)
            return await super().perform(request)

    async def story() -> None:
        chat = Clerk(rounds=((StartRun(workflow="flow", surface=True),),), answers_children=True)
        flow = {"flow": Errands(rounds=((AskPerson(question="Shall I?"),),))}
        async with a_world(tmp_path / "j.db") as world:
            worker = await world.work(world.family({AskPerson: SlowMessages(world.engine)}))
            await world.start_definition("chat", chat, children=flow)
            async with asyncio.timeout(25):
                view = await until_settled(world.engine, worker, "chat")
            assert view.run.state.asked, "and not before"

    asyncio.run(story())


def test_following_a_cancelled_run_waits_for_its_family(tmp_path: Path) -> None:
    async def story() -> None:
        tree = {"child": Errands(rounds=((AskPerson(question="Well?"),),))}
        async with a_world(tmp_path / "j.db") as world:
            worker = await world.work(world.family())
            await world.start("r", (StartRun(workflow="child"),), children=tree)
            await world.until("r", lambda view: view.status == "waiting")
            await world.until("r.3", lambda view: view.status == "waiting")
            await world.engine.cancel("r")
            async with asyncio.timeout(25):
                view = await until_settled(world.engine, worker, "r")
            assert view.run.is_settled
            assert (await world.engine.look("r.3")).run.ended is not None

    asyncio.run(story())


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
def test_an_ended_run_is_returned_though_a_message_is_not_delivered(tmp_path: Path, busy: bool) -> None:
    async def story() -> None:
        async def never(message: DeliveredMessage) -> None:
            await asyncio.Event().wait()

        async def write(other: World) -> None:
            for number in itertools.count():
                await other.start(f"other{number}", (AskPerson(question="Well?"),))
                await asyncio.sleep(0.2)

        async with a_world(tmp_path / "j.db") as world, a_world(tmp_path / "j.db") as other:
            worker = await world.work(world.family(channels={"mail": never}))
            await world.start_definition("r", Clerk(rounds=((Say(text="bye", channel="mail"),),), outcome=""))
            await world.engine.cancel("r")
            writing = asyncio.create_task(write(other)) if busy else None
            async with asyncio.timeout(20):
                view = await until_settled(world.engine, worker, "r")
            assert view.status == "stopped" and len(view.run.open) == 1
            if writing:
                writing.cancel()

    asyncio.run(story())


def test_a_message_that_can_be_delivered_is_waited_for(tmp_path: Path) -> None:
    async def story() -> None:
        sent: list[str] = []

        async def slow(message: DeliveredMessage) -> None:
            await asyncio.sleep(0.2)
            sent.append(message.text)

        async with a_world(tmp_path / "j.db") as world:
            worker = await world.work(world.family(channels={"mail": slow}))
            await world.start_definition("r", Clerk(rounds=((Say(text="bye", channel="mail"),),), outcome=""))
            await world.engine.cancel("r")
            view = await until_settled(world.engine, worker, "r")
            assert (view.status, sent, view.run.open) == ("stopped", ["bye"], {})

    asyncio.run(story())


# Record by record


def test_follow_gives_every_record_once_and_what_goes_on(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:

            async def speak(request: Request) -> AgentReplied:
                for word in ("hel", "lo"):
                    world.engine.live.show(Token(request.run_id, request.number, word))
                    await asyncio.sleep(0.01)
                return AgentReplied(text="hello")

            await world.start("r", (AskPerson(question="?"),), *[(AskAgent(agent="ada"),)] * 3)
            seen: list[Any] = []

            async def reader() -> None:
                async for one in follow(world.engine, "r", after=1):
                    seen.append(one)

            reading = asyncio.create_task(reader())
            await asyncio.sleep(0.05)
            await world.work({AskAgent: Does(speak, tools=())})
            await world.engine.answer("r", 3, "yes")
            async with asyncio.timeout(25):
                await reading
            records = [one for one in seen if isinstance(one, Record)]
            assert records == (await world.journal.read("r"))[1:]
            assert [one.text for one in seen if isinstance(one, Token)] == ["hel", "lo"] * 3
            asked = next(place for place, one in enumerate(seen) if isinstance(one, Record) and one.number == 6)
            assert isinstance(seen[asked + 1], Began), "in the order in which it happened"
            assert not world.engine.live.watched

    asyncio.run(story())


def test_follow_sees_what_another_process_writes(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as ours, a_world(tmp_path / "j.db") as theirs:
            await theirs.start("r", (TOOL,), (TOOL,))
            reading = asyncio.create_task(_all(ours, "r"))
            await asyncio.sleep(0.05)
            await theirs.work({CallTool: Does()})
            async with asyncio.timeout(25):
                assert await reading == await ours.journal.read("r")

    asyncio.run(story())


async def _all(world: World, run_id: str, pause: float = 0.0) -> list[Record]:
    found = []
    async for one in follow(world.engine, run_id):
        if isinstance(one, Record):
            found.append(one)
            await asyncio.sleep(pause)
    return found


def test_follow_gives_a_slow_reader_everything_from_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ripstop.engine.following.MAX_QUEUED", 2)

    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            await world.work({CallTool: Does()})
            reading = asyncio.create_task(_all_of_slow(world))
            await asyncio.sleep(0)
            async with asyncio.timeout(25):
                assert await reading == await world.journal.read("r")

    async def _all_of_slow(world: World) -> list[Record]:
        await world.start("r", *[(TOOL,)] * 15)
        return await _all(world, "r", pause=0.005)

    asyncio.run(story())


def test_follow_of_a_run_that_is_not_there_says_so(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            with pytest.raises(RunNotFound):
                await _all(world, "nobody")

    asyncio.run(story())
