"""Group commit: everything queued goes into one transaction, one fsync, then all futures resolve.

Where the commit runs follows from what it costs. While a commit is quick it runs on the event loop,
once per turn of the loop: no thread to hop to, so a lone run is fast, and all runs that became ready
in that turn share it. When the disk is slow, or another process has the lock, it runs on a writer
thread instead, so that token streams and timers do not stall; what arrives meanwhile is the next batch.
"""

import asyncio
import fcntl
import os
import random
import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ripstop.engine.failpoints import failpoint
from ripstop.kernel.errors import JournalError
from ripstop.security.files import PRIVATE_FILE

from .file import LOCK_TIMEOUT, BoundedConnection, primary_code, use_wal

# A queue for those who wait for the journal's write lock, so that each gets its turn.
#
# SQLite has no queue: the process that asks at the right moment gets the lock, and with many processes one can starve.
# So a process that had to wait once queues at a lock of the kernel's, which serves them in order; only the first in the
# queue asks SQLite. A process that gets SQLite's lock at the first attempt never comes here.
#
# The file stays: deleting it would let two wait at two files of one name. Where the folder cannot be written to, or has
# a link of that name, which a project can ship, there is no queue, and every process asks SQLite.


class WriteQueue:
    def __init__(self, journal: Path) -> None:
        self._path = journal.with_name(f"{journal.name}-queue")

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Wait until all earlier callers have passed. Blocks, so call it in its own thread."""
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(self._path, flags, PRIVATE_FILE)
        except OSError:
            yield
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


Operation = Callable[..., Any]
"""Runs inside the transaction, with the connection and what it was submitted with. What it returns, or raises, is its
own result. It may run a second time, in a new transaction, if the first one was rolled back."""
Pending = tuple[Operation, tuple[Any, ...], "asyncio.Future[Any]"]

SLOW = 0.020
"""Seconds. A commit that takes longer than this, on average, moves to the writer thread."""
QUICK = 0.010
"""Seconds. It comes back to the loop when the average has fallen below this."""


class GroupCommit:
    def __init__(
        self,
        connection: BoundedConnection,
        write_queue: WriteQueue,
        write_collected: Callable[[], None],
        after_commit: Callable[[bool], None],
        explain: Callable[[sqlite3.Error], JournalError],
        check_in_place: Callable[[], None],
    ) -> None:
        """`write_collected` writes what operations left to be written together. If it or one of them raises something
        other than an SQLite error, all are undone and repeated one by one, so that only that one fails.

        `check_in_place` raises if what was committed is lost all the same: the file is not at its path any more."""
        self._connection = connection
        self._write_queue = write_queue
        self._write_collected = write_collected
        self._after_commit = after_commit
        self._explain = explain
        self._check_in_place = check_in_place
        self._loop: asyncio.AbstractEventLoop
        self._queue: list[Pending] = []
        self._scheduled = False
        self._cost = 0.0
        self._threaded = False
        self._under_way: asyncio.Future[Any] | None = None
        self._writer: ThreadPoolExecutor | None = None
        self.commits = 0

    def submit(self, operation: Operation, *given: Any) -> "asyncio.Future[Any]":
        if not self._queue:  # the first of a batch; asking which loop runs is a call to the system
            self._loop = asyncio.get_running_loop()
        future = self._loop.create_future()
        self._queue.append((operation, given, future))
        if not self._scheduled and self._under_way is None:
            self._scheduled = True
            self._loop.call_soon(self._flush)
        return future

    async def drain(self) -> None:
        """Return when nothing is queued or under way."""
        while self._queue or self._under_way:
            if self._under_way:
                await asyncio.wait([self._under_way])
            await asyncio.sleep(0)

    @property
    def elsewhere(self) -> bool:
        """Whether another thread has the connection. Then this thread must not touch it, not even to read."""
        return self._under_way is not None

    def close(self) -> None:
        if self._writer:
            self._writer.shutdown()

    def _flush(self) -> None:
        self._scheduled = False
        batch, self._queue = self._queue, []
        if not batch:
            return None
        if not self._threaded:
            results = self._commit_or_explain(batch, wait=False)
            if results is not None:
                return self._resolve(batch, results)
        self._hand_over(batch)

    def _hand_over(self, batch: list[Pending]) -> None:
        if self._writer is None:
            self._writer = ThreadPoolExecutor(1, thread_name_prefix="ripstop-writer")
        loop = asyncio.get_running_loop()
        self._under_way = loop.run_in_executor(self._writer, self._commit_or_explain, batch, True)

        def done(finished: "asyncio.Future[Any]") -> None:
            self._under_way = None
            if self._queue:
                self._scheduled = True
                loop.call_soon(self._flush)
            self._resolve(batch, finished.result())

        self._under_way.add_done_callback(done)

    def _commit_or_explain(self, batch: list[Pending], wait: bool) -> list[Any] | Exception | None:
        """The results, or why there are none; `None` if another has the lock and we do not wait."""
        try:
            try:
                results = self._commit(batch, wait)
            except sqlite3.Error:
                raise
            except Exception:  # comes again for the one it belongs to, as its own result
                results = self._commit(batch, wait, one_by_one=True)
            self._check_in_place()
            return results
        except sqlite3.Error as error:
            busy = isinstance(error, sqlite3.OperationalError) and _is_busy(error)
            return None if busy and not wait else self._explain(error)
        except Exception as error:
            return error  # not in place, or a bug in ripstop; the caller must learn of it, or would wait for ever

    @staticmethod
    def _resolve(batch: list[Pending], results: list[Any] | Exception) -> None:
        for index, (_, _, future) in enumerate(batch):
            if future.done():
                continue
            result = results if isinstance(results, Exception) else results[index]
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)

    def _commit(self, batch: list[Pending], wait: bool, one_by_one: bool = False) -> list[Any]:
        connection = self._connection
        failpoint("sqlite.before_begin")
        self._begin(wait)
        try:
            if one_by_one:
                results = [self._alone(operation, given) for operation, given, _ in batch]
            else:
                results = [operation(connection, *given) for operation, given, _ in batch]
                self._write_collected()
            failpoint("sqlite.before_commit")
            began = time.perf_counter()
            connection.execute("COMMIT")
        except BaseException:
            self._after_commit(False)
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        self._after_commit(True)
        failpoint("sqlite.after_commit")
        self._learn(time.perf_counter() - began)
        return results

    def _alone(self, operation: Operation, given: tuple[Any, ...]) -> Any:
        """One operation with all that it leaves to be written, or why there is nothing of it."""
        self._connection.execute("SAVEPOINT alone")
        try:
            result = operation(self._connection, *given)
            self._write_collected()
        except sqlite3.Error:
            raise
        except Exception as error:  # a bug in ripstop also fails only the operation it happened in
            self._connection.execute("ROLLBACK TO alone")
            result = error
        self._connection.execute("RELEASE alone")
        return result

    def _begin(self, wait: bool) -> None:
        deadline = time.monotonic() + LOCK_TIMEOUT
        if self._begun(wait, deadline):
            return
        with self._write_queue.passing():
            while not self._begun(wait, deadline):
                # the process that has the lock will want it again at once; a short pause finds the gap
                time.sleep(random.uniform(0.0002, 0.001))

    def _begun(self, wait: bool, deadline: float) -> bool:
        self._connection.renew()
        try:
            if not self.commits:
                use_wal(self._connection)  # a copy that other programs have made can be without a log
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if not wait or not _is_busy(error) or time.monotonic() > deadline:
                raise
            return False
        return True

    def _learn(self, cost: float) -> None:
        self.commits += 1
        self._cost += (cost - self._cost) / 8
        self._threaded = self._cost > (QUICK if self._threaded else SLOW)


def _is_busy(error: sqlite3.OperationalError) -> bool:
    return primary_code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
