"""Steps on their way into the file: each is put in its place behind its run's end, then all are written together.

- A row holds a whole step. It names the row of its run before it, and its hash covers that one's.
- Each kind of row is written with one statement for the whole commit, which costs far less than step by step.
- `write` raises if somebody else was first with one of the runs, or has the command that a step answers. Then
  the commit is to be undone.
"""

import sqlite3
from typing import Any

from msgspec import Struct

from ripstop.journals import hash_chain as chain
from ripstop.journals.sqlite.sql import queries
from ripstop.kernel.errors import Conflict, LeaseLost
from ripstop.kernel.events import Record, Started
from ripstop.kernel.outbox import AT_ONCE, Change, Closed, Held, Opened, Released, changes
from ripstop.runtime.ports import Entry

HEADS = 4096
"""Heads of runs kept in memory, so that an append needs no look-up."""

Row = tuple[Any, ...]


class Head(Struct, frozen=True, gc=False):
    """Where a run ends."""

    key: int
    length: int
    last: int | None
    digest: bytes


class Steps:
    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._sql = queries()
        self._heads: dict[str, Head] = {}
        self._new_heads: dict[str, Head] = {}
        self._placed: list[tuple[Entry, int, int]] = []
        """Steps with their run's key and their position."""
        self._position = 0
        """The last position taken so far in this commit; 0: none."""
        self._rows: list[Row] = []
        self._advances: list[Row] = []
        self._moved: list[Row] = []
        self._answered: list[Row] = []
        self._opened: list[Row] = []
        self._closed: list[Row] = []

    # Placing

    def place(self, db: sqlite3.Connection, entry: Entry, body: bytes) -> None:
        """Put a step in its place; an operation of the group commit. Raises `Conflict` if that is taken."""
        run_id, records = entry.run_id, entry.records
        number, at = records[0].number, records[0].at
        length = number - 1
        if length and not entry.fork:
            head = self._new_heads.get(run_id) or self._heads.get(run_id)
            if head is None or head.length != length:
                head = self._head_in_file(run_id, length)
        else:
            head = self._create(entry)
        digest = chain.link(head.digest, number, at, body)
        position = self._position = (self._position or self._last_position()) + 1
        last = records[-1].number
        hashed = bytearray(digest)  # which sqlite3 binds as it is; for bytes it first looks for an adapter, slowly
        was = bytearray(head.digest)
        self._rows.append((position, head.key, number, at, head.last, body.decode(), hashed))
        self._advances.append((last, position, hashed, entry.status, at, head.key, head.length, was))
        self._new_heads[run_id] = Head(head.key, last, position, digest)
        self._placed.append((entry, head.key, position))

    def _last_position(self) -> int:
        position: int = self._db.execute(self._sql["last_position"]).fetchone()[0]
        return position

    def _create(self, entry: Entry) -> Head:
        first = entry.records[0]
        shared, length, position, style, parent = b"", 0, None, "", None
        if entry.fork:
            source, length = entry.fork
            (style,) = self._db.execute(self._sql["style_of"], (source,)).fetchone()
            position, shared = self._record_at(source, length)
        elif isinstance(first.event, Started):
            style, parent = first.event.style, first.event.parent
        digest = chain.first(entry.run_id, shared)
        origin = (*(parent or (None, None)), *(entry.fork or (None, 0)))
        row = (entry.run_id, style, entry.status, first.at, first.at, length, position, digest, *origin)
        cursor = self._db.execute(self._sql["create_run"], row)
        if not cursor.rowcount:
            raise Conflict(entry.run_id)
        assert cursor.lastrowid is not None
        self._db.execute(self._sql["count_run"])
        return Head(cursor.lastrowid, length, position, digest)

    def _record_at(self, run_id: str, number: int) -> tuple[int, bytes]:
        """Position and hash of the row that holds a record."""
        found: tuple[int, bytes] = self._db.execute(
            self._sql["record_at"], {"run": run_id, "number": number}
        ).fetchone()
        return found

    def _head_in_file(self, run_id: str, length: int) -> Head:
        """The end of a run, which has to be `length` records long."""
        row = self._db.execute(self._sql["head_of"], (run_id,)).fetchone()
        head = Head(*row) if row else None
        if head is None or head.length != length:
            self._heads.pop(run_id, None)
            raise Conflict(run_id)
        return head

    # Writing

    def write(self) -> None:
        """Write every step that was placed."""
        if not self._placed:
            return
        try:
            if not self._changes("advance_run", self._advances):
                raise self._overtaken()
            self._db.executemany(self._sql["add_record"], self._rows)
            moved: set[int] = set()
            for entry, key, position in self._placed:
                if entry.fence and key in moved:
                    self._write_outbox()  # an earlier step of this commit may have closed what this one answers
                moved.add(key)
                if entry.blobs:
                    self._db.executemany(self._sql["keep_blob"], entry.blobs.items())
                self._update_outbox(entry, key, position)
                for record in entry.inherited:
                    self._inherit(entry, key, record)
            self._write_outbox()
        except BaseException:
            for entry, _, _ in self._placed:
                self._heads.pop(entry.run_id, None)
                self._new_heads.pop(entry.run_id, None)
            raise
        finally:
            self._forget()

    def finish(self, done: bool) -> None:
        """The commit is on disk, or was undone."""
        if done:
            self._heads.update(self._new_heads)
            if len(self._heads) > HEADS:
                self._heads.clear()
        self._new_heads.clear()
        self._forget()

    def _forget(self) -> None:
        self._position = 0
        self._placed.clear()
        for rows in (self._rows, self._advances, self._moved, self._answered, self._opened, self._closed):
            rows.clear()

    def _changes(self, statement: str, rows: list[Row]) -> bool:
        """Whether a statement finds every one of its rows as it expects it."""
        return self._db.executemany(self._sql[statement], rows).rowcount == len(rows)

    def _failed(self) -> Entry:
        """A step that cannot be written: the last one, where there are several; each is tried again alone."""
        return self._placed[-1][0]

    def _overtaken(self) -> Conflict:
        return Conflict(self._failed().run_id)

    def _lost(self) -> LeaseLost:
        entry = self._failed()
        return LeaseLost(entry.run_id, entry.fence[0] if entry.fence else 0)

    # The outbox

    def _update_outbox(self, entry: Entry, key: int, position: int) -> None:
        """What opens and closes is collected, and written before anything else happens to the outbox."""
        found = changes(entry.records)
        if entry.fence:
            number, holder = entry.fence
            if len(found) == 2 and entry.holder == holder:
                # nearly every answer leads to exactly one command, which stays with the same worker. It gets the same
                # row, which is cheaper than to close one and to open another
                closed, opened = found
                answered = type(closed) is Closed and closed.number == number
                if answered and type(opened) is Opened and opened.waits in AT_ONCE:
                    begun = int(opened.number in entry.begun)
                    self._moved.append((opened.number, position, opened.waits, opened.due, begun, key, number, holder))
                    return
            self._answered.append((key, number, holder))
        for change in found:
            if type(change) is Opened:
                begun = int(change.number in entry.begun)
                taken = entry.holder if change.waits in AT_ONCE else None
                self._opened.append((key, change.number, position, change.waits, change.due, taken, begun, begun))
            elif type(change) is Closed and change.number is not None:
                self._closed.append((key, change.number))
            else:
                self._write_outbox()
                self._change_at_once(entry, key, change)

    def _write_outbox(self) -> None:
        """First all that opens: what opens and closes in the same commit is then gone."""
        if self._moved and not self._changes("move_on", self._moved):
            raise self._lost()
        if self._answered and not self._changes("still_held", self._answered):
            raise self._lost()
        if self._opened:
            self._db.executemany(self._sql["open_command"], self._opened)
        if self._closed:
            self._db.executemany(self._sql["close_command"], self._closed)
        for written in (self._moved, self._answered, self._opened, self._closed):
            written.clear()

    def _change_at_once(self, entry: Entry, key: int, change: Change) -> None:
        db, sql = self._db, self._sql
        if isinstance(change, Closed):
            db.execute(sql["close_all"], (key,))
            db.execute(sql["wake_parent"], (entry.records[-1].at, key, key))
        elif isinstance(change, Held):
            db.execute(sql["hold_command"], (key, change.number))
        elif isinstance(change, Released):
            db.execute(sql["release_command"], (change.due, key, change.number))

    def _inherit(self, entry: Entry, key: int, record: Record) -> None:
        """A fork asks on what the shared records asked and nobody answered."""
        assert entry.fork is not None
        for change in changes([record]):
            if isinstance(change, Opened):
                position, _ = self._record_at(entry.fork[0], record.number)
                row = (key, record.number, position, change.waits, change.due, None, 0, 0)
                self._opened.append(row)
            else:  # in doubt
                self._write_outbox()
                self._change_at_once(entry, key, change)
