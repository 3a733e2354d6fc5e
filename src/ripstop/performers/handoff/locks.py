"""A lock that processes share, and the tasks of one process too.

- It is `flock` on a file: the kernel frees it when its holder dies, however it dies. Each holder opens the file
  for itself, so two tasks of one process exclude each other like two processes.
- The file is never deleted. A waiter has the old file open; if it were deleted, the next caller would lock a
  new file of the same name, and both would believe that they hold the lock.
- Each waiter has its own thread. The pool of `asyncio.to_thread` has few threads: if all of them
  waited for a lock, its holder would find none left to do its work in, and leaving the program would wait for them.
- A task that gives up waiting leaves its thread behind. Whichever of the two comes second closes the file, so no lock
  is kept for nobody.
"""

import asyncio
import fcntl
import os
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TypeVar

from ripstop.performers.file_errors import in_words

Result = TypeVar("Result")


@asynccontextmanager
async def locked(path: Path) -> AsyncIterator[None]:
    """Hold the lock `path`, a file in a folder that exists. Raises `Refused` or `TryAgain` if it cannot be used."""
    descriptor = _open(path)
    if not _lock_at_once(path, descriptor):
        await _Waiting(path, descriptor).wait()
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)  # closing would not do if a forked child has it open as well
        os.close(descriptor)


async def do_locked(path: Path, work: Callable[[], Result]) -> Result:
    """Do something in a thread while holding a lock, which is kept until the work has ended, cancelled or not."""
    async with locked(path):
        working = asyncio.ensure_future(asyncio.to_thread(work))
        try:
            return await asyncio.shield(working)
        except asyncio.CancelledError:
            await asyncio.wait([working])  # a thread cannot be stopped, and must not continue without the lock
            if not working.cancelled():
                working.exception()  # the caller has gone, so the error is not reported
            raise


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise in_words(path, error) from error


def _lock_at_once(path: Path, descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        os.close(descriptor)
        raise in_words(path, error) from error
    return True


class _Waiting:
    """One task that waits, and the thread that does it for the task."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._over = asyncio.Event()
        self._turn = threading.Lock()
        self._ended = False
        self._abandoned = False
        self._error: OSError | None = None

    async def wait(self) -> None:
        """Return with the lock, or raise and leave nothing open."""
        # a daemon: a lock that is never freed must not keep the program from ending
        threading.Thread(target=self._in_thread, name=f"waits for {self._path.name}", daemon=True).start()
        try:
            await self._over.wait()
        except BaseException:
            with self._turn:
                self._abandoned = True
                if self._ended:
                    os.close(self._descriptor)
            raise
        if self._error is not None:
            os.close(self._descriptor)
            raise in_words(self._path, self._error) from self._error

    def _in_thread(self) -> None:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        except OSError as error:
            self._error = error
        with self._turn:
            self._ended = True
            if self._abandoned:
                os.close(self._descriptor)
                return
        with suppress(RuntimeError):  # the loop has been closed, and with it goes the task
            self._loop.call_soon_threadsafe(self._over.set)
