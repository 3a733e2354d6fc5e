"""What a person agrees to is shown whole, and nothing else is called."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ripstop.engine.performers import Kind, Request
from ripstop.engine.ports import DeskQuery
from ripstop.history.desk import desk_item
from ripstop.kernel.doubts import AGAIN, GIVE_UP, HAPPENED
from ripstop.kernel.effects import AskPerson, CallTool, Failed, PersonAnswered, ToolReturned
from ripstop.kernel.errors import UsageError
from ripstop.kernel.events import Doubted
from ripstop.kernel.registry import Registry
from ripstop.kernel.shown_calls import MOST_SHOWN, digest_of_arguments
from ripstop.kernel.style import StyleKit
from ripstop.testing import ERRANDS, Errands
from ripstop.testing.stub_style import ErrandStyle
from tests.engine.world import Does, World, a_world, answers

LONG = {"memo": "x" * 9_000, "to": "eve"}


def once(request: Request) -> ToolReturned:
    if request.attempt == 1:
        raise TimeoutError
    return ToolReturned(value="paid")


async def doubted(world: World, arguments: dict[str, Any]) -> AskPerson:
    """A call that broke off, and the question about it."""
    await world.start("r", (CallTool(tool="pay", arguments=arguments),))
    await world.until("r", lambda view: view.status == "waiting")
    (question,) = await world.desk()
    return question.command


def test_a_question_about_a_doubt_holds_the_arguments_whole(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            await world.work({CallTool: Does(once, kind=Kind.UNSAFE)})
            ask = await doubted(world, LONG)
            assert ask.arguments == LONG and ask.shown == digest_of_arguments(LONG)
            (question,) = (await world.engine.desk(DeskQuery())).items
            assert (await desk_item(world.engine, question)).arguments == LONG

    asyncio.run(story())


def test_a_call_that_cannot_be_shown_whole_cannot_be_made_again(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            pay = Does(once, kind=Kind.UNSAFE)
            await world.work({CallTool: pay})
            ask = await doubted(world, {"memo": "x" * MOST_SHOWN})
            assert [*ask.choices] == [HAPPENED, GIVE_UP] and "too many to be shown" in ask.question
            (question,) = await world.desk()
            with pytest.raises(UsageError):
                await world.engine.answer("r", question.number, choice=AGAIN)
            assert len(pay.asked) == 1

    asyncio.run(story())


class Changed(ErrandStyle):
    """A style that, since the question was asked, makes other arguments of the same records."""

    to = "ann"

    def arguments(self, state: Any, command: CallTool) -> dict[str, Any]:
        return {**(command.arguments or {}), "to": self.to}


def test_a_call_that_is_not_as_it_was_shown_is_asked_about_again(tmp_path: Path) -> None:
    async def story() -> None:
        style = Changed()
        registry = Registry([StyleKit(style=style, definition=Errands, events=ERRANDS.events)])
        pay = Does(once, kind=Kind.UNSAFE)
        async with a_world(tmp_path / "j.db", registry=registry) as world:
            await world.work({CallTool: pay})
            ask = await doubted(world, {})
            assert ask.arguments == {"to": "ann"}
            style.to = "eve"
            (question,) = await world.desk()
            await world.engine.answer("r", question.number, choice=AGAIN)
            await world.until("r", lambda view: view.status == "waiting")
            (again,) = await world.desk()
            assert again.command.arguments == {"to": "eve"}
            assert "not those that were shown" in again.command.question
            assert len(pay.asked) == 1
            await world.engine.answer("r", again.number, choice=AGAIN)
            await world.ended("r")
            events = await world.events("r")
        assert [dict(request.arguments) for request in pay.asked][1:] == [{"to": "eve"}]
        assert len([event for event in events if isinstance(event, Doubted)]) == 2
        assert answers(events)[-1].answer == ToolReturned(value="paid")

    asyncio.run(story())


def test_an_approval_of_other_arguments_is_not_an_approval(tmp_path: Path) -> None:
    """Even if both questions had the same key."""
    shown = ["ann"]

    def approval(to: str) -> AskPerson:
        arguments = {"to": to}
        return AskPerson(
            question="May it?", choices={"yes": ""}, arguments=arguments, shown=digest_of_arguments(arguments)
        )

    async def pay(request: Request) -> ToolReturned | None:
        answer = await request.ask("the same key", approval(shown[-1]))
        return ToolReturned(value="paid") if isinstance(answer, PersonAnswered) else None

    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            await world.work(world.family({CallTool: Does(pay, kind=Kind.UNSAFE)}))
            await world.start("r", (CallTool(tool="pay"),))
            async with asyncio.timeout(60):
                while not (questions := await world.desk()):
                    await asyncio.sleep(0.01)
            (question,) = questions
            shown.append("eve")
            await world.engine.answer(question.run_id, question.number, choice="yes")
            await world.ended("r")
            (answer,) = answers(await world.events("r"))
            assert answer.answer == Failed(reason="The person agreed to a call with other arguments.", fault="ours")

    asyncio.run(story())
