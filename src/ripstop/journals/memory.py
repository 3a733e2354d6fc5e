"""A journal in memory, put together: records and steps here, lists, outbox and care in modules of their own."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from ripstop.engine.ports import (
    ALL,
    LISTED,
    All,
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
    Prefixed,
    Question,
    RunInfo,
    RunQuery,
    Scope,
    Tombstone,
    Tree,
)
from ripstop.kernel.codec import Codec
from ripstop.kernel.effects import AskPerson
from ripstop.kernel.errors import Conflict, JournalError, LeaseLost, NotNeeded, UsageError
from ripstop.kernel.events import Asked, Record, Started
from ripstop.kernel.outbox import Change, Closed, Finished, Held, Opened, Released, Superseded

from . import hash_chain
from .blobs import genuine, used_in
from .forgetting import belongs_to, check_forgettable
from .pages import is_wanted_question, is_wanted_run, number_cursor, page_size, place_cursor

# What a journal in memory holds: runs with their steps as bytes, as any store would keep them, and their outbox.


NOT_BEGUN, BEGUN, BEGUN_UNSAFE, IN_DOUBT, SUPERSEDED = range(5)
"""States of a command in the outbox."""


class Item(Struct):
    """A command, as the outbox knows it."""

    waits: str
    due: int | None
    asked: int
    """The position of the step that asks."""
    worker_id: int | None = None
    state: int = NOT_BEGUN
    attempt: int = 0
    needs: str = ""
    awaits: str = ""
    woken: int = 0


class StoredStep(Struct, frozen=True):
    position: int
    number: int
    at: int
    body: bytes
    digest: bytes


class StoredRun(Struct):
    key: int
    style: str
    created: int
    root: str
    last: Entry
    """The entry that was appended last, which says what the list of runs has."""
    updated: int = 0
    parent: tuple[str, int] | None = None
    fork: tuple[str, int] | None = None
    steps: list[StoredStep] = []
    head: bytes = b""
    length: int = 0
    outbox: dict[int, Item] = {}
    set_aside: str = ""
    blobs: set[str] = set()


class Store:
    """The base of the parts of a journal in memory."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._runs: dict[str, StoredRun] = {}
        self._started = 0
        self._steps = 0
        """The last position; like the number of runs it never becomes smaller."""
        self._blobs: dict[str, bytes] = {}
        self._documents: dict[tuple[str, str], tuple[bytes, str]] = {}
        """Documents, each with the run that wrote it."""
        self._followers: dict[str, str] = {}
        self._tombstones: dict[str, Tombstone] = {}
        self._workers: dict[int, int] = {}
        """Until when each worker counts as alive."""
        self._enrolled = 0
        self._identity = JournalIdentity()
        self._listeners: list[Callable[[], None]] = []

    def _read(self, run_id: str) -> list[Record]:
        stored = self._runs.get(run_id)
        if stored is None:
            return []
        source, shared = stored.fork or ("", 0)
        return [*self._read(source)[:shared], *(record for step in stored.steps for record in self._records(step))]

    def _records(self, step: StoredStep) -> list[Record]:
        return [
            Record(number, step.at, event) for number, event in enumerate(self._codec.load_step(step.body), step.number)
        ]

    def _step_with(self, run_id: str, number: int) -> StoredStep:
        """The step that holds a record."""
        stored = self._runs[run_id]
        source, shared = stored.fork or ("", 0)
        if number <= shared:
            return self._step_with(source, number)
        return next(step for step in reversed(stored.steps) if step.number <= number)

    def _info(self, run_id: str) -> RunInfo:
        stored = self._runs[run_id]
        fork_of, fork_at = stored.fork or (None, 0)
        return RunInfo(
            run_id=run_id,
            style=stored.style,
            **{name: getattr(stored.last, name) for name in LISTED}
            | ({"status": "set_aside"} if stored.set_aside else {}),
            length=stored.length,
            created=stored.created,
            updated=stored.updated,
            parent=stored.parent[0] if stored.parent else None,
            root=stored.root,
            fork_of=fork_of,
            fork_at=fork_at,
            set_aside=stored.set_aside,
        )


# Care of a journal in memory: checking it, and forgetting runs that have ended.


