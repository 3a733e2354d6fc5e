"""Whether a step was appended, where the store could not say (`OutcomeUnknown`).

A step that was appended has commands that this process holds, and nobody else would perform them: so a step is neither
given up nor decided again before it is known that it was not appended.

- It is known by its records: the same numbers, times and bytes in the same run.
- If it is not there, the very same entry is appended again, because the first one may still be on its way: of two
  equal steps a store takes one. A refusal then says nothing by itself; the run is read once more.
"""

import asyncio
from collections.abc import Callable

from ripstop.kernel.codec import Codec
from ripstop.kernel.errors import Conflict, LeaseLost, OutcomeUnknown, Unreachable

from .ports import STORE_PAUSE, Entry, Journal

FEWEST_TRIES = 5
"""Before a process that does not wait for its store gives up."""
FIRST_PAUSE = 0.01
"""Seconds; doubled each time, up to `STORE_PAUSE`."""


async def was_appended(journal: Journal, codec: Codec, entry: Entry, waits: Callable[[], bool]) -> bool:
    """Find out whether an entry was appended, and append it if not; false if another writer was faster.

    Raises `LeaseLost` if it was not and its worker has lost its lease, and `OutcomeUnknown` unless `waits()`.
    """
    refused: Conflict | LeaseLost | None = None
    tries = 0
    while True:
        try:
            if await _holds(journal, codec, entry):
                return True
            if isinstance(refused, LeaseLost):
                raise refused
            if refused:
                return False
            try:
                await journal.append(entry)
                return True
            except (Conflict, LeaseLost) as error:
                refused = error
        except (OutcomeUnknown, Unreachable) as error:
            tries += 1
            if tries >= FEWEST_TRIES and not waits():
                raise OutcomeUnknown(entry.run_id, error) from error
            await asyncio.sleep(min(STORE_PAUSE, FIRST_PAUSE * 2.0 ** min(tries, 20)))


async def _holds(journal: Journal, codec: Codec, entry: Entry) -> bool:
    """Whether the journal has the records of an entry at their place."""
    mine = entry.records
    found = await journal.read(entry.run_id, after=mine[0].number - 1, most=len(mine))
    if [(one.number, one.at) for one in found] != [(one.number, one.at) for one in mine]:
        return False
    return codec.dump_step([one.event for one in found]) == codec.dump_step([one.event for one in mine])
