"""`verify` finds a changed value in any column of any table, or the column is listed here with the reason why not."""

import asyncio
import re
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from ripstop.engine.ports import Damage, JournalIdentity
from ripstop.journals.sqlite.journal import SqliteJournal
from ripstop.kernel.events import Heard
from ripstop.kernel.style import Document
from ripstop.testing.journal_entries import LATER, Scribe
from tests.journals.test_sqlite_verify import fill
from tests.old_journals.make import known
from tests.old_journals.test_old_journals import OLD, opened

TABLES = (
    *("runs", "records", "total", "blobs", "blob_uses", "outbox", "documents"),
    *("workers", "followers", "tombstones", "sqlite_sequence", "identity"),
)
UNSEEN: dict[tuple[str, str], tuple[str, str]] = {
    ("runs", "gist"): ("1", "shown in lists only; another version of the style may put it otherwise"),
    ("runs", "set_aside"): ("1", "set and cleared by workers, shown with its reason, and cleared by `ripstop work`"),
    ("outbox", "due"): ("awaits IS NOT NULL OR state = 4 OR attempt > 0", "a worker that comes early looks and waits"),
    ("outbox", "holder"): ("1", "a worker that is enrolled holds it until it leaves; any other is found"),
    ("outbox", "state"): ("attempt > 0", "that an attempt was begun is nowhere else; what cannot be is found"),
    ("outbox", "attempt"): ("1", "attempts are counted nowhere else; what cannot be is found"),
    ("blob_uses", "run"): (
        "run IN (SELECT key FROM runs WHERE fork_of IS NOT NULL)",
        "the run that it is a fork of uses the same content, and stays as long as the fork does",
    ),
    ("documents", "run"): (
        "run + 1 IN (SELECT key FROM runs)",
        "another run whose steps end with the same numbers may have projected it",
    ),
    ("documents", "collection"): ("1", "a projection: another version of the style may put it otherwise"),
    ("documents", "key"): ("1", "likewise"),
    ("workers", "id"): ("id NOT IN (SELECT holder FROM outbox WHERE holder IS NOT NULL)", "it holds nothing"),
    ("workers", "until"): ("1", "a lease, which is renewed every few seconds"),
    ("sqlite_sequence", "seq"): ("1", "a number that was skipped; one that would be used again is found"),
    ("followers", "name"): ("1", "a follower chooses its name, and one that is not known begins at the beginning"),
    ("followers", "cursor"): ("1", "how far a follower has come is nowhere else; a place that is not there is found"),
    ("tombstones", "id"): ("1", "nothing else is left of the run; what cannot be is found"),
    ("tombstones", "at"): ("1", "likewise"),
    ("tombstones", "length"): ("1", "likewise"),
    ("tombstones", "head"): ("1", "likewise"),
    ("identity", "id"): ("1", "a journal of another id is one that its user has not agreed to"),
    ("identity", "copied"): ("1", "a mark of a copy has its user asked once more; what cannot be is found"),
    ("total", "position"): ("1", "of forgotten steps only their number is bounded"),
}
"""Columns of which another possible value is not found: in which rows, and why that is harmless or cannot be helped.
Values of another type, and numbers below zero, are always found."""
WORDS = {
    "total": "started|positions|totals",
    "blobs": "content",
    "blob_uses": "content",
    "documents": "document",
    "workers": "worker",
    "followers": "follower",
    "tombstones": "tombstone|some are missing",
    "sqlite_sequence": "worker",
    "identity": "identity",
}
"""What a message about a table says; about runs, records and commands it names the run."""
MOST_ROWS = 2
"""Rows of a table in which a column is changed by `make test`; the long tests change more."""


