"""A journal in one SQLite file, which several processes may use at the same time.

- WAL, `synchronous=FULL`: what `append` has returned for survives a crash and a power cut.
- All writing goes through one group commit per process; reading has a connection of its own.
- Appending is optimistic: it changes nothing unless the run is exactly as long as expected, and,
  for an answer, unless the worker still holds the command it answers.
- What is open is derived from the records in the same transaction (`kernel.outbox`).
"""

import sqlite3
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

from msgspec import Struct

from ripstop.kernel.codec import Codec
from ripstop.kernel.effects import AskPerson
from ripstop.kernel.errors import Conflict, JournalError, LeaseLost
from ripstop.kernel.events import Asked, Record, Started
from ripstop.kernel.outbox import Closed, Held, Opened, Released, changes
from ripstop.kernel.run import waits_for
from ripstop.runtime.ports import Damage, Entry, Question, RunInfo, Task

from . import chain
from .group_commit import GroupCommit
from .liveness import Liveness
from .sql import queries
from .sqlite_file import connect, explain
from .sqlite_verify import verify
from .turnstile import Turnstile

LEASE = 30_000_000
"""How long a worker counts as alive after a heartbeat, where a lock cannot tell."""
HEADS = 4096
"""Heads of runs kept in memory, so that an append needs no look-up."""


class _Head(Struct, frozen=True, gc=False):
    """Where a run ends."""

    key: int
    length: int
    last: int | None
    digest: bytes


