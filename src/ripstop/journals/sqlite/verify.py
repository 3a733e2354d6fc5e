"""Is every record the one that was written? Recomputes every hash, from the file alone, in one pass.

- SQLite looks first whether the file is sound as a file. What it cannot read any more is damage too, not an error.
- Then the records, and, of runs whose records are sound, what is derived from them (`derived`).
- Then what is beside them, and cannot be derived: whether it is possible at all (`side_tables`).
"""

import sqlite3
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, get_type_hints

from ripstop.engine.ports import MOST_RECORDS, Damage
from ripstop.kernel.codec import Codec
from ripstop.kernel.errors import UnknownRecord
from ripstop.kernel.events import Event

from .. import hash_chain
from ..blobs import NAMES_A_DEFINITION, as_bytes, named_in, pinned_for
from .derived import RUN_COLUMNS, Derived, OpenRow, RunRow
from .file import BoundedConnection, primary_code
from .schema import is_time
from .side_tables import SideTables
from .sql import queries

MOST_TOLD = 20
"""Complaints of SQLite that are passed on; a file that was cut in half has thousands."""
DAMAGED = (
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_ERROR,
    sqlite3.SQLITE_INTERRUPT,
    sqlite3.SQLITE_TOOBIG,
)
"""Errors of SQLite that the file is to blame for: a broken page, a value without an end, pages that go round."""
RUN_TYPES = tuple(get_type_hints(RunRow)[name] for name in RUN_COLUMNS)
STEP_TYPES = (int, int, int, int, int | None, str | bytes, bytes)
OPEN_TYPES = (int, int, int, str, int | None, int | None, int, int, str, str | None, int)


class _Seen(NamedTuple):
    """The end of a run as far as the pass has come."""

    number: int
    position: int | None
    digest: bytes


class _Step(NamedTuple):
    """A row of the file."""

    position: int
    number: int
    at: int
    before: int | None
    body: bytes
    stored: bytes


def verify(db: BoundedConnection, codec: Codec, only: str | None) -> list[Damage]:
    db.execute("BEGIN")  # one view of the file, even while others write
    try:
        damage = _readable(lambda: _of_the_file(db))
        check = _Check(db, codec, only)
        for look in (check.runs, check.records, check.ends, check.derived, check.documents):
            damage += _readable(look)
        apart = (check.tombstones, check.contents, check.workers, check.totals, check.followers, check.identity)
        for look in () if only else apart:
            damage += _readable(look)
        return damage
    finally:
        if db.in_transaction:  # some errors end it; and a damaged file refuses even an empty commit
            db.execute("ROLLBACK")


def check_run(db: BoundedConnection, codec: Codec, run_id: str) -> list[Damage]:
    """What is wrong with one run, by its own rows and those it shares. Nothing else in the file is read."""
    db.execute("BEGIN")
    try:
        check = _Check(db, codec, run_id, alone=True)
        return [found for look in (check.runs, check.records, check.ends, check.derived) for found in _readable(look)]
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def _readable(look: Callable[[], list[Damage]]) -> list[Damage]:
    """What a check of the file finds; a file that cannot be checked is also reported."""
    try:
        return look()
    except sqlite3.DatabaseError as error:
        if primary_code(error) not in DAMAGED:
            raise
        return [Damage(run_id="", number=0, text=f"part of the file cannot be read (SQLite: {error})")]
    except (TypeError, ValueError, LookupError, ArithmeticError) as error:
        # whatever it is that we did not think of: a file that cannot be understood is not what was written
        return [Damage(run_id="", number=0, text=f"part of the file cannot be understood ({error})")]


def check_outbox(db: BoundedConnection) -> list[Damage]:
    """What SQLite finds wrong with the outbox, whose indexes alone tell what is to be done. It is a small table."""
    return _readable(lambda: _of_the_file(db, "outbox"))


def _of_the_file(db: BoundedConnection, table: str = "") -> list[Damage]:
    rows = db.rows(f"PRAGMA integrity_check({table or MOST_TOLD})")
    lines = [line for (text,) in rows for line in str(text).splitlines() if line != "ok"]
    return [Damage(run_id="", number=0, text=f"the file is damaged (SQLite: {line})") for line in lines[:MOST_TOLD]]


