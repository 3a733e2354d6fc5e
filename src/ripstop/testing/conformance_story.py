"""How a conformance test is told: with an open journal and a scribe, and checked for damage at its end."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from ripstop.kernel.codec import Codec
from ripstop.runtime.ports import ALL, ClaimedCommand, Journal, RunQuery, Scope

from .journal_entries import NOW, OFFERS, Scribe

Told = Callable[[Any, Journal, Scribe], Coroutine[Any, Any, None]]


class JournalStories:
    """The base of all parts of the conformance suite."""

    def open(self, codec: Codec, folder: Path) -> Journal:
        """An empty journal."""
        raise NotImplementedError

    async def tell(self, told: Told, folder: Path) -> None:
        journal = self.open(Codec(), folder)
        try:
            await told(self, journal, Scribe())
            assert await journal.verify() == [], "an honest journal is reported as damaged"
            for info in (await journal.runs(RunQuery(size=1000))).items:
                assert await journal.check_run(info.run_id) == [], "an honest run is reported as damaged"
        finally:
            await journal.close()


def story(told: Told) -> Callable[[Any, Path], None]:
    """A test in the form of a story about one journal."""

    def test(self: JournalStories, tmp_path: Path) -> None:
        asyncio.run(self.tell(told, tmp_path))

    test.__name__, test.__doc__ = told.__name__, told.__doc__
    return test


async def claim(
    journal: Journal, holder: int, now: int = NOW, room: int = 10, scope: Scope = ALL, offers: Sequence[str] = OFFERS
) -> list[ClaimedCommand]:
    return await journal.claim(holder, now, room, scope, offers)


async def claimed(journal: Journal, holder: int, now: int = NOW, scope: Scope = ALL) -> list[tuple[str, int]]:
    """Which commands a worker gets."""
    return [(task.run_id, task.number) for task in await claim(journal, holder, now, scope=scope)]
