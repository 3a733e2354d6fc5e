"""What a child says and asks appears in the ancestor that shows it; messages on channels keep their order."""

import asyncio
from pathlib import Path

import pytest

from ripstop.engine.children import ChildAnswers
from ripstop.engine.messages import DeliveredMessage
from ripstop.engine.performers import Kind, Request, TryAgain
from ripstop.kernel.effects import AnswerChild, AskPerson, Failed, PersonAnswered, Said, Say, StartRun
from ripstop.kernel.errors import AlreadyAnswered
from ripstop.kernel.events import Answered, ChildSpoke, Heard
from ripstop.testing import Errands
from tests.engine.clerk_style import Clerk
from tests.engine.world import Does, World, a_world, until

ASK = AskPerson(question="Shall I?", choices={"yes": "Yes, please", "no": "No"}, other="no")
CHAT = Clerk(rounds=((StartRun(workflow="flow", surface=True),),), answers_children=True)
TREE = {
    "flow": Errands(rounds=((StartRun(workflow="leaf"),),)),
    "leaf": Errands(rounds=((Say(text="Hello."),), (ASK,))),
}


async def asked(world: World) -> ChildSpoke:
    """The chat, once the question of its grandchild has appeared in it."""
    await world.start_definition("chat", CHAT, children=TREE)
    await world.until("chat", lambda view: bool(view.run.state.asked))
    return next(event for event in await world.events("chat") if isinstance(event, ChildSpoke) and event.ask)


