"""Opening a journal's file: is it safe to open, is it a journal, may we use it, is it of a version we know?"""

import errno
import os
import random
import sqlite3
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from ripstop.engine.failpoints import failpoint
from ripstop.kernel.advice import VERIFY, Advice, NextStep
from ripstop.kernel.errors import JournalError, JournalNotFound, Unreachable, UsageError
from ripstop.security.files import close_to_others, create_file, make_folder

from .schema import check_schema, not_ours
from .sql import migrations

# Looking at what is there before SQLite opens it.
#
# SQLite believes the files beside a database. It plays a rollback journal back before anybody can ask what is in the
# database: it changes pages of it, and deletes a file whose name is in the journal, anywhere. It writes to what a hard
# link leads to, and waits for a pipe for ever. A folder that was cloned or unpacked can bring all of these. ripstop
# changes no journal by way of a rollback journal, not even while it makes one (`use_wal`): so any is refused.


def check_files(path: Path) -> None:
    """Raise `JournalError` if SQLite would do harm with what is at a path, or beside it; `OSError` if that cannot be
    looked at. Nothing is opened, and nothing need be there."""
    real = Path(os.path.realpath(path))  # SQLite looks beside the file that a link leads to
    rollback = real.with_name(f"{real.name}-journal")
    if os.path.lexists(rollback):
        raise JournalError(
            f"{rollback} is there, and SQLite would first change and delete files as it says. ripstop never leaves "
            "such a file: it came with the folder, or from another program. Nothing was opened. Remove it; if you "
            "have changed the journal with another program, restore the journal from a backup, too."
        )
    for part in (real, *beside(real)):
        try:
            found = os.lstat(part)
        except FileNotFoundError:
            continue
        if part == real and stat.S_ISDIR(found.st_mode):
            continue  # a mistake, and SQLite says so
        if not stat.S_ISREG(found.st_mode):
            raise JournalError(f"{part} is not a plain file. Remove it, or name another journal. Nothing was opened.")
        if found.st_nlink > 1:
            raise JournalError(
                f"{part} is a hard link: the same file has another name, perhaps elsewhere, and would change there. "
                "Put a copy in its place, or name another journal. Nothing was opened."
            )


def beside(path: Path) -> tuple[Path, ...]:
    """The files that SQLite keeps beside a database."""
    return tuple(path.with_name(f"{path.name}{suffix}") for suffix in ("-journal", "-wal", "-shm"))


def use_wal(db: sqlite3.Connection) -> None:
    """Have a database changed by way of a log, as every journal is.

    SQLite makes that change itself by way of a rollback journal. So that is kept in memory: otherwise other processes
    could see it, and a crash could leave it. Only the header of the first page is written.
    """
    if db.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        db.execute("PRAGMA journal_mode = MEMORY")
        if db.execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
            db.execute("PRAGMA journal_mode = DELETE")  # it cannot be done here; without any journal nothing is safe


# A connection on which every query ends, whatever is in the file.
#
# Pages of a damaged or crafted file can refer to one another so that a plain scan meets the same rows again, millions
# of times or for ever, and a length in it can be anything. So a query gets as much work, and can return as much, as a
# file of that size could need with a wide margin. An honest query needs less than a tenth of it.


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


# What SQLite says, as an error of a journal that a person understands.


LOCK_TIMEOUT = 30.0
"""Seconds to wait for another process that has locked the file."""


PASSING = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
"""Errors of a store that may work again later."""
RESUME = NextStep("resume", "resume", "`{}`")


def primary_code(error: sqlite3.Error | UnicodeDecodeError) -> int:
    """SQLite's own code of an error. An error of Python about a value that was read, or of ours, has none: the file is
    damaged. 0 for a wrong use of the library."""
    code = getattr(error, "sqlite_errorcode", None)
    if code == sqlite3.SQLITE_IOERR_SHMSIZE:  # its shared file cannot grow; of every other file it says so itself
        return sqlite3.SQLITE_FULL
    if code is not None:
        return int(code) & 0xFF
    of_a_value = type(error) in (UnicodeDecodeError, sqlite3.OperationalError, sqlite3.DatabaseError)
    return sqlite3.SQLITE_CORRUPT if of_a_value else 0


