"""Care of a journal's file: copying it while others work on it, and forgetting runs that have ended."""

import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from ripstop.files.private_files import create_file
from ripstop.journals.forgetting import check_forgettable
from ripstop.kernel.errors import JournalError, UsageError

from .explained import primary_code
from .file import connect
from .sql import queries

CANNOT_WRITE = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)
"""Errors of SQLite that only the copy can be to blame for: the journal itself is only read."""


def backup(source: Path, target: Path) -> None:
    """Copy the journal as it is at one moment. Raises `UsageError` if there is something at the target."""
    if os.path.lexists(target):
        raise UsageError(f"{target} exists already. Name a file that does not.")
    unfinished = target.with_name(f"{target.name}.unfinished")
    reading = connect(source, create=False)
    try:
        unfinished.unlink(missing_ok=True)
        create_file(unfinished)
        writing = sqlite3.connect(unfinished)
        try:
            reading.backup(writing)  # in one go: page by page it would begin again with every write, perhaps for ever
        finally:
            writing.close()
        descriptor = os.open(unfinished, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.link(unfinished, target)  # never over a file that was put there in the meantime
    except FileExistsError as error:
        raise UsageError(f"{target} exists already. Name a file that does not.") from error
    except OSError as error:  # it names the unfinished copy, which the user has not heard of
        raise JournalError(f"The journal cannot be copied to {target}: {error.strerror}.") from error
    except sqlite3.Error as error:
        if primary_code(error) not in CANNOT_WRITE:
            raise
        raise JournalError(f"The journal cannot be copied to {target} (SQLite: {error}).") from error
    finally:
        reading.close()
        unfinished.unlink(missing_ok=True)


def forget(db: sqlite3.Connection, run_ids: Sequence[str], now: int, dry_run: bool) -> None:
    """Remove runs with all that belongs to them. Raises `UsageError` if one has not ended, or is still needed."""
    sql = queries()
    keys: list[int] = []
    leaving = dict.fromkeys(run_ids)
    for run_id in leaving:
        row = db.execute(sql["run"], (run_id,)).fetchone()
        check_forgettable(
            run_id,
            row[3] if row else None,
            busy=row is not None and db.execute(sql["is_busy"], {"key": row[0]}).fetchone() is not None,
            forks=[fork[1] for fork in db.execute(sql["forks"], (run_id,)) if fork[1] not in leaving],
            waiting=[name for (name,) in db.execute(sql["awaiting"], (run_id,)) if name not in leaving],
            undelivered=[str(needs) for (needs,) in db.execute(sql["undelivered"], {"run": run_id})],
        )
        keys.append(row[0])
    if dry_run:
        return
    db.execute(sql["keep_position"])
    for key in keys:
        db.execute(sql["bury"], {"now": now, "key": key})
        for statement in (
            "forget_records",
            "forget_outbox",
            "forget_documents",
            "forget_blobs",
            "forget_blob_uses",
            "forget_run",
        ):
            db.execute(sql[statement], {"key": key})
