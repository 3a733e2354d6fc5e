"""Journals that earlier versions wrote still open, fold to the same place, verify, and continue."""

import asyncio
import re
import sqlite3
from pathlib import Path

import pytest

from ripstop.engine.engine import Engine
from ripstop.engine.ports import RunQuery
from ripstop.journals.sqlite.journal import SqliteJournal
from ripstop.kernel.effects import ANSWER_TO, AskPerson, PersonAnswered
from ripstop.kernel.events import KERNEL_EVENTS, Answered, Asked
from ripstop.kernel.run import fingerprint
from ripstop.testing import FakeClock
from tests.old_journals.make import known

OLD = sorted(Path(__file__).parent.glob("format*.sql"))
EVERY = RunQuery(size=1000)
dumps = pytest.mark.parametrize("dump", OLD, ids=lambda dump: dump.stem)


def opened(dump: Path, folder: Path) -> Engine:
    db = sqlite3.connect(folder / "journal.db")
    db.executescript(dump.read_text(encoding="utf-8"))
    db.execute("PRAGMA journal_mode = WAL")
    db.close()
    registry = known().registry
    return Engine(SqliteJournal(folder / "journal.db", registry.codec), registry, FakeClock())


@dumps
def test_folds_to_where_it_was_when_it_was_written(dump: Path, tmp_path: Path) -> None:
    recorded = dict(re.findall(r"^-- fingerprint (\S+) (\w+)$", dump.read_text(encoding="utf-8"), re.MULTILINE))
    assert len(recorded) > 10

    async def story() -> None:
        engine = opened(dump, tmp_path)
        infos = (await engine.runs(EVERY)).items
        found = {info.run_id: fingerprint((await engine.look(info.run_id)).run) for info in infos}
        assert await engine.journal.verify() == []
        await engine.journal.close()
        assert found == recorded

    asyncio.run(story())


@dumps
def test_continues_from_where_it_was(dump: Path, tmp_path: Path) -> None:
    async def story() -> None:
        engine = opened(dump, tmp_path)
        number = next(n for n, o in (await engine.look("waits")).run.open.items() if isinstance(o.command, AskPerson))
        await engine.tell("waits", Answered(to=number, answer=PersonAnswered(text="Well.")))
        assert number not in (await engine.look("waits")).run.open
        assert await engine.journal.verify() == []
        await engine.journal.close()

    asyncio.run(story())


def test_the_newest_fixture_holds_every_kernel_event_command_and_answer(tmp_path: Path) -> None:
    async def story() -> tuple[set[type], set[type], set[type]]:
        engine = opened(OLD[-1], tmp_path)
        events = [
            record.event
            for info in (await engine.runs(EVERY)).items
            for record in await engine.journal.read(info.run_id)
        ]
        await engine.journal.close()
        commands = {type(event.command) for event in events if isinstance(event, Asked)}
        answers = {type(event.answer) for event in events if isinstance(event, Answered)}
        return {type(event) for event in events}, commands, answers

    events, commands, answers = asyncio.run(story())
    assert not set(KERNEL_EVENTS) - events
    assert not set(ANSWER_TO) - commands
    assert not set(ANSWER_TO.values()) - answers
