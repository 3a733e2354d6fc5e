"""A journal for tests and demonstrations. It forgets everything when the process ends."""

import asyncio
from collections.abc import Awaitable

from msgspec import Struct

from ripstop.kernel.codec import Codec
from ripstop.kernel.effects import AskPerson
from ripstop.kernel.errors import Conflict, JournalError, LeaseLost
from ripstop.kernel.events import OUTCOMES, Asked, Record, Started
from ripstop.kernel.outbox import AT_ONCE, Closed, Held, Opened, Released, changes
from ripstop.runtime.ports import ClaimedCommand, Damage, Entry, Question, RunInfo

from . import hash_chain as chain
from .blobs import genuine

LEASE = 30_000_000


class _Item(Struct):
    """An open command, as the outbox knows it."""

    waits: str
    due: int | None
    holder: int | None = None
    state: int = 0
    attempt: int = 0


class _StoredRun(Struct):
    """A run: its own records as bytes, as any store would keep them, and what is open."""

    style: str
    created: int
    status: str = ""
    updated: int = 0
    parent: tuple[str, int] | None = None
    fork: tuple[str, int] | None = None
    rows: list[tuple[int, int, bytes, bytes]] = []
    head: bytes = b""
    length: int = 0
    outbox: dict[int, _Item] = {}


