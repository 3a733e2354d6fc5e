"""A journal in memory, put together: records and steps here, lists, outbox and care in modules of their own."""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from ripstop.journals import hash_chain
from ripstop.journals.blobs import genuine, used_in
from ripstop.journals.families import belongs_to
from ripstop.kernel.errors import Conflict, JournalError, LeaseLost
from ripstop.kernel.events import Record, Started
from ripstop.runtime.ports import Clock, Entry

from .care import Care
from .lists import MemoryLists
from .outbox import LEASE, MemoryOutbox
from .store import StoredRun, StoredStep

_encode = msgspec.json.Encoder(order="deterministic").encode


class MemoryJournal(MemoryOutbox, MemoryLists, Care):
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
            number, holder = entry.fence
            if number not in stored.outbox or stored.outbox[number].holder != holder:
                raise LeaseLost(entry.run_id, number)
        self._runs[entry.run_id] = stored
        self._steps += 1
        first, last = entry.records[0], entry.records[-1]
        stored.head = hash_chain.link(stored.head, first.number, first.at, body)
        stored.steps.append(StoredStep(self._steps, first.number, first.at, body, stored.head))
        stored.length, stored.updated = last.number, last.at
        stored.status, stored.gist, stored.tokens, stored.money = entry.status, entry.gist, entry.tokens, entry.money
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
            return StoredRun(self._started, style, first.at, run_id, fork=entry.fork, head=head, length=at)
        assert isinstance(first.event, Started)
        self._started += 1
        parent, root = first.event.parent, run_id
        if parent and belongs_to(run_id, parent[0]) and parent[0] in self._runs:
            root = self._runs[parent[0]].root
        head = hash_chain.first(run_id)
        return StoredRun(self._started, first.event.style, first.at, root, parent=parent, head=head)
