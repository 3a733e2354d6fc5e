"""A process keeps its own time, and time never runs backwards in a journal."""

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from ripstop.app import application
from ripstop.app.application import App
from ripstop.app.plugin import Plugin
from ripstop.app.plugins import Plugins
from ripstop.app.settings.settings_file import Models, Settings
from ripstop.app.stores import open_engine
from ripstop.engine.clock import LAST_YEAR, ProcessClock, elapsed_time, system_time
from ripstop.engine.engine import Engine
from ripstop.engine.performers import Request, TimerPerformer
from ripstop.engine.worker import Worker
from ripstop.journals.sqlite.journal import SqliteJournal
from ripstop.kernel.effects import AskAgent, CallTool, Limits, SetTimer, ToolReturned
from ripstop.kernel.events import Answered
from ripstop.testing import Errands, FakeClock
from tests.engine.world import CODEC, REGISTRY, Does

SECOND = 1_000_000
HOUR, YEAR = 3600, 365 * 24 * 3600
TOOL = CallTool(tool="t")


class Machine:
    """A machine whose clock a test can set; elapsed time is real unless a test makes it pass."""

    def __init__(self) -> None:
        self.elapsed = FakeClock(0.0)
        self.set_by = 0.0

    def system(self) -> int:
        return self.elapsed() + round((1_800_000_000 + self.set_by) * SECOND)

    def process(self) -> ProcessClock:
        return ProcessClock(self.system, self.elapsed)


def test_setting_the_systems_clock_does_not_move_a_process(caplog: pytest.LogCaptureFixture) -> None:
    machine = Machine()
    clock = machine.process()
    before = clock()
    for by in (-HOUR, YEAR):
        machine.set_by += by
        assert clock() == before
    machine.elapsed.pass_by(5)
    assert clock() == before + 5 * SECOND
    assert [record.args for record in caplog.records] == [("-3600",), (f"{YEAR}",)], "said once each"


def test_a_small_correction_of_the_clock_is_not_worth_a_word(caplog: pytest.LogCaptureFixture) -> None:
    machine = Machine()
    clock = machine.process()
    machine.set_by = 59
    clock()
    clock.follow(clock() + 59 * SECOND)
    clock()
    assert caplog.records == []


def test_a_clock_is_never_behind_what_it_follows(caplog: pytest.LogCaptureFixture) -> None:
    machine = Machine()
    clock = machine.process()
    latest = clock() + HOUR * SECOND
    clock.follow(latest)
    clock.follow(latest - SECOND)
    assert clock() == latest
    machine.elapsed.pass_by(5)
    assert clock() == latest + 5 * SECOND
    (warning,) = caplog.records
    assert "3600 s behind the journal" in warning.getMessage()


def test_a_time_that_cannot_be_is_not_followed() -> None:
    clock = Machine().process()
    before = clock()
    clock.follow(LAST_YEAR)
    clock.follow(2**63 - 1)
    assert clock() == before


def test_the_clock_of_a_process_begins_with_the_systems_time() -> None:
    before, elapsed, clock = system_time(), elapsed_time(), ProcessClock()
    assert before <= clock() <= system_time() + SECOND
    assert elapsed_time() >= elapsed


# Over a restart


async def opened(path: Path, clock: ProcessClock, *performers: tuple[type, Any]) -> tuple[Engine, Worker]:
    journal = SqliteJournal(path, CODEC)
    clock.follow(await journal.latest())
    engine = Engine(journal, REGISTRY, clock, follow=clock.follow)
    worker = Worker(engine, dict(performers))
    await worker.start()
    return engine, worker


async def closed(engine: Engine, worker: Worker) -> None:
    await worker.stop(grace=0)
    await engine.journal.close()


def test_a_timer_is_not_late_because_the_clock_was_set_back(tmp_path: Path) -> None:
    machine = Machine()

    async def story() -> None:
        engine, worker = await opened(tmp_path / "j.db", machine.process())
        await engine.start("r", "errands", Errands(rounds=((SetTimer(name="tea", after=20),),)).content())
        await closed(engine, worker)
        machine.set_by -= YEAR
        engine, worker = await opened(tmp_path / "j.db", machine.process(), (SetTimer, TimerPerformer()))
        machine.elapsed.pass_by(20)
        worker.wake()
        async with asyncio.timeout(25):
            while not (await engine.look("r")).run.ended:
                await asyncio.sleep(0.01)
        times = [record.at for record in await engine.journal.read("r")]
        assert times == sorted(times)
        await closed(engine, worker)

    asyncio.run(story())


def test_the_lease_of_a_dead_worker_is_not_prolonged_by_a_clock_set_back(tmp_path: Path) -> None:
    machine = Machine()

    async def story() -> None:
        journal = SqliteJournal(tmp_path / "j.db", CODEC)
        worker_id = await journal.enrol(machine.system())
        machine.elapsed.pass_by(500)
        assert await journal.heartbeat(worker_id, machine.system())
        machine.set_by -= YEAR
        clock = machine.process()
        clock.follow(await journal.latest())
        machine.set_by += YEAR
        assert clock() == machine.system(), "the last sign of life is the latest time"
        await journal.close()

    asyncio.run(story())