class MemoryJournal:
    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._runs: dict[str, _StoredRun] = {}
        self._blobs: dict[str, bytes] = {}
        self._workers: dict[int, int] = {}
        self._enrolled = 0

    async def close(self) -> None:
        pass

    # Reading

    async def read(self, run_id: str, after: int = 0) -> list[Record]:
        return self._read(run_id, after, None)

    def _read(self, run_id: str, after: int, until: int | None) -> list[Record]:
        story = self._runs.get(run_id)
        if story is None:
            return []
        source, shared = story.fork or ("", 0)
        last = story.length if until is None else until
        before = self._read(source, after, min(shared, last)) if after < shared else []
        own = story.rows[max(after - shared, 0) : max(last - shared, 0)]
        return before + [Record(number, at, self._codec.load(body)) for number, at, body, _ in own]

    async def blob(self, digest: str) -> bytes:
        try:
            return genuine(self._blobs[digest], digest, "The journal in memory")
        except KeyError:
            raise JournalError(f"The content {digest[:12]}… is missing.") from None

    async def latest(self) -> int:
        records = max((story.updated for story in self._runs.values()), default=0)
        return max(records, max(self._workers.values(), default=0) - LEASE, 0)

    async def runs(self) -> list[RunInfo]:
        return [
            RunInfo(
                run_id=run_id,
                style=story.style,
                status=story.status,
                length=story.length,
                created=story.created,
                updated=story.updated,
                parent=story.parent[0] if story.parent else None,
            )
            for run_id, story in self._runs.items()
        ]

    async def desk(self) -> list[Question]:
        found = []
        for run_id, story in self._runs.items():
            for number, item in story.outbox.items():
                if item.waits == "person":
                    record = self._read(run_id, number - 1, number)[0]
                    assert isinstance(record.event, Asked)
                    assert isinstance(record.event.command, AskPerson)
                    found.append(Question(run_id=run_id, number=number, at=record.at, command=record.event.command))
        return sorted(found, key=lambda question: question.at)

    async def next_due(self, only: str | None = None) -> int | None:
        free = (
            item.due
            for run_id, story in self._runs.items()
            for item in story.outbox.values()
            if item.holder is None and (only is None or run_id == only or run_id.startswith(f"{only}."))
        )
        return min((due for due in free if due is not None), default=None)

    def changed(self) -> bool:
        return False

    async def verify(self, run_id: str | None = None) -> list[Damage]:
        damage = []
        for name, story in self._runs.items():
            if run_id in (None, name):
                digest = chain.first(name, self._hash_at(*story.fork) if story.fork else b"")
                for number, at, body, stored in story.rows:
                    digest = chain.link(digest, number, at, body)
                    if digest != stored:
                        damage.append(Damage(run_id=name, number=number, text="record changed"))
        return damage

    async def check_run(self, run_id: str) -> list[Damage]:
        return await self.verify(run_id)

    # Appending

    def append(self, entry: Entry) -> Awaitable[None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        try:
            self._append(entry)
        except JournalError as error:
            future.set_exception(error)
        else:
            future.set_result(None)
        return future

    def _append(self, entry: Entry) -> None:
        bodies = [self._codec.dump(record.event) for record in entry.records]
        story = self._story(entry)
        if entry.fence:
            number, holder = entry.fence
            if number not in story.outbox or story.outbox[number].holder != holder:
                raise LeaseLost(entry.run_id, number)
        self._runs[entry.run_id] = story
        for record, body in zip(entry.records, bodies, strict=True):
            story.head = chain.link(story.head, record.number, record.at, body)
            story.rows.append((record.number, record.at, body, story.head))
        story.length = entry.records[-1].number
        story.status, story.updated = entry.status, entry.records[-1].at
        self._blobs.update(entry.blobs)
        self._update_outbox(story, entry)
        for change in changes(entry.inherited):
            if isinstance(change, Opened):
                story.outbox[change.number] = _Item(change.waits, change.due)
            elif isinstance(change, Held):
                story.outbox[change.number].due = None

    def _story(self, entry: Entry) -> _StoredRun:
        first = entry.records[0]
        story = self._runs.get(entry.run_id)
        if first.number == 1 or entry.fork:
            if story is not None:
                raise Conflict(entry.run_id)
            return self._new_story(entry, first)
        if story is None or story.length != first.number - 1:
            raise Conflict(entry.run_id)
        return story

    def _new_story(self, entry: Entry, first: Record) -> _StoredRun:
        if entry.fork:
            source, at = entry.fork
            style, head = self._runs[source].style, chain.first(entry.run_id, self._hash_at(source, at))
            return _StoredRun(style, first.at, fork=entry.fork, head=head, length=at)
        assert isinstance(first.event, Started)
        return _StoredRun(first.event.style, first.at, parent=first.event.parent, head=chain.first(entry.run_id))

    def _hash_at(self, run_id: str, number: int) -> bytes:
        story = self._runs[run_id]
        source, shared = story.fork or ("", 0)
        return self._hash_at(source, number) if number <= shared else story.rows[number - shared - 1][3]

    def _update_outbox(self, story: _StoredRun, entry: Entry) -> None:
        for change in changes(entry.records):
            match change:
                case Opened(number=number, due=due, waits=waits):
                    begun = int(number in entry.begun)
                    holder = entry.holder if waits in AT_ONCE else None
                    story.outbox[number] = _Item(waits, due, holder, begun, begun)
                case Closed(number=None):
                    story.outbox.clear()
                    self._wake_parent(story, entry.records[-1].at)
                case Closed(number=number) if number is not None:
                    story.outbox.pop(number, None)
                case Held(number=number):
                    item = story.outbox[number]
                    item.due = item.holder = None
                    item.state = 0
                case Released(number=number, due=again):
                    item = story.outbox[number]
                    item.due, item.holder, item.state = again, None, 0

    def _wake_parent(self, story: _StoredRun, now: int) -> None:
        if story.parent:
            item = self._runs[story.parent[0]].outbox.get(story.parent[1])
            if item:
                item.due = now

    # Working

    async def enrol(self, now: int) -> int:
        self._enrolled += 1
        self._workers[self._enrolled] = now + LEASE
        return self._enrolled

    async def heartbeat(self, holder: int, now: int) -> bool:
        if holder not in self._workers:
            return False
        self._workers[holder] = now + LEASE
        return True

    async def leave(self, holder: int) -> None:
        self._workers.pop(holder, None)
        for story in self._runs.values():
            for item in story.outbox.values():
                if item.holder == holder:
                    item.holder = None
                    item.state = 2 if item.state == 1 else item.state

    async def has_workers(self, now: int) -> bool:
        return any(until >= now for until in self._workers.values())

    async def claim(self, holder: int, now: int, room: int, only: str | None = None) -> list[ClaimedCommand]:
        holders = {item.holder for story in self._runs.values() for item in story.outbox.values()}
        for other in holders - {holder, None}:
            assert other is not None
            if self._workers.get(other, 0) < now:
                await self.leave(other)
        due = sorted(
            (item.due, run_id, number)
            for run_id, story in self._runs.items()
            for number, item in story.outbox.items()
            if item.holder is None
            and item.due is not None
            and item.due <= now
            and (only is None or run_id == only or run_id.startswith(f"{only}."))
        )
        tasks = []
        for _, run_id, number in due[:room]:
            item = self._runs[run_id].outbox[number]
            item.holder = holder
            tasks.append(
                ClaimedCommand(run_id=run_id, number=number, attempt=item.attempt + 1, doubtful=item.state == 2)
            )
        return tasks

    def _held(self, run_id: str, number: int, holder: int) -> _Item | None:
        story = self._runs.get(run_id)
        item = story.outbox.get(number) if story else None
        return item if item and item.holder == holder else None

    async def begin(self, run_id: str, number: int, holder: int) -> int:
        item = self._held(run_id, number, holder)
        if item is None:
            raise LeaseLost(run_id, number)
        item.attempt += 1
        item.state = 1
        return item.attempt

    async def retry(self, run_id: str, number: int, holder: int, at: int) -> None:
        item = self._held(run_id, number, holder)
        if item:
            item.due, item.holder, item.state = at, None, 0

    async def park(self, run_id: str, number: int, holder: int) -> None:
        item = self._held(run_id, number, holder)
        if item:
            child = self._runs.get(f"{run_id}.{number}")
            ended = child is not None and child.status in OUTCOMES
            item.due, item.holder, item.state, item.attempt = (item.due if ended else None), None, 0, 0
