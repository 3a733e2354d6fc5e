"""Families that are cancelled and answered at random, by two workers on one file: nothing is left, all is paid."""

import asyncio
import random
from collections import Counter
from pathlib import Path

import pytest

from ripstop.engine.performers import Request
from ripstop.engine.ports import NOTHING, RunQuery, Scope, Tree
from ripstop.kernel.effects import AgentReplied, AskAgent, AskPerson, CallTool, SetTimer, StartRun, Usage
from ripstop.kernel.errors import UsageError
from ripstop.testing import Errands
from tests.engine.world import Does, World, a_world

AGENT, TOOL, PERSON = AskAgent(agent="ada"), CallTool(tool="t"), AskPerson(question="Well?")
TREE = {
    "child": Errands(rounds=((StartRun(workflow="leaf"), AGENT), (StartRun(workflow="leaf"), TOOL))),
    "leaf": Errands(rounds=((AGENT, SetTimer(name="x", after=0.01)), (PERSON,), (AGENT,))),
}
FAMILIES = 12


def family_of(run_id: str) -> str:
    return run_id.split(".", maxsplit=1)[0]


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 40))])
def test_every_family_settles_and_pays_for_all_its_calls(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    made: Counter[str] = Counter()

    async def speak(request: Request) -> AgentReplied:
        """Costs one token when it begins, however it ends; another one if it is not cut off."""
        made[family_of(request.run_id)] += 1
        request.progress.begin(8)
        await asyncio.sleep(rng.random() * 0.05)
        made[family_of(request.run_id)] += 1
        return AgentReplied(text="hello", usage=Usage(input_tokens=2))

    async def disturb(worlds: list[World]) -> None:
        for _ in range(60):
            await asyncio.sleep(rng.random() * 0.05)
            world = rng.choice(worlds)
            for question in rng.sample(await world.desk(), k=min(3, len(await world.desk()))):
                try:
                    await world.engine.answer(question.run_id, question.number, "yes")
                except UsageError:
                    continue  # another one was quicker
            if rng.random() < 0.4:
                try:
                    await world.engine.cancel(f"f{rng.randrange(FAMILIES)}")
                except UsageError:
                    continue

    async def settle(worlds: list[World]) -> None:
        async with asyncio.timeout(30):
            for number in range(FAMILIES):
                while not (await worlds[0].engine.look(f"f{number}")).run.is_settled:
                    for question in await worlds[0].desk():
                        try:
                            await worlds[0].engine.answer(question.run_id, question.number, "yes")
                        except UsageError:
                            continue
                    await asyncio.sleep(0.01)

    async def story() -> None:
        async with a_world(tmp_path / "j.db") as one, a_world(tmp_path / "j.db") as two:
            worlds = [one, two]
            for world in worlds:
                await world.work(world.family({AskAgent: Does(speak, tools=())}), concurrency=8)
            for number in range(FAMILIES):
                rounds = ((StartRun(workflow="child"), AGENT), (StartRun(workflow="leaf"),))
                await rng.choice(worlds).start(f"f{number}", *rounds, children=TREE)
            await disturb(worlds)
            await settle(worlds)
            for world in worlds:
                assert world.worker is not None
                await world.worker.idle()
                assert world.worker.failure is None
            for info in (await one.engine.runs(RunQuery(size=1000))).items:
                run = (await one.engine.look(info.run_id)).run
                assert run.is_settled and not run.open and not run.late, info
            for number in range(FAMILIES):
                run = (await one.engine.look(f"f{number}")).run
                assert run.spent.usage.counted_tokens == made[f"f{number}"], run.id
            assert not list(one.journal._reading.rows("SELECT * FROM outbox"))
            assert await one.journal.verify() == []

    asyncio.run(story())


@pytest.mark.parametrize("scope", [Tree("r"), NOTHING], ids=["tree", "nothing"])
def test_a_worker_of_one_family_works_on_the_named_run_it_awaits(tmp_path: Path, scope: Scope) -> None:
    async def story() -> None:
        plan = {"plan": Errands(rounds=((TOOL,), (TOOL,)))}
        wait = StartRun(workflow="plan", name="plan:7")
        async with a_world(tmp_path / "j.db") as other:
            await other.start("starter", (wait,), children=plan)
            await other.start("unrelated", (TOOL,))
            worker = await other.work(other.family({CallTool: Does(tools=())}))
            await other.until("plan:7", lambda view: view.status == "working")
            await worker.stop(grace=0)
            other.worker = None
            await other.start("r", (wait,), children=plan)
        async with a_world(tmp_path / "j.db") as world:
            worker = await world.work(world.family(), scope=scope)
            if scope == NOTHING:
                await asyncio.sleep(0.1)
                assert (await world.engine.look("plan:7")).status == "working"
            else:
                await world.ended("r")
            assert (await world.engine.look("unrelated")).status == "working"

    asyncio.run(story())
