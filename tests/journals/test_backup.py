"""A copy of a journal, made while it is in use."""

import asyncio
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from ripstop.engine.ports import JournalIdentity, RunQuery
from ripstop.journals.memory import MemoryJournal
from ripstop.journals.sqlite.journal import SqliteJournal
from ripstop.kernel.codec import Codec
from ripstop.kernel.errors import JournalError, UsageError
from ripstop.kernel.events import Heard
from ripstop.testing.journal_entries import NOW, TOOL, Scribe, answer

WRITER = """
import asyncio, sys
from ripstop.journals.sqlite.journal import SqliteJournal
from ripstop.kernel.codec import Codec
from ripstop.kernel.events import Heard
from ripstop.testing.journal_entries import Scribe

async def main(path):
    journal, scribe = SqliteJournal(path, Codec()), Scribe()
    print("ready", flush=True)
    for number in range(100_000):
        await journal.append(scribe.start(f"other{number}"))
        await journal.append(scribe.entry(f"other{number}", Heard(text="x" * 500), after=1))

asyncio.run(main(sys.argv[1]))
"""


async def copied(path: Path) -> dict[str, int]:
    """The runs of a copy, which must be sound."""
    journal = SqliteJournal(path, Codec(), create=False)
    try:
        assert await journal.verify() == []
        page = await journal.runs(RunQuery(size=1000))
        return {info.run_id: info.length for info in page.items}
    finally:
        await journal.close()


def test_a_copy_says_that_it_is_one_and_of_which_journal(tmp_path: Path) -> None:
    async def story() -> None:
        journal = SqliteJournal(tmp_path / "j.db", Codec())
        await journal.backup(tmp_path / "unknown.db", NOW)
        await journal.identify(JournalIdentity("mine"), JournalIdentity())
        await journal.backup(tmp_path / "copy.db", NOW)
        copy = SqliteJournal(tmp_path / "copy.db", Codec(), create=False)
        await copy.backup(tmp_path / "second.db", NOW + 1)
        assert await journal.identity() == JournalIdentity("mine")
        await journal.close()
        await copy.close()
        for name, id in {"unknown.db": "", "copy.db": "mine", "second.db": "mine"}.items():
            found = SqliteJournal(tmp_path / name, Codec(), create=False)
            assert await found.identity() == JournalIdentity(id, NOW), name
            await found.close()

    asyncio.run(story())


@pytest.mark.parametrize("suffix", ["-journal", "-wal", "-shm"])
def test_nothing_beside_a_copy_becomes_a_part_of_it(tmp_path: Path, suffix: str) -> None:
    async def story() -> None:
        journal = SqliteJournal(tmp_path / "j.db", Codec())
        for name in ("copy.db", "copy.db.unfinished"):
            (tmp_path / f"{name}{suffix}").write_bytes(b"left by a crash")
        with pytest.raises(UsageError, match=f"copy.db{suffix} exists already"):
            await journal.backup(tmp_path / "copy.db", NOW)
        (tmp_path / f"copy.db{suffix}").unlink()
        await journal.backup(tmp_path / "copy.db", NOW)
        await journal.close()

    asyncio.run(story())
    assert asyncio.run(copied(tmp_path / "copy.db")) == {}
    assert [name for name in os.listdir(tmp_path) if "unfinished" in name] == []


def test_copies_a_journal_that_goes_on_by_itself(tmp_path: Path) -> None:
    async def story() -> None:
        journal, scribe = SqliteJournal(tmp_path / "j.db", Codec()), Scribe()
        worker_id = await journal.enrol(NOW)
        await journal.append(scribe.start("a", TOOL, worker_id=worker_id, begun=(2,)))
        await journal.backup(tmp_path / "copy.db", NOW)
        await journal.append(scribe.entry("a", answer(2), after=2, fence=(2, worker_id)))
        await journal.close()
        assert await copied(tmp_path / "copy.db") == {"a": 2}
        assert await copied(tmp_path / "j.db") == {"a": 3}
        assert (tmp_path / "copy.db").stat().st_mode & 0o077 == 0
        assert [name for name in os.listdir(tmp_path) if "unfinished" in name] == []

    asyncio.run(story())


def test_copies_one_moment_while_others_write(tmp_path: Path) -> None:
    path = tmp_path / "j.db"

    async def story() -> None:
        journal, scribe = SqliteJournal(path, Codec()), Scribe()
        await asyncio.gather(*(journal.append(scribe.start(f"r{number}")) for number in range(300)))
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
        try:
            assert writer.stdout is not None and writer.stdout.readline() == "ready\n"
            writing = asyncio.gather(
                *(journal.append(scribe.entry(f"r{number}", Heard(text="y" * 500), after=1)) for number in range(300))
            )
            async with asyncio.timeout(30):
                await journal.backup(tmp_path / "copy.db", NOW)
            assert writer.poll() is None, "it wrote all the time"
            await writing
        finally:
            writer.kill()
            writer.communicate()
            await journal.close()
        found = await copied(tmp_path / "copy.db")
        assert len([run for run in found if run.startswith("r")]) == 300

    asyncio.run(story())


def test_never_copies_over_something(tmp_path: Path) -> None:
    async def story() -> None:
        journal = SqliteJournal(tmp_path / "j.db", Codec())
        await journal.append(Scribe().start("a"))
        (tmp_path / "letter.txt").write_text("Dear Ann")
        (tmp_path / "link").symlink_to(tmp_path / "nowhere")
        for name in ("letter.txt", "link", "j.db"):
            with pytest.raises(UsageError, match="exists already"):
                await journal.backup(tmp_path / name, NOW)
        assert (tmp_path / "letter.txt").read_text() == "Dear Ann"
        assert not (tmp_path / "nowhere").exists()
        with pytest.raises(JournalError, match="cannot be copied") as refused:
            await journal.backup(tmp_path / "missing" / "copy.db", NOW)
        missing = tmp_path / "missing" / "copy.db"
        assert str(refused.value) == f"The journal cannot be copied to {missing}: No such file or directory."
        await journal.close()
        assert not [name for name in os.listdir(tmp_path) if "unfinished" in name]

    asyncio.run(story())


def test_a_journal_in_memory_says_that_it_cannot_be_copied(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="in memory"):
        asyncio.run(MemoryJournal(Codec()).backup(tmp_path / "copy.db", NOW))
    assert os.listdir(tmp_path) == []


def test_a_copy_holds_what_is_only_in_the_log(tmp_path: Path) -> None:
    async def story() -> None:
        journal, scribe = SqliteJournal(tmp_path / "j.db", Codec()), Scribe()
        await journal.append(scribe.start("a"))
        await journal.backup(tmp_path / "copy.db", NOW)
        await journal.close()
        with sqlite3.connect(tmp_path / "copy.db") as db:
            assert db.execute("SELECT id FROM runs").fetchall() == [("a",)]
        db.close()

    asyncio.run(story())
