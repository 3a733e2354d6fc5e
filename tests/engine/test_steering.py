"""What people do with a run: start it once, answer, act, change its definition; and the documents that show it."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ripstop.engine.pinned_definitions import digest_of
from ripstop.kernel.effects import AskAgent, AskPerson, CallTool, Limits, SetTimer
from ripstop.kernel.errors import AlreadyAnswered, RunAlreadyStarted, RunHasEnded, UsageError
from ripstop.kernel.events import Redefined
from tests.engine.clerk_style import Clerk, Stamped
from tests.engine.world import Does, World, a_world

PERSON = AskPerson(question="Well?", choices={"yes": "Yes", "no": "No"})
DESK = Clerk(rounds=((PERSON,), (PERSON,)), result="done")


def test_the_same_key_definition_and_input_is_the_same_run(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as one, a_world(tmp_path / "j.db") as two:
            runs = await asyncio.gather(
                *(world.start_definition("r", DESK, key="k", input="rain") for world in (one, two) * 3)
            )
            assert {run.started.input for run in runs} == {"rain"}
            assert len(await one.events("r")) == 3
            others: list[dict[str, Any]] = [{"key": "other", "input": "rain"}, {"key": "k", "input": "snow"}, {}]
            for options in others:
                with pytest.raises(RunAlreadyStarted):
                    await two.start_definition("r", DESK, **options)

    asyncio.run(story())


def test_a_question_takes_one_answer_from_two_engines(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as one, a_world(tmp_path / "j.db") as two:
            await one.start_definition("r", DESK)
            await one.engine.look("r")
            await two.engine.answer("r", 3, "yes", by="ann")
            with pytest.raises(AlreadyAnswered) as error:
                await one.engine.answer("r", 3, "no", by="bob")
            assert (error.value.choice, error.value.by) == ("yes", "ann")
            assert error.value.at > 0

    asyncio.run(story())


def test_a_run_that_another_process_has_resumed_is_not_refused_as_ended(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as one, a_world(tmp_path / "j.db") as two:
            await one.start("r", (AskAgent(agent="ada"),), (PERSON,), limits=Limits(calls=0))
            stopped = one.engine.known("r")
            assert stopped and stopped.ended
            await two.engine.resume("r", {"calls": 3})
            await one.engine.hear("r", "hello")
            stopped = await one.engine.cancel("r")
            assert stopped.ended

    asyncio.run(story())


def test_the_current_run_is_read_again_if_it_had_ended(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as one, a_world(tmp_path / "j.db") as two:
            await one.start("r", (AskAgent(agent="ada"),), limits=Limits(calls=0))
            assert (await one.engine.current("r")).ended
            await two.engine.resume("r", {"calls": 3})
            assert not (await one.engine.current("r")).ended

    asyncio.run(story())


def test_of_two_answers_at_the_same_moment_one_is_refused(tmp_path: Path) -> None:
    """Both look before either writes: the second must learn that it changed nothing."""

    async def story() -> None:
        async with a_world(tmp_path / "j.db") as one, a_world(tmp_path / "j.db") as two:
            await one.start_definition("r", DESK)
            given = await asyncio.gather(
                *(world.engine.answer("r", 3, said) for world, said in ((one, "yes"), (two, "no"), (one, "no"))),
                return_exceptions=True,
            )
            assert sum(isinstance(one, AlreadyAnswered) for one in given) == 2, given

    asyncio.run(story())


def test_an_action_takes_checked_fields_and_what_was_seen(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            run = await world.start_definition("r", DESK)
            await world.engine.act("r", "stamp", {"times": "2"}, by="ann", seen=run.length)
            assert Stamped(times=2, by="ann") in await world.events("r")
            with pytest.raises(UsageError, match="has changed since"):
                await world.engine.act("r", "stamp", {"times": 1}, seen=run.length)
            for name, fields, says in (
                ("burn", {}, "possible now: stamp"),
                ("stamp", {}, "needs the field 'times'"),
                ("stamp", {"times": "two"}, "whole number"),
                ("stamp", {"times": 1, "ink": "red"}, "no field 'ink'"),
            ):
                with pytest.raises(UsageError, match=says):
                    await world.engine.act("r", name, fields)
            info = await world.journal.run("r")
            assert info is not None and info.gist == "2 stamps"

    asyncio.run(story())


def test_an_action_of_one_person_is_refused_to_others_whatever_its_style_checks(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            run = await world.start_definition("r", DESK)
            for by, says in (("", "say who does it"), ("eve", "'eve' cannot")):
                with pytest.raises(UsageError, match=f"Only 'chief' can countersign r; {says}"):
                    await world.engine.act("r", "countersign", {"times": 1}, by)
            assert (await world.engine.look("r")).run.length == run.length
            await world.engine.act("r", "countersign", {"times": 1}, by="chief")

    asyncio.run(story())


def test_a_run_continues_with_a_new_definition_in_place(tmp_path: Path) -> None:
    async def story() -> None:
        longer = Clerk(rounds=((PERSON,), (PERSON,), (CallTool(tool="t"),)), result="longer")
        async with a_world(tmp_path / "j.db") as world:
            await world.start_definition("r", DESK)
            await world.engine.redefine("r", longer.content())
        async with a_world(tmp_path / "j.db") as world:
            tool = Does()
            await world.work({CallTool: tool})
            assert Redefined(definition=digest_of(longer.content())) in await world.events("r")
            await world.engine.answer("r", 3, "yes")
            await world.engine.answer("r", (await world.desk())[0].number, "yes")
            await world.ended("r")
            assert await world.engine.result("r") == "longer"
            assert len(tool.asked) == 1
            with pytest.raises(RunHasEnded):
                await world.engine.redefine("r", DESK.content())

    asyncio.run(story())


async def projected(world: World, run_id: str) -> dict[str, object]:
    """The documents of a run as its style projects them from its records alone."""
    run = (await world.engine.history(run_id))[-1][1]
    return {one.key: one.body for one in world.engine.style(run).documents(run)}


def test_documents_are_written_with_the_step_and_equal_the_projection(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            await world.start_definition("r", DESK)
            await world.start_definition("s", Clerk(rounds=((SetTimer(name="x", after=999),),)))
            for _ in range(3):
                await world.engine.act("r", "stamp", {"times": 2})
            await world.engine.answer("r", 3, "yes")
            for run_id in ("r", "s"):
                body = await world.journal.document("desks", run_id)
                assert body is not None
                assert {run_id: msgspec.json.decode(body)} == await projected(world, run_id)
            page = await world.journal.documents("desks")
            assert [key for key, _ in page.items] == ["r", "s"]
            await world.engine.cancel("r")
            assert await world.journal.document("desks", "r") is None, "it projects none any more"

    asyncio.run(story())