class Maintenance(Store):
    async def verify(self, run_id: str | None = None) -> list[Damage]:
        damage = []
        for name, stored in self._runs.items():
            if run_id in (None, name):
                digest = hash_chain.first(name, self._step_with(*stored.fork).digest if stored.fork else b"")
                for step in stored.steps:
                    digest = hash_chain.link(digest, step.number, step.at, step.body)
                    if digest != step.digest:
                        damage.append(Damage(run_id=name, number=step.number, text="record changed"))
        return damage

    async def check_run(self, run_id: str) -> list[Damage]:
        return await self.verify(run_id)

    async def set_aside(self, run_id: str, reason: str) -> None:
        if run_id in self._runs:
            self._runs[run_id].set_aside = reason

    async def forget(self, run_ids: Sequence[str], now: int, dry_run: bool = False) -> None:
        leaving = dict.fromkeys(run_ids)
        for run_id in leaving:
            stored = self._runs.get(run_id)
            items = list(stored.outbox.values()) if stored else []
            others = {name: other for name, other in self._runs.items() if name not in leaving}
            check_forgettable(
                run_id,
                stored.last.status if stored else None,
                busy=any(item.worker_id or item.waits == "run" for item in items),
                forks=[name for name, other in others.items() if other.fork and other.fork[0] == run_id],
                waiting=[
                    name
                    for name, other in others.items()
                    if any(item.awaits == run_id for item in other.outbox.values())
                ],
                undelivered=[item.needs for item in items if item.state != SUPERSEDED],
            )
        for run_id in () if dry_run else leaving:
            gone = self._runs.pop(run_id)
            self._tombstones[run_id] = Tombstone(run_id=run_id, at=now, status=gone.last.status, length=gone.length)
            used = {digest for stored in self._runs.values() for digest in stored.blobs}
            for digest in gone.blobs - used:
                self._blobs.pop(digest, None)
            for place in [place for place, (_, owner) in self._documents.items() if owner == run_id]:
                del self._documents[place]

    async def backup(self, path: Path, now: int) -> None:
        raise UsageError("A journal in memory cannot be copied to a file. Name a file as the store.")


# The lists of a journal in memory: runs, questions, documents, steps.


class MemoryLists(Store):
    async def runs(self, query: RunQuery = RunQuery()) -> Page[RunInfo]:
        size, before = page_size(query.size), number_cursor(query.cursor)
        infos = ((stored.key, self._info(run_id)) for run_id, stored in reversed(self._runs.items()))
        found = [(key, info) for key, info in infos if is_wanted_run(query, info) and (not before or key < before)]
        page = found[:size]
        return Page([info for _, info in page], str(page[-1][0]) if len(found) > size else "")

    async def run(self, run_id: str) -> RunInfo | None:
        return self._info(run_id) if run_id in self._runs else None

    async def counts(self, query: RunQuery = RunQuery()) -> dict[str, int]:
        found: dict[str, int] = {}
        for info in map(self._info, self._runs):
            if is_wanted_run(query, info):
                found[info.status] = found.get(info.status, 0) + 1
        return found

    async def forks(self, run_id: str) -> list[RunInfo]:
        forks = (name for name, stored in self._runs.items() if stored.fork and stored.fork[0] == run_id)
        return [self._info(name) for name in forks]

    async def desk(self, query: DeskQuery = DeskQuery()) -> Page[Question]:
        size, after = page_size(query.size), place_cursor(query.cursor)
        found: list[tuple[tuple[int, int, int], Question]] = []
        for run_id, stored in self._runs.items():
            for number, item in stored.outbox.items():
                place = (item.asked, number, stored.key)
                if _is_question(item) and query.root in ("", stored.root) and place > after:
                    question = self._question(run_id, number)
                    if is_wanted_question(query, question):
                        found.append((place, question))
        found.sort(key=lambda entry: entry[0])
        page = found[:size]
        more = ".".join(map(str, page[-1][0])) if len(found) > size else ""
        return Page([question for _, question in page], more)

    def _question(self, run_id: str, number: int) -> Question:
        record = self._read(run_id)[number - 1]
        assert isinstance(record.event, Asked) and isinstance(record.event.command, AskPerson)
        style = self._runs[run_id].style
        return Question(run_id=run_id, number=number, at=record.at, command=record.event.command, style=style)

    async def desk_count(self) -> int:
        return sum(_is_question(item) for stored in self._runs.values() for item in stored.outbox.values())

    async def document(self, collection: str, key: str) -> bytes | None:
        found = self._documents.get((collection, key))
        return found[0] if found else None

    async def documents(self, collection: str, cursor: str = "", size: int = 50) -> Page[tuple[str, bytes]]:
        size = page_size(size)
        keys = sorted(key for name, key in self._documents if name == collection and key > cursor)
        page = [(key, self._documents[collection, key][0]) for key in keys[:size]]
        return Page(page, keys[size - 1] if len(keys) > size else "")

    async def since(self, cursor: str = "", most: int = 100) -> list[Moved]:
        after, most = number_cursor(cursor), page_size(most)
        steps = sorted(
            (step.position, run_id, step)
            for run_id, stored in self._runs.items()
            for step in stored.steps
            if step.position > after
        )
        return [
            Moved(cursor=str(position), run_id=run_id, records=self._records(step))
            for position, run_id, step in steps[:most]
        ]

    async def cursor(self) -> str:
        return str(self._steps)

    async def follower(self, name: str) -> str:
        return self._followers.get(name, "")

    async def keep_follower(self, name: str, cursor: str) -> None:
        self._followers[name] = cursor

    async def tombstones(self) -> list[Tombstone]:
        return sorted(self._tombstones.values(), key=lambda tomb: (tomb.at, tomb.run_id))

    async def tombstone(self, run_id: str) -> Tombstone | None:
        return self._tombstones.get(run_id)