def test_processes_with_different_clocks_write_times_in_order(tmp_path: Path) -> None:
    machine = Machine()

    async def story() -> None:
        first, one = await opened(tmp_path / "j.db", machine.process())
        await first.start("r", "errands", Errands(listens=True, outcome="").content())
        machine.set_by += HOUR
        second, two = await opened(tmp_path / "j.db", machine.process())
        for engine in (second, first, second, first):
            await engine.hear("r", "hello")
            machine.elapsed.pass_by(1)
        times = [record.at for record in await first.journal.read("r")]
        assert times == sorted(times)
        assert times[-1] - times[0] >= HOUR * SECOND
        await closed(first, one)
        await closed(second, two)

    asyncio.run(story())


def test_a_clock_set_forward_by_a_year_does_not_end_a_run_by_its_seconds(tmp_path: Path) -> None:
    machine = Machine()

    async def for_ever(_: Request) -> None:
        await asyncio.Event().wait()

    async def story() -> None:
        slow, limits = Does(for_ever), Limits(seconds=60)
        engine, worker = await opened(tmp_path / "j.db", machine.process(), (AskAgent, slow))
        rounds = ((AskAgent(agent="ada"),), (TOOL,))
        await engine.start("r", "errands", Errands(rounds=rounds).content(), limits=limits)
        machine.elapsed.pass_by(2)
        await closed(engine, worker)
        machine.set_by += YEAR
        quick = Does(lambda _: ToolReturned(value="done"))
        performers = ((AskAgent, quick), (CallTool, quick), (SetTimer, TimerPerformer()))
        engine, worker = await opened(tmp_path / "j.db", machine.process(), *performers)
        async with asyncio.timeout(25):
            while not (run := (await engine.look("r")).run).ended:
                await asyncio.sleep(0.01)
        assert run.ended.outcome == "completed"
        facts = [record.event for record in await engine.journal.read("r")]
        assert any(isinstance(fact, Answered) and fact.began for fact in facts), "that it was interrupted is on record"
        await closed(engine, worker)

    asyncio.run(story())


WORKFLOW = Path(__file__).resolve().parents[2] / "examples" / "haiku"


def test_resume_does_not_wait_for_a_clock_that_was_set_back(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """As a user meets it: the next process opens the journal, says it, and works at once."""
    machine, ahead = Machine(), Machine()
    ahead.set_by = HOUR
    settings = Settings(
        store=f"sqlite:{tmp_path / 'j.db'}", models=Models(default=f"script:{WORKFLOW / 'script.jsonl'}")
    )

    async def story() -> None:
        async with App(settings, scope=None, clock=ahead.process()) as app:
            run = await app.start(WORKFLOW, workspace=tmp_path / "files")
        with caplog.at_level(logging.WARNING, "ripstop.clock"):
            async with App(settings, clock=machine.process()) as app, asyncio.timeout(30):
                while not (await app.engine.look(run.id)).run.ended:
                    await asyncio.sleep(0.01)
        assert "behind the journal" in caplog.text
        async with open_engine(settings, clock=machine.process()) as engine:
            times = [record.at for record in await engine.journal.read(run.id)]
            assert times == sorted(times)

    asyncio.run(story())


class TimedJournal(SqliteJournal):
    """A store with a clock of its own, as one on another machine has."""

    time = FakeClock()

    @property
    def clock(self) -> FakeClock:
        return self.time


def test_worker_and_engine_of_an_app_go_by_the_clock_of_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    time = TimedJournal.time
    plugins = Plugins([Plugin(name="errands", kits=("ripstop.testing:ERRANDS",))])
    monkeypatch.setattr(
        application, "open_journal", lambda *_, codec, **__: TimedJournal(tmp_path / "j.db", codec, create=True)
    )

    async def story() -> None:
        async with App(Settings(store=f"sqlite:{tmp_path / 'j.db'}"), plugins=plugins) as app:
            began = time()
            await app.engine.start("r", "errands", Errands(rounds=((SetTimer(name="tea", after=HOUR),),)).content())
            time.pass_by(HOUR)  # this machine's clock says that no time has passed
            app.worker.wake()
            async with asyncio.timeout(10):
                while not (await app.look("r")).run.ended:
                    await asyncio.sleep(0.01)
            records = await app.engine.journal.read("r")
            assert [record.at - began for record in (records[0], records[-1])] == [0, HOUR * SECOND]
            assert app.worker.worker_id and await app.engine.has_workers()
            time.pass_by(31)  # a lease is 30 s, and a sign of life comes every 10 s, by the same clock
            app.worker.wake()
            async with asyncio.timeout(10):
                while await app.engine.journal.latest() != time():
                    await asyncio.sleep(0.01)

    asyncio.run(story())
