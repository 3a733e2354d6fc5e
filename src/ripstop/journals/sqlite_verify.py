"""Is every record the one that was written? Recomputes every hash, from the file alone, in one pass."""

import hashlib
import sqlite3
from typing import NamedTuple

from ripstop.kernel.codec import Codec
from ripstop.kernel.errors import UnknownRecord
from ripstop.kernel.events import Event, Forked, Started
from ripstop.runtime.ports import Damage

from . import chain
from .sql import queries


class _Run(NamedTuple):
    key: int
    run_id: str
    length: int
    last: int | None
    head: bytes
    fork_of: str | None
    fork_at: int


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


def verify(db: sqlite3.Connection, codec: Codec, only: str | None) -> list[Damage]:
    db.execute("BEGIN")  # one view of the file, even while others write
    try:
        check = _Check(db, codec, only)
        return check.records() + check.ends() + ([] if only else check.whole())
    finally:
        db.execute("COMMIT")


class _Check:
    def __init__(self, db: sqlite3.Connection, codec: Codec, only: str | None) -> None:
        self._db = db
        self._codec = codec
        self._only = only
        self._runs = {row[0]: _Run(*row) for row in db.execute(queries()["all_runs"])}
        self._seen: dict[int, _Seen] = {}

    def _wanted(self, run: _Run) -> bool:
        return self._only in (None, run.run_id)

    def records(self) -> list[Damage]:
        """Every row, in the order in which they were written."""
        damage: list[Damage] = []
        for position, key, number, at, before, body, stored in self._db.execute(queries()["all_records"]):
            run = self._runs.get(key)
            if run is None and self._only is None:
                text = "a record belongs to a run that is not in the list"
                damage.append(Damage(run_id="", number=number, text=text))
            elif run is not None and self._wanted(run):
                step = _Step(position, number, at, before, _bytes(body), bytes(stored))
                damage += self._damage(run, step)
        return damage

    def _damage(self, run: _Run, step: _Step) -> list[Damage]:
        seen = self._seen.get(run.key) or self._beginning(run)
        damage: list[Damage] = []

        def report(place: int, text: str) -> None:
            damage.append(Damage(run_id=run.run_id, number=place, text=text))

        events: list[Event] = []
        try:
            events = self._codec.load_step(step.body)
        except UnknownRecord as error:
            report(step.number, str(error))
        last = step.number + max(len(events), 1) - 1
        which = f"records {step.number} to {last} stand" if last > step.number else "the record stands"
        if step.number > seen.number + 1:
            report(seen.number + 1, f"records {seen.number + 1} to {step.number - 1} are missing")
        elif step.number <= seen.number or step.before != seen.position:
            report(step.number, f"{which} in the wrong place: after record {seen.number}")
        if chain.link(seen.digest, step.number, step.at, step.body) != step.stored:
            were = f"records {step.number} to {last} were" if last > step.number else "the record was"
            report(step.number, f"{were} changed, moved or inserted: the hash does not fit the one before it")
        for number, event in enumerate(events, step.number):
            definition = event.definition if isinstance(event, Started | Forked) else None
            if definition and not self._db.execute(queries()["blob"], (definition,)).fetchone():
                report(number, f"the definition {definition[:12]}… is missing from the file")
        self._seen[run.key] = _Seen(last, step.position, step.stored)
        return damage

    def _beginning(self, run: _Run) -> _Seen:
        """What stands before a run's own first record: nothing, or the step that holds the last one a fork shares."""
        if run.fork_of is None:
            return _Seen(0, None, chain.first(run.run_id))
        row = self._db.execute(queries()["record_at"], {"run": run.fork_of, "number": run.fork_at}).fetchone()
        position, digest = row or (None, b"")
        return _Seen(run.fork_at, position, chain.first(run.run_id, digest))

    def ends(self) -> list[Damage]:
        """Is each run as long as it says, and its last record the one it names?"""
        damage = []
        for run in self._runs.values():
            if not self._wanted(run):
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
            damage.append(Damage(run_id=run.run_id, number=min(seen.number, run.length) + 1, text=text))
        return damage

    def whole(self) -> list[Damage]:
        """Are there as many runs as were started, and is every definition what it was?"""
        damage = []
        (started,) = self._db.execute(queries()["counted"]).fetchone() or (0,)
        if started != len(self._runs):
            text = f"{started} runs were started, and {len(self._runs)} are in the file: some are missing or were added"
            damage.append(Damage(run_id="", number=0, text=text))
        for digest, body in self._db.execute(queries()["all_blobs"]):
            if hashlib.sha256(_bytes(body)).hexdigest() != digest:
                damage.append(Damage(run_id="", number=0, text=f"the definition {digest[:12]}… was changed"))
        return damage


def _bytes(body: str | bytes) -> bytes:
    return body.encode() if isinstance(body, str) else bytes(body)
