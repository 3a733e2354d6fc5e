"""Room in the write-ahead log is made ahead of need, and nothing else changes."""

import asyncio
import os
import shutil
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest

from ripstop.journals.sqlite.journal import SqliteJournal
from ripstop.kernel.codec import Codec
from ripstop.kernel.events import Heard
from ripstop.testing.journal_entries import entry, start

TEXTS = [f"text {n} {'.' * 500}" for n in range(40)]


def with_steps(folder: Path, do: Callable[[SqliteJournal, Path], Coroutine[None, None, None]]) -> None:
    """A journal with a run of forty steps, each a commit of its own, while it is still open."""

    async def story() -> None:
        journal = SqliteJournal(folder / "j.db", Codec())
        await journal.append(start("a"))
        for number, text in enumerate(TEXTS, 1):
            await journal.append(entry("a", Heard(text=text), after=number))
        await do(journal, folder / "j.db-wal")
        await journal.close()

    asyncio.run(story())


async def texts_in(path: Path) -> list[str]:
    journal = SqliteJournal(path, Codec())
    assert await journal.verify() == []
    found = [record.event.text for record in await journal.read("a") if isinstance(record.event, Heard)]
    await journal.close()
    return found


def test_the_log_seldom_grows(tmp_path: Path) -> None:
    async def look(journal: SqliteJournal, log: Path) -> None:
        lengths = set()
        for number in range(len(TEXTS) + 1, len(TEXTS) + 101):
            await journal.append(entry("a", Heard(text="more"), after=number))
            lengths.add(log.stat().st_size)
        assert len(lengths) <= 5, "a hundred commits, and each would have made it longer"

    with_steps(tmp_path, look)


def test_what_a_killed_process_leaves_behind_the_last_frame_is_no_data(tmp_path: Path) -> None:
    async def look(_: SqliteJournal, log: Path) -> None:
        left = tmp_path / "left"
        left.mkdir()
        for name in ("j.db", "j.db-wal"):  # as after a kill: nobody has closed anything
            shutil.copy(tmp_path / name, left / name)
        assert log.read_bytes()[-4096:] == bytes(4096), "there is room"
        assert await texts_in(left / "j.db") == TEXTS

    with_steps(tmp_path, look)


def test_a_log_that_cannot_be_made_longer_is_written_as_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write

    def full(file: int, data: bytes) -> int:
        if os.readlink(f"/proc/self/fd/{file}").endswith("-wal"):
            raise OSError(28, "No space left on device")
        return write(file, data)

    monkeypatch.setattr("ripstop.journals.sqlite.wal_room.os.write", full)

    async def look(_: SqliteJournal, log: Path) -> None:
        assert log.read_bytes()[-4096:] != bytes(4096)

    with_steps(tmp_path, look)
    assert asyncio.run(texts_in(tmp_path / "j.db")) == TEXTS


def test_it_ends_with_the_journal(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0

    async def look(_: SqliteJournal, log: Path) -> None:
        assert log.exists()

    with_steps(tmp_path, look)
    assert not (tmp_path / "j.db-wal").exists()
    if before:
        assert len(os.listdir("/proc/self/fd")) <= before
