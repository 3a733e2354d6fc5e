"""A journal in one SQLite file, which several processes may use at the same time.

- WAL, `synchronous=FULL`: what `append` has returned for survives a crash and a power cut.
- All writing goes through one group commit per process; reading has its own connection.
- Appending is optimistic: it changes nothing unless the run is exactly as long as expected, and,
  for an answer, unless the worker still holds the command it answers (`steps`).
- What is open is kept in the same transaction, as `kernel.outbox` plans it.
"""

import asyncio
import os
import sqlite3
from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from ripstop.engine.ports import (
    ALL,
    ClaimedCommand,
    Clock,
    Damage,
    DeskQuery,
    Entry,
    JournalIdentity,
    JournalPlace,
    Moved,
    Nothing,
    Page,
    Question,
    RunInfo,
    RunQuery,
    Scope,
    Tombstone,
)
from ripstop.kernel.advice import VERIFY, Advice
from ripstop.kernel.codec import Codec
from ripstop.kernel.errors import JournalError, LeaseLost, NotNeeded, UsageError
from ripstop.kernel.events import Record
from ripstop.security.files import create_file

from .. import hash_chain
from ..blobs import genuine
from ..forgetting import check_forgettable
from .file import BoundedConnection, Explained, beside, connect, explain, file_at, primary_code
from .group_commit import GroupCommit, WriteQueue
from .lists import SqliteLists
from .liveness import Liveness
from .schema import is_count, is_time
from .sql import queries
from .steps import BEGUN, BEGUN_UNSAFE, SUPERSEDED, SqliteOutbox, Steps
from .verify import check_outbox, check_run, verify

# Care of a journal's file: copying it while others work on it, and forgetting runs that have ended.


CANNOT_WRITE = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)
"""Errors of SQLite that only the copy can be to blame for: the journal itself is only read."""


def backup(source: Path, target: Path, now: int) -> None:
    """Copy the journal as it is at one moment, marked as a copy. Raises `UsageError` if there is something at the
    target."""
    for part in (target, *beside(target)):  # SQLite would take what is beside the copy for a part of it
        if os.path.lexists(part):
            raise UsageError(f"{part} exists already. Name a file that does not.")
    unfinished = target.with_name(f"{target.name}.unfinished")
    reading = connect(source, create=False)
    try:
        for part in (unfinished, *beside(unfinished)):  # left by a crash
            part.unlink(missing_ok=True)
        create_file(unfinished)
        writing = sqlite3.connect(unfinished)
        try:
            writing.execute("PRAGMA journal_mode = MEMORY")  # a crash leaves nothing that is needed
            reading.backup(writing)  # in one go: page by page it would begin again with every write, perhaps for ever
            for mark in ("mark_copy", "mark_unknown_copy"):
                writing.execute(queries()[mark], (now,))
            writing.commit()
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


def damage_of(path: Path, codec: Codec) -> list[Damage]:
    """What is wrong with the journal at this path, as `SqliteJournal.verify` says it. Nothing is written."""
    reading = connect(path, create=False)
    try:
        with Explained(path):
            return verify(reading, codec, None)
    finally:
        reading.close()


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


LAST = 2**62
"""Higher than the number of any record."""
LEASE = 30_000_000
"""How long a worker counts as alive after a heartbeat, where a lock cannot tell."""


