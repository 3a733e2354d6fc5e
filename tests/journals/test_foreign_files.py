"""A journal that somebody else has made or changed: refused with the name of what is wrong, and never endless."""

import asyncio
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from ripstop.engine.ports import Damage
from ripstop.journals.sqlite import file as bounded
from ripstop.journals.sqlite.group_commit import WriteQueue
from ripstop.journals.sqlite.journal import SqliteJournal
from ripstop.kernel.codec import Codec
from ripstop.kernel.errors import JournalError, JournalNotFound
from ripstop.testing.journal_entries import Scribe
from tests.harness.foreign_folder import rollback_journal

SCRIBE = Scribe()
ENDLESS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"


def journal(path: Path, *runs: str) -> Path:
    async def write() -> None:
        opened = SqliteJournal(path, Codec())
        for run in runs or ("a",):
            await opened.append(SCRIBE.start(run))
        await opened.close()

    asyncio.run(write())
    return path


def tampered(path: Path, *statements: str) -> Path:
    db = sqlite3.connect(journal(path))
    for statement in statements:
        db.execute(statement)
    db.commit()
    db.close()
    return path


@pytest.mark.parametrize(
    ("statements", "named"),
    [
        (["CREATE TRIGGER t AFTER INSERT ON records BEGIN DELETE FROM runs; END"], "the trigger 't'"),
        ([f"CREATE VIEW v AS {ENDLESS}"], "the view 'v'"),
        (["CREATE TABLE notes (text)"], "the table 'notes'"),
        (["CREATE INDEX extra ON records (at)"], "the index 'extra'"),
        (["ALTER TABLE runs ADD COLUMN more TEXT"], "its table 'runs'"),
        (["DROP INDEX outbox_due"], "the index 'outbox_due' is missing"),
        (["DROP TABLE runs", f"CREATE VIEW runs AS {ENDLESS}"], "the view 'runs'"),
        (
            ["DROP INDEX outbox_due", "CREATE INDEX outbox_due ON outbox (due) WHERE due > 5"],
            "outbox_due",
        ),
        (['CREATE TABLE "\x1b[31m" (a)'], r"\\x1b"),
        (["PRAGMA user_version = -5"], "its journal version is -5, and versions begin with 1"),
        (["PRAGMA user_version = -1"], "its journal version is -1"),
        (["PRAGMA user_version = 0"], "its journal version is 0, as in an empty file, but it has tables"),
    ],
)
def test_an_object_that_is_not_ours_is_named_and_nothing_is_read(
    tmp_path: Path, statements: list[str], named: str
) -> None:
    path = tampered(tmp_path / "j.db", *statements)
    before = path.read_bytes()
    for create in (True, False):
        with pytest.raises(JournalError, match="is not a journal as ripstop writes it") as caught:
            SqliteJournal(path, Codec(), create)
        assert named.replace("\\\\", "\\") in str(caught.value)
    assert path.read_bytes() == before


def test_an_empty_database_is_not_a_journal_yet(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    with sqlite3.connect(path) as db:
        db.executescript("CREATE TABLE gone (a); DROP TABLE gone")
    db.close()
    with pytest.raises(JournalNotFound, match="is empty: it does not hold a journal yet"):
        SqliteJournal(path, Codec(), create=False)
    journal(path)
    assert asyncio.run(_runs(path)) == ["a"]


def test_an_empty_database_with_a_negative_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = -1")
    db.close()
    before = path.read_bytes()
    for create in (True, False):
        with pytest.raises(JournalError, match="its journal version is -1"):
            SqliteJournal(path, Codec(), create)
    assert path.read_bytes() == before


def test_a_definition_that_is_not_text_is_damage(tmp_path: Path) -> None:
    path = journal(tmp_path / "j.db")
    data = path.read_bytes()
    assert data.count(b"alive at least") == 1
    path.write_bytes(data.replace(b"alive at least", b"\xff" * 14))
    with pytest.raises(JournalError, match="is damaged so badly that it cannot be opened") as refused:
        SqliteJournal(path, Codec())
    assert "\n" not in str(refused.value)


def test_comments_and_spaces_in_a_definition_make_no_difference(tmp_path: Path) -> None:
    path = journal(tmp_path / "j.db")
    db = sqlite3.connect(path)
    db.execute("PRAGMA writable_schema = ON")
    db.execute("UPDATE sqlite_master SET sql = replace(sql, '(', '( -- a note\n  ') WHERE name = 'workers'")
    db.commit()
    db.close()
    assert asyncio.run(_runs(path)) == ["a"]


@pytest.mark.parametrize("made_by", ["nobody", "ripstop", "somebody"])
@pytest.mark.parametrize("create", [True, False])
def test_no_rollback_journal_is_played_back(tmp_path: Path, made_by: str, create: bool) -> None:
    path, precious = tmp_path / "j.db", tmp_path / "precious"
    precious.write_text("precious")
    if made_by == "ripstop":
        journal(path)
    elif made_by == "somebody":
        path.write_bytes(b"x" * 4096)
    (tmp_path / "j.db-journal").write_bytes(rollback_journal(precious))
    before = contents(tmp_path)
    for opened in (path, tmp_path / "link"):
        if opened != path:
            opened.symlink_to(path)
        with pytest.raises(JournalError, match=r"j\.db-journal is there") as refused:
            SqliteJournal(opened, Codec(), create)
        assert "Remove it" in str(refused.value)
    (tmp_path / "link").unlink()
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    ("what", "suffix"),
    [
        (what, suffix)
        for what in ("pipe", "folder", "link", "hard link")
        for suffix in ("", "-wal", "-shm")
        if what != "link" or suffix  # the journal itself may be behind a link that its user names
    ],
)
def test_a_file_that_leads_elsewhere_is_not_opened(tmp_path: Path, what: str, suffix: str) -> None:
    path, elsewhere = journal(tmp_path / "j.db"), tmp_path / "elsewhere"
    part = path.with_name(f"{path.name}{suffix}")
    elsewhere.write_bytes(path.read_bytes())
    part.unlink(missing_ok=True)
    make: dict[str, Callable[[], None]] = {
        "pipe": lambda: os.mkfifo(part),
        "folder": part.mkdir,
        "link": lambda: part.symlink_to(elsewhere),
        "hard link": lambda: part.hardlink_to(elsewhere),
    }
    make[what]()
    before = contents(tmp_path)
    for create in (True, False):
        with pytest.raises(JournalError, match=r"hard link|not a plain file|is a folder"):
            SqliteJournal(path, Codec(), create)
    assert contents(tmp_path) == before


