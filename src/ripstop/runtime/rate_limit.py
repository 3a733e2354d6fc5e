"""One rate limit per provider: a smallest pause between calls, and a stop when it says "too many".

Shared by all runs of a process, because the provider counts them together.
"""

import asyncio
import math
import time
from collections.abc import Callable, Mapping

from .live import Live, RateLimited

A_MOMENT = 0.2
"""Seconds. Shorter waits are not worth telling."""


class RateLimit:
    def __init__(self, gaps: Mapping[str, float] | None = None, now: Callable[[], float] = time.monotonic) -> None:
        self._gaps = dict(gaps or {})
        self._now = now
        self._free: dict[str, float] = {}

    def limits(self, provider: str) -> bool:
        """Whether a call to this provider may have to wait, or counts."""
        return provider in self._gaps or provider in self._free

    async def wait(
        self, provider: str, interval: float = 0.0, live: Live | None = None, command: tuple[str, int] = ("", 0)
    ) -> bool:
        """Return when the next call may go out, and count it; false if there is no limit at all.

        Args:
            interval: Seconds that a run wants between two calls; the longest interval wins.
            live: Shows that the command (run and number) waits, if it is for longer than a moment.
        """
        if not interval and not self.limits(provider):
            return False
        while True:
            wait = self._free.get(provider, 0.0) - self._now()
            if wait <= 0:
                break
            if live and live.watched and wait >= A_MOMENT:
                live.show(RateLimited(*command, provider, wait))
            await asyncio.sleep(wait)
        gap = max(self._gaps.get(provider, 0.0), interval)
        if gap:
            self._free[provider] = self._now() + gap
        else:
            self._free.pop(provider, None)
        return True

    def pause(self, provider: str, seconds: float) -> None:
        """Hold calls to this provider for a while. A call without a provider is not held up."""
        if not provider:
            return
        self._free[provider] = max(self._free.get(provider, 0.0), self._now() + seconds)


LONGEST_PAUSE = 600.0
"""Seconds between two attempts, whatever a server asks for. A run's own limit in seconds ends it earlier."""


def pause_before_retry(wanted: float | None, backoff: float, attempt: int) -> float:
    """Seconds until the next attempt: `wanted` if that is a time at all, else `backoff`, doubled for every attempt."""
    if wanted is None or not 0 <= wanted < math.inf:
        wanted = backoff * 2.0 ** min(attempt - 1, 30)
    return min(wanted, LONGEST_PAUSE)
