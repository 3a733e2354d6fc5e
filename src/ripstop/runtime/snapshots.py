"""A run as it was at some of its records, so that any record is reached without folding all that came before it.

Runs are immutable and share what did not change, so a snapshot costs little more than what changed since the one
before. Of a very long run fewer are kept, further apart.
"""

from bisect import bisect_right
from collections import deque
from typing import Any

from ripstop.kernel.run import Run

INTERVAL = 1000
"""Records between two snapshots."""
MOST = 64
"""Snapshots of one run at regular intervals; when there are more, every second one is dropped."""
MOST_RECENT = 8
"""Places where somebody looked last: what they look at next is near."""


class Snapshots:
    def __init__(self) -> None:
        self._regular: list[Run[Any]] = []
        self._interval = INTERVAL
        self._recent: deque[Run[Any]] = deque(maxlen=MOST_RECENT)

    def __len__(self) -> int:
        return len(self._regular)

    def pass_by(self, run: Run[Any]) -> None:
        """Keep a run if it is time for a snapshot. Called after each record, in order."""
        if run.length % self._interval:
            return
        self._regular.append(run)
        if len(self._regular) > MOST:
            self._regular = self._regular[1::2]
            self._interval *= 2

    def remember(self, run: Run[Any]) -> None:
        """Keep a run where somebody looks, for a while."""
        if all(run.length != known.length for known in self._recent):
            self._recent.append(run)

    def nearest(self, length: int) -> Run[Any] | None:
        """The latest snapshot at or before a record; `None`: the run has to be folded from its beginning."""
        at = bisect_right(self._regular, length, key=lambda run: run.length)
        known = [run for run in (*self._regular[max(0, at - 1) : at], *self._recent) if run.length <= length]
        return max(known, key=lambda run: run.length, default=None)