class SqliteJournal:
    def __init__(self, path: str | Path, codec: Codec, create: bool = True) -> None:
        """Open the journal in a file. Without `create` raises `JournalNotFound` if there is none, and makes nothing."""
        self._path = Path(path)
        self._codec = codec
        self._sql = queries()
        self._writing = connect(self._path, create)
        self._place = os.path.abspath(path)  # a tool can change the working directory of its process
        self.file = file_at(self._place)
        """Which one is open, by device and inode; another may have taken its place since."""
        self._reading = connect(self._path, create)
        self._check_in_place()
        self._liveness = Liveness(self._path)
        self._steps = Steps(self._writing)
        self._lists = SqliteLists(self._reading, codec, self._expect)
        self._outbox = SqliteOutbox()
        self._commit = GroupCommit(
            self._writing,
            WriteQueue(self._path),
            self._steps.write,
            self._steps.finish,
            self._explain,
            self._check_in_place,
        )
        self._seen = self._data_version()
        self._outbox_damage: list[Damage] | None = None
        """What SQLite finds wrong with the outbox and its indexes; `None`: not checked yet."""

    @property
    def path(self) -> Path:
        return self._path

    async def close(self) -> None:
        await self._commit.drain()
        self._commit.close()
        self._liveness.close()
        self._reading.close()
        self._writing.close()

    @property
    def clock(self) -> Clock | None:
        return None  # all its workers are on this machine

    # Reading

    async def read(
        self, run_id: str, after: int = 0, before: int | None = None, most: int | None = None
    ) -> list[Record]:
        end = min(LAST if before is None else before, LAST if most is None else after + most + 1)
        with Explained(self._path):
            rows = list(self._reading.rows(self._sql["story"], {"run": run_id, "after": after, "before": end}))
        found: list[Record] = []
        for first, at, body in reversed(rows):
            self._expect(is_count(first) and is_time(at) and isinstance(body, (str, bytes)), f"a record of {run_id!r}")
            if found:  # a fork may continue in the middle of a step
                del found[first - found[0].number :]
            found += [Record(number, at, event) for number, event in enumerate(self._codec.load_step(body), first)]
        if found and (found[0].number <= after or found[-1].number >= end):
            return [record for record in found if after < record.number < end]
        return found

    async def blob(self, digest: str) -> bytes:
        with Explained(self._path):
            row = next(self._reading.rows(self._sql["blob"], (digest,)), None)
        if row is None:
            raise JournalError(Advice(f"{self._path}: the content {digest[:12]}… is missing. ", VERIFY, "."))
        return genuine(row[0], digest, str(self._path))

    async def latest(self) -> int:
        with Explained(self._path):
            last, until = next(self._reading.rows(self._sql["latest"]))
        self._expect(all(type(time or 0) is int for time in (last, until)), "the time of a record or worker")
        return max(last or 0, (until or 0) - LEASE, 0)

    async def since(self, cursor: str = "", most: int = 100) -> list[Moved]:
        with Explained(self._path):
            return self._lists.since(cursor, most)

    async def cursor(self) -> str:
        with Explained(self._path):
            return str(next(self._reading.rows(self._sql["last_position"]))[0])

    async def follower(self, name: str) -> str:
        with Explained(self._path):
            row = next(self._reading.rows(self._sql["follower"], (name,)), None)
        return str(row[0]) if row else ""

    async def keep_follower(self, name: str, cursor: str) -> None:
        await self._commit.submit(lambda db: db.execute(self._sql["keep_follower"], (name, cursor)).rowcount)

    # JournalIdentity

    async def identity(self) -> JournalIdentity:
        with Explained(self._path):
            return self._identity(list(self._reading.rows(self._sql["identity"])))

    def _identity(self, rows: list[tuple[Any, ...]]) -> JournalIdentity:
        if not rows:
            return JournalIdentity()
        id, copied = rows[0]
        self._expect(len(rows) == 1 and isinstance(id, str) and is_time(copied), "its identity")
        return JournalIdentity(id, copied)

    async def identify(self, new: JournalIdentity, instead_of: JournalIdentity) -> JournalIdentity:
        def identify(db: sqlite3.Connection) -> JournalIdentity:
            found = self._identity(db.execute(self._sql["identity"]).fetchall())
            if found != instead_of:
                return found
            db.execute(self._sql["forget_identity"])
            db.execute(self._sql["keep_identity"], (new.id, new.copied))
            return new

        found: JournalIdentity = await self._commit.submit(identify)
        return found

    async def is_empty(self) -> bool:
        """Whether nothing was ever written to it but its identity. Checks every table and believes no list, because a
        worker that finds an empty journal does not ask."""
        with Explained(self._path):
            return not next(self._reading.rows(self._sql["is_written"]))[0]

    async def place(self, position: int | None = None) -> JournalPlace:
        with Explained(self._path):
            last = next(self._reading.rows(self._sql["last_position"]))[0]
            workers = next(self._reading.rows(self._sql["last_worker"]))[0]
            row = next(self._reading.rows(self._sql["record_hash"], (last if position is None else position,)), None)
        self._expect(is_count(last) and is_count(workers), "how far it has come")
        self._expect(row is None or isinstance(row[0], bytes), "the hash of a record")
        return JournalPlace(last if position is None else position, row[0].hex() if row else "", workers)

    async def heads(self) -> str:
        with Explained(self._path):
            rows = list(self._reading.rows(self._sql["heads"]))
        self._expect(
            all(isinstance(one, str) and isinstance(head, bytes) for one, head in rows), "the last hash of a run"
        )
        return hash_chain.heads(rows)

    # Lists

    async def runs(self, query: RunQuery = RunQuery()) -> Page[RunInfo]:
        with Explained(self._path):
            return self._lists.runs(query)

    async def run(self, run_id: str) -> RunInfo | None:
        with Explained(self._path):
            return self._lists.run(run_id)

    async def counts(self, query: RunQuery = RunQuery()) -> dict[str, int]:
        with Explained(self._path):
            return self._lists.counts(query)

    async def forks(self, run_id: str) -> list[RunInfo]:
        with Explained(self._path):
            return self._lists.forks(run_id)

    async def desk(self, query: DeskQuery = DeskQuery()) -> Page[Question]:
        with Explained(self._path):
            return self._lists.desk(query)

    async def desk_count(self) -> int:
        with Explained(self._path):
            return self._lists.desk_count()

    async def document(self, collection: str, key: str) -> bytes | None:
        with Explained(self._path):
            row = next(self._reading.rows(self._sql["document"], (collection, key)), None)
        self._expect(row is None or isinstance(row[0], bytes), "a document")
        return row[0] if row else None

    async def documents(self, collection: str, cursor: str = "", size: int = 50) -> Page[tuple[str, bytes]]:
        with Explained(self._path):
            return self._lists.documents(collection, cursor, size)

    async def tombstones(self) -> list[Tombstone]:
        with Explained(self._path):
            return self._lists.tombstones()

    async def tombstone(self, run_id: str) -> Tombstone | None:
        with Explained(self._path):
            return next(iter(self._lists.tombstones(run_id)), None)

    def _expect(self, holds: bool, what: str) -> None:
        """SQLite lets any type be in any column; only what fits is handed out."""
        if not holds:
            said = f"The journal {self._path} is damaged: {what} is not one. "
            raise JournalError(Advice(said, VERIFY, "; restore the journal from a backup."))

    def changed(self) -> bool:
        if self._commit.elsewhere:
            return False  # the connection is busy; the next call sees the change
        before, self._seen = self._seen, self._data_version()
        return before != self._seen or self._liveness.has_died()  # what that one held is due

    def _data_version(self) -> int:
        version: int = self._writing.execute("PRAGMA data_version").fetchone()[0]
        return version

    async def verify(self, run_id: str | None = None) -> list[Damage]:
        with Explained(self._path):
            return verify(self._reading, self._codec, run_id)

    async def check_run(self, run_id: str) -> list[Damage]:
        with Explained(self._path):
            if self._outbox_damage is None:  # once: an index without a row would hide a command for ever
                self._outbox_damage = check_outbox(self._reading)
            return [*self._outbox_damage, *check_run(self._reading, self._codec, run_id)]

    # Appending

    def append(self, entry: Entry) -> Awaitable[None]:
        body = self._codec.dump_step([record.event for record in entry.records])
        return self._commit.submit(self._steps.place, entry, body)

    def _explain(self, error: sqlite3.Error) -> JournalError:
        return explain(self._path, error)

    # Workers

    async def enrol(self, now: int) -> int:
        worker_id: int = await self._commit.submit(lambda db: db.execute(self._sql["enrol"], (now + LEASE,)).lastrowid)
        self._liveness.enter(worker_id)
        await self._forget_the_dead(now)
        return worker_id

    async def _forget_the_dead(self, now: int) -> None:
        """Workers that were killed and whose files are left, or whose leases ran out without a file."""
        marks = self._liveness.marks()  # before the list, so that a worker enrolling just now is in it
        with Explained(self._path):
            known = self._workers()
        dead = [
            other
            for other, until in known.items()
            if until < now and (other not in marks or self._liveness.gone(other))
        ]
        if dead:
            await self._commit.submit(lambda db: self._bury(db, now, *dead))
        for other in [*dead, *(marks - known.keys())]:
            self._liveness.bury(other)

    def _check_in_place(self) -> None:
        """Raise `JournalError` if the file is gone, or another has taken its place: what is recorded here is lost.

        The main file is looked at, because a commit syncs only the log: a look at a file makes its next sync dearer.
        """
        if file_at(self._place) != self.file:
            raise JournalError(
                f"The journal {self._path} was replaced, or removed, while this process worked on it. Nothing more is "
                "done here; what was recorded is in the file that was there."
            )

    async def heartbeat(self, worker_id: int, now: int) -> bool:
        return bool(
            await self._commit.submit(lambda db: db.execute(self._sql["heartbeat"], (now + LEASE, worker_id)).rowcount)
        )

    async def leave(self, worker_id: int, now: int) -> None:
        try:
            await self._commit.submit(lambda db: self._bury(db, now, worker_id))
        except BaseException:  # a full disk: without a free lock others would wait until the lease has run out
            self._liveness.abandon(worker_id)
            raise
        self._liveness.leave(worker_id)

    def _bury(self, db: sqlite3.Connection, now: int, *worker_ids: int) -> None:
        """Release what they hold and forget them, in one transaction: so only a worker in the list holds anything."""
        for worker_id in worker_ids:
            db.execute(self._sql["release_all"], {"now": now, "holder": worker_id})
            db.execute(self._sql["forget_worker"], (worker_id,))

    async def workers(self, now: int) -> list[tuple[int, bool]]:
        with Explained(self._path):
            known = self._workers()
        return [(worker, until >= now and not self._liveness.gone(worker)) for worker, until in known.items()]

    @property
    def _looking(self) -> BoundedConnection:
        """For what a worker asks after every step. The connection that writes still has its pages in memory; the one
        that reads must fetch them again after every commit."""
        return self._reading if self._commit.elsewhere else self._writing

    def _workers(self) -> dict[int, int]:
        """Until when each worker counts as alive."""
        rows = list(self._looking.rows(self._sql["workers"]))
        self._expect(all(type(worker) is int and type(until) is int for worker, until in rows), "a worker")
        return dict(rows)

    async def claim(
        self,
        worker_id: int,
        now: int,
        room: int,
        scope: Scope = ALL,
        offers: Sequence[str] = ("",),
        refused: Collection[str] | None = None,
    ) -> list[ClaimedCommand]:
        if isinstance(scope, Nothing):
            return []
        with Explained(self._path):
            dead = [
                other
                for other, until in self._workers().items()
                if other != worker_id and (until < now or self._liveness.gone(other))
            ]
            if not dead and not self._outbox.due(self._looking.rows, now, 1, scope, offers, refused):
                return []  # the usual case costs no write
        tasks: list[ClaimedCommand] = await self._commit.submit(
            lambda db: self._claim(db, dead, worker_id, now, room, scope, offers, refused)
        )
        for other in dead:
            self._liveness.bury(other)
        return tasks

    def _claim(
        self,
        db: sqlite3.Connection,
        dead: list[int],
        worker_id: int,
        now: int,
        room: int,
        scope: Scope,
        offers: Sequence[str],
        refused: Collection[str] | None,
    ) -> list[ClaimedCommand]:
        self._bury(db, now, *dead)
        if not db.execute(self._sql["is_enrolled"], (worker_id,)).fetchone():
            return []  # another worker took it for dead; its next heartbeat reports that
        tasks = []
        for row in self._outbox.due(db.execute, now, room, scope, offers, refused):
            key, run_id, number, attempt, state, woken, _, awaits, is_set_aside = row
            typed = isinstance(run_id, str) and is_count(number) and is_count(attempt) and is_count(woken)
            self._expect(typed, "a command in the outbox")
            db.execute(self._sql["take"], (worker_id, key, number))
            tasks.append(
                ClaimedCommand(
                    run_id=run_id,
                    number=number,
                    attempt=attempt + 1,
                    doubtful=state in (BEGUN, BEGUN_UNSAFE) or (state == SUPERSEDED and attempt > 0),
                    unsafe=state == BEGUN_UNSAFE,
                    superseded=state == SUPERSEDED,
                    woken=woken,
                    awaits=awaits or "",
                    set_aside=bool(is_set_aside),
                )
            )
        return tasks

    async def held(self, run_id: str) -> set[int]:
        with Explained(self._path):
            return {number for (number,) in self._reading.rows(self._sql["held"], (run_id,))}

    async def begun(self, run_id: str) -> tuple[int, ...]:
        with Explained(self._path):
            return tuple(number for (number,) in self._reading.rows(self._sql["begun"], (run_id,)))

    async def left_waiting(self, now: int) -> set[str]:
        with Explained(self._path):
            found = {run_id for (run_id,) in self._reading.rows(self._sql["left_waiting"], (now,))}
        self._expect(all(isinstance(run_id, str) for run_id in found), "the name of a run")
        return found

    async def next_due(
        self, scope: Scope = ALL, offers: Sequence[str] = ("",), refused: Collection[str] | None = None
    ) -> int | None:
        if isinstance(scope, Nothing):
            return None
        with Explained(self._path):
            due = self._outbox.next_due(self._looking.rows, scope, offers, refused)
        self._expect(all(type(time) is int for time in due), "the time of a command")
        return min(due, default=None)

    async def begin(self, run_id: str, number: int, worker_id: int, attempt: int, repeatable: bool) -> None:
        def begin(db: sqlite3.Connection) -> None:
            me = (run_id, number, worker_id)
            state = BEGUN if repeatable else BEGUN_UNSAFE
            if not db.execute(self._sql["begin_attempt"], (attempt, state, *me)).rowcount:
                superseded = db.execute(self._sql["is_superseded"], me).fetchone()
                raise NotNeeded(run_id, number) if superseded else LeaseLost(run_id, number)

        await self._commit.submit(begin)

    async def retry(self, run_id: str, number: int, worker_id: int, at: int) -> None:
        await self._commit.submit(lambda db: db.execute(self._sql["retry"], (at, run_id, number, worker_id)).rowcount)

    async def give_back(self, run_id: str, number: int, worker_id: int) -> None:
        await self._commit.submit(lambda db: db.execute(self._sql["give_back"], (run_id, number, worker_id)).rowcount)

    async def await_run(self, run_id: str, number: int, worker_id: int, awaited: str) -> None:
        given = (awaited, run_id, number, worker_id)
        await self._commit.submit(lambda db: db.execute(self._sql["await_run"], given).rowcount)

    async def park(self, task: ClaimedCommand, worker_id: int, now: int) -> None:
        given = {
            "run": task.run_id,
            "number": task.number,
            "holder": worker_id,
            "seen": task.woken,
            "superseded": task.superseded,
            "now": now,
        }
        await self._commit.submit(lambda db: db.execute(self._sql["park"], given).rowcount)

    async def superseded(self, worker_id: int) -> list[tuple[str, int]]:
        with Explained(self._path):
            return list(self._looking.rows(self._sql["superseded"], (worker_id,)))

    def listen(self, wake: Callable[[], None]) -> Callable[[], None]:
        return lambda: None  # SQLite does not notify; callers poll `changed` instead

    # Care

    async def set_aside(self, run_id: str, reason: str) -> None:
        await self._commit.submit(lambda db: db.execute(self._sql["set_aside"], (reason or None, run_id)).rowcount)

    async def forget(self, run_ids: Sequence[str], now: int, dry_run: bool = False) -> None:
        await self._commit.submit(lambda db: forget(db, run_ids, now, dry_run))
        self._steps.forget_heads()

    async def backup(self, path: Path, now: int) -> None:
        with Explained(self._path):
            await asyncio.to_thread(backup, self._path, path, now)
