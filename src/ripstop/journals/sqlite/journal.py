"""A journal in one SQLite file, which several processes may use at the same time.

- WAL, `synchronous=FULL`: what `append` has returned for survives a crash and a power cut.
- All writing goes through one group commit per process; reading has a connection of its own.
- Appending is optimistic: it changes nothing unless the run is exactly as long as expected, and,
  for an answer, unless the worker still holds the command it answers (`sqlite_steps`).
- What is open is derived from the records in the same transaction (`kernel.outbox`).
"""

import sqlite3
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

from ripstop.journals.blobs import genuine
from ripstop.journals.sqlite.sql import queries
from ripstop.kernel.codec import Codec
from ripstop.kernel.effects import AskPerson
from ripstop.kernel.errors import JournalError, LeaseLost
from ripstop.kernel.events import Asked, Record
from ripstop.runtime.ports import ClaimedCommand, Damage, Entry, Question, RunInfo

from .columns import is_count, is_time
from .file import connect, explain
from .group_commit import GroupCommit
from .liveness import Liveness
from .steps import Steps
from .verify import check_outbox, check_run, verify
from .write_queue import WriteQueue

LEASE = 30_000_000
"""How long a worker counts as alive after a heartbeat, where a lock cannot tell."""


class SqliteJournal:
    def __init__(self, path: str | Path, codec: Codec, create: bool = True) -> None:
        """Open the journal in a file. Without `create` raises `JournalNotFound` if there is none, and makes nothing."""
        self._path = Path(path)
        self._codec = codec
        self._sql = queries()
        self._writing = connect(self._path, create)
        self._reading = connect(self._path, create)
        self._liveness = Liveness(self._path)
        self._steps = Steps(self._writing)
        self._commit = GroupCommit(
            self._writing,
            WriteQueue(self._path),
            self._steps.write,
            self._steps.finish,
            self._explain,
        )
        self._seen = self._data_version()
        self._outbox_damage: list[Damage] | None = None
        """What SQLite finds wrong with the outbox and its indexes; `None`: not looked at yet."""

    @property
    def path(self) -> Path:
        return self._path

    async def close(self) -> None:
        await self._commit.drain()
        self._commit.close()
        self._liveness.close()
        self._reading.close()
        self._writing.close()

    # Reading

    async def read(self, run_id: str, after: int = 0) -> list[Record]:
        with _Explained(self._path):
            rows = list(self._reading.rows(self._sql["story"], {"run": run_id, "after": after}))
        found: list[Record] = []
        for first, at, body in reversed(rows):
            self._expect(is_count(first) and is_time(at) and isinstance(body, (str, bytes)), f"a record of {run_id!r}")
            if found:  # a fork may go on in the middle of a step
                del found[first - found[0].number :]
            found += [Record(number, at, event) for number, event in enumerate(self._codec.load_step(body), first)]
        return [record for record in found if record.number > after] if found and found[0].number <= after else found

    async def blob(self, digest: str) -> bytes:
        with _Explained(self._path):
            row = next(self._reading.rows(self._sql["blob"], (digest,)), None)
        if row is None:
            raise JournalError(f"{self._path}: the content {digest[:12]}… is missing. `ripstop verify` tells more.")
        return genuine(row[0], digest, str(self._path))

    async def latest(self) -> int:
        with _Explained(self._path):
            last, until = next(self._reading.rows(self._sql["latest"]))
        self._expect(all(type(time or 0) is int for time in (last, until)), "the time of a record or worker")
        return max(last or 0, (until or 0) - LEASE, 0)

    async def runs(self) -> list[RunInfo]:
        with _Explained(self._path):
            rows = list(self._reading.rows(self._sql["runs"]))
        names = ("run_id", "style", "status", "length", "created", "updated", "parent")
        infos = []
        for row in rows:
            run_id, style, status, length, created, updated, parent = row
            texts = all(isinstance(text, str) for text in (run_id, style, status, parent or ""))
            self._expect(
                texts and is_count(length) and is_time(created) and is_time(updated), "a row in the list of runs"
            )
            infos.append(RunInfo(**dict(zip(names, row, strict=True))))
        return infos

    async def desk(self) -> list[Question]:
        with _Explained(self._path):
            rows = list(self._reading.rows(self._sql["desk"]))
        found = []
        for run_id, number, first, at, body in rows:
            typed = isinstance(run_id, str) and isinstance(body, (str, bytes))
            self._expect(typed and is_count(number) and is_count(first) and is_time(at), "a question on the desk")
            asked = dict(enumerate(self._codec.load_step(body), first)).get(number)
            self._expect(isinstance(asked, Asked) and isinstance(asked.command, AskPerson), "a question on the desk")
            assert isinstance(asked, Asked) and isinstance(asked.command, AskPerson)
            found.append(Question(run_id=run_id, number=number, at=at, command=asked.command))
        return found

    def _expect(self, holds: bool, what: str) -> None:
        """SQLite lets any type stand in any column; only what fits is handed out."""
        if not holds:
            raise JournalError(
                f"The journal {self._path} is damaged: {what} is not one. `ripstop verify` tells more; "
                "restore the journal from a backup."
            )

    async def next_due(self, only: str | None = None) -> int | None:
        with _Explained(self._path):
            query, of = ("next_due", ()) if only is None else ("next_due_of", (only, only, only))
            due: int | None = next(self._reading.rows(self._sql[query], of))[0]
        self._expect(due is None or type(due) is int, "the time of a command")
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

    async def check_run(self, run_id: str) -> list[Damage]:
        with _Explained(self._path):
            if self._outbox_damage is None:  # once: an index without a row would hide a command for ever
                self._outbox_damage = check_outbox(self._reading)
            return [*self._outbox_damage, *check_run(self._reading, self._codec, run_id)]

    # Appending

    def append(self, entry: Entry) -> Awaitable[None]:
        body = self._codec.dump_step([record.event for record in entry.records])
        return self._commit.submit(self._steps.place, entry, body)

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
            known = self._workers()
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

    async def has_workers(self, now: int) -> bool:
        with _Explained(self._path):
            workers = self._workers()
        return any(until >= now and not self._liveness.gone(worker) for worker, until in workers.items())

    def _workers(self) -> dict[int, int]:
        """Until when each worker counts as alive."""
        rows = list(self._reading.rows(self._sql["workers"]))
        self._expect(all(type(worker) is int and type(until) is int for worker, until in rows), "a worker")
        return dict(rows)

    async def claim(self, holder: int, now: int, room: int, only: str | None = None) -> list[ClaimedCommand]:
        with _Explained(self._path):
            dead = [
                other
                for other, until in self._reading.rows(self._sql["holders"], (holder,))
                if type(until) is not int or until < now or self._liveness.gone(other)
            ]
            if not dead and not next(self._reading.rows(self._sql["due_now"], _due(now, 1, only)), None):
                return []  # the usual case costs no write
        tasks: list[ClaimedCommand] = await self._commit.submit(
            lambda db: self._claim(db, dead, holder, _due(now, room, only))
        )
        for other in dead:
            self._liveness.bury(other)
        return tasks

    def _claim(self, db: sqlite3.Connection, dead: list[int], holder: int, due: dict[str, Any]) -> list[ClaimedCommand]:
        self._bury(db, *dead)
        tasks = []
        for key, run_id, number, attempt, state in db.execute(self._sql["due_now"], due).fetchall():
            typed = isinstance(run_id, str) and is_count(number) and is_count(attempt)
            self._expect(typed, "a command in the outbox")
            db.execute(self._sql["take"], (holder, key, number))
            tasks.append(ClaimedCommand(run_id=run_id, number=number, attempt=attempt + 1, doubtful=state == 2))
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
        if isinstance(error, (sqlite3.Error, UnicodeDecodeError)):
            raise explain(self._path, error) from error