class SqliteJournal:
    def __init__(self, path: str | Path, codec: Codec) -> None:
        self._path = Path(path)
        self._codec = codec
        self._sql = queries()
        self._writing = connect(self._path)
        self._reading = connect(self._path)
        self._liveness = Liveness(self._path)
        self._heads: dict[str, _Head] = {}
        self._new_heads: dict[str, _Head] = {}
        self._new_records: list[tuple[int, int, int, int, int | None, str, bytearray]] = []
        self._advances: list[tuple[Any, ...]] = []
        self._steps: list[tuple[Entry, _Head, int]] = []
        self._opened: list[tuple[int, int, int, str, int | None, int | None, int, int]] = []
        self._closed: list[tuple[int, int]] = []
        self._commit = GroupCommit(
            self._writing, Turnstile(self._path), self._write_collected, self._committed, self._explain
        )
        self._seen = self._data_version()

    async def close(self) -> None:
        await self._commit.drain()
        self._commit.close()
        self._liveness.close()
        self._reading.close()
        self._writing.close()

    # Reading

    async def read(self, run_id: str, after: int = 0) -> list[Record]:
        with _Explained(self._path):
            rows = self._reading.execute(self._sql["story"], {"run": run_id, "after": after}).fetchall()
        load = self._codec.load
        return [Record(number, at, load(body)) for number, at, body in reversed(rows)]

    async def blob(self, digest: str) -> bytes:
        with _Explained(self._path):
            row = self._reading.execute(self._sql["blob"], (digest,)).fetchone()
        if row is None:
            raise JournalError(f"{self._path}: the content {digest[:12]}… is missing. `ripstop verify` tells more.")
        return bytes(row[0])

    async def runs(self) -> list[RunInfo]:
        with _Explained(self._path):
            rows = self._reading.execute(self._sql["runs"]).fetchall()
        names = ("run_id", "style", "status", "length", "created", "updated", "parent")
        return [RunInfo(**dict(zip(names, row, strict=True))) for row in rows]

    async def desk(self) -> list[Question]:
        with _Explained(self._path):
            rows = self._reading.execute(self._sql["desk"]).fetchall()
        found = []
        for run_id, number, at, body in rows:
            asked = self._codec.load(body)
            assert isinstance(asked, Asked)
            assert isinstance(asked.command, AskPerson)
            found.append(Question(run_id=run_id, number=number, at=at, command=asked.command))
        return found

    async def next_due(self, only: str | None = None) -> int | None:
        with _Explained(self._path):
            query, of = ("next_due", ()) if only is None else ("next_due_of", (only, only, only))
            due: int | None = self._reading.execute(self._sql[query], of).fetchone()[0]
        return due

    def changed(self) -> bool:
        if self._commit.elsewhere:
            return False  # nobody may ask now; whoever asks again learns of it then
        before, self._seen = self._seen, self._data_version()
        return before != self._seen

    def _data_version(self) -> int:
        version: int = self._writing.execute("PRAGMA data_version").fetchone()[0]
        return version

    async def verify(self, run_id: str | None = None) -> list[Damage]:
        with _Explained(self._path):
            return verify(self._reading, self._codec, run_id)

    # Appending

    def append(self, entry: Entry) -> Awaitable[None]:
        dump = self._codec.dump
        rows = [(record.number, record.at, dump(record.event)) for record in entry.records]
        return self._commit.submit(self._append, entry, rows)

    def _append(self, db: sqlite3.Connection, entry: Entry, rows: list[tuple[int, int, bytes]]) -> None:
        """Put a step in its place behind the run's end. It is written together with all others of the commit."""
        number = rows[0][0]
        new = number == 1 or entry.fork
        head = self._create(db, entry) if new else self._head(db, entry.run_id, number - 1)
        key, before, digest = head.key, head.last, head.digest
        position, records = self._position(db), self._new_records
        for number, at, body in rows:
            digest = chain.link(digest, number, at, body)
            position += 1
            hashed = bytearray(digest)  # which sqlite3 binds as it is; for bytes it first looks for an adapter, slowly
            records.append((position, key, number, at, before, body.decode(), hashed))
            before = position
        command, holder = entry.fence or (None, None)
        was = bytearray(head.digest)
        self._advances.append(
            (number, position, hashed, entry.status, at, key, head.length, was, command, command, holder)
        )
        self._new_heads[entry.run_id] = _Head(key, number, position, digest)
        self._steps.append((entry, head, position - number))

    def _inherit(self, db: sqlite3.Connection, entry: Entry, key: int, record: Record) -> None:
        """A fork asks on what the shared records asked and nobody answered."""
        assert entry.fork is not None
        where = {"run": entry.fork[0], "number": record.number}
        position: int = db.execute(self._sql["record_at"], where).fetchone()[0]
        for change in changes([record]):
            assert isinstance(change, Opened)
            row = (key, record.number, position, waits_for(change.command), change.due, None, 0, 0)
            self._opened.append(row)

    def _position(self, db: sqlite3.Connection) -> int:
        """The last position taken so far, by the file or by this commit."""
        if self._new_records:
            return self._new_records[-1][0]
        position: int = db.execute(self._sql["last_position"]).fetchone()[0]
        return position

    def _create(self, db: sqlite3.Connection, entry: Entry) -> _Head:
        first = entry.records[0]
        shared, length, position, style, parent = b"", 0, None, "", None
        if entry.fork:
            source, length = entry.fork
            (style,) = db.execute(self._sql["style_of"], (source,)).fetchone()
            position, shared = db.execute(self._sql["record_at"], {"run": source, "number": length}).fetchone()
        elif isinstance(first.event, Started):
            style, parent = first.event.style, first.event.parent
        digest = chain.first(entry.run_id, shared)
        origin = (*(parent or (None, None)), *(entry.fork or (None, 0)))
        row = (entry.run_id, style, entry.status, first.at, first.at, length, position, digest, *origin)
        cursor = db.execute(self._sql["create_run"], row)
        if not cursor.rowcount:
            raise Conflict(entry.run_id)
        assert cursor.lastrowid is not None
        return _Head(cursor.lastrowid, length, position, digest)

    def _head(self, db: sqlite3.Connection, run_id: str, length: int) -> _Head:
        """The end of a run that is `length` records long."""
        head = self._new_heads.get(run_id) or self._heads.get(run_id)
        if head is None or head.length != length:
            row = db.execute(self._sql["head_of"], (run_id,)).fetchone()
            head = _Head(*row) if row else None
        if head is None or head.length != length:
            self._heads.pop(run_id, None)
            raise Conflict(run_id)
        return head

    def _write_collected(self) -> None:
        """Write every step of this commit: each kind of row at once, which costs far less than step by step.

        Raises, and has written nothing, if somebody else was first with one of the runs, or has the command that
        a step answers.
        """
        if not self._steps:
            return
        db = self._writing
        try:
            if db.executemany(self._sql["advance_run"], self._advances).rowcount != len(self._steps):
                raise self._why_not(db)
            db.executemany(self._sql["add_record"], self._new_records)
            db.execute(self._sql["count_records"], (len(self._new_records),))
            for entry, head, offset in self._steps:
                for item in entry.blobs.items():
                    db.execute(self._sql["keep_blob"], item)
                self._update_outbox(db, entry, head.key, offset)
                for record in entry.inherited:
                    self._inherit(db, entry, head.key, record)
            self._write_outbox()
        finally:
            self._forget_collected()

    def _why_not(self, db: sqlite3.Connection) -> JournalError:
        """Why the last step could not be appended; with several, any reason will do: each is tried again alone."""
        entry, head, _ = self._steps[-1]
        self._heads.pop(entry.run_id, None)
        self._new_heads.pop(entry.run_id, None)
        row = db.execute(self._sql["head_of"], (entry.run_id,)).fetchone()
        if entry.fence and row is not None and _Head(*row) == head:
            return LeaseLost(entry.run_id, entry.fence[0])
        return Conflict(entry.run_id)

    def _update_outbox(self, db: sqlite3.Connection, entry: Entry, key: int, offset: int) -> None:
        """What opens and closes is collected, and written before anything else happens to the outbox."""
        sql = self._sql
        for change in changes(entry.records):
            if type(change) is Opened:
                number, waits = change.number, waits_for(change.command)
                holder = entry.holder if waits in ("worker", "run") else None
                begun = int(number in entry.begun)
                self._opened.append((key, number, offset + number, waits, change.due, holder, begun, begun))
                continue
            if type(change) is Closed and change.number is not None:
                self._closed.append((key, change.number))
                continue
            self._write_outbox()
            if isinstance(change, Closed):
                db.execute(sql["close_all"], (key,))
                db.execute(sql["wake_parent"], (entry.records[-1].at, key, key))
            elif isinstance(change, Held):
                db.execute(sql["hold_command"], (key, change.number))
            elif isinstance(change, Released):
                db.execute(sql["release_command"], (change.due, key, change.number))

    def _write_outbox(self) -> None:
        """First all that opens: what opens and closes in the same commit is then gone."""
        if self._opened:
            self._writing.executemany(self._sql["open_command"], self._opened)
            self._opened.clear()
        if self._closed:
            self._writing.executemany(self._sql["close_command"], self._closed)
            self._closed.clear()

    def _forget_collected(self) -> None:
        for collected in (self._advances, self._steps, self._new_records, self._opened, self._closed):
            collected.clear()

    def _committed(self, done: bool) -> None:
        if done:
            self._heads.update(self._new_heads)
            if len(self._heads) > HEADS:
                self._heads.clear()
        self._new_heads.clear()
        self._forget_collected()

    def _explain(self, error: sqlite3.Error) -> JournalError:
        return explain(self._path, error)

    # Working

    async def enrol(self, now: int) -> int:
        holder: int = await self._commit.submit(lambda db: db.execute(self._sql["enrol"], (now + LEASE,)).lastrowid)
        self._liveness.enter(holder)
        await self._forget_the_dead(now)
        return holder

    async def _forget_the_dead(self, now: int) -> None:
        """Workers that were killed with nothing in hand: nobody takes over from them, so nobody else buries them."""
        marks = self._liveness.marks()  # before the list, so that whoever enrols just now is in it
        with _Explained(self._path):
            known = dict(self._reading.execute(self._sql["workers"]).fetchall())
        dead = [
            other
            for other, until in known.items()
            if until < now and (other not in marks or self._liveness.gone(other))
        ]
        if dead:
            await self._commit.submit(lambda db: self._bury(db, *dead))
        for other in [*dead, *(marks - known.keys())]:
            self._liveness.bury(other)

    async def heartbeat(self, holder: int, now: int) -> bool:
        return bool(
            await self._commit.submit(lambda db: db.execute(self._sql["heartbeat"], (now + LEASE, holder)).rowcount)
        )

    async def leave(self, holder: int) -> None:
        await self._commit.submit(lambda db: self._bury(db, holder))
        self._liveness.leave(holder)

    def _bury(self, db: sqlite3.Connection, *holders: int) -> None:
        for holder in holders:
            db.execute(self._sql["release_all"], (holder,))
            db.execute(self._sql["forget_worker"], (holder,))

    async def claim(self, holder: int, now: int, room: int, only: str | None = None) -> list[Task]:
        with _Explained(self._path):
            dead = [
                other
                for other, until in self._reading.execute(self._sql["holders"], (holder,)).fetchall()
                if until is None or until < now or self._liveness.gone(other)
            ]
            if not dead and not self._reading.execute(self._sql["due_now"], _due(now, 1, only)).fetchone():
                return []  # the usual case costs no write
        tasks: list[Task] = await self._commit.submit(lambda db: self._claim(db, dead, holder, _due(now, room, only)))
        for other in dead:
            self._liveness.bury(other)
        return tasks

    def _claim(self, db: sqlite3.Connection, dead: list[int], holder: int, due: dict[str, Any]) -> list[Task]:
        self._bury(db, *dead)
        tasks = []
        for key, run_id, number, attempt, state in db.execute(self._sql["due_now"], due).fetchall():
            db.execute(self._sql["take"], (holder, key, number))
            tasks.append(Task(run_id=run_id, number=number, attempt=attempt + 1, doubtful=state == 2))
        return tasks

    async def begin(self, run_id: str, number: int, holder: int) -> int:
        def begin(db: sqlite3.Connection) -> int:
            row = db.execute(self._sql["begin_attempt"], (run_id, number, holder)).fetchone()
            if row is None:
                raise LeaseLost(run_id, number)
            attempt: int = row[0]
            return attempt

        return int(await self._commit.submit(begin))

    async def retry(self, run_id: str, number: int, holder: int, at: int) -> None:
        await self._commit.submit(lambda db: db.execute(self._sql["retry"], (at, run_id, number, holder)).rowcount)

    async def park(self, run_id: str, number: int, holder: int) -> None:
        def park(db: sqlite3.Connection) -> None:
            me = (run_id, number, holder)
            if not db.execute(self._sql["park"], (*me, f"{run_id}.{number}")).rowcount:
                db.execute(self._sql["unpark"], me)

        await self._commit.submit(park)


def _due(now: int, room: int, only: str | None) -> dict[str, Any]:
    return {"now": now, "room": room, "only": only}


class _Explained:
    """Turns SQLite's errors into ours."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, sqlite3.Error):
            raise explain(self._path, error) from error