class _Check:
    def __init__(self, db: BoundedConnection, codec: Codec, only: str | None, alone: bool = False) -> None:
        """`alone`: read nothing but what the run `only` needs; then the runs it shares records with are not whole."""
        self._db = db
        self._codec = codec
        self._only = only
        self._alone = alone
        self._runs: dict[int, RunRow] = {}
        self._seen: dict[int, _Seen] = {}
        self._broken: set[str] = set()
        """Runs whose records are not what was written, so that nothing can be derived from them."""
        self._foreign: set[str] = set()
        """Runs of styles that are not known here: only their hashes can be checked."""
        self._strangers: set[Any] = set()
        self._derived = Derived(())
        self._side = SideTables(db, self._runs)
        self._rows_read = 0
        self._last_position = 0
        self._documented: set[tuple[int, int]] = set()
        """Steps that documents say they were projected after, as (key of the run, number of the last record) …"""
        self._projected: set[tuple[int, int]] = set()
        """… and those of them that there are."""
        self._followed: set[str] = set()
        """Runs whose records are needed: the wanted ones, and those that they share records with."""

    def runs(self) -> list[Damage]:
        """The list of runs, which everything else goes by."""
        damage = []
        for row in _in_order(self._rows("all_runs", "runs_behind")):
            if _typed(row, RUN_TYPES) and 0 < row[0] < MOST_RECORDS:
                self._runs[row[0]] = RunRow(**dict(zip(RUN_COLUMNS, row, strict=True)))
            else:
                damage.append(
                    Damage(run_id="", number=0, text=f"the list of runs has a row that is not a run: {row[1]!r}")
                )
        workers = self._db.rows(queries()["workers"])
        whole = self._only is None
        self._derived = Derived(self._runs.values(), frozenset(worker for worker, _ in workers), whole)
        self._side = SideTables(self._db, self._runs)
        if not self._alone:
            self._documented = set(self._db.rows(queries()["projected"]))
        wanted = [run.run_id for run in self._runs.values() if self._wanted(run)]
        self._followed = {source for run_id in wanted for source in self._derived.sources(run_id)}
        return damage

    def _rows(self, of_all: str, of_one: str) -> Iterator[tuple[Any, ...]]:
        query, given = (of_one, {"run": self._only}) if self._alone else (of_all, {})
        return self._db.rows(queries()[query], given)

    def _wanted(self, run: RunRow) -> bool:
        return self._only in (None, run.run_id)

    def records(self) -> list[Damage]:
        """Every row, in the order in which they were written."""
        damage: list[Damage] = []
        for row in _in_order(self._rows("all_records", "records_of")):
            self._rows_read += 1
            self._last_position = row[0]
            run = self._runs.get(row[1])
            if run is None:
                damage += self._strange(row[1], row[2], "a record belongs to a run")
            elif run.run_id in self._followed:
                found = self._damage_of(run, row)
                if found:
                    self._broken.add(run.run_id)
                damage += found if self._alone or self._wanted(run) else []
        return damage

    def _strange(self, key: Any, number: int, what: str) -> list[Damage]:
        """Report data of a run that is not in the list, once for each such run."""
        if self._only is not None or key in self._strangers:
            return []
        self._strangers.add(key)
        return [Damage(run_id="", number=number, text=f"{what} that is not in the list")]

    def _damage_of(self, run: RunRow, row: tuple[Any, ...]) -> list[Damage]:
        if not (_typed(row, STEP_TYPES) and 0 < row[0] < MOST_RECORDS):
            text = f"row {row[0]} of the records does not hold a record"
            return [Damage(run_id=run.run_id, number=0, text=text)]
        position, _, number, at, before, body, stored = row
        return self._damage(run, _Step(position, number, at, before, as_bytes(body), stored))

    def _damage(self, run: RunRow, step: _Step) -> list[Damage]:
        seen = self._seen.get(run.key) or self._beginning(run)
        damage: list[Damage] = []

        def report(place: int, text: str) -> None:
            damage.append(Damage(run_id=run.run_id, number=place, text=text))

        events: list[Event] = []
        foreign = 0
        try:
            events = self._codec.load_step(step.body)
        except (UnknownRecord, UnicodeDecodeError) as error:
            # a run of a style that is not installed here is sound if its hashes are; nothing can be derived from it
            foreign = self._codec.foreign_events(step.body)
            if foreign:
                self._foreign.add(run.run_id)
            else:
                report(step.number, str(error))
        last = step.number + max(len(events), foreign, 1) - 1
        which = f"records {step.number} to {last} are" if last > step.number else "the record is"
        if step.number > seen.number + 1:
            report(seen.number + 1, f"records {seen.number + 1} to {step.number - 1} are missing")
        elif step.number <= seen.number or step.before != seen.position:
            report(step.number, f"{which} in the wrong place: after record {seen.number}")
        if hash_chain.link(seen.digest, step.number, step.at, step.body) != step.stored:
            were = f"records {step.number} to {last} were" if last > step.number else "the record was"
            report(step.number, f"{were} changed, moved or inserted: the hash does not fit the one before it")
        self._seen[run.key] = _Seen(last, step.position, step.stored)
        if (run.key, last) in self._documented:
            self._projected.add((run.key, last))
        unfit = self._derived.follow(run, step.position, step.number, step.at, events)
        damage += [
            found for number, event in enumerate(events, step.number) for found in self._unkept(run, number, event)
        ]
        if unfit and not damage:
            report(step.number, unfit)
        return damage

    def _unkept(self, run: RunRow, number: int, event: Event) -> list[Damage]:
        """Content that an event needs, and that is missing, or would be forgotten with another run."""
        damage = []
        pinned = self._pinned(run) if isinstance(event, NAMES_A_DEFINITION) else ()
        for digest in (*named_in(event), *pinned):
            if not self._db.execute(queries()["blob"], (digest,)).fetchone():
                text = f"the content {digest[:12]}… is missing from the file"
            elif not self._db.execute(queries()["is_used"], (run.key, digest)).fetchone():
                text = f"the content {digest[:12]}… is not noted as used by the run"
            else:
                continue
            damage.append(Damage(run_id=run.run_id, number=number, text=text))
        return damage

    def _pinned(self, run: RunRow) -> set[str]:
        """The definitions that a run and its descendants can start, by hash."""
        definition, pinned = self._derived.family_of(run.run_id)
        row = self._db.execute(queries()["blob"], (pinned,)).fetchone() if pinned else None
        return pinned_for(as_bytes(row[0]), definition) if row else set()

    def _beginning(self, run: RunRow) -> _Seen:
        """What is before a run's own first record: nothing, or the step that holds the last one a fork shares."""
        if run.fork_of is None:
            return _Seen(0, None, hash_chain.first(run.run_id))
        row = self._db.execute(queries()["record_at"], {"run": run.fork_of, "number": run.fork_at}).fetchone()
        position, digest = row or (None, b"")
        return _Seen(run.fork_at, position, hash_chain.first(run.run_id, digest if isinstance(digest, bytes) else b""))

    def ends(self) -> list[Damage]:
        """Is each run as long as it says, and its last record the one it names?"""
        damage = []
        for run in self._runs.values():
            if run.run_id not in self._followed or (self._alone and not self._wanted(run)):
                continue
            seen = self._seen.get(run.key) or self._beginning(run)
            if seen.number < run.length:
                text = f"the end was cut off: records {seen.number + 1} to {run.length} are missing"
            elif seen.number > run.length:
                text = f"records {run.length + 1} to {seen.number} were added behind the run's end"
            elif seen.digest != run.head or seen.position != run.last:
                text = "the run's last record is not the one it names"
            else:
                continue
            self._broken.add(run.run_id)
            if self._wanted(run):
                damage.append(Damage(run_id=run.run_id, number=min(seen.number, run.length) + 1, text=text))
        return damage

    def derived(self) -> list[Damage]:
        """The list of runs and the outbox, compared with the records of the runs that are sound."""
        damage: list[Damage] = []
        rows: dict[int, dict[int, OpenRow]] = {}
        mistyped: set[tuple[str, int]] = set()
        for key, number, *row in self._rows("all_open", "open_of"):
            if not _typed((key, number, *row), OPEN_TYPES):
                run_id = self._runs[key].run_id if type(key) is int and key in self._runs else ""
                if run_id and type(number) is int:
                    mistyped.add((run_id, number))
                    text = "the outbox has the command, but with a value of the wrong type"
                    damage.append(Damage(run_id=run_id, number=number, text=text))
                else:
                    text = f"the outbox has a row that is not a command: {number!r}"
                    damage.append(Damage(run_id="", number=0, text=text))
            elif key in self._runs:
                rows.setdefault(key, {})[number] = OpenRow(*row)
            else:
                damage += self._strange(key, number, "the outbox has a command of a run")
        for run in self._runs.values():
            if self._wanted(run) and (self._broken | self._foreign).isdisjoint(self._derived.sources(run.run_id)):
                wrong = [(0, text) for text in self._derived.wrong_in_list(run)]
                wrong += self._derived.wrong_in_outbox(run, rows.get(run.key, {}))
                damage += [
                    Damage(run_id=run.run_id, number=number, text=text)
                    for number, text in wrong
                    if (run.run_id, number) not in mistyped
                ]
        return damage

    # What is beside the records

    def documents(self) -> list[Damage]:
        return self._side.documents(self._only, self._projected)

    def tombstones(self) -> list[Damage]:
        return self._side.tombstones() + self._side.parents()

    def contents(self) -> list[Damage]:
        return self._side.contents()

    def workers(self) -> list[Damage]:
        return self._side.workers()

    def totals(self) -> list[Damage]:
        return self._side.totals(self._rows_read, self._last_position, not self._broken and not self._strangers)

    def followers(self) -> list[Damage]:
        ((last,),) = self._db.rows(queries()["last_position"])
        return self._side.followers(last)

    def identity(self) -> list[Damage]:
        rows = list(self._db.rows(queries()["identity"]))
        right = len(rows) < 2 and all(isinstance(id, str) and is_time(copied) for id, copied in rows)
        return [] if right else [Damage(run_id="", number=0, text="the journal's identity is not one")]


def _in_order(rows: Iterator[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """Rows of a table by their keys. A key that comes again is on a page that others refer to more than once."""
    last = None
    for row in rows:
        if last is not None and not row[0] > last:
            raise sqlite3.DatabaseError("rows come again or in the wrong order")
        last = row[0]
        yield row


def _typed(row: tuple[Any, ...], types: tuple[Any, ...]) -> bool:
    """SQLite lets any type be in any column."""
    return all(map(isinstance, row, types))