def _is_question(item: Item) -> bool:
    return item.waits == "person" and item.state != SUPERSEDED


# The outbox of a journal in memory: what steps change in it, and how workers take commands from it.


LEASE = 30_000_000


class MemoryOutbox(Store):
    # Steps

    def _change(self, stored: StoredRun, entry: Entry, change: Change) -> None:
        outbox = stored.outbox
        match change:
            case Opened(number=number):
                outbox[number] = self._opened(entry, change)
            case Closed(number=number):
                outbox.pop(number, None)
            case Superseded(number=number, at=at, undo=undo) if number in outbox:
                item = outbox[number]
                if not undo and item.worker_id is None and not item.awaits:
                    del outbox[number]
                item.attempt = 0 if item.state == NOT_BEGUN else item.attempt
                item.state, item.needs = SUPERSEDED, ""
                item.due = at if undo or item.awaits else None
            case Held(number=number) if number in outbox:
                item = outbox[number]
                item.due, item.worker_id, item.state = None, None, IN_DOUBT
            case Released(number=number, due=again, unless_begun=unless_begun) if number in outbox:
                item = outbox[number]
                is_begun = item.worker_id is not None or item.state in (BEGUN, BEGUN_UNSAFE)
                if not (unless_begun and is_begun):
                    item.due, item.worker_id, item.state = again, None, NOT_BEGUN
            case Finished(run=run_id, at=at):
                for other in self._runs.values():
                    for item in other.outbox.values():
                        if item.awaits == run_id:
                            item.due = None if item.state == IN_DOUBT else at
                            item.woken += 1

    def _opened(self, entry: Entry, change: Opened) -> Item:
        # only a worker in the list can hold a command: who else would release it?
        taken = change.number in entry.taken and entry.worker_id in self._workers
        begun = int(taken and change.number in entry.begun)
        return Item(
            waits=change.waits,
            due=change.due,
            asked=self._step_with(entry.run_id, change.number).position,
            worker_id=entry.worker_id if taken else None,
            state=begun,
            attempt=begun,
            needs=change.needs,
            awaits=change.awaits,
        )

    # Workers

    async def enrol(self, now: int) -> int:
        self._enrolled += 1
        self._workers[self._enrolled] = now + LEASE
        return self._enrolled

    async def heartbeat(self, worker_id: int, now: int) -> bool:
        if worker_id not in self._workers:
            return False
        self._workers[worker_id] = now + LEASE
        return True

    async def leave(self, worker_id: int, now: int) -> None:
        self._workers.pop(worker_id, None)
        for stored in self._runs.values():
            for item in stored.outbox.values():
                if item.worker_id == worker_id:
                    item.worker_id = None
                    item.due = now if item.state == SUPERSEDED else item.due

    async def workers(self, now: int) -> list[tuple[int, bool]]:
        return [(worker, until >= now) for worker, until in self._workers.items()]

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
        for other, until in list(self._workers.items()):
            if other != worker_id and until < now:
                await self.leave(other, now)
        if worker_id not in self._workers:
            return []
        due = sorted(
            (item.due, self._runs[run_id].key, number, run_id)
            for run_id, number, item in self._free(scope, offers, refused)
            if item.due is not None and item.due <= now
        )
        return [self._claimed(run_id, number, worker_id) for _, _, number, run_id in due[:room]]

    def _claimed(self, run_id: str, number: int, worker_id: int) -> ClaimedCommand:
        item = self._runs[run_id].outbox[number]
        item.worker_id = worker_id
        return ClaimedCommand(
            run_id=run_id,
            number=number,
            attempt=item.attempt + 1,
            doubtful=item.state in (BEGUN, BEGUN_UNSAFE) or (item.state == SUPERSEDED and item.attempt > 0),
            unsafe=item.state == BEGUN_UNSAFE,
            superseded=item.state == SUPERSEDED,
            woken=item.woken,
            awaits=item.awaits,
            set_aside=bool(self._runs[run_id].set_aside),
            records=self._read(run_id),
        )

    def _free(
        self, scope: Scope, offers: Sequence[str], refused: Collection[str] | None
    ) -> Iterator[tuple[str, int, Item]]:
        """The commands in a scope that no worker has claimed."""
        families = self._families(scope.run_id) if isinstance(scope, Tree) else set()
        for run_id, stored in self._runs.items():
            named = isinstance(scope, Prefixed) and belongs_to(run_id, scope.name)
            may_try = not stored.set_aside or (refused is not None and run_id not in refused)
            wanted = stored.root in families or ((named or isinstance(scope, All)) and may_try)
            for number, item in stored.outbox.items() if wanted else ():
                if item.worker_id is None and item.needs in offers:
                    yield run_id, number, item

    def _families(self, run_id: str) -> set[str]:
        found = [self._runs[run_id].root] if run_id in self._runs else []
        for root in found:
            awaited = {
                item.awaits for stored in self._runs.values() if stored.root == root for item in stored.outbox.values()
            }
            others = (self._runs[name].root for name in awaited if name in self._runs)
            found += [other for other in dict.fromkeys(others) if other not in found]
        return set(found)

    async def held(self, run_id: str) -> set[int]:
        stored = self._runs.get(run_id)
        return {number for number, item in stored.outbox.items() if item.worker_id is not None} if stored else set()

    async def begun(self, run_id: str) -> tuple[int, ...]:
        stored = self._runs.get(run_id)
        items = sorted(stored.outbox.items()) if stored else []
        return tuple(number for number, item in items if item.state in (BEGUN, BEGUN_UNSAFE))

    async def left_waiting(self, now: int) -> set[str]:
        return {
            run_id
            for run_id, stored in self._runs.items()
            if stored.last.status == "waiting" and not stored.set_aside
            for item in stored.outbox.values()
            if not item.needs and _can_be_taken(item, now)
        }

    async def next_due(
        self, scope: Scope = ALL, offers: Sequence[str] = ("",), refused: Collection[str] | None = None
    ) -> int | None:
        free = self._free(scope, offers, refused)
        return min((item.due for _, _, item in free if item.due is not None), default=None)

    async def superseded(self, worker_id: int) -> list[tuple[str, int]]:
        return [
            (run_id, number)
            for run_id, stored in self._runs.items()
            for number, item in stored.outbox.items()
            if item.worker_id == worker_id and item.state == SUPERSEDED
        ]

    # Commands in hand

    def _held(self, run_id: str, number: int, worker_id: int) -> Item | None:
        stored = self._runs.get(run_id)
        item = stored.outbox.get(number) if stored else None
        return item if item and item.worker_id == worker_id else None

    async def begin(self, run_id: str, number: int, worker_id: int, attempt: int, repeatable: bool) -> None:
        item = self._held(run_id, number, worker_id)
        if item is None:
            raise LeaseLost(run_id, number)
        if item.state == SUPERSEDED:
            raise NotNeeded(run_id, number)
        item.attempt = attempt
        item.state = BEGUN if repeatable else BEGUN_UNSAFE

    async def retry(self, run_id: str, number: int, worker_id: int, at: int) -> None:
        item = self._held(run_id, number, worker_id)
        if item and item.state != SUPERSEDED:
            item.due, item.worker_id, item.state = at, None, NOT_BEGUN

    async def give_back(self, run_id: str, number: int, worker_id: int) -> None:
        item = self._held(run_id, number, worker_id)
        if item:
            item.worker_id = None

    async def await_run(self, run_id: str, number: int, worker_id: int, awaited: str) -> None:
        item = self._held(run_id, number, worker_id)
        if item:
            item.awaits = awaited

    async def park(self, task: ClaimedCommand, worker_id: int, now: int) -> None:
        item = self._held(task.run_id, task.number, worker_id)
        if item:
            again = item.woken != task.woken or (item.state == SUPERSEDED and not task.superseded)
            item.due, item.worker_id, item.attempt = now if again else None, None, 0
            item.state = item.state if item.state == SUPERSEDED else NOT_BEGUN


