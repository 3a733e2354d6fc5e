"""Opening a journal's file: is it one, may we use it, is it of a version we know?"""

import errno
import os
import random
import sqlite3
import stat
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from ripstop.files.private_files import close_to_others, create_file, make_folder
from ripstop.kernel.errors import JournalError, JournalNotFound
from ripstop.runtime.failpoints import failpoint

from .bounded_query import BoundedConnection
from .explained import PATIENCE, explain, primary_code
from .schema import check_schema, not_ours
from .sql import migrations

APPLICATION_ID = 0x52495053  # "RIPS"
HEADER = 100
"""Bytes that every SQLite database begins with. SQLite takes a file of one byte for an empty one and overwrites it; for
anything longer it looks at the header itself. It is not read here: closing the file would drop SQLite's locks on it."""
_NOT_SQLITE = "The journal {} is not an SQLite database. Name another file with --store. Nothing was changed."


def connect(path: Path, create: bool = True) -> BoundedConnection:
    """Open the file, or bring it up to date; with `create` also make it. Every failure is a `JournalError`.

    Without `create` nothing is made: `JournalNotFound` if there is no journal.
    """
    try:
        if create:
            make_folder(path.parent)
            create_file(path)
        found = os.stat(path)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if 0 < found.st_size < HEADER:
            raise JournalError(_NOT_SQLITE.format(path))
        way = "immutable=1" if _only_to_look_at(path) else "mode=rw"
        connection = sqlite3.connect(
            f"{Path(os.path.abspath(path)).as_uri()}?{way}",
            timeout=0,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=64,
            uri=True,
            factory=BoundedConnection,
        )
    except (FileNotFoundError, NotADirectoryError) as error:
        raise _cannot_open(path, error) if create else JournalNotFound(path) from error
    except (OSError, sqlite3.Error) as error:
        raise _cannot_open(path, error) from error
    assert isinstance(connection, BoundedConnection)
    try:
        _distrust(path, connection)
        _patiently(connection, lambda: _prepare(path, connection, create))
    except (sqlite3.Error, UnicodeDecodeError) as error:
        connection.close()
        raise explain(path, error, opening=True) from error
    except BaseException:
        _close_unchanged(path, connection)
        raise
    return connection


def _close_unchanged(path: Path, db: sqlite3.Connection) -> None:
    """Close a file that is refused. The last connection to be closed copies the log into the file, as after a crash of
    the program that wrote it; so one that cannot write is closed last."""
    with closing(sqlite3.connect(f"{Path(os.path.abspath(path)).as_uri()}?mode=ro", timeout=0, uri=True)) as last:
        with suppress(sqlite3.Error):  # it cannot be read at all, so nothing is copied
            last.execute("PRAGMA schema_version").fetchone()
        db.close()


def _distrust(path: Path, db: BoundedConnection) -> None:
    """The file may come from somebody else: nothing in it is executed, and every query is bounded."""
    db.bound(path)
    for setting in ("trusted_schema = OFF", "cell_size_check = ON", "mmap_size = 0"):
        db.execute(f"PRAGMA {setting}")
    if sys.version_info >= (3, 12):
        db.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)
        db.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_TRIGGER, False)
        db.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_VIEW, False)


def _only_to_look_at(path: Path) -> bool:
    """Whether the file is on a read-only file system, where it does not change.

    SQLite cannot make its shared files there, so it must open the journal as immutable. It then ignores a `-wal` file,
    and what was written last would be missing: false if there is one.
    """
    try:
        read_only = bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    except OSError:
        return False
    return read_only and not os.path.exists(path.with_name(f"{path.name}-wal"))


def _prepare(path: Path, db: sqlite3.Connection, create: bool) -> None:
    known = migrations()
    version = _version(path, db)
    for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
        close_to_others(path.with_name(name))  # not before we know that it is a journal
    if not version and not create:
        raise JournalNotFound(path, empty=True)  # or another process is about to make a journal of it
    if version < max(known):
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("BEGIN EXCLUSIVE")
        failpoint("sqlite.before_migration")
        try:
            now = _known_version(path, db)  # another process may have been first
            for number, script in known.items():
                for statement in _statements(script) if number > now else ():
                    db.execute(statement)
            db.execute(f"PRAGMA user_version = {max(known)}")
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            failpoint("sqlite.in_migration")
            db.execute("COMMIT")
            failpoint("sqlite.after_migration")
        except BaseException:
            db.execute("ROLLBACK")
            raise
    db.execute("PRAGMA synchronous = FULL")


def _version(path: Path, db: sqlite3.Connection) -> int:
    """The version of a file that is a journal, or empty; 0 for an empty one."""
    db.execute("BEGIN")  # one view of the file: another process may be creating the journal just now
    try:
        return _known_version(path, db)
    finally:
        if db.in_transaction:  # some errors end it
            db.execute("ROLLBACK")


def _known_version(path: Path, db: sqlite3.Connection) -> int:
    tables: int = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    application: int = db.execute("PRAGMA application_id").fetchone()[0]
    version: int = db.execute("PRAGMA user_version").fetchone()[0]
    if tables and application != APPLICATION_ID:
        raise JournalError(
            f"{path} is an SQLite database, but not a journal of ripstop. "
            "Name another file with --store. Nothing was changed."
        )
    known = migrations()
    if version > max(known):
        raise JournalError(
            f"{path} was written by a newer version of ripstop (journal version {version}; "
            f"this one knows up to {max(known)}). Upgrade ripstop. Nothing was changed."
        )
    if 0 < version < min(known):
        raise JournalError(
            f"{path} was written by ripstop 0.1 (journal version {version}), which this version does not read. "
            "Look at it with ripstop 0.1, or name another file with --store. Nothing was changed."
        )
    if version < 0:
        raise not_ours(path, f"its journal version is {version}, and versions begin with 1")
    if tables and not version:
        raise not_ours(path, "its journal version is 0, as in an empty file, but it has tables")
    check_schema(path, db, version)
    return version


def _statements(script: str) -> list[str]:
    """The statements of a script; `executescript` would commit what is under way."""
    found, rest = [], ""
    for line in script.splitlines():
        rest += line + "\n"
        if sqlite3.complete_statement(rest):
            found.append(rest)
            rest = ""
    return found


def _patiently(db: sqlite3.Connection, do: Callable[[], None]) -> None:
    """Wait while another process creates or migrates the file."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            do()
            return
        except sqlite3.OperationalError as error:
            if primary_code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
        if db.in_transaction:
            db.execute("ROLLBACK")
        time.sleep(random.uniform(0.001, 0.02))


def _cannot_open(path: Path, error: Exception) -> JournalError:
    if os.path.isdir(path):  # unlike `Path.is_dir`, it does not raise where the folder may not be looked into
        return JournalError(f"{path} is a folder, not a journal. Name a file with --store.")
    return JournalError(f"The journal {path} cannot be opened: {error}. Is the folder there, and may you write to it?")