@pytest.fixture(scope="module")
def rich(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The journal of the first fixture, with every kind of row that it does not have."""
    folder = tmp_path_factory.mktemp("rich")

    async def write() -> None:
        engine = opened(OLD[-1], folder)
        journal, scribe = engine.journal, Scribe()
        assert isinstance(journal, SqliteJournal)
        await fill(journal, scribe)
        notes = (Document("notes", "one", {"a": 1}), Document("notes", "two", [1]))
        await journal.append(scribe.start("noted", documents=notes))
        await journal.append(scribe.entry("noted", Heard(text="x"), Heard(text="y"), after=1, documents=notes[:1]))
        await journal.enrol(LATER)
        await journal.set_aside("noted", "Its style is not known.")
        await journal.keep_follower("web", await journal.cursor())
        await journal.identify(JournalIdentity("known"), JournalIdentity())
        assert await journal.verify() == []
        await journal.close()

    asyncio.run(write())
    return folder / "journal.db"


def verified(path: Path) -> list[Damage]:
    async def verify() -> list[Damage]:
        journal = SqliteJournal(path, known().registry.codec)
        try:
            return await journal.verify()
        finally:
            await journal.close()

    return asyncio.run(verify())


def columns(db: sqlite3.Connection, table: str) -> dict[str, str]:
    """The columns of a table, with their declared types."""
    return {name: kind for _, name, kind, *_ in db.execute(f"PRAGMA table_info({table})")}


def another(value: Any, kind: str) -> Any:
    """A value that could also be there."""
    match value:
        case int() | float():
            return value + 1
        case str():
            return f"{value}x"
        case bytes():
            return bytes([value[0] ^ 1, *value[1:]])
    return {"INTEGER": 1, "TEXT": "x"}[kind]


def of_another_type(kind: str) -> Any:
    return {"INTEGER": b"x", "TEXT": b"\x00", "BLOB": "x", "REAL": b"x", "": b"x"}[kind]


def unfound(rich: Path, folder: Path, table: str, most: int) -> list[str]:
    """The changes of a table that verify does not find, or does not name."""
    path = folder / "journal.db"
    shutil.copy(rich, path)
    missed = []
    db = sqlite3.connect(path, isolation_level=None)
    kinds = columns(db, table)
    rows = db.execute(f"SELECT {', '.join(kinds)} FROM {table}").fetchall()
    assert rows, f"{table} is empty, so nothing of it is tried"
    chosen = rows[:: max(1, len(rows) // most)]
    for row in chosen:
        for column, kind in kinds.items():
            value = row[list(kinds).index(column)]
            exempt, _ = UNSEEN.get((table, column), ("0", ""))
            where = " AND ".join(f"{name} IS ?" for name in kinds)
            is_exempt = db.execute(f"SELECT 1 FROM {table} WHERE {where} AND ({exempt})", row).fetchone() is not None
            tried = [
                of_another_type(kind),
                *([-1] if kind == "INTEGER" else []),
                *([] if is_exempt else [another(value, kind)]),
            ]
            for other in tried:
                try:
                    assert db.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (other, *row)).rowcount == 1
                except sqlite3.IntegrityError:  # SQLite itself does not let it be there
                    continue
                damage = verified(path)
                now = tuple(other if name == column else old for name, old in zip(kinds, row, strict=True))
                db.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (value, *now))
                named = any(
                    re.search(WORDS[table], one.text)
                    if table in WORDS
                    else one.run_id or "run" in one.text or table in one.text
                    for one in damage
                )
                if not named:
                    missed.append(f"{table}.{column} {value!r} -> {other!r}: {damage}")
    assert verified(path) == [], "every change was undone"
    db.close()
    return missed


@pytest.mark.parametrize("table", TABLES)
def test_a_changed_value_of_any_column_is_found(rich: Path, tmp_path: Path, table: str) -> None:
    assert unfound(rich, tmp_path, table, MOST_ROWS) == []


@pytest.mark.soak
@pytest.mark.parametrize("table", TABLES)
def test_a_changed_value_is_found_in_many_rows(rich: Path, tmp_path: Path, table: str) -> None:
    assert unfound(rich, tmp_path, table, 30) == []


def test_every_table_of_the_file_is_tried(rich: Path) -> None:
    with sqlite3.connect(rich) as db:
        found = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        listed = {table: set(columns(db, table)) for table in TABLES}
    db.close()
    assert found == set(TABLES)
    assert all(column in listed[table] for table, column in UNSEEN), "the list names columns that there are"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("INSERT INTO total SELECT * FROM total", "the totals are not one row"),
        ("DELETE FROM total", "the totals are not one row"),
        ("UPDATE total SET position = 100000", "positions have no step"),
        ("UPDATE tombstones SET status = 'working'", "'working' is not an outcome"),
        ("UPDATE tombstones SET length = 0", "the length is not one"),
        ("UPDATE tombstones SET head = x'00'", "the last hash is not one"),
        ("UPDATE tombstones SET id = 'a'", "the run is in the list of runs"),
        ("UPDATE documents SET body = x'7b'", "is not a document"),
        ("UPDATE documents SET number = 2", "with which no step of the run ends"),
        ("UPDATE documents SET run = 999", "belongs to a run that is not in the list"),
        ("UPDATE workers SET id = id + 50", "was never enrolled"),
        ("DELETE FROM sqlite_sequence", "was never enrolled"),
        ("UPDATE followers SET cursor = '100000'", "where no step is"),
        ("UPDATE followers SET cursor = 'x'", "where no step is"),
        ("UPDATE outbox SET state = 9 WHERE number = 27", "with the state 9, which does not exist"),
        ("UPDATE outbox SET state = 1, attempt = 0 WHERE number = 27", "begun without an attempt"),
        ("UPDATE outbox SET attempt = 9007199254740992 WHERE number = 27", "is not a number of attempts"),
        ("UPDATE outbox SET woken = 1 WHERE number = 27", "more often than a run that it awaits has ended"),
        ("UPDATE outbox SET woken = 7 WHERE awaits = 'p.3'", "more often than a run that it awaits has ended"),
        ("INSERT INTO blobs VALUES ('x', x'00')", "is not used by any run"),
        ("INSERT INTO blob_uses VALUES (999, 'x')", "is noted as used, but it or its run is not in the file"),
        ("UPDATE runs SET parent_number = 3 WHERE id = 'a'", "the list of runs has parent"),
        ("UPDATE runs SET fork_at = 3 WHERE id = 'a'", "fork_at"),
        ("UPDATE runs SET status = 'asleep' WHERE id = 'w'", "the list of runs has status 'asleep'"),
        ("UPDATE runs SET set_aside = '' WHERE id = 'w'", "the list of runs has set_aside"),
        ("UPDATE runs SET gist = x'00' WHERE id = 'w'", "a row that is not a run: 'w'"),
    ],
)
def test_what_cannot_be_is_found_and_named(rich: Path, tmp_path: Path, change: str, said: str) -> None:
    path = tmp_path / "journal.db"
    shutil.copy(rich, path)
    with sqlite3.connect(path) as db:
        assert db.execute(change).rowcount > 0
    db.close()
    assert any(said in one.text for one in verified(path)), verified(path)