def test_a_grandchilds_question_appears_in_the_chat_and_on_the_desk(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            await world.work(world.family())
            spoke = await asked(world)
            assert (spoke.command, spoke.run, spoke.ask) == (3, "chat.3.3", ASK)
            texts = [event.text for event in await world.events("chat") if isinstance(event, ChildSpoke)]
            assert texts == ["Hello.", ""], "each once, in order"
            (question,) = await world.desk()
            assert (question.run_id, question.number) == (spoke.run, spoke.number)
            assert await world.journal.verify() == []

    asyncio.run(story())


@pytest.mark.parametrize(
    ("draft", "shown"),
    [
        ("# Draft\n\nA list.\n", "# Draft\n\nA list.\n\nIs it good?"),
        ("x" * 5_000, f"{'x' * 4_000}…\n\n(1,000 more characters are on the desk.)\n\nIs it good?"),
    ],
)
def test_a_question_about_a_document_shows_the_document_in_the_chat(tmp_path: Path, draft: str, shown: str) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            await world.work(world.family())
            review = AskPerson(question="Is it good?", document=4, choices={"pass": "", "edit": ""}, edit="edit")
            reviewed = {"flow": Errands(rounds=((AskPerson(question="What is the draft?"),), (review,)))}
            await world.start_definition("chat", CHAT, children=reviewed)
            await world.until("chat", lambda view: bool(view.run.state.asked))
            await world.engine.hear("chat", draft, id="m1")
            first = (await world.engine.look("chat")).run.state.asked
            await world.until("chat", lambda view: view.run.state.asked > first)
            spoke = [event for event in await world.events("chat") if isinstance(event, ChildSpoke)][-1]
            assert (spoke.ask, spoke.text) == (review, shown)

    asyncio.run(story())


def test_words_in_the_chat_answer_the_grandchild(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            await world.work(world.family())
            spoke = await asked(world)
            await world.engine.hear("chat", "Yes, please", by="ann", id="m1")
            view = await world.ended("chat")
            (said,) = [
                event.answer
                for event in await world.events(spoke.run)
                if isinstance(event, Answered) and isinstance(event.answer, PersonAnswered)
            ]
            assert (said.choice, said.by) == ("yes", "ann")
            assert view.run.ended is not None and view.run.ended.outcome == "completed"
            with pytest.raises(AlreadyAnswered, match="by ann") as error:
                await world.engine.answer(spoke.run, spoke.number, "no")
            assert error.value.choice == "yes"

    asyncio.run(story())


def test_the_first_answer_wins_and_the_chat_is_told(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            free = asyncio.Event()
            inner = ChildAnswers(world.engine)

            async def late(request: Request) -> object:
                await free.wait()
                return await inner.perform(request)

            slow = Does(late, tools=())
            await world.work(world.family({AnswerChild: slow}))
            spoke = await asked(world)
            await world.engine.hear("chat", "no")
            await until(lambda: bool(slow.asked))
            await world.engine.answer(spoke.run, spoke.number, "yes", by="desk")
            free.set()
            view = await world.until("chat", lambda view: view.run.state.failures == 1)
            failed = [e.answer for e in await world.events("chat") if isinstance(e, Answered)]
            assert any(isinstance(one, Failed) and "by desk" in one.reason for one in failed)
            assert view.run.id == "chat"

    asyncio.run(story())


def test_an_answer_that_a_dead_worker_gave_is_not_called_anothers(tmp_path: Path) -> None:
    async def story() -> None:
        dead = World(tmp_path / "j.db")
        inner = ChildAnswers(dead.engine)

        async def dies(request: Request) -> None:
            await inner.perform(request)
            await asyncio.Event().wait()

        dying = Does(dies, tools=())
        await dead.work(dead.family({AnswerChild: dying}))
        spoke = await asked(dead)
        await dead.engine.hear("chat", "Yes, please", by="ann")
        await dead.until(spoke.run, lambda view: view.run.ended is not None)
        await dead.abandon()
        async with a_world(tmp_path / "j.db") as world:
            await world.work(world.family())
            await world.ended("chat")
            told = [event for event in await world.events("chat") if isinstance(event, Answered)]
            assert any(isinstance(event.answer, Said) and event.attempt == 2 for event in told) or not any(
                isinstance(event.answer, Failed) for event in told
            )

    asyncio.run(story())


def test_a_message_id_is_heard_once_across_two_engines(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as one, a_world(tmp_path / "j.db") as two:
            await one.start_definition("r", Clerk(outcome="", answers_children=True, listens=True))
            await asyncio.gather(*(world.engine.hear("r", "hi", id="m1") for world in (one, two) * 5))
            await two.engine.hear("r", "hi", id="m2")
            heard = [event.id for event in await one.events("r") if isinstance(event, Heard)]
            assert heard == ["m1", "m2"]

    asyncio.run(story())


# Channels


SAYS = tuple(Say(text=str(number), channel="chat") for number in range(5))


def test_messages_on_a_channel_arrive_in_order_even_after_the_end(tmp_path: Path) -> None:
    async def story() -> None:
        sent: list[str] = []
        failures = 0

        async def deliver(message: DeliveredMessage) -> None:
            nonlocal failures
            if message.text == "1" and failures < 2:
                failures += 1
                raise TryAgain("try later")
            sent.append(message.text)

        async with a_world(tmp_path / "j.db") as world:
            await world.start_definition("r", Clerk(rounds=(SAYS,), outcome=""))
            await world.engine.cancel("r")
            assert (await world.engine.look("r")).run.ended is not None
            worker = await world.work({Say: world.family(channels={"chat": deliver})[Say]}, backoff=0.001)
            await until(lambda: len(sent) == 5)
            await worker.idle()
            assert sent == ["0", "1", "2", "3", "4"]
            view = await world.until("r", lambda view: not view.run.open)
            assert view.status == "stopped"
            assert await world.journal.verify() == []

    asyncio.run(story())


def test_a_message_waits_for_a_worker_that_serves_its_channel(tmp_path: Path) -> None:
    async def story() -> None:
        sent: list[str] = []

        async def deliver(message: DeliveredMessage) -> None:
            sent.append(message.text)

        async with a_world(tmp_path / "j.db") as world, a_world(tmp_path / "j.db") as other:
            worker = await world.work(world.family())
            await world.start("r", (Say(text="hello", channel="mail"),))
            await worker.idle()
            await asyncio.sleep(0.05)
            assert (sent, (await world.engine.look("r")).status) == ([], "waiting")
            await other.work(other.family(channels={"mail": deliver}))
            await world.ended("r")
            assert sent == ["hello"]

    asyncio.run(story())


def test_a_message_is_sent_again_with_its_key_after_a_crash(tmp_path: Path) -> None:
    async def story() -> None:
        sent: list[tuple[str, int]] = []

        async def dies(message: DeliveredMessage) -> None:
            sent.append((message.key, message.attempt))
            await asyncio.Event().wait()

        async def deliver(message: DeliveredMessage) -> None:
            sent.append((message.key, message.attempt))

        dead = World(tmp_path / "j.db")
        await dead.work(dead.family(channels={"chat": dies}))
        await dead.start("r", (SAYS[0],))
        await until(lambda: bool(sent))
        await dead.abandon()
        async with a_world(tmp_path / "j.db") as world:
            await world.work(world.family(channels={"chat": deliver}))
            await world.ended("r")
        assert sent == [("r/3", 1), ("r/3", 2)]

    asyncio.run(story())


def test_a_question_meant_for_somebody_does_not_surface(tmp_path: Path) -> None:
    async def story() -> None:
        child = {"flow": Errands(rounds=((AskPerson(question="Sign?", to="boss"),),))}
        async with a_world(tmp_path / "j.db") as world:
            surfaced = Does(kind=Kind.KEYED, tools=())
            worker = await world.work(world.family({AskPerson: surfaced}))
            await world.start_definition("chat", CHAT, children=child)
            await world.until("chat.3", lambda view: view.status == "waiting")
            await worker.idle()
            assert surfaced.asked == []
            assert [question.command.to for question in await world.desk()] == ["boss"]

    asyncio.run(story())
