"""One rate limit per provider: a smallest pause between calls, and a stop when it says "too many".

Shared by all runs of a process, because the provider counts them together.
"""

import asyncio
import logging
import math
import time
from collections.abc import Callable, Mapping

from .live import Live, RateLimited

log = logging.getLogger("ripstop.worker")

A_MOMENT = 0.2
"""Seconds. Shorter waits are not worth telling."""
WORTH_LOGGING = 5.0
"""Seconds for which all calls to a provider are held back, from which on the log and `held` say so."""


class RateLimit:
    def __init__(self, gaps: Mapping[str, float] | None = None, now: Callable[[], float] = time.monotonic) -> None:
        self._gaps = dict(gaps or {})
        self._now = now
        self._free: dict[str, float] = {}
        self._held: dict[str, float] = {}
        """Until when providers that said "too many" are left alone, if that is long enough to be told."""

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
        until = self._now() + seconds
        self._free[provider] = max(self._free.get(provider, 0.0), until)
        # once for each wait: others that were answered "too many" at the same time hardly make it longer
        if seconds >= WORTH_LOGGING and until >= self._held.get(provider, 0.0) + WORTH_LOGGING:
            self._held[provider] = until
            log.warning("All calls to %s wait for %.0f s: it says that there were too many.", provider, seconds)

    def held(self) -> dict[str, int]:
        """The providers to which no call goes out now, because they said "too many", each with the seconds left."""
        now = self._now()
        self._held = {provider: until for provider, until in self._held.items() if until > now}
        return {provider: math.ceil(until - now) for provider, until in self._held.items()}


LONGEST_PAUSE = 600.0
"""Seconds between two attempts, whatever a server asks for. A run's own limit in seconds ends it earlier."""


def pause_before_retry(wanted: float | None, usual: float) -> float:
    """Seconds until the next attempt: `wanted` if that is a time at all, else what is usual."""
    if wanted is None or not 0 <= wanted < math.inf:
        wanted = usual
    return min(wanted, LONGEST_PAUSE)
