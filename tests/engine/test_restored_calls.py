"""After a journal was put back from a copy: no call that may have been made since is made again without a word,
whatever its kind, and no call has the key that another one may have had."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ripstop.engine.performers import Kind, Performer
from ripstop.kernel.doubts import AGAIN
from ripstop.kernel.effects import AskAgent, AskPerson, CallTool, Limits, Say, StartRun, ToolReturned
from ripstop.kernel.events import Doubted, DoubtResolved, Restored
from ripstop.kernel.restoring import ASK, CONTINUE, END, GO_ON, HAPPENED
from ripstop.kernel.run import DOUBT, RESTORED
from ripstop.testing import Errands
from tests.engine.world import Does, World, a_world, answers, until

PAY, TOOL = CallTool(tool="pay", arguments={"euros": 5}), CallTool(tool="hammer")
COPY = Restored(copy="a@1", evidence="It is a copy.", mark="b0a7")
EFFECTS = [Kind.KEYED, Kind.PROBEABLE, Kind.UNSAFE]

pytestmark = pytest.mark.req("V18")


@asynccontextmanager
async def restored(
    path: Path, *rounds: tuple[object, ...], said: str = ASK, words: str = "", fact: Restored = COPY, **options: object
) -> AsyncIterator[World]:
    """A world in which run `r` was put back from a copy, with its first round open, and a person has spoken."""
    async with a_world(path) as world:
        await world.start("r", *rounds, **options)  # type: ignore[arg-type]
        await put_back(world, fact, said, words)
        yield world


async def put_back(world: World, fact: Restored, said: str, words: str = "") -> None:
    await world.engine.tell("r", fact)
    (question,) = [one for one in await world.desk() if one.command.purpose == RESTORED]
    await world.engine.answer("r", question.number, words, choice=said)


async def in_doubt(world: World, run_id: str = "r") -> int:
    """The question about the call that the run has come to."""
    await world.until(run_id, lambda view: bool(view.run.doubts))
    (question,) = [one for one in await world.desk() if one.command.purpose == DOUBT and one.run_id == run_id]
    return question.number


def performers(world: World, tool: Performer) -> dict[type, Performer]:
    return world.family({CallTool: tool})


def nobody(_: object) -> None:
    return None


@pytest.mark.parametrize("said", [ASK, HAPPENED])
@pytest.mark.parametrize("kind", EFFECTS)
def test_a_later_call_is_asked_about_whatever_its_kind(tmp_path: Path, kind: Kind, said: str) -> None:
    async def story() -> None:
        pay = Does(kind=kind, probe=nobody)
        async with restored(tmp_path / "j.db", (AskPerson(question="Well?"),), (PAY,), (PAY,), said=said) as world:
            await world.work(performers(world, pay))
            await world.engine.answer("r", 3, "yes")
            first = await in_doubt(world)
            assert (pay.asked, pay.probed) == ([], []), "a probe looks for this key, not for the lost one"
            (doubt,) = [event for event in await world.events("r") if isinstance(event, Doubted)]
            assert "'pay'" in doubt.evidence and '{"euros":5}' in doubt.evidence
            await world.engine.answer("r", first, AGAIN)
            await world.until("r", lambda view: bool(pay.asked))
            await in_doubt(world)
            assert len(pay.asked) == 1, "the next one is asked about as well"

    asyncio.run(story())


def test_a_key_after_a_restore_is_one_that_no_call_of_the_lost_time_can_have_had(tmp_path: Path) -> None:
    async def story() -> None:
        pay = Does(kind=Kind.KEYED)
        async with restored(tmp_path / "j.db", (PAY,), (PAY,), said=CONTINUE) as world:
            again = Restored(copy="b@2", evidence="Again.", mark="c0de")
            await put_back(world, again, CONTINUE)
            await world.work(performers(world, pay))
            await world.ended("r")
            number = pay.asked[1].number
        assert [request.key for request in pay.asked] == ["r/3", f"r/{number}~c0de"], "an open one keeps its key"

    asyncio.run(story())


def test_a_call_that_was_asked_for_between_two_restores_keeps_its_key(tmp_path: Path) -> None:
    async def story() -> None:
        pay = Does(kind=Kind.KEYED)
        async with restored(tmp_path / "j.db", (AskPerson(question="Well?"),), (PAY,), said=CONTINUE) as world:
            await world.engine.answer("r", 3, "yes")
            await put_back(world, Restored(copy="b@2", evidence="Again.", mark="c0de"), ASK)
            await world.work(performers(world, pay))
            await world.ended("r")
        assert [request.key.partition("~")[2] for request in pay.asked] == ["b0a7"]

    asyncio.run(story())


@pytest.mark.parametrize("kind", EFFECTS)
def test_a_call_that_happened_counts_as_done_with_the_words_of_the_person(tmp_path: Path, kind: Kind) -> None:
    async def story() -> None:
        pay = Does(kind=kind, probe=nobody)
        async with restored(tmp_path / "j.db", (PAY,), said=HAPPENED, words="seen at the bank") as world:
            await world.work(performers(world, pay))
            await world.ended("r")
            (known,) = [event for event in await world.events("r") if isinstance(event, DoubtResolved)]
        assert known.answer == ToolReturned(value="seen at the bank") and pay.asked == []

    asyncio.run(story())


def test_a_probe_knows_the_result_of_a_call_that_happened(tmp_path: Path) -> None:
    async def story() -> None:
        pay = Does(kind=Kind.PROBEABLE, probe=lambda _: ToolReturned(value="order 7"))
        async with restored(tmp_path / "j.db", (PAY,), said=HAPPENED) as world:
            await world.work(performers(world, pay))
            await world.ended("r")
            assert answers(await world.events("r"))[-1].answer == ToolReturned(value="order 7")
        assert pay.asked == []

    asyncio.run(story())


@pytest.mark.parametrize(("kind", "made"), [(Kind.KEYED, 1), (Kind.PROBEABLE, 1), (Kind.UNSAFE, 0)])
def test_not_knowing_an_open_call_is_made_with_its_key_or_probed_or_asked_about(
    tmp_path: Path, kind: Kind, made: int
) -> None:
    async def story() -> None:
        pay = Does(kind=kind, probe=nobody)
        async with restored(tmp_path / "j.db", (PAY,), said=ASK) as world:
            await world.work(performers(world, pay))
            await world.until("r", lambda view: view.run.ended is not None or bool(view.run.doubts))
        assert [request.key for request in pay.asked] == ["r/3"] * made
        assert len(pay.probed) == (kind is Kind.PROBEABLE)

    asyncio.run(story())


@pytest.mark.parametrize("kind", list(Kind))
def test_if_nothing_has_happened_everything_is_made_once_and_nothing_is_asked(tmp_path: Path, kind: Kind) -> None:
    async def story() -> None:
        pay = Does(kind=kind, probe=nobody)
        async with restored(tmp_path / "j.db", (PAY,), (PAY,), said=CONTINUE) as world:
            await world.work(performers(world, pay))
            await world.ended("r")
        assert (len(pay.asked), pay.probed) == (2, [])

    asyncio.run(story())


@pytest.mark.parametrize(("kind", "made", "probed"), [(Kind.KEYED, 1, 0), (Kind.PROBEABLE, 1, 1), (Kind.UNSAFE, 0, 0)])
def test_a_call_that_was_begun_in_the_copy_stays_in_doubt_if_nothing_has_happened_since(
    tmp_path: Path, kind: Kind, made: int, probed: int
) -> None:
    async def story() -> None:
        pay = Does(kind=kind, probe=nobody)
        begun = Restored(copy="a", evidence="?", begun=(3,), mark="b0a7")
        async with restored(tmp_path / "j.db", (PAY,), said=CONTINUE, fact=begun) as world:
            await world.work(performers(world, pay))
            await world.until("r", lambda view: view.run.ended is not None or bool(view.run.doubts))
        assert (len(pay.asked), len(pay.probed)) == (made, probed)

    asyncio.run(story())


@pytest.mark.parametrize("is_open", [True, False], ids=["open", "later"])
@pytest.mark.parametrize("said", [ASK, HAPPENED])
@pytest.mark.parametrize("kind", EFFECTS)
def test_a_child_that_may_have_been_started_before_asks_about_its_first_call(
    tmp_path: Path, kind: Kind, said: str, is_open: bool
) -> None:
    async def story() -> None:
        pay = Does(kind=kind, probe=nobody)
        start, wait = (StartRun(workflow="child"),), (AskPerson(question="Well?"),)
        rounds = (start,) if is_open else (wait, start)
        leaf = {"child": Errands(rounds=((StartRun(workflow="leaf"),),)), "leaf": Errands(rounds=((PAY,),))}
        async with restored(tmp_path / "j.db", *rounds, said=said, children=leaf) as world:
            await world.work(performers(world, pay))
            if not is_open:
                await world.engine.answer("r", 3, "yes")
            await until_child(world)
            assert (pay.asked, pay.probed) == ([], [])

    async def until_child(world: World) -> None:
        async with asyncio.timeout(25):
            while not [one for one in await world.desk() if one.command.purpose == DOUBT]:
                assert not (await world.engine.look("r")).run.ended
                await asyncio.sleep(0.002)

    asyncio.run(story())


def test_a_run_that_was_stopped_in_the_copy_may_have_been_resumed_since(tmp_path: Path) -> None:
    async def story() -> None:
        pay = Does(kind=Kind.KEYED)
        async with a_world(tmp_path / "j.db") as world:
            await world.start("r", (AskAgent(agent="ada"),), (PAY,), limits=Limits(calls=0))
            await world.ended("r")
            await world.engine.tell("r", COPY)
            assert (await world.engine.look("r")).run.ended and await world.desk() == []
            await world.work(performers(world, pay))
            await world.engine.resume("r", {"calls": 5})
            await in_doubt(world)
            assert pay.asked == []

    asyncio.run(story())


def test_a_run_that_has_completed_is_left_alone(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            await world.work(performers(world, Does()))
            await world.start("r", (TOOL,))
            before = (await world.ended("r")).run.length
            await world.engine.tell("r", COPY)
            assert (await world.engine.look("r")).run.length == before

    asyncio.run(story())


def test_a_later_message_on_a_channel_is_asked_about_and_one_that_was_open_keeps_its_key(tmp_path: Path) -> None:
    async def story() -> None:
        sent: list[str] = []

        async def deliver(message: object) -> None:
            sent.append(message.key)  # type: ignore[attr-defined]

        first, second = Say(text="one", channel="mail"), Say(text="two", channel="mail")
        async with restored(tmp_path / "j.db", (first, AskPerson(question="Well?")), (second, PAY)) as world:
            await world.work(world.family({CallTool: Does()}, channels={"mail": deliver}))
            await world.engine.answer("r", 4, "yes")
            question = await in_doubt(world)
            assert sent == ["r/3"]
            (doubt,) = [event for event in await world.events("r") if isinstance(event, Doubted)]
            assert '"two"' in doubt.evidence and "mail" in doubt.evidence
            await world.engine.answer("r", question, AGAIN)
            await until(lambda: len(sent) == 2)
            assert sent[1].endswith("~b0a7")

    asyncio.run(story())


def test_going_on_says_nothing_about_calls_before(tmp_path: Path) -> None:
    async def story() -> None:
        pay = Does(kind=Kind.UNSAFE)
        async with restored(tmp_path / "j.db", (PAY, PAY), (PAY,), said=ASK) as world:
            await world.engine.tell("r", Doubted(to=4, evidence="?"))
            await world.engine.answer("r", max((await world.engine.look("r")).run.open), GO_ON)
            await world.work(performers(world, pay))
            await in_doubt(world)
            await until(lambda: bool(pay.asked))
        assert [request.number for request in pay.asked] == [4]

    asyncio.run(story())


def test_that_nothing_has_happened_since_one_copy_says_nothing_about_an_earlier_one(tmp_path: Path) -> None:
    async def story() -> None:
        pay = Does(kind=Kind.UNSAFE)
        async with restored(tmp_path / "j.db", (PAY,), said=ASK) as world:
            await put_back(world, Restored(copy="b@2", evidence="Again.", mark="c0de"), CONTINUE)
            await world.work(performers(world, pay))
            await in_doubt(world)
        assert pay.asked == []

    asyncio.run(story())


@pytest.mark.parametrize("kind", list(Kind))
def test_a_run_that_a_person_ends_makes_no_call(tmp_path: Path, kind: Kind) -> None:
    async def story() -> None:
        pay = Does(kind=kind, probe=nobody)
        async with restored(tmp_path / "j.db", (PAY,), (PAY,), said=END) as world:
            await world.work(performers(world, pay))
            await world.until("r", lambda view: view.run.is_settled and not view.run.open)
            assert not world.worker or not world.worker.busy
        assert pay.asked == []

    asyncio.run(story())