def test_a_journal_is_made_without_a_file_beside_it_that_would_be_refused(tmp_path: Path) -> None:
    (tmp_path / "j.db-journal").mkdir()  # SQLite cannot make a rollback journal here
    with closing(sqlite3.connect(tmp_path / "j.db", isolation_level=None)) as db:
        with pytest.raises(sqlite3.OperationalError):
            db.execute("PRAGMA journal_mode = WAL")
        bounded.use_wal(db)
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_copy_without_a_log_gets_one_when_it_is_worked_on(tmp_path: Path) -> None:
    with closing(sqlite3.connect(journal(tmp_path / "first.db"))) as db:
        db.execute("VACUUM INTO ?", (str(tmp_path / "j.db"),))
    before = (tmp_path / "j.db").read_bytes()
    assert asyncio.run(_runs(tmp_path / "j.db")) == ["a"]
    assert (tmp_path / "j.db").read_bytes() == before
    journal(tmp_path / "j.db", "b")
    with closing(sqlite3.connect(tmp_path / "j.db")) as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)


@pytest.mark.parametrize("what", ["link", "folder"])
def test_the_lock_of_a_worker_leads_nowhere_else(tmp_path: Path, what: str) -> None:
    path, elsewhere = journal(tmp_path / "j.db"), tmp_path / "elsewhere"
    for number in (1, 9):  # one that is made next, and one that is left of a dead one
        lock = tmp_path / f"j.db-worker-{number}"
        lock.symlink_to(elsewhere) if what == "link" else lock.mkdir()

    async def story() -> None:
        opened = SqliteJournal(path, Codec())
        with pytest.raises(JournalError, match=r"j\.db-worker-1, the lock of a worker, cannot be made: .* remove it"):
            await opened.enrol(1)
        assert await opened.enrol(2) == 2
        await opened.close()

    asyncio.run(story())
    assert not elsewhere.exists()


def test_the_queue_for_writing_leads_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "j.db-queue").symlink_to(tmp_path / "elsewhere")
    with WriteQueue(tmp_path / "j.db").passing():
        assert not (tmp_path / "elsewhere").exists()


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        path.name: (path.lstat().st_mode, path.read_bytes() if path.is_file() else b"") for path in folder.iterdir()
    }


async def _runs(path: Path) -> list[str]:
    opened = SqliteJournal(path, Codec())
    try:
        return [info.run_id for info in (await opened.runs()).items]
    finally:
        await opened.close()


def test_a_query_ends_when_it_needs_more_than_the_file_can(tmp_path: Path) -> None:
    db = sqlite3.connect(journal(tmp_path / "j.db"), factory=bounded.BoundedConnection)
    db.bound(tmp_path / "j.db")
    with pytest.raises(sqlite3.OperationalError, match="interrupted"):
        sum(1 for _ in db.rows(f"SELECT count(*) FROM ({ENDLESS})"))
    with pytest.raises(sqlite3.DatabaseError, match="more is read than the file can hold"):
        sum(1 for _ in db.rows(f"SELECT hex(zeroblob(9000000)) FROM ({ENDLESS})"))
    with pytest.raises(sqlite3.DataError):
        list(db.rows("SELECT zeroblob(200000000)"))
    assert list(db.rows("SELECT count(*) FROM runs")) == [(1,)]
    db.close()


def test_pages_that_name_the_same_page_again_and_again_end(tmp_path: Path) -> None:
    """Interior pages whose cells all name one child make a few pages look like billions of rows."""
    path = journal(tmp_path / "j.db", *(f"r{number}" for number in range(500)))
    db = sqlite3.connect(path)
    (root,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'records'").fetchone()
    (size,) = db.execute("PRAGMA page_size").fetchone()
    db.close()
    data = bytearray(path.read_bytes())
    page = bytes(data[(root - 1) * size : root * size])
    assert page[0] == 5, "an interior page"
    cells = int.from_bytes(page[3:5])
    leaf = page[8:12]
    for _ in range(6):  # six more levels, each a copy whose cells all name the level below
        below = len(data) // size + 1
        level = bytearray(page)
        level[8:12] = leaf
        for cell in range(cells):
            at = int.from_bytes(page[12 + 2 * cell : 14 + 2 * cell])
            level[at : at + 4] = leaf
        data += level
        leaf = below.to_bytes(4)
    data[(root - 1) * size : root * size] = data[-size:]
    data[28:32] = (len(data) // size).to_bytes(4)
    path.write_bytes(data)

    async def verify() -> list[Damage]:
        opened = SqliteJournal(path, Codec(), create=False)
        try:
            return await opened.verify()
        finally:
            await opened.close()

    assert any("cannot be read" in found.text or "damaged" in found.text for found in asyncio.run(verify()))
