"""Two limits: group commit and nothing else. A step is two events of 500 to 600 bytes, and no outbox.

`LoopTurn`: all steps that became ready in one turn of the event loop share one commit, on the loop.
`WriterThread`: a thread takes everything that is queued, commits it once, and lets all of it go on.
WAL, synchronous=FULL, as everywhere.
"""

import asyncio
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from .work import Figures, Model, bytes_in, main, rate

TABLES = """
CREATE TABLE events (position INTEGER PRIMARY KEY, run INTEGER NOT NULL, number INTEGER NOT NULL, body BLOB NOT NULL);
CREATE UNIQUE INDEX events_by_run ON events (run, number);
"""
ADD = "INSERT INTO events (run, number, body) VALUES (?, ?, ?)"
Row = tuple[int, int, bytes]


class Note(msgspec.Struct):
    type: str
    state: str
    step: int
    at: float
    text: str


class Pending(NamedTuple):
    rows: list[Row]
    durable: "asyncio.Future[None]"


class Store(Protocol):
    def append(self, rows: list[Row]) -> "asyncio.Future[None]": ...

    def close(self) -> None: ...


def opened(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.executescript(TABLES)
    return connection


def commit(connection: sqlite3.Connection, batch: list[Pending]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany(ADD, [row for pending in batch for row in pending.rows])
    connection.execute("COMMIT")


def let_go(batch: list[Pending]) -> None:
    for pending in batch:
        pending.durable.set_result(None)


class LoopTurn:
    def __init__(self, path: Path) -> None:
        self._loop = asyncio.get_running_loop()
        self._connection = opened(path)
        self._batch: list[Pending] = []

    def append(self, rows: list[Row]) -> "asyncio.Future[None]":
        durable: asyncio.Future[None] = self._loop.create_future()
        if not self._batch:
            self._loop.call_soon(self._flush)
        self._batch.append(Pending(rows, durable))
        return durable

    def _flush(self) -> None:
        batch, self._batch = self._batch, []
        commit(self._connection, batch)
        let_go(batch)

    def close(self) -> None:
        self._connection.close()


class WriterThread:
    def __init__(self, path: Path) -> None:
        self._loop = asyncio.get_running_loop()
        self._connection = opened(path)
        self._queue: queue.SimpleQueue[Pending | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write)
        self._thread.start()

    def append(self, rows: list[Row]) -> "asyncio.Future[None]":
        durable: asyncio.Future[None] = self._loop.create_future()
        self._queue.put(Pending(rows, durable))
        return durable

    def _write(self) -> None:
        while (pending := self._queue.get()) is not None:
            batch = [pending]
            # only this thread takes things out, so what is not empty now can be taken
            while not self._queue.empty() and (more := self._queue.get()) is not None:
                batch.append(more)
            commit(self._connection, batch)
            self._loop.call_soon_threadsafe(let_go, batch)

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join()
        self._connection.close()


async def one_run(store: Store, model: Model, run: int, steps: int) -> None:
    encode: Callable[[Any], bytes] = msgspec.json.encode
    state, padding = "ping", "." * 440
    for step in range(steps):
        await asyncio.sleep(0)  # a real agent suspends
        answer = model.answer()
        at = time.time()
        began = encode(Note("began", state, step, at, padding))
        ended = encode(Note("ended", state, step, at, answer))
        await store.append([(run, 2 * step, began), (run, 2 * step + 1, ended)])
        state = "pong" if state == "ping" else "ping"


def concurrent(folder: Path, runs: int, steps: int, kind: Callable[[Path], Store] = LoopTurn) -> Figures:
    async def all_runs() -> Figures:
        store, model = kind(folder / "bare.db"), Model()
        began = time.perf_counter()
        await asyncio.gather(*(one_run(store, model, run, steps) for run in range(runs)))
        figures = rate(runs * steps, began)
        store.close()
        return figures

    return {**asyncio.run(all_runs()), "bytes": bytes_in(folder)}


def single(folder: Path, steps: int) -> Figures:
    return concurrent(folder, runs=1, steps=steps)


def concurrent_thread(folder: Path, runs: int, steps: int) -> Figures:
    return concurrent(folder, runs, steps, WriterThread)


def single_thread(folder: Path, steps: int) -> Figures:
    return concurrent(folder, 1, steps, WriterThread)


if __name__ == "__main__":
    main(
        {
            "concurrent": concurrent,
            "single": single,
            "concurrent-thread": concurrent_thread,
            "single-thread": single_thread,
        }
    )