def explain(path: Path, error: sqlite3.Error | UnicodeDecodeError, opening: bool = False) -> JournalError:
    """What SQLite says, as a person would say it, with what to do next. What cannot be opened cannot be verified."""
    code = primary_code(error)
    advice: str = {
        sqlite3.SQLITE_NOTADB: "is not an SQLite database. Name another file with --store. Nothing was changed",
        sqlite3.SQLITE_FULL: Advice(
            "cannot grow: the disk is full. Make room, then ", RESUME, ". What was recorded before is safe"
        ),
        sqlite3.SQLITE_READONLY: "cannot be written to: it, or its folder, is read-only. Change its permissions, "
        "or name another file with --store",
        sqlite3.SQLITE_BUSY: f"has been locked by another process for {LOCK_TIMEOUT:g} s. End that one, or wait for it",
        sqlite3.SQLITE_LOCKED: "is locked. End the program that holds it, or wait for it",
        sqlite3.SQLITE_CORRUPT: Advice("is damaged. ", VERIFY, "; restore it from a backup"),
        sqlite3.SQLITE_IOERR: Advice(
            "cannot be read or written: the disk reports an error. What was recorded before is safe. "
            "Check the disk, then ",
            RESUME,
        ),
        sqlite3.SQLITE_INTERRUPT: Advice(
            "is damaged: reading it takes more work than a file of its size can need. ",
            VERIFY,
            "; restore it from a backup",
        ),
        sqlite3.SQLITE_TOOBIG: "has a value that is too large to be read or written",
        sqlite3.SQLITE_CANTOPEN: "cannot be opened. Is the folder there, and may you write to it?",
    }.get(code, "cannot be used")
    if code == sqlite3.SQLITE_CORRUPT and opening:
        advice = "is damaged so badly that it cannot be opened. Restore it from a backup"
    if code == sqlite3.SQLITE_FULL and opening:
        advice = (
            "cannot be opened: the disk is full. Make room, then repeat the command. What was recorded before is safe"
        )
    if code == sqlite3.SQLITE_CANTOPEN and os.path.exists(path):
        advice = (
            "cannot be opened: may you write to its folder? To look at one that cannot be written to, copy it, "
            f"together with {path.name}-wal if that is there, and name the copy with --store"
        )
    if code == sqlite3.SQLITE_CANTOPEN and os.path.isdir(path):
        advice = "is a folder, not a journal. Name a file with --store"
    said = str(error).partition("\n")[0]  # it can quote a whole value of a damaged file
    kind = Unreachable if code in PASSING else JournalError
    return kind(Advice(f"The journal {path} ", advice, f" (SQLite: {said})."))


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
        check_files(path)
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


def file_at(path: str | Path) -> tuple[int, int] | None:
    """Which file is at a path, whatever its name; `None` for none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


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
    for part in (path, *beside(path)):
        close_to_others(part)  # not before we know that it is a journal
    if not version and not create:
        raise JournalNotFound(path, empty=True)  # or another process is about to make a journal of it
    if version < max(known):
        use_wal(db)
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
            _roll_back(db)
            raise
    db.execute("PRAGMA synchronous = FULL")


def _version(path: Path, db: sqlite3.Connection) -> int:
    """The version of a file that is a journal, or empty; 0 for an empty one."""
    db.execute("BEGIN")  # one view of the file: another process may be creating the journal just now
    try:
        return _known_version(path, db)
    finally:
        _roll_back(db)


def _roll_back(db: sqlite3.Connection) -> None:
    if db.in_transaction:  # some errors end it, such as a full disk
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
    deadline = time.monotonic() + LOCK_TIMEOUT
    while True:
        try:
            do()
            return
        except sqlite3.OperationalError as error:
            if primary_code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
        _roll_back(db)
        time.sleep(random.uniform(0.001, 0.02))


def _cannot_open(path: Path, error: Exception) -> JournalError:
    if os.path.isdir(path):  # unlike `Path.is_dir`, it does not raise where the folder may not be looked into
        return JournalError(f"{path} is a folder, not a journal. Name a file with --store.")
    return JournalError(f"The journal {path} cannot be opened: {error}. Is the folder there, and may you write to it?")
