"""What SQLite says, as an error of a journal that a person understands."""

import os
import sqlite3
from pathlib import Path
from typing import Any

from ripstop.kernel.errors import JournalError, Unreachable, UsageError

PATIENCE = 30.0
"""Seconds to wait for another process that has locked the file."""


PASSING = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
"""Errors of a store that may work again later."""


def primary_code(error: sqlite3.Error | UnicodeDecodeError) -> int:
    """SQLite's own code of an error. An error of Python about a value that was read, or of ours, has none: the file is
    damaged. 0 for a wrong use of the library."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is not None:
        return int(code) & 0xFF
    of_a_value = type(error) in (UnicodeDecodeError, sqlite3.OperationalError, sqlite3.DatabaseError)
    return sqlite3.SQLITE_CORRUPT if of_a_value else 0


def explain(path: Path, error: sqlite3.Error | UnicodeDecodeError, opening: bool = False) -> JournalError:
    """What SQLite says, as a person would say it, with what to do next. What cannot be opened cannot be verified."""
    code = primary_code(error)
    advice = {
        sqlite3.SQLITE_NOTADB: "is not an SQLite database. Name another file with --store. Nothing was changed",
        sqlite3.SQLITE_FULL: "cannot grow: the disk is full. Make room, then `ripstop resume`. "
        "What was recorded before is safe",
        sqlite3.SQLITE_READONLY: "cannot be written to: it, or its folder, is read-only. Change its permissions, "
        "or name another file with --store",
        sqlite3.SQLITE_BUSY: f"has been locked by another process for {PATIENCE:g} s. End that one, or wait for it",
        sqlite3.SQLITE_LOCKED: "is locked. End the program that holds it, or wait for it",
        sqlite3.SQLITE_CORRUPT: "is damaged. `ripstop verify` shows more; restore it from a backup",
        sqlite3.SQLITE_IOERR: "cannot be read or written: the disk reports an error. "
        "What was recorded before is safe. Check the disk, then `ripstop resume`",
        sqlite3.SQLITE_INTERRUPT: "is damaged: reading it takes more work than a file of its size can need. "
        "`ripstop verify` shows more; restore it from a backup",
        sqlite3.SQLITE_TOOBIG: "has a value that is too large to be read or written",
        sqlite3.SQLITE_CANTOPEN: "cannot be opened. Is the folder there, and may you write to it?",
    }.get(code, "cannot be used")
    if code == sqlite3.SQLITE_CORRUPT and opening:
        advice = "is damaged so badly that it cannot be opened. Restore it from a backup"
    if code == sqlite3.SQLITE_CANTOPEN and os.path.exists(path):
        advice = (
            "cannot be opened: may you write to its folder? To look at one that cannot be written to, copy it, "
            f"together with {path.name}-wal if that is there, and name the copy with --store"
        )
    if code == sqlite3.SQLITE_CANTOPEN and os.path.isdir(path):
        advice = "is a folder, not a journal. Name a file with --store"
    said = str(error).partition("\n")[0]  # it can quote a whole value of a damaged file
    kind = Unreachable if code in PASSING else JournalError
    return kind(f"The journal {path} {advice} (SQLite: {said}).")


class Explained:
    """Every read of the file happens inside one of these: it turns the errors of SQLite, and of what is asked, into
    ours."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, UnicodeEncodeError):  # half a character, from a command line or a request
            raise UsageError(f"{ascii(error.object)[:60]} cannot be looked for: it is not valid text.") from error
        if isinstance(error, (sqlite3.Error, UnicodeDecodeError)):
            raise explain(self._path, error) from error
