"""A queue for those who wait for the journal's write lock, so that each gets its turn.

SQLite has no queue: the process that asks at the right moment gets the lock, and with many processes one can starve.
So a process that had to wait once queues at a lock of the kernel's, which serves them in order; only the first in the
queue asks SQLite. A process that gets SQLite's lock at the first attempt never comes here.

The file stays: deleting it would let two wait at two files of one name. Where the folder cannot be written to, there is
no queue, and every process asks SQLite.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ripstop.files.private_files import PRIVATE_FILE


class WriteQueue:
    def __init__(self, journal: Path) -> None:
        self._path = journal.with_name(f"{journal.name}-queue")

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Wait until all earlier callers have passed. Blocks, so call it in its own thread."""
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)
        except OSError:
            yield
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)
