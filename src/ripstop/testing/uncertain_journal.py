"""A journal whose replies get lost: for tests of what becomes of a step if its store cannot say whether it has it."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from enum import Enum
from typing import Any, cast

from ripstop.engine.ports import Entry, Journal
from ripstop.kernel.errors import JournalError, OutcomeUnknown


class Fate(Enum):
    """What becomes of an append. All but the first raise `OutcomeUnknown`."""

    KEPT = "kept"
    """It arrives, and so does the reply."""
    REPLY_LOST = "reply lost"
    """It was appended."""
    REQUEST_LOST = "request lost"
    """It was not appended."""
    LATE = "late"
    """It is appended a moment after the error, unless another step was faster."""


def uncertain(journal: Journal, choose: Callable[[Entry], Fate]) -> Journal:
    """The journal, with the fate of every append as `choose` says; everything else is as it was."""
    return cast(Journal, _UncertainJournal(journal, choose))


class _UncertainJournal:
    def __init__(self, journal: Journal, choose: Callable[[Entry], Fate]) -> None:
        self._journal = journal
        self._choose = choose
        self._under_way: set[asyncio.Task[None]] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._journal, name)

    def append(self, entry: Entry) -> Awaitable[None]:
        fate = self._choose(entry)
        if fate is Fate.KEPT:
            return self._journal.append(entry)
        if fate is Fate.REPLY_LOST:
            return _without_reply(self._journal.append(entry), entry)
        if fate is Fate.LATE:
            task = asyncio.ensure_future(self._append_late(entry))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)
        return _without_reply(asyncio.sleep(0), entry)

    async def _append_late(self, entry: Entry) -> None:
        for _ in range(3):
            await asyncio.sleep(0)
        with suppress(JournalError):
            await self._journal.append(entry)

    async def close(self) -> None:
        await asyncio.gather(*self._under_way)
        await self._journal.close()


async def _without_reply(doing: Awaitable[None], entry: Entry) -> None:
    """Wait for it; that it was refused is known, but not that it was done."""
    await doing
    raise OutcomeUnknown(entry.run_id)
