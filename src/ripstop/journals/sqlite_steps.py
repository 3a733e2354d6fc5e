"""Steps on their way into the file: each is put in its place behind its run's end, then all are written together.

- A row holds a whole step. It names the row of its run before it, and its hash covers that one's.
- Each kind of row is written with one statement for the whole commit, which costs far less than step by step.
- `write` raises if somebody else was first with one of the runs, or has the command that a step answers. Then
  the commit is to be undone.
"""

import sqlite3
from typing import Any

from msgspec import Struct

from ripstop.kernel.errors import Conflict, LeaseLost
from ripstop.kernel.events import Record, Started
from ripstop.kernel.outbox import Change, Closed, Held, Opened, Released, changes
from ripstop.kernel.run import WAITS_FOR
from ripstop.runtime.ports import Entry

from . import chain
from .sql import queries

HEADS = 4096
"""Heads of runs kept in memory, so that an append needs no look-up."""

TAKEN = ("worker", "run")
"""What the worker that asks for it takes at once."""

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
        self._placed: list[tuple[Entry, Head, int]] = []
        self._rows: list[Row] = []
        self._advances: list[Row] = []
        self._moved: list[Row] = []
        self._answered: list[Row] = []
        self._opened: list[Row] = []
        self._closed: list[Row] = []

    # Placing

    def place(self, entry: Entry, body: bytes) -> None:
        """Put a step in its place. Raises `Conflict` if that is taken."""
        first, last = entry.records[0], entry.records[-1]
        number, at = first.number, first.at
        new = number == 1 or entry.fork
        head = self._create(entry) if new else self._head(entry.run_id, number - 1)
        digest = chain.link(head.digest, number, at, body)
        position = self._position() + 1
        hashed = bytearray(digest)  # which sqlite3 binds as it is; for bytes it first looks for an adapter, slowly
        self._rows.append((position, head.key, number, at, head.last, body.decode(), hashed))
        was = bytearray(head.digest)
        self._advances.append((last.number, position, hashed, entry.status, at, head.key, head.length, was))
        self._new_heads[entry.run_id] = Head(head.key, last.number, position, digest)
        self._placed.append((entry, head, position))

    def _position(self) -> int:
        """The last position taken so far, by the file or by this commit."""
        if self._rows:
            position: int = self._rows[-1][0]
        else:
            position = self._db.execute(self._sql["last_position"]).fetchone()[0]
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

    def _head(self, run_id: str, length: int) -> Head:
        """The end of a run that is `length` records long."""
        head = self._new_heads.get(run_id) or self._heads.get(run_id)
        if head is None or head.length != length:
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
            for entry, head, position in self._placed:
                for item in entry.blobs.items():
                    self._db.execute(self._sql["keep_blob"], item)
                self._update_outbox(entry, head.key, position)
                for record in entry.inherited:
                    self._inherit(entry, head.key, record)
            self._write_outbox()
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
        self._placed.clear()
        for rows in (self._rows, self._advances, self._moved, self._answered, self._opened, self._closed):
            rows.clear()

    def _changes(self, statement: str, rows: list[Row]) -> bool:
        """Whether a statement finds every one of its rows as it expects it."""
        return self._db.executemany(self._sql[statement], rows).rowcount == len(rows)

    def _failed(self) -> Entry:
        """A step that cannot be written: the last one, where there are several; each is tried again alone."""
        entry = self._placed[-1][0]
        self._heads.pop(entry.run_id, None)
        self._new_heads.pop(entry.run_id, None)
        return entry

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
            opened = _next_of(entry, found)
            if opened is not None:
                self._moved.append((*_opened(entry, opened, key, position), key, number, holder))
                return
            self._answered.append((key, number, holder))
        for change in found:
            if type(change) is Opened:
                self._opened.append(_opened(entry, change, key, position))
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
        position, _ = self._record_at(entry.fork[0], record.number)
        for change in changes([record]):
            assert isinstance(change, Opened)
            row = (key, record.number, position, WAITS_FOR[type(change.command)], change.due, None, 0, 0)
            self._opened.append(row)


def _next_of(entry: Entry, found: list[Change]) -> Opened | None:
    """The command that takes the place of the answered one, and stays with the same worker: nearly every answer leads
    to exactly one. It gets the same row of the outbox, which is cheaper than to close one and to open another."""
    assert entry.fence is not None
    number, holder = entry.fence
    if len(found) != 2 or entry.holder != holder:
        return None
    closed, opened = found
    if type(closed) is not Closed or closed.number != number or type(opened) is not Opened:
        return None
    return opened if WAITS_FOR[type(opened.command)] in TAKEN else None


def _opened(entry: Entry, opened: Opened, key: int, position: int) -> Row:
    number, waits = opened.number, WAITS_FOR[type(opened.command)]
    begun = int(number in entry.begun)
    return (key, number, position, waits, opened.due, entry.holder if waits in TAKEN else None, begun, begun)
