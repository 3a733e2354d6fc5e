"""Care of a journal in memory: checking it, and forgetting runs that have ended."""

from collections.abc import Sequence
from pathlib import Path

from ripstop.journals import hash_chain
from ripstop.journals.forgetting import check_forgettable
from ripstop.kernel.errors import UsageError
from ripstop.runtime.ports import Damage, Tombstone

from .store import SUPERSEDED, Store


class Care(Store):
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
                stored.status if stored else None,
                busy=any(item.holder or item.waits == "run" for item in items),
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
            self._tombstones[run_id] = Tombstone(run_id=run_id, at=now, status=gone.status, length=gone.length)
            used = {digest for stored in self._runs.values() for digest in stored.blobs}
            for digest in gone.blobs - used:
                self._blobs.pop(digest, None)
            for place in [place for place, (_, owner) in self._documents.items() if owner == run_id]:
                del self._documents[place]

    async def backup(self, path: Path) -> None:
        raise UsageError("A journal in memory cannot be copied to a file. Name a file as the store.")
