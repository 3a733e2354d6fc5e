"""A performer that asks a person in the middle of its work."""

import asyncio
from pathlib import Path

import pytest

from ripstop.engine.engine import Engine
from ripstop.engine.performers import Kind, Request
from ripstop.kernel.effects import Answer, AskPerson, CallTool, Failed, Field, ToolReturned
from tests.engine.world import Does, World, a_world, answers, until

PAY = CallTool(tool="pay")
MAY_I = AskPerson(question="May I?", choices={"yes": "", "no": ""}, fields={"euros": Field(type="integer")})


async def asks_first(request: Request) -> Answer | None:
    said = await request.ask("permission", MAY_I)
    if said is None:
        return None
    return ToolReturned(value=f"{said.choice} {said.fields.get('euros')} by {said.by}")


async def question(world: World) -> tuple[str, int]:
    async with asyncio.timeout(25):
        while not (found := await world.desk()):
            await asyncio.sleep(0.002)
    (one,) = found
    return one.run_id, one.number


@pytest.mark.parametrize("kind", list(Kind))
def test_a_command_waits_for_a_person_and_goes_on_with_the_answer(tmp_path: Path, kind: Kind) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            pay = Does(asks_first, kind=kind)
            worker = await world.work({CallTool: pay})
            await world.start("r", (PAY,))
            run_id, number = await question(world)
            await worker.idle()
            assert run_id.startswith("r.3.")
            await world.engine.answer(run_id, number, "yes", fields={"euros": "7"}, by="ann")
            await world.ended("r")
            (answer,) = answers(await world.events("r"))
            assert answer.answer == ToolReturned(value="yes 7 by ann")
            assert len(pay.asked) == 2
            assert await world.journal.verify() == []

    asyncio.run(story())


def test_the_answer_between_the_look_and_the_park_wakes_the_command(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world, a_world(tmp_path / "j.db") as other:

            async def slowly(request: Request) -> Answer | None:
                answer = await asks_first(request)
                if answer is None:
                    run_id, number = await question(world)
                    await other.engine.answer(run_id, number, "yes")
                return answer

            pay = Does(slowly)
            await world.work({CallTool: pay})
            await world.start("r", (PAY,))
            await world.ended("r")
            assert len(pay.asked) == 2

    asyncio.run(story())


def test_a_question_survives_a_killed_worker_and_is_asked_once(tmp_path: Path) -> None:
    async def story() -> None:
        async def dies(request: Request) -> Answer | None:
            await asks_first(request)
            await asyncio.Event().wait()
            return None

        dead = World(tmp_path / "j.db")
        await dead.work({CallTool: Does(dies, kind=Kind.KEYED)})
        await dead.start("r", (PAY,))
        await question(dead)
        await dead.abandon()
        async with a_world(tmp_path / "j.db") as world:
            pay = Does(asks_first, kind=Kind.KEYED)
            worker = await world.work({CallTool: pay})
            await until(lambda: bool(pay.asked))
            await worker.idle()
            run_id, number = await question(world)
            await world.engine.answer(run_id, number, "yes")
            await world.ended("r")
            assert await world.run_ids() == ["r", run_id]

    asyncio.run(story())


@pytest.mark.parametrize("when", ["parked", "at work", "dead"])
def test_a_question_is_withdrawn_with_its_command(tmp_path: Path, when: str) -> None:
    async def story() -> None:
        async def does(request: Request) -> Answer | None:
            await asks_first(request)
            if when != "parked":
                await asyncio.Event().wait()
            return None

        first = World(tmp_path / "j.db")
        worker = await first.work({CallTool: Does(does)})
        await first.start("r", (PAY,))
        run_id, _ = await question(first)
        if when == "parked":
            await worker.idle()
        if when == "dead":
            await first.abandon()
        async with a_world(tmp_path / "j.db") as world:
            await world.engine.cancel("r")
            if when == "dead":
                await world.work({CallTool: Does(does)})
            view = await world.until("r", lambda view: not view.run.late)
            asked = (await world.engine.look(run_id)).run
            assert asked.ended is not None and asked.ended.outcome == "stopped"
            assert await world.desk() == []
            assert view.run.ended is not None
        if when != "dead":
            await worker.stop(grace=0)
            await first.journal.close()

    asyncio.run(story())


def test_an_answer_and_a_cancel_at_the_same_time_do_not_stop_the_worker(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            worker = await world.work({CallTool: Does(asks_first)})
            await world.start("r", (PAY,))
            run_id, number = await question(world)
            await worker.idle()
            engine: Engine = world.engine
            await asyncio.gather(engine.cancel("r"), engine.answer(run_id, number, "yes"))
            await world.until("r", lambda view: not view.run.late)
            await worker.idle()
            assert worker.failure is None
            assert isinstance(answers(await world.events("r"))[-1].answer, Failed | ToolReturned)

    asyncio.run(story())
