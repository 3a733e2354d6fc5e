"""Journals that earlier versions wrote still open, fold to the same standing, and verify."""

import asyncio
import re
import sqlite3
from pathlib import Path

import pytest

from ripstop.journals.sqlite.journal import SqliteJournal
from ripstop.kernel.codec import Codec
from ripstop.kernel.effects import Answer, Command
from ripstop.kernel.events import DECISIONS, FACTS, Answered, Asked, Event
from ripstop.kernel.run import fingerprint
from ripstop.runtime.engine import Engine
from ripstop.testing import ERRAND_EVENTS, ErrandStyle, FakeClock

HERE = Path(__file__).parent
OLD = sorted(HERE.glob("v*.sql"))


def opened(dump: Path, folder: Path) -> Engine:
    db = sqlite3.connect(folder / "journal.db")
    db.executescript(dump.read_text(encoding="utf-8"))
    db.execute("PRAGMA journal_mode = WAL")
    db.close()
    journal = SqliteJournal(folder / "journal.db", Codec(ERRAND_EVENTS))
    return Engine(journal, {"errands": ErrandStyle()}, ErrandStyle.load, FakeClock())


@pytest.mark.parametrize("dump", OLD, ids=lambda dump: dump.stem)
def test_folds_to_the_standing_it_had_when_it_was_written(dump: Path, tmp_path: Path) -> None:
    recorded = dict(re.findall(r"^-- fingerprint (\S+) (\w+)$", dump.read_text(encoding="utf-8"), re.MULTILINE))
    assert len(recorded) == 5

    async def story() -> None:
        engine = opened(dump, tmp_path)
        found = {info.run_id: fingerprint((await engine.look(info.run_id)).run) for info in await engine.runs()}
        assert await engine.journal.verify() == []
        await engine.journal.close()
        assert found == recorded

    asyncio.run(story())


@pytest.mark.parametrize("dump", OLD, ids=lambda dump: dump.stem)
def test_goes_on_from_where_it_was(dump: Path, tmp_path: Path) -> None:
    async def story() -> None:
        engine = opened(dump, tmp_path)
        question = next(question for question in await engine.desk() if question.run_id == "waits")
        run = await engine.answer("waits", question.number, "yes")
        assert run.ended is not None and run.ended.outcome == "completed"
        assert await engine.journal.verify() == []
        await engine.journal.close()

    asyncio.run(story())


def test_the_newest_holds_every_kind_of_record_command_and_answer(tmp_path: Path) -> None:
    async def story() -> None:
        engine = opened(OLD[-1], tmp_path)
        events: list[Event] = []
        for info in await engine.runs():
            events += [record.event for record in await engine.journal.read(info.run_id)]
        await engine.journal.close()
        kinds = {type(event) for event in events}
        # nothing in this style warns
        assert {kind.__name__ for kind in (*FACTS, *DECISIONS)} - {kind.__name__ for kind in kinds} == {"Warned"}
        asked = {type(event.command) for event in events if isinstance(event, Asked)}
        told = {type(event.answer) for event in events if isinstance(event, Answered)}
        assert asked == set(Command.__args__)
        assert told == set(Answer.__args__)

    asyncio.run(story())


def test_a_run_that_was_missing_before_the_file_was_brought_up_to_date_is_still_missed(tmp_path: Path) -> None:
    async def story() -> None:
        db = sqlite3.connect(tmp_path / "journal.db")
        db.executescript((HERE / "v1.sql").read_text(encoding="utf-8"))
        gone = "(SELECT key FROM runs WHERE id = 'broke')"
        db.execute(f"DELETE FROM records WHERE run = {gone}")
        db.execute(f"DELETE FROM outbox WHERE run = {gone}")
        db.execute("DELETE FROM runs WHERE id = 'broke'")
        db.commit()
        db.close()
        journal = SqliteJournal(tmp_path / "journal.db", Codec(ERRAND_EVENTS))
        damage = await journal.verify()
        await journal.close()
        assert any("some are missing" in found.text for found in damage)

    asyncio.run(story())
