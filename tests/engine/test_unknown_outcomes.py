"""A store that cannot say whether it has a step: nothing is lost, recorded twice or held for ever."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ripstop.engine.engine import Engine
from ripstop.engine.performers import Kind, Request
from ripstop.engine.ports import Entry, Journal, RunQuery
from ripstop.engine.worker import Worker
from ripstop.journals.memory import MemoryJournal
from ripstop.journals.sqlite.journal import SqliteJournal
from ripstop.kernel.effects import ANSWER_TO, Answer, AskAgent, AskPerson, CallTool, Command, Failed, SetTimer, StartRun
from ripstop.kernel.errors import OutcomeUnknown, Unreachable
from ripstop.kernel.events import Answered, Asked, Ended, Event, Heard
from ripstop.kernel.registry import Registry
from ripstop.kernel.style import Sample, StyleKit
from ripstop.testing import ERRANDS, Errands, FakeClock, Fate, uncertain
from tests.app.plugins.test_kits import PLUGINS, SAMPLES
from tests.app.plugins.test_kits import played as pure
from tests.engine.world import Does, a_world

LOST = (Fate.REPLY_LOST, Fate.REQUEST_LOST, Fate.LATE)
STORES: dict[str, Callable[[Any, Path], Journal]] = {
    "memory": lambda codec, folder: MemoryJournal(codec),
    "sqlite": lambda codec, folder: SqliteJournal(folder / "journal.db", codec),
}
every_store = pytest.mark.parametrize("store", STORES)
Choose = Callable[[Entry], Fate]


def once(fate: Fate, at: int) -> Choose:
    """The fate of one append, counted from 0."""
    numbers = count()
    return lambda _: fate if next(numbers) == at else Fate.KEPT


def at_random(seed: int) -> Choose:
    chance = random.Random(seed)
    return lambda _: chance.choice((Fate.KEPT, *LOST))


class Plays:
    """Performs whatever a sample's run asks for with the sample's answers, and counts how often."""

    def __init__(self, answers: Sequence[Answer]) -> None:
        self._answers = list(answers)
        self.performed: Counter[int] = Counter()

    def next_for(self, command: Command) -> Answer | None:
        for index, answer in enumerate(self._answers):
            if isinstance(answer, (ANSWER_TO[type(command)], Failed)):
                return self._answers.pop(index)
        return None

    async def perform(self, request: Request) -> Answer | None:
        self.performed[request.number] += 1
        return self.next_for(request.command) or Failed(reason="The sample has no more answers.")

    def kind(self, command: Command) -> Kind:
        return Kind.UNSAFE

    def offers(self) -> tuple[str, ...]:
        return ANY_TOOL

    def provider(self, request: Request) -> str:
        return ""

    async def probe(self, request: Request) -> Answer | None:
        raise AssertionError("nothing is in doubt")


def tools_of(kit: StyleKit, sample: Sample) -> set[str]:
    asked = (one.event.command for one in pure(kit, sample).records if isinstance(one.event, Asked))
    return {f"tool:{command.tool}" for command in asked if isinstance(command, CallTool)}


ANY_TOOL = tuple(sorted(set[str]().union(*(tools_of(kit, sample) for kit, sample in SAMPLES))))


async def played(kit: StyleKit, sample: Sample, journal: Journal) -> tuple[list[Event], Counter[int]]:
    """The events of a sample's run, performed by a worker, and how often each command was performed."""
    registry, clock = PLUGINS.registry, FakeClock()
    engine, plays = Engine(journal, registry, clock), Plays(sample.answers)
    worker = Worker(engine, dict.fromkeys((AskAgent, CallTool, StartRun), plays))
    await worker.start()
    try:
        content = msgspec.json.encode(sample.definition, order="deterministic")
        await engine.start("r", kit.name, content, sample.input, sample.arguments)
        while True:
            await worker.idle()
            run = (await engine.look("r")).run
            asked = next((n for n, o in run.open.items() if isinstance(o.command, AskPerson | SetTimer)), None)
            said = plays.next_for(run.open[asked].command) if asked else None
            if asked is None or said is None:
                break
            await engine.tell_fact("r", Answered(to=asked, answer=said))
        held = await journal.held("r")
        assert held <= plays.performed.keys() and not held & run.open.keys(), "held, and nobody performs it"
        assert await journal.verify() == []
        return [record.event for record in await journal.read("r")], plays.performed
    finally:
        await worker.stop(grace=0)
        await journal.close()


