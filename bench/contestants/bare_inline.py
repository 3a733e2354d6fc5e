"""A limit: bare SQLite, one transaction per step, committed where it stands; no engine around it.

Same settings (WAL, synchronous=FULL), tables, indexes and rows as ripstop's journal: the records of one
real step, the run's head, one command closed and one opened. What it does not do is think: no decision, no
prompt, no hash, no lease. The tables mirror `ripstop/journals/sql/`; keep them in step.
"""

import asyncio
import sqlite3
import tempfile
import time
from pathlib import Path

from .work import Figures, Model, bytes_in, main, rate

TABLES = """
CREATE TABLE runs (key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, status TEXT NOT NULL, updated INTEGER NOT NULL,
                   length INTEGER NOT NULL, head BLOB NOT NULL);
CREATE TABLE records (position INTEGER PRIMARY KEY, run INTEGER NOT NULL, number INTEGER NOT NULL,
                      at INTEGER NOT NULL, body TEXT NOT NULL, hash BLOB NOT NULL);
CREATE UNIQUE INDEX records_by_run ON records (run, number);
CREATE TABLE outbox (run INTEGER NOT NULL, number INTEGER NOT NULL, waits TEXT NOT NULL, due INTEGER, holder INTEGER,
                     state INTEGER NOT NULL, attempt INTEGER NOT NULL, PRIMARY KEY (run, number)) WITHOUT ROWID;
CREATE INDEX outbox_due ON outbox (due) WHERE holder IS NULL AND due IS NOT NULL;
CREATE INDEX outbox_people ON outbox (run, number) WHERE waits = 'person';
"""
ADD_RECORD = "INSERT INTO records (run, number, at, body, hash) VALUES (?, ?, ?, ?, ?)"
MOVE_HEAD = (
    "UPDATE runs SET length = ?, head = ?, status = 'working', updated = ? WHERE key = ? AND length = ? "
    "AND EXISTS (SELECT 1 FROM outbox WHERE run = ? AND number = ? AND holder = 1)"
)
CLOSE = "DELETE FROM outbox WHERE run = ? AND number = ?"
OPEN = "INSERT INTO outbox (run, number, waits, due, holder, state, attempt) VALUES (?, ?, 'worker', ?, 1, 1, 1)"
HASH = bytes(range(32))


def opened(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def step_of_ripstop(size: int) -> list[str]:
    from .ripstop_engine import one_step

    with tempfile.TemporaryDirectory() as folder:
        return [body.decode() for _, body in one_step(Path(folder), size)]


class Steps:
    """Writes the rows of one step after another."""

    def __init__(self, connection: sqlite3.Connection, bodies: list[str], runs: int) -> None:
        self._db = connection
        self._bodies = bodies
        connection.executescript(TABLES)
        connection.execute("BEGIN")
        for key in range(1, runs + 1):
            connection.execute("INSERT INTO runs VALUES (?, ?, 'working', 0, 0, ?)", (key, f"run-{key}", HASH))
            connection.execute(OPEN, (key, 0, 0))
        connection.execute("COMMIT")

    def write(self, run: int, length: int) -> int:
        """Returns the new length; the command open so far is the record number `length`."""
        db, at = self._db, time.time_ns() // 1000
        last = length + len(self._bodies)
        db.execute("BEGIN IMMEDIATE")
        db.execute(MOVE_HEAD, (last, HASH, at, run, length, run, length))
        rows = [(run, number, at, body, HASH) for number, body in enumerate(self._bodies, length + 1)]
        db.executemany(ADD_RECORD, rows)
        db.execute(CLOSE, (run, length))
        db.execute(OPEN, (run, last, at))
        db.execute("COMMIT")
        return last


def concurrent(folder: Path, runs: int, steps: int, size: int = 500) -> Figures:
    model = Model(size)
    connection = opened(folder / "bare.db")
    writer = Steps(connection, step_of_ripstop(size), runs)

    async def one_run(run: int) -> None:
        length = 0
        for _ in range(steps):
            await asyncio.sleep(0)  # a real agent suspends; without this the runs would not interleave
            model.answer()
            length = writer.write(run, length)

    async def all_runs() -> None:
        await asyncio.gather(*(one_run(run) for run in range(1, runs + 1)))

    began = time.perf_counter()
    asyncio.run(all_runs())
    figures = rate(runs * steps, began)
    connection.close()
    return {**figures, "bytes": bytes_in(folder)}


def single(folder: Path, steps: int) -> Figures:
    return concurrent(folder, runs=1, steps=steps)


def size_on_disk(folder: Path, steps: int, size: int) -> Figures:
    return concurrent(folder, runs=1, steps=steps, size=size)


def growth(folder: Path, steps: int, window: int) -> Figures:
    model = Model()
    connection = opened(folder / "bare.db")
    writer = Steps(connection, step_of_ripstop(500), 1)
    length = 0
    for _ in range(steps):
        model.answer()
        length = writer.write(1, length)
    connection.close()
    return {**model.growth(window), "bytes": bytes_in(folder)}


if __name__ == "__main__":
    main({"concurrent": concurrent, "single": single, "growth": growth, "bytes": size_on_disk})
