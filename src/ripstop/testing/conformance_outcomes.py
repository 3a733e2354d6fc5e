"""What every journal must do with a step that comes twice, because nobody knows whether it came the first time."""

import asyncio
from collections import Counter
from pathlib import Path

from ripstop.engine.engine import Engine
from ripstop.engine.performers import Kind, Request
from ripstop.engine.ports import Journal, RunQuery
from ripstop.engine.worker import Worker
from ripstop.kernel.effects import Answer, CallTool, Command, ToolReturned
from ripstop.kernel.errors import Conflict, JournalError
from ripstop.kernel.events import Forked, Heard
from ripstop.kernel.registry import Registry

from .clock import FakeClock
from .journal_entries import NOW, TOOL, JournalStories, Scribe, answer, story
from .stub_style import ERRANDS, Errands
from .uncertain_journal import Fate, uncertain

ROUNDS = ((TOOL,), (TOOL, TOOL), (TOOL,))


class OutcomeConformance(JournalStories):
    @story
    async def test_takes_the_same_step_once(self, journal: Journal, scribe: Scribe) -> None:
        worker_id = await journal.enrol(NOW)
        steps = [
            scribe.start("a", TOOL, worker_id=worker_id, begun=(2,)),
            scribe.entry("a", answer(2), after=2, fence=(2, worker_id)),
            scribe.entry("f", Forked(run="a", at=3), after=3, fork=("a", 3)),
            scribe.entry("f", Heard(text="x"), after=4),
        ]
        for step in steps:
            await journal.append(step)
            before = [await journal.read(run) for run in ("a", "f")], await journal.held("a"), await journal.place()
            try:
                await journal.append(step)
                raise AssertionError("it was appended twice")
            except JournalError as error:  # which of the two a store finds first does not matter
                assert isinstance(error, Conflict) or step.fence
            after = [await journal.read(run) for run in ("a", "f")], await journal.held("a"), await journal.place()
            assert after == before

    @story
    async def test_of_two_equal_steps_at_once_takes_one(self, journal: Journal, scribe: Scribe) -> None:
        step = scribe.start("a", TOOL)
        done = await asyncio.gather(*(journal.append(step) for _ in range(3)), return_exceptions=True)
        assert Counter(type(one) for one in done) == {type(None): 1, Conflict: 2}
        assert len(await journal.read("a")) == 2

    def test_a_run_over_it_loses_and_repeats_nothing_whatever_replies_are_lost(self, tmp_path: Path) -> None:
        """Every fate, at every append of a run."""
        for fate in (Fate.REPLY_LOST, Fate.REQUEST_LOST, Fate.LATE):
            for at in range(5):
                folder = tmp_path / f"{fate.name}-{at}"
                folder.mkdir()
                asyncio.run(self._run_with(folder, fate, at))

    async def _run_with(self, folder: Path, fate: Fate, at: int) -> None:
        registry, clock, appends = Registry([ERRANDS]), FakeClock(), iter(range(1000))
        journal = uncertain(self.open(registry.codec, folder), lambda _: fate if next(appends) == at else Fate.KEPT)
        engine, tools = Engine(journal, registry, clock), _Counted()
        worker = Worker(engine, {CallTool: tools})
        await worker.start()
        try:
            await engine.start("r", ERRANDS.name, Errands(rounds=ROUNDS).content())
            async with asyncio.timeout(30):
                await worker.idle()
            run = (await engine.look("r")).run
            assert run.ended is not None, f"{fate.value} at append {at}: nothing goes on"
            assert set(tools.performed.values()) == {1} and len(tools.performed) == 4
            assert await journal.held("r") == set() and await journal.verify() == []
            assert len((await journal.runs(RunQuery())).items) == 1
        finally:
            await worker.stop(grace=0)
            await journal.close()


class _Counted:
    """A performer of tools that counts how often each command is performed."""

    def __init__(self) -> None:
        self.performed: Counter[int] = Counter()

    async def perform(self, request: Request) -> Answer:
        self.performed[request.number] += 1
        return ToolReturned(value="done")

    def kind(self, command: Command) -> Kind:
        return Kind.UNSAFE

    def offers(self) -> tuple[str, ...]:
        return ("tool:hammer",)

    def provider(self, request: Request) -> str:
        return ""

    async def probe(self, request: Request) -> Answer | None:
        raise AssertionError("nothing is in doubt")
