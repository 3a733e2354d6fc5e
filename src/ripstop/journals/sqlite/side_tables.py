"""Is what no record and no hash covers at least possible? Totals, tombstones, content, documents, workers, followers.

- Nothing of this can be derived from the records alone, but most of it is tied to something else in the file, and
  every value has bounds. What is left is listed, with its reason, in `tests/journals/test_every_column.py`.
- Positions are given out one after the other, so as many are missing as steps were forgotten, and no more.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import msgspec

from ripstop.engine.ports import Damage
from ripstop.kernel.events import OUTCOMES

from ..blobs import as_bytes, is_genuine
from .derived import RunRow
from .file import BoundedConnection
from .schema import is_count, is_time
from .sql import queries

HASH_BYTES = 32


class SideTables:
    def __init__(self, db: BoundedConnection, runs: Mapping[int, RunRow]) -> None:
        self._db = db
        self._runs = runs
        self._run_ids = {run.run_id for run in runs.values()}
        self._forgotten: list[int] = []
        """The lengths of the runs that were forgotten."""

    def _rows(self, query: str) -> Iterator[tuple[Any, ...]]:
        return self._db.rows(queries()[query])

    def tombstones(self) -> list[Damage]:
        damage = []
        for run_id, at, outcome, length, head in self._rows("all_tombstones"):
            self._forgotten.append(length if is_count(length) else 0)
            if not isinstance(run_id, str) or not run_id:
                damage.append(_of_file("the tombstones have a row that is not of a run"))
                continue
            wrong = {
                "the run is in the list of runs": run_id in self._run_ids,
                "the time is not one": not is_time(at),
                f"{outcome!r} is not an outcome": outcome not in OUTCOMES,
                "the length is not one": not is_count(length) or length < 1,
                "the last hash is not one": not isinstance(head, bytes) or len(head) != HASH_BYTES,
            }
            damage += [
                Damage(run_id=run_id, number=0, text=f"the run has a tombstone, but {text}")
                for text, holds in wrong.items()
                if holds
            ]
        return damage

    def parents(self) -> list[Damage]:
        """Every run that started another is there, or was forgotten."""
        gone = {run_id for run_id, *_ in self._rows("all_tombstones")}
        return [
            Damage(run_id=run.run_id, number=0, text=f"the run that started it, {run.parent!r}, is missing")
            for run in self._runs.values()
            if run.parent is not None and run.parent not in self._run_ids and run.parent not in gone
        ]

    def totals(self, rows: int, last: int, sound: bool) -> list[Damage]:
        """Are there as many runs and steps as were ever written?

        Args:
            rows: Steps in the file, the last one at the position `last`.
            sound: No record is missing or was added, as far as the runs tell.
        """
        found = list(self._rows("totals"))
        if len(found) != 1 or not all(map(is_count, found[0])):
            return [_of_file("the totals are not one row of two numbers")]
        ((started, position),) = found
        damage, forgotten = [], len(self._forgotten)
        if started != len(self._runs) + forgotten:
            there = f"{len(self._runs)} are in the file and {forgotten} were forgotten"
            damage.append(_of_file(f"{started} runs were started, but {there}: some are missing or were added"))
        elif sound:
            missing = max(last, position) - rows
            if position and not forgotten:
                damage.append(_of_file("the totals count steps of forgotten runs, but no run was forgotten"))
            elif not forgotten <= missing <= sum(self._forgotten):
                damage.append(
                    _of_file(
                        f"{missing} positions have no step, but {forgotten} runs were forgotten: the totals are wrong"
                    )
                )
        return damage

    def contents(self) -> list[Damage]:
        damage = []
        for digest, body in self._rows("all_blobs"):
            if not is_genuine(as_bytes(body), digest):
                damage.append(_of_file(f"the content {str(digest)[:12]}… was changed"))
        for (digest,) in self._rows("unused_blobs"):
            damage.append(_of_file(f"the content {str(digest)[:12]}… is not used by any run"))
        for key, digest in self._rows("stray_uses"):
            text = f"the content {str(digest)[:12]}… is noted as used, but it or its run is not in the file"
            run = self._runs.get(key) if type(key) is int else None
            damage.append(Damage(run_id=run.run_id if run else "", number=0, text=text))
        return damage

    def documents(self, only: str | None, ends: Collection[tuple[int, int]]) -> list[Damage]:
        """`ends`: the steps after which something was projected, as (key of the run, number of its last record)."""
        damage = []
        for collection, key, body, owner, number in self._rows("all_documents"):
            run = self._runs.get(owner) if type(owner) is int else None
            if only is not None and (run is None or run.run_id != only):
                continue
            name = f"the document {str(key)[:80]!r} of {str(collection)[:80]!r}"
            if run is None:
                damage.append(_of_file(f"{name} belongs to a run that is not in the list"))
            elif not isinstance(collection, str) or not isinstance(key, str) or not _is_json(body):
                damage.append(Damage(run_id=run.run_id, number=0, text=f"{name} is not a document"))
            elif (owner, number) not in ends:
                text = f"{name} was projected after record {number!r}, with which no step of the run ends"
                damage.append(Damage(run_id=run.run_id, number=0, text=text))
        return damage

    def workers(self) -> list[Damage]:
        counted = list(self._rows("last_workers"))
        last = counted[0][1] if counted and type(counted[0][1]) is int else 0
        damage = []
        if len(counted) > 1 or any(name != "workers" or not is_count(number) for name, number in counted):
            damage.append(_of_file("the number of the last worker is not one"))
        for worker, until in self._rows("workers"):
            if not is_count(worker) or not is_time(until):
                damage.append(_of_file(f"the list of workers has a row that is not a worker: {worker!r}"))
            elif not 0 < worker <= last:
                damage.append(_of_file(f"worker {worker} was never enrolled: the last one is {last}"))
        return damage

    def followers(self, last: int) -> list[Damage]:
        """`last`: the last position."""
        damage = []
        for name, cursor in self._rows("all_followers"):
            known = isinstance(cursor, str) and (not cursor or (cursor.isdecimal() and len(cursor) < 20))
            if not isinstance(name, str) or not known or int(cursor or 0) > last:
                text = f"the follower {str(name)[:80]!r} is at {str(cursor)[:20]!r}, where no step is"
                damage.append(_of_file(text))
        return damage


def _of_file(text: str) -> Damage:
    return Damage(run_id="", number=0, text=text)


def _is_json(body: Any) -> bool:
    try:
        msgspec.json.decode(body)
    except (msgspec.DecodeError, TypeError, UnicodeDecodeError, RecursionError):
        return False
    return isinstance(body, bytes)
