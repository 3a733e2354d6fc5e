"""A limit: bare SQLite, one transaction per step, committed where it stands; no engine around it.

It executes the very statements that ripstop executes, with the same values: first ripstop does the work and every
statement inside a transaction is noted, then, timed, they are executed again on a fresh file (WAL,
synchronous=FULL), with nothing in between. So it does the same commits by construction, whatever the journal's
tables look like. In the first pass runs follow one another, so that every step has a commit of its own.
"""

import asyncio
import sqlite3
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from ripstop.engine.engine import Engine
from ripstop.engine.worker import Worker
from ripstop.journals.sqlite.file import BoundedConnection
from ripstop.journals.sqlite.journal import SqliteJournal
from ripstop.kernel.codec import Codec

from .ripstop_engine import ping_pong, with_engine
from .work import Figures, Log, Model, bytes_in, growth_of, main


class Statement(NamedTuple):
    sql: str
    values: Any
    many: bool


Transaction = list[Statement]


class Noting(BoundedConnection):
    """Does what it is told, and notes it."""

    noted: list[Transaction] = []

    def execute(self, sql: str, values: Any = ()) -> sqlite3.Cursor:
        if sql == "BEGIN IMMEDIATE":
            self.noted.append([])
        elif self.in_transaction and sql != "COMMIT" and self.noted:
            self.noted[-1].append(Statement(sql, values, many=False))
        elif sql.startswith("PRAGMA synchronous"):
            sql = "PRAGMA synchronous = OFF"  # this pass is not timed
        return super().execute(sql, values)

    def executemany(self, sql: str, values: Iterable[Any]) -> sqlite3.Cursor:
        rows = list(values)
        self.noted[-1].append(Statement(sql, rows, many=True))
        return super().executemany(sql, rows)


def transactions(runs: int, steps: int, size: int) -> list[Transaction]:
    async def work(engine: Engine, worker: Worker) -> Figures:
        for run in range(runs):
            await engine.start(f"run-{run}", "graph", ping_pong(steps))
            await worker.idle()
        return {}

    with tempfile.TemporaryDirectory() as folder:
        with mock.patch("ripstop.journals.sqlite.file.BoundedConnection", Noting):
            with_engine(Path(folder), Model(size), work)
    assert len(Noting.noted) > runs * steps, len(Noting.noted)
    return Noting.noted


async def made(path: Path) -> None:
    await SqliteJournal(path, Codec()).close()


def again(folder: Path, noted: list[Transaction], log: Log | None = None) -> list[float]:
    """Execute everything once more on a fresh journal. Returns when each transaction began."""
    asyncio.run(made(folder / "bare.db"))
    connection = sqlite3.connect(folder / "bare.db", isolation_level=None)
    connection.execute("PRAGMA synchronous = FULL")
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    began = []
    for transaction in noted:
        began.append(time.perf_counter())
        if log:
            log.note()
        connection.execute("BEGIN IMMEDIATE")
        for sql, values, many in transaction:
            if many:
                connection.executemany(sql, values)
            else:
                connection.execute(sql, values).fetchone()
        connection.execute("COMMIT")
    began.append(time.perf_counter())
    connection.close()
    return began


def concurrent(folder: Path, runs: int, steps: int, size: int = 500) -> Figures:
    began = again(folder, transactions(runs, steps, size))
    return {"steps_per_second": runs * steps / (began[-1] - began[0]), "bytes": bytes_in(folder)}


def single(folder: Path, steps: int) -> Figures:
    return concurrent(folder, runs=1, steps=steps)


def size_on_disk(folder: Path, steps: int, size: int) -> Figures:
    return concurrent(folder, runs=1, steps=steps, size=size)


def growth(folder: Path, steps: int, window: int) -> Figures:
    log = Log(folder / "bare.db")
    began = again(folder, transactions(1, steps, 500), log)
    return {**growth_of(began, window, log), "bytes": bytes_in(folder), "steps": float(steps)}


if __name__ == "__main__":
    main({"concurrent": concurrent, "single": single, "growth": growth, "bytes": size_on_disk})
