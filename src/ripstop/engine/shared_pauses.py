"""Pauses between calls that all processes of a user keep: one small file per provider.

- Whoever holds the lock of a file may call next; nobody else does until the request has left. The operating system
  frees the lock when a process dies.
- The file says until when the next call waits, on the machine's monotonic clock, and how long the pause was: a time
  further ahead than that was written before the machine was started again.
- Where the folder cannot be used, each process keeps its own pauses.
"""

import asyncio
import fcntl
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

log = logging.getLogger("ripstop.worker")

RETRY_INTERVAL = 0.02
"""Seconds between two attempts to get the lock."""
LONGEST_ENTRY = 100
"""Bytes of a file that are read."""


class SharedTurn:
    """The right of this process to make the next call."""

    def __init__(self, file: int) -> None:
        self._file = file

    def free_at(self, now: float) -> float:
        """When the next call may go out."""
        try:
            until, pause = map(float, os.pread(self._file, LONGEST_ENTRY, 0).split())
        except (OSError, ValueError):
            return now
        return until if now < until <= now + pause else now

    def end(self, free_at: float, pause: float) -> None:
        """Let other processes call, from that time on; a pause of 0 changes nothing."""
        try:
            if pause:
                with suppress(OSError):  # a full disk must not fail the call that was made
                    os.ftruncate(self._file, 0)
                    os.pwrite(self._file, b"%f %f" % (free_at, pause), 0)
        finally:
            os.close(self._file)


class SharedPauses:
    def __init__(self, folder: Path, make: Callable[[Path], None]) -> None:
        """`make`: creates the folder if it is not there, for its owner alone. Raises `OSError`."""
        self._folder = folder
        self._make = make
        self._failed = False

    async def turn(self, provider: str) -> SharedTurn | None:
        """Wait until no other process is about to call this provider; `None` if that cannot be known."""
        try:
            self._make(self._folder)
            path = self._folder / quote(provider, safe="")
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            self._fail(error)
            return None
        try:
            while not _lock(file):  # noqa: ASYNC110  # other processes set no event
                await asyncio.sleep(RETRY_INTERVAL)
        except OSError as error:
            os.close(file)
            self._fail(error)
            return None
        except BaseException:
            os.close(file)
            raise
        return SharedTurn(file)

    def _fail(self, error: OSError) -> None:
        if not self._failed:
            self._failed = True
            log.warning("Pauses between calls are not shared with other processes: %s", error)


def _lock(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
