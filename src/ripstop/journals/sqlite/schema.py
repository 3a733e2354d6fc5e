"""Is a file made up as a journal is: our tables and indexes, exactly, and nothing else?

A journal can come from somebody else. A trigger would run with every append, and a view in the place of a table could
say anything, or never end. So the file's own description is compared with ours before anything else is read or written.
"""

import re
import sqlite3
from functools import cache
from pathlib import Path
from typing import Any

from ripstop.engine.ports import LATEST, MOST_RECORDS
from ripstop.kernel.errors import JournalError

from .sql import migrations

# What a column of a journal can hold. SQLite itself accepts any value in any of them.


def is_time(value: Any) -> bool:
    return type(value) is int and 0 <= value < LATEST


def is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < MOST_RECORDS


Schema = dict[tuple[str, str], str]
"""What defines each object, by its type and name."""

MOST_OBJECTS = 1000
"""More than any journal has; the rest need not be read to know that it is not one."""
_COMMENT, _SPACE = re.compile(r"--[^\n]*"), re.compile(r"\s+")
_READ = "SELECT type, name, tbl_name, sql FROM sqlite_master LIMIT ?"


def check_schema(path: Path, db: sqlite3.Connection, version: int) -> None:
    """Raise `JournalError`, which names the object, unless the file is as ripstop makes it in that version."""
    found, wanted = read_schema(db), _wanted(version)
    for kind, name in sorted(found.keys() - wanted.keys()):
        raise not_ours(path, f"it has the {kind[:20]} {name[:80]!r}, which ripstop did not make")
    for kind, name in sorted(wanted.keys() - found.keys(), reverse=True):  # a table comes before its indexes
        raise not_ours(path, f"the {kind} {name!r} is missing")
    for (kind, name), definition in sorted(wanted.items()):
        if found[kind, name] != definition:
            raise not_ours(path, f"its {kind} {name!r} is not as ripstop makes it")


def read_schema(db: sqlite3.Connection) -> Schema:
    """How a file describes itself. Comments and the number of spaces make no difference."""
    return {
        (str(kind), str(name)): f"{table}: {_plain(sql)}"
        for kind, name, table, sql in db.execute(_READ, (MOST_OBJECTS,)).fetchall()
    }


def _plain(sql: Any) -> str:
    return _SPACE.sub(" ", _COMMENT.sub("", str(sql))).strip()


@cache
def _wanted(version: int) -> Schema:
    db = sqlite3.connect(":memory:")
    try:
        for number, script in migrations().items():
            if number <= version:
                db.executescript(script)
        return read_schema(db)
    finally:
        db.close()


def not_ours(path: Path, what: str) -> JournalError:
    """The refusal of a file that names itself a journal, and is not one; `what` says why."""
    return JournalError(
        f"{path} is not a journal as ripstop writes it: {what}. Another program has changed it, or it was made to "
        "mislead you. Nothing was read from it or changed. Restore it from a backup, or name another file with --store."
    )
