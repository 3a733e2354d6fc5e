"""Room in SQLite's write-ahead log, made ahead of need.

While a file grows, an fsync costs two to three times as much, and the log grows with every commit until it has its
full length and is used again from its beginning: for the first 300 steps or so of every process. So it is made longer
a piece at a time, with zeros.

- SQLite goes by checksums: what stands behind the last frame is of no interest to it, after a crash either.
- Only whoever holds the write lock may do this, and only behind the file's end. Nobody else writes there then.
- It saves time and nothing else: where it cannot be done, everything works without it.
"""

import os
from pathlib import Path

SMALLEST, LARGEST = 64 * 1024, 1024 * 1024
"""Bytes. The log is doubled, by no less and no more than this."""
FULL = 1000 * (4096 + 24)
"""Bytes at which SQLite begins to use the log again, by its defaults: 1,000 pages of 4 KB, each with its header."""


class WalRoom:
    def __init__(self, journal: Path) -> None:
        self._path = journal.with_name(f"{journal.name}-wal")
        self._file: int | None = None
        self._length = 0
        """Of the log, as we left it."""
        self._possible = True

    def make(self) -> None:
        """Make room for later commits. To be called in a write transaction, right before it is committed."""
        if not self._possible:
            return
        try:
            if self._file is None:
                self._file = os.open(self._path, os.O_WRONLY | os.O_CLOEXEC)
            # not `fstat`: once somebody has seen a file's times, the next write sets new ones, and fsync pays for that
            length = os.lseek(self._file, 0, os.SEEK_END)
            if length != self._length:  # the last commit had to make the file longer
                self._length = length
                if 0 < length < FULL:
                    self._length += os.write(self._file, bytes(min(max(length, SMALLEST), LARGEST)))
        except OSError:
            self._possible = False  # no room on the disk, say: SQLite will tell, if it needs some

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
