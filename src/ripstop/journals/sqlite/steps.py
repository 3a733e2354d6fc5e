"""Steps on their way into the file: each is put in its place behind its run's end, then all are written together.

- A row holds a whole step. It names the row of its run before it, and its hash covers that one's.
- Each kind of row is written with one statement for the whole commit, which costs far less than step by step.
- `write` raises if another process was first with one of the runs, or has the command that a step answers. Then
  the commit is to be undone.
"""

import sqlite3
from collections.abc import Callable, Collection, Iterable, Sequence
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import Struct

from ripstop.engine.ports import LISTED, Entry, Prefixed, Scope, Tree
from ripstop.kernel.effects import RunFinished
from ripstop.kernel.errors import Conflict, JournalError, LeaseLost
from ripstop.kernel.events import Answered, Started
from ripstop.kernel.outbox import Change, Closed, Finished, Held, Opened, Released, Superseded

from .. import hash_chain
from ..blobs import used_in
from ..forgetting import belongs_to
from .schema import is_count
from .sql import queries

# Which commands are due: looked up by what they need, or within one family, so that what waits costs nothing.


NOT_BEGUN, BEGUN, BEGUN_UNSAFE, IN_DOUBT, SUPERSEDED = range(5)
"""States of a row."""
Query = Callable[[str, Any], Iterable[tuple[Any, ...]]]
MAX_FAMILIES = 100
"""Families of named runs that a family waits for, directly or not."""


class SqliteOutbox:
    def __init__(self) -> None:
        self._sql = queries()

    def due(
        self, query: Query, now: int, room: int, scope: Scope, offers: Sequence[str], refused: Collection[str] | None
    ) -> list[tuple[Any, ...]]:
        """Up to `room` rows, those first that are due first.

        They are (run, id, number, attempt, state, woken, due, awaits, is set aside).
        """
        if isinstance(scope, Tree):
            given = {**self._within(query, scope, offers), "now": now, "room": room}
            return list(query(self._sql["due_now_in"], given))
        if isinstance(scope, Prefixed):
            given = {**_named(scope, offers, refused), "now": now, "room": room}
            return list(query(self._sql["due_now_named"], given))
        found: list[tuple[Any, ...]] = []
        given = {"now": now, "room": room, "refused": _json_or_null(refused)}
        for needs in offers:
            found += query(self._sql["due_now"], {**given, "needs": needs})
        return sorted(found, key=lambda row: (row[6], row[0], row[2]))[:room] if len(offers) > 1 else found

    def next_due(self, query: Query, scope: Scope, offers: Sequence[str], refused: Collection[str] | None) -> list[int]:
        """The times of which the first is wanted."""
        if isinstance(scope, Tree):
            rows = list(query(self._sql["next_due_in"], self._within(query, scope, offers)))
        elif isinstance(scope, Prefixed):
            rows = list(query(self._sql["next_due_named"], _named(scope, offers, refused)))
        else:
            own = _json_or_null(refused)
            rows = [row for needs in offers for row in query(self._sql["next_due"], {"needs": needs, "refused": own})]
        return [due for (due,) in rows if due is not None]

    def _within(self, query: Query, scope: Tree, offers: Sequence[str]) -> dict[str, Any]:
        return {"roots": _json(self._families(query, scope.run_id)), "offers": _json(offers)}

    def _families(self, query: Query, run_id: str) -> list[str]:
        """The root of a run's family, and those of the named runs that it waits for, directly or not."""
        found = [str(root) for (root,) in query(self._sql["root_of"], (run_id,))]
        for root in found:
            for (other,) in query(self._sql["awaited_roots"], (root,)):
                if other not in found and len(found) < MAX_FAMILIES:
                    found.append(other)
        return found


def _named(scope: Prefixed, offers: Sequence[str], refused: Collection[str] | None) -> dict[str, Any]:
    first, behind = scope.bounds
    return {"first": first, "behind": behind, "offers": _json(offers), "refused": _json_or_null(refused)}


def _json(texts: Collection[str]) -> str:
    return msgspec.json.encode(list(texts)).decode()


