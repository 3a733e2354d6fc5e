"""A connection on which every query ends, whatever is in the file.

Pages of a damaged or crafted file can refer to one another so that a plain scan meets the same rows again, millions of
times or for ever, and a length in it can be anything. So a query gets as much work, and can return as much, as a file
of that size could need with a wide margin. An honest query needs less than a tenth of it.
"""

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MAX_VALUE = 100_000_000
"""Bytes of one value. Larger ones are refused on writing also, so nothing is recorded that cannot be read back."""
BASE_STEPS, STEPS_PER_BYTE = 200_000, 10
"""Instructions of SQLite's machine that a query gets: a base, and more for every byte of the file."""
BASE_BYTES, BYTES_PER_BYTE = 64_000_000, 4
"""Bytes that the rows of a query can have in all."""
_EVERY = 10_000
"""Instructions between two looks at the bound."""


class BoundedConnection(sqlite3.Connection):
    _files: tuple[Path, ...] = ()
    _steps = 0

    def bound(self, path: Path) -> None:
        """Bound every query from now on; `path` is the file whose size counts."""
        self._files = (path, path.with_name(f"{path.name}-wal"))
        self.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE)
        self.set_progress_handler(self._is_beyond, _EVERY)

    def renew(self) -> None:
        """Give what comes next the full amount of work again."""
        self._steps = 0

    def rows(self, query: str, given: Any = ()) -> Iterator[tuple[Any, ...]]:
        """The rows of a query, one by one. Queries made by `execute` meanwhile count as part of it."""
        self.renew()
        returned = 0
        for row in self.execute(query, given):
            returned += sum(len(value) for value in row if isinstance(value, (str, bytes)))
            if returned > BASE_BYTES and returned > BASE_BYTES + BYTES_PER_BYTE * self._size():
                raise sqlite3.DatabaseError("more is read than the file can hold")
            yield row

    def _is_beyond(self) -> bool:
        self._steps += _EVERY
        # the size is asked for only when it matters: a look at a file makes the next fsync of it dearer
        return self._steps > BASE_STEPS and self._steps > BASE_STEPS + STEPS_PER_BYTE * self._size()

    def _size(self) -> int:
        return sum(os.path.getsize(path) for path in self._files if os.path.exists(path))