def told(events: Sequence[Event]) -> list[Event]:
    """Without how long calls took."""
    return [msgspec.structs.replace(one, took=0.0) if isinstance(one, Answered) else one for one in events]


@every_store
@pytest.mark.parametrize(("kit", "sample"), SAMPLES, ids=lambda one: str(one.name))
def test_a_run_is_the_same_whatever_replies_of_its_store_are_lost(
    store: str, kit: StyleKit, sample: Sample, tmp_path: Path
) -> None:
    places = count()

    def opened(choose: Choose) -> Journal:
        folder = tmp_path / str(next(places))
        folder.mkdir()
        return uncertain(STORES[store](PLUGINS.registry.codec, folder), choose)

    appends: list[Entry] = []

    def counted(entry: Entry) -> Fate:
        appends.append(entry)
        return Fate.KEPT

    undisturbed, performed = asyncio.run(played(kit, sample, opened(counted)))
    assert isinstance(undisturbed[-1], Ended) and performed
    at_each = [once(LOST[at % 3], at) for at in range(len(appends))]
    for choose in (*at_each, *(at_random(seed) for seed in range(3))):
        events, again = asyncio.run(played(kit, sample, opened(choose)))
        assert told(events) == told(undisturbed)
        assert again == performed


@every_store
@pytest.mark.parametrize("fate", LOST)
def test_a_message_and_a_fork_whose_reply_is_lost_are_recorded_once(store: str, fate: Fate, tmp_path: Path) -> None:
    async def story() -> None:
        registry, fates = Registry([ERRANDS]), iter([Fate.KEPT, fate, fate])
        journal = uncertain(STORES[store](registry.codec, tmp_path), lambda _: next(fates, Fate.KEPT))
        engine = Engine(journal, registry, FakeClock())
        await engine.start("r", ERRANDS.name, Errands(rounds=((AskAgent(agent="ada"),),), listens=True).content())
        await engine.hear("r", "hello")
        fork = await engine.fork("r", None, "f")
        assert fork.id == "f"
        heard = [one for one in await journal.read("r") if isinstance(one.event, Heard)]
        assert len(heard) == 1
        assert len(await journal.read("f")) == fork.length
        assert len((await journal.runs(RunQuery())).items) == 2
        assert await journal.verify() == []
        await journal.close()

    asyncio.run(story())


class _Away:
    """A store that loses a reply, and is then away for as long as it is told."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.is_away = False
        self.looks = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._journal, name)

    async def append(self, entry: Entry) -> None:
        if any(isinstance(one.event, Answered) for one in entry.records) and not self.looks:
            await self._journal.append(entry)
            self.is_away = True
            raise OutcomeUnknown(entry.run_id)
        await self._journal.append(entry)

    async def read(self, *args: Any, **options: Any) -> Any:
        if self.is_away:
            self.looks += 1
            raise Unreachable("The store is away.")
        return await self._journal.read(*args, **options)


TWO = ((CallTool(tool="t"),), (CallTool(tool="t"),))


def test_a_service_waits_for_its_store_and_goes_on_with_the_step_it_had(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            away = _Away(world.journal)
            world.engine.journal = away
            tools = Does(kind=Kind.UNSAFE)
            worker = await world.work({CallTool: tools}, patient=True)
            await world.start("r", *TWO)
            async with asyncio.timeout(30):
                while away.looks < 2:
                    await asyncio.sleep(0.002)
                away.is_away = False
                await worker.idle()
            assert (await world.engine.look("r")).status == "completed"
            assert [one.attempt for one in tools.asked] == [1, 1]
            assert await world.journal.held("r") == set() and await world.journal.verify() == []

    asyncio.run(story())


def test_a_process_that_does_not_wait_gives_up_and_another_goes_on(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            away = _Away(world.journal)
            world.engine.journal = away
            worker = await world.work({CallTool: Does(kind=Kind.UNSAFE)})
            await world.start("r", *TWO)
            with pytest.raises(OutcomeUnknown, match="not known whether the journal has recorded a step of 'r'"):
                async with asyncio.timeout(30):
                    await worker.idle()
        async with a_world(tmp_path / "j.db") as world:
            tools = Does(kind=Kind.UNSAFE)
            await world.work({CallTool: tools})
            assert (await world.ended("r")).status == "completed"
            assert len(tools.asked) == 1, "the first call is on record, and the second had not begun"

    asyncio.run(story())
