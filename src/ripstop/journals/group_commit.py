"""Group commit: everything queued goes into one transaction, one fsync, then all futures resolve.

Where a commit runs follows from what it costs and whom it holds up:

- A few entries: all of it on the event loop, once per turn of the loop. There is no thread to hop to,
  so a lone run is fast, and all runs that became ready in that turn share the commit.
- Many entries (`MANY`): the statements on the loop, the fsync on a writer thread, so that other runs
  move on while the disk works. What they append meanwhile is the next batch.
- A slow disk (`SLOW`), or a lock that another process holds: all of it on the writer thread, so that
  token streams and timers do not stall.
"""

import asyncio
import random
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ripstop.kernel.errors import JournalError
from ripstop.runtime.failpoints import reach

Operation = Callable[[sqlite3.Connection], Any]
"""Runs inside the transaction. What it returns, or the `JournalError` it raises, is its own result;
it must leave nothing behind when it raises."""
Batch = list[tuple[Operation, "asyncio.Future[Any]"]]
Outcome = list[Any] | Exception
"""A result for each operation of a batch, or why the batch failed as a whole."""

MANY = 64
"""Entries. So many are worth a hop to the writer thread, and are not kept waiting for more."""
SLOW = 0.020
"""Seconds. A commit that takes longer than this, on average, runs on the writer thread entirely."""
QUICK = 0.010
"""Seconds. It comes back to the loop when the average has fallen below this."""
PATIENCE = 30.0
"""Seconds to wait for another process that holds the write lock."""


class GroupCommit:
    def __init__(
        self,
        connection: sqlite3.Connection,
        before_commit: Callable[[], None],
        after_commit: Callable[[bool], None],
        explain: Callable[[sqlite3.Error], JournalError],
    ) -> None:
        self._connection = connection
        self._before_commit = before_commit
        self._after_commit = after_commit
        self._explain = explain
        self._queue: Batch = []
        self._scheduled = False
        self._cost = 0.0
        self._threaded = False
        self._under_way: asyncio.Future[Outcome] | None = None
        self._writer: ThreadPoolExecutor | None = None
        self.commits = 0

    @property
    def busy(self) -> bool:
        """Whether the writer thread is using the connection."""
        return self._under_way is not None

    def submit(self, operation: Operation) -> "asyncio.Future[Any]":
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        self._queue.append((operation, future))
        if self._under_way is None:
            if len(self._queue) >= MANY:
                self._flush()
            elif not self._scheduled:
                self._scheduled = True
                loop.call_soon(self._flush)
        return future

    async def drain(self) -> None:
        """Return when nothing is queued or under way."""
        while self._queue or self._under_way:
            if self._under_way:
                await asyncio.wait([self._under_way])
            await asyncio.sleep(0)

    def close(self) -> None:
        if self._writer:
            self._writer.shutdown()

    def _flush(self) -> None:
        self._scheduled = False
        if not self._queue or self._under_way:
            return None
        batch, self._queue = self._queue, []
        if self._threaded:
            return self._hand_over(batch, lambda: self._whole(batch))
        try:
            results = self._execute(batch, wait=False)
        except sqlite3.OperationalError as error:
            if _is_busy(error):
                return self._hand_over(batch, lambda: self._whole(batch))
            return self._conclude(batch, self._explain(error))
        except sqlite3.Error as error:
            return self._conclude(batch, self._explain(error))
        except Exception as error:
            return self._conclude(batch, error)  # a fault of ours; whoever waits must learn of it
        if len(batch) >= MANY:
            return self._hand_over(batch, lambda: self._finish(results))
        self._conclude(batch, self._finish(results))

    def _hand_over(self, batch: Batch, work: Callable[[], Outcome]) -> None:
        if self._writer is None:
            self._writer = ThreadPoolExecutor(1, thread_name_prefix="ripstop-writer")
        loop = asyncio.get_running_loop()
        self._under_way = loop.run_in_executor(self._writer, work)

        def done(finished: "asyncio.Future[Outcome]") -> None:
            self._under_way = None
            self._conclude(batch, finished.result())
            if self._queue and not self._scheduled:
                self._scheduled = True
                loop.call_soon(self._flush)

        self._under_way.add_done_callback(done)

    def _conclude(self, batch: Batch, outcome: Outcome) -> None:
        """Tell everybody; always on the event loop."""
        failed = isinstance(outcome, Exception)
        self._after_commit(not failed)
        for index, (_, future) in enumerate(batch):
            if future.done():
                continue
            result = outcome if isinstance(outcome, Exception) else outcome[index]
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)

    # What may run on either thread

    def _whole(self, batch: Batch) -> Outcome:
        try:
            return self._finish(self._execute(batch, wait=True))
        except sqlite3.Error as error:
            return self._explain(error)
        except Exception as error:
            return error

    def _execute(self, batch: Batch, wait: bool) -> list[Any]:
        """The statements of a batch; nothing of it is left if this raises."""
        reach("sqlite.before_begin")
        self._begin(wait)
        results: list[Any] = []
        try:
            for operation, _ in batch:
                try:
                    results.append(operation(self._connection))
                except JournalError as error:
                    results.append(error)
            self._before_commit()
        except BaseException:
            self._roll_back()
            raise
        return results

    def _finish(self, results: list[Any]) -> Outcome:
        reach("sqlite.before_commit")
        began = time.perf_counter()
        try:
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._roll_back()
            return self._explain(error)
        reach("sqlite.after_commit")
        self._learn(time.perf_counter() - began)
        return results

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _begin(self, wait: bool) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                if not wait or not _is_busy(error) or time.monotonic() > deadline:
                    raise
            # a random pause, so that several waiting processes do not march in step
            time.sleep(random.uniform(0.0005, 0.005))

    def _learn(self, cost: float) -> None:
        self.commits += 1
        self._cost += (cost - self._cost) / 8
        self._threaded = self._cost > (QUICK if self._threaded else SLOW)


def _is_busy(error: sqlite3.OperationalError) -> bool:
    return (error.sqlite_errorcode & 0xFF) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
