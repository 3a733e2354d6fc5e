"""The outbox of a journal in memory: what steps change in it, and how workers take commands from it."""

from collections.abc import Iterator, Sequence

from ripstop.journals.families import belongs_to
from ripstop.kernel.errors import LeaseLost, NotNeeded
from ripstop.kernel.outbox import Change, Closed, Finished, Held, Opened, Released, Superseded
from ripstop.runtime.ports import ALL, All, ClaimedCommand, Entry, Nothing, Prefixed, Scope, Tree

from .store import BEGUN, BEGUN_UNSAFE, IN_DOUBT, NOT_BEGUN, SUPERSEDED, Item, Store, StoredRun

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
                if not undo and item.holder is None and not item.awaits:
                    del outbox[number]
                item.attempt = 0 if item.state == NOT_BEGUN else item.attempt
                item.state, item.needs = SUPERSEDED, ""
                item.due = at if undo or item.awaits else None
            case Held(number=number) if number in outbox:
                item = outbox[number]
                item.due, item.holder, item.state = None, None, IN_DOUBT
            case Released(number=number, due=again) if number in outbox:
                item = outbox[number]
                item.due, item.holder, item.state = again, None, NOT_BEGUN
            case Finished(run=run_id, at=at):
                for other in self._runs.values():
                    for item in other.outbox.values():
                        if item.awaits == run_id:
                            item.due = None if item.state == IN_DOUBT else at
                            item.woken += 1

    def _opened(self, entry: Entry, change: Opened) -> Item:
        # only a worker in the list can hold a command: who else would release it?
        taken = change.number in entry.taken and entry.holder in self._workers
        begun = int(taken and change.number in entry.begun)
        return Item(
            waits=change.waits,
            due=change.due,
            asked=self._step_with(entry.run_id, change.number).position,
            holder=entry.holder if taken else None,
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

    async def heartbeat(self, holder: int, now: int) -> bool:
        if holder not in self._workers:
            return False
        self._workers[holder] = now + LEASE
        return True

    async def leave(self, holder: int, now: int) -> None:
        self._workers.pop(holder, None)
        for stored in self._runs.values():
            for item in stored.outbox.values():
                if item.holder == holder:
                    item.holder = None
                    item.due = now if item.state == SUPERSEDED else item.due

    async def workers(self, now: int) -> list[tuple[int, bool]]:
        return [(worker, until >= now) for worker, until in self._workers.items()]

    async def claim(
        self, holder: int, now: int, room: int, scope: Scope = ALL, offers: Sequence[str] = ("",)
    ) -> list[ClaimedCommand]:
        if isinstance(scope, Nothing):
            return []
        for other, until in list(self._workers.items()):
            if other != holder and until < now:
                await self.leave(other, now)
        if holder not in self._workers:
            return []
        due = sorted(
            (item.due, self._runs[run_id].key, number, run_id)
            for run_id, number, item in self._free(scope, offers)
            if item.due is not None and item.due <= now
        )
        return [self._claimed(run_id, number, holder) for _, _, number, run_id in due[:room]]

    def _claimed(self, run_id: str, number: int, holder: int) -> ClaimedCommand:
        item = self._runs[run_id].outbox[number]
        item.holder = holder
        return ClaimedCommand(
            run_id=run_id,
            number=number,
            attempt=item.attempt + 1,
            doubtful=item.state in (BEGUN, BEGUN_UNSAFE) or (item.state == SUPERSEDED and item.attempt > 0),
            unsafe=item.state == BEGUN_UNSAFE,
            superseded=item.state == SUPERSEDED,
            woken=item.woken,
            awaits=item.awaits,
            records=self._read(run_id),
        )

    def _free(self, scope: Scope, offers: Sequence[str]) -> Iterator[tuple[str, int, Item]]:
        """The commands in a scope that no worker has claimed."""
        families = self._families(scope.run_id) if isinstance(scope, Tree) else set()
        for run_id, stored in self._runs.items():
            named = isinstance(scope, Prefixed) and belongs_to(run_id, scope.name)
            wanted = stored.root in families or ((named or isinstance(scope, All)) and not stored.set_aside)
            for number, item in stored.outbox.items() if wanted else ():
                if item.holder is None and item.needs in offers:
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
        return {number for number, item in stored.outbox.items() if item.holder is not None} if stored else set()

    async def left_waiting(self, now: int) -> set[str]:
        return {
            run_id
            for run_id, stored in self._runs.items()
            if stored.status == "waiting" and not stored.set_aside
            for item in stored.outbox.values()
            if not item.needs and _can_be_taken(item, now)
        }

    async def next_due(self, scope: Scope = ALL, offers: Sequence[str] = ("",)) -> int | None:
        return min((item.due for _, _, item in self._free(scope, offers) if item.due is not None), default=None)

    async def superseded(self, holder: int) -> list[tuple[str, int]]:
        return [
            (run_id, number)
            for run_id, stored in self._runs.items()
            for number, item in stored.outbox.items()
            if item.holder == holder and item.state == SUPERSEDED
        ]

    # Commands in hand

    def _held(self, run_id: str, number: int, holder: int) -> Item | None:
        stored = self._runs.get(run_id)
        item = stored.outbox.get(number) if stored else None
        return item if item and item.holder == holder else None

    async def begin(self, run_id: str, number: int, holder: int, attempt: int, repeatable: bool) -> None:
        item = self._held(run_id, number, holder)
        if item is None:
            raise LeaseLost(run_id, number)
        if item.state == SUPERSEDED:
            raise NotNeeded(run_id, number)
        item.attempt = attempt
        item.state = BEGUN if repeatable else BEGUN_UNSAFE

    async def retry(self, run_id: str, number: int, holder: int, at: int) -> None:
        item = self._held(run_id, number, holder)
        if item and item.state != SUPERSEDED:
            item.due, item.holder, item.state = at, None, NOT_BEGUN

    async def give_back(self, run_id: str, number: int, holder: int) -> None:
        item = self._held(run_id, number, holder)
        if item:
            item.holder = None

    async def await_run(self, run_id: str, number: int, holder: int, awaited: str) -> None:
        item = self._held(run_id, number, holder)
        if item:
            item.awaits = awaited

    async def park(self, task: ClaimedCommand, holder: int, now: int) -> None:
        item = self._held(task.run_id, task.number, holder)
        if item:
            again = item.woken != task.woken or (item.state == SUPERSEDED and not task.superseded)
            item.due, item.holder, item.attempt = now if again else None, None, 0
            item.state = item.state if item.state == SUPERSEDED else NOT_BEGUN


def _can_be_taken(item: Item, now: int) -> bool:
    """Whether a worker may take a command, if none that is alive holds it."""
    if item.state == SUPERSEDED and item.holder is not None:
        return True
    return item.due is not None and item.due <= now