def _json_or_null(texts: Collection[str] | None) -> str | None:
    return None if texts is None else _json(texts)


HEADS = 4096
"""Heads of runs kept in memory, so that an append needs no look-up."""

Row = tuple[Any, ...]
_encode = msgspec.json.Encoder(order="deterministic").encode
_listed = attrgetter(*LISTED)


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
        self._moved_with_needs: list[Row] = []
        self._answered: list[Row] = []
        self._opened: list[Row] = []
        self._closed: list[Row] = []
        self._documents: list[Row] = []
        self._enrolled: dict[int | None, bool] = {}
        """Whether a worker is in the list, as long as this commit is written."""

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
        digest = hash_chain.link(head.digest, number, at, body)
        position = self._position = (self._position or self._last_position()) + 1
        last = records[-1].number
        # bytearrays, which sqlite3 binds as they are; for bytes it first looks for an adapter, slowly
        key, hashed, was = head.key, bytearray(digest), bytearray(head.digest)
        self._rows.append((position, key, number, at, head.last, body.decode(), hashed))
        self._advances.append((last, position, hashed, at, *_listed(entry), key, head.length, was))
        self._new_heads[run_id] = Head(key, last, position, digest)
        self._placed.append((entry, key, position))

    def _last_position(self) -> int:
        row = self._db.execute(self._sql["last_position"]).fetchone()
        if not row or not is_count(row[0]):
            raise JournalError("The journal is damaged: where its last record is, is not a number.")
        return int(row[0])

    def _create(self, entry: Entry) -> Head:
        first = entry.records[0]
        shared, length, position, style, parent = b"", 0, None, "", None
        root = entry.run_id
        if entry.fork:
            source, length = entry.fork
            found = self._db.execute(self._sql["style_of"], (source,)).fetchone()
            if found is None:
                raise Conflict(source)  # it was forgotten in the meantime
            (style,) = found
            position, shared = self._record_at(source, length)
        elif isinstance(first.event, Started):
            style, parent = first.event.style, first.event.parent
            root = self._root(entry.run_id, parent)
        digest = hash_chain.first(entry.run_id, shared)
        origin = (root, *(parent or (None, None)), *(entry.fork or (None, 0)))
        row = (entry.run_id, style, entry.status, first.at, first.at, length, position, digest, *origin)
        forgotten = self._db.execute(self._sql["is_forgotten"], (entry.run_id,)).fetchone()
        cursor = self._db.execute(self._sql["create_run"], row)
        if forgotten or not cursor.rowcount:
            raise Conflict(entry.run_id)
        assert cursor.lastrowid is not None
        self._db.execute(self._sql["count_run"])
        return Head(cursor.lastrowid, length, position, digest)

    def _root(self, run_id: str, parent: tuple[str, int] | None) -> str:
        """A child that belongs to its parent is in its parent's family; a named one has its own family."""
        if parent is None or not belongs_to(run_id, parent[0]):
            return run_id
        row = self._db.execute(self._sql["root_of"], (parent[0],)).fetchone()
        return str(row[0]) if row else run_id

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
                fact = entry.records[0].event
                # else a step refers to no content
                if entry.blobs or (type(fact) is Answered and type(fact.answer) is RunFinished):
                    used = used_in(entry.records)
                    self._db.executemany(self._sql["keep_blob"], entry.blobs.items())
                    self._db.executemany(self._sql["use_blob"], [(digest, key) for digest in used | entry.blobs.keys()])
                self._update_outbox(entry, key, position)
                if entry.documents:
                    self._keep_documents(entry, key)
            self._write_outbox()
            self._write_documents()
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

    def forget_heads(self) -> None:
        """Runs may be gone: look each up again before it is appended to."""
        self._heads.clear()

    def _forget(self) -> None:
        if not self._position:
            return  # nothing was placed since
        self._position = 0
        self._placed.clear()
        for rows in (self._rows, self._advances, self._moved, self._moved_with_needs):
            rows.clear()
        for rows in (self._answered, self._opened, self._closed, self._documents):
            rows.clear()
        self._enrolled.clear()

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
        found = entry.changes
        if entry.fence:
            if len(found) == 2 and self._move(entry, entry.fence, found[0], found[1], key, position):
                return
            self._answered.append((key, *entry.fence))
        # only a worker in the list can hold a command: who else would release it?
        taker = entry.worker_id if entry.taken and self._is_enrolled(entry.worker_id) else None
        for change in found:
            if type(change) is Opened:
                taken = taker if change.number in entry.taken else None
                begun = int(taken is not None and change.number in entry.begun)
                asked = position if change.number >= entry.records[0].number else self._shared(entry, change.number)
                kept = (change.needs, change.awaits or None)
                row = (key, change.number, asked, change.waits, change.due, taken, begun, begun, *kept)
                self._opened.append(row)
            elif type(change) is Closed:
                self._closed.append((key, change.number))
            else:
                self._write_outbox()
                self._change_at_once(key, change)

    def _is_enrolled(self, worker_id: int | None) -> bool:
        found = self._enrolled.get(worker_id)
        if found is None:
            found = self._enrolled[worker_id] = (
                self._db.execute(self._sql["is_enrolled"], (worker_id,)).fetchone() is not None
            )
        return found

    def _move(
        self, entry: Entry, fence: tuple[int, int], closed: Change, opened: Change, key: int, position: int
    ) -> bool:
        """Nearly every answer leads to exactly one command, which stays with the same worker. It gets the same row,
        which is cheaper than to close one and to open another."""
        number, worker_id = fence
        if type(closed) is not Closed or closed.number != number or type(opened) is not Opened:
            return False
        if entry.worker_id != worker_id or opened.number not in entry.taken:
            return False
        begun = 1 if opened.number in entry.begun else 0
        row = (opened.number, position, opened.waits, opened.due, begun, key, number, worker_id)
        if closed.plain and not opened.needs and not opened.awaits:
            self._moved.append(row)
        else:
            self._moved_with_needs.append((*row, opened.needs, opened.awaits or None))
        return True

    def _shared(self, entry: Entry, number: int) -> int:
        """The position of a command that an earlier step asked for: one that a fork shares, or that is reopened."""
        source = entry.fork[0] if entry.fork else entry.run_id
        return self._record_at(source, number)[0]

    def _write_outbox(self) -> None:
        """First all that opens: what opens and closes in the same commit is then gone."""
        if self._moved and not self._changes("move_on", self._moved):
            if len(self._placed) > 1:
                raise self._lost()  # each is tried again alone
            self._moved_with_needs += [(*row, "", None) for row in self._moved]  # it may have awaited a question's run
        if self._moved_with_needs and not self._changes("move_on_with_needs", self._moved_with_needs):
            raise self._lost()
        if self._answered and not self._changes("still_held", self._answered):
            raise self._lost()
        if self._opened:
            self._db.executemany(self._sql["open_command"], self._opened)
        if self._closed:
            self._db.executemany(self._sql["close_command"], self._closed)
        for written in (self._moved, self._moved_with_needs, self._answered, self._opened, self._closed):
            written.clear()

    def _change_at_once(self, key: int, change: Change) -> None:
        db, sql = self._db, self._sql
        match change:
            case Superseded(number=number, at=at, undo=undo):
                if not undo:
                    db.execute(sql["drop_unheld"], (key, number))
                db.execute(sql["supersede"], {"at": at, "undo": undo, "run": key, "number": number})
            case Held(number=number):
                db.execute(sql["hold_command"], (key, number))
            case Released(number=number, due=at, unless_begun=unless_begun):
                db.execute(sql["release_command"], (at, key, number, unless_begun))
            case Finished(run=run_id, at=at):
                db.execute(sql["wake"], (at, run_id))

    def _keep_documents(self, entry: Entry, key: int) -> None:
        for document in entry.documents:
            place = (document.collection, document.key)
            if document.body is None:
                self._write_documents()  # those of earlier steps come first
                self._db.execute(self._sql["drop_document"], place)
            else:
                self._documents.append((*place, _encode(document.body), key, entry.records[-1].number))

    def _write_documents(self) -> None:
        if self._documents:
            self._db.executemany(self._sql["keep_document"], self._documents)
            self._documents.clear()