def _can_be_taken(item: Item, now: int) -> bool:
    """Whether a worker may take a command, if none that is alive holds it."""
    if item.state == SUPERSEDED and item.worker_id is not None:
        return True
    return item.due is not None and item.due <= now


_encode = msgspec.json.Encoder(order="deterministic").encode


class MemoryJournal(MemoryOutbox, MemoryLists, Maintenance):
    @property
    def path(self) -> Path | None:
        return None

    @property
    def clock(self) -> Clock | None:
        return None

    async def close(self) -> None:
        pass

    def changed(self) -> bool:
        return False

    def listen(self, wake: Callable[[], None]) -> Callable[[], None]:
        self._listeners.append(wake)
        return lambda: self._listeners.remove(wake)

    # JournalIdentity

    async def identity(self) -> JournalIdentity:
        return self._identity

    async def identify(self, new: JournalIdentity, instead_of: JournalIdentity) -> JournalIdentity:
        if self._identity == instead_of:
            self._identity = new
        return self._identity

    async def place(self, position: int | None = None) -> JournalPlace:
        at = self._steps if position is None else position
        steps = (step for stored in self._runs.values() for step in stored.steps if step.position == at)
        return JournalPlace(at, next((step.digest.hex() for step in steps), ""), self._enrolled)

    async def heads(self) -> str:
        return hash_chain.heads((run_id, self._runs[run_id].head) for run_id in sorted(self._runs))

    # Reading

    async def read(
        self, run_id: str, after: int = 0, before: int | None = None, most: int | None = None
    ) -> list[Record]:
        found = [record for record in self._read(run_id) if record.number > after]
        found = found if before is None else [record for record in found if record.number < before]
        return found[:most]

    async def blob(self, digest: str) -> bytes:
        try:
            return genuine(self._blobs[digest], digest, "The journal in memory")
        except KeyError:
            raise JournalError(f"The content {digest[:12]}… is missing.") from None

    async def latest(self) -> int:
        records = max((stored.updated for stored in self._runs.values()), default=0)
        return max(records, max(self._workers.values(), default=0) - LEASE, 0)

    # Appending

    def append(self, entry: Entry) -> Awaitable[None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        try:
            self._append(entry)
        except JournalError as error:
            future.set_exception(error)
        else:
            future.set_result(None)
            for wake in tuple(self._listeners):
                wake()
        return future

    def _append(self, entry: Entry) -> None:
        body = self._codec.dump_step([record.event for record in entry.records])
        stored = self._stored(entry)
        if entry.fence:
            number, worker_id = entry.fence
            if number not in stored.outbox or stored.outbox[number].worker_id != worker_id:
                raise LeaseLost(entry.run_id, number)
        self._runs[entry.run_id] = stored
        self._steps += 1
        first, last = entry.records[0], entry.records[-1]
        stored.head = hash_chain.link(stored.head, first.number, first.at, body)
        stored.steps.append(StoredStep(self._steps, first.number, first.at, body, stored.head))
        stored.length, stored.updated = last.number, last.at
        stored.last, stored.set_aside = entry, ""
        self._blobs.update(entry.blobs)
        stored.blobs |= entry.blobs.keys() | used_in(entry.records)
        for change in entry.changes:
            self._change(stored, entry, change)
        for document in entry.documents:
            if document.body is None:
                self._documents.pop((document.collection, document.key), None)
            else:
                self._documents[document.collection, document.key] = (_encode(document.body), entry.run_id)

    def _stored(self, entry: Entry) -> StoredRun:
        first = entry.records[0]
        stored = self._runs.get(entry.run_id)
        if first.number == 1 or entry.fork:
            if stored is not None or entry.run_id in self._tombstones:
                raise Conflict(entry.run_id)
            return self._new_run(entry, first)
        if stored is None or stored.length != first.number - 1:
            raise Conflict(entry.run_id)
        return stored

    def _new_run(self, entry: Entry, first: Record) -> StoredRun:
        run_id = entry.run_id
        if entry.fork:
            source, at = entry.fork
            if source not in self._runs:
                raise Conflict(source)
            self._started += 1
            head = hash_chain.first(run_id, self._step_with(source, at).digest)
            style = self._runs[source].style
            return StoredRun(self._started, style, first.at, run_id, entry, fork=entry.fork, head=head, length=at)
        assert isinstance(first.event, Started)
        self._started += 1
        parent, root = first.event.parent, run_id
        if parent and belongs_to(run_id, parent[0]) and parent[0] in self._runs:
            root = self._runs[parent[0]].root
        head = hash_chain.first(run_id)
        return StoredRun(self._started, first.event.style, first.at, root, entry, parent=parent, head=head)


# A journal for tests and demonstrations. It forgets everything when the process ends.


__all__ = ["MemoryJournal"]
