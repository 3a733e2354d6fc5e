"""One rate limit per provider: a smallest pause between calls, and a stop when it says "too many".

- Shared by all runs of a process, because the provider counts them together; the pause also by all processes.
- A stop is as long as the provider says, else it grows with every refusal in a row, until a call succeeds: one that is
  always refused, such as one that is too large, holds the others up for a moment only.
- The pause counts from when a request has left, not from when its call began: the first call of a process imports
  libraries and opens a connection. Until then the next call waits.
"""

import asyncio
import logging
import math
import time
from collections.abc import Callable, Mapping

from msgspec import Struct

from .live import Live, RateLimited
from .shared_pauses import SharedPauses, SharedTurn

log = logging.getLogger("ripstop.worker")

A_MOMENT = 0.2
"""Seconds. Shorter waits are not worth telling."""
WORTH_LOGGING = 5.0
"""Seconds for which all calls to a provider are held back, from which on the log and `held` say so."""


class Departure:
    """A call that may go out now."""

    def __init__(self, on_left: Callable[[], None] | None = None) -> None:
        self._on_left = on_left

    def left(self) -> None:
        """The request has left, or never will: from now on the pause before the next one counts."""
        on_left, self._on_left = self._on_left, None
        if on_left:
            on_left()


class _RefusedRow(Struct, frozen=True):
    """Refusals of calls to one provider, without a success in between."""

    times: int
    """Calls that were made side by side and refused count as one."""
    first: float
    last: float


class RateLimit:
    def __init__(
        self,
        gaps: Mapping[str, float] | None = None,
        now: Callable[[], float] = time.monotonic,
        shared: SharedPauses | None = None,
    ) -> None:
        """Args:
        shared: Pauses that other processes keep as well; then `now` must be the clock that they have.
        """
        self._gaps = dict(gaps or {})
        self._now = now
        self._shared = shared
        self._free: dict[str, float] = {}
        self._turns: dict[str, asyncio.Lock] = {}
        """Held by a call from before its pause until it has left."""
        self._stopped: dict[str, float] = {}
        """Until when providers that said "too many" get no calls."""
        self._refused: dict[str, _RefusedRow] = {}
        self._sleeping: set[asyncio.Task[None]] = set()
        """What calls that are held back wait for; cancelled when a stop is lifted, so that they look again."""
        self._held: dict[str, float] = {}
        """Until when providers that said "too many" are left alone, if that is long enough to be told."""

    def limits(self, provider: str) -> bool:
        """Whether a call to this provider may have to wait, or counts."""
        return provider in self._gaps or provider in self._free or provider in self._stopped

    async def wait(
        self, provider: str, interval: float = 0.0, live: Live | None = None, command: tuple[str, int] = ("", 0)
    ) -> Departure | None:
        """Return when the next call may go out; `None` if there is no limit at all.

        Args:
            interval: Seconds that a run wants between two calls; the longest interval wins.
            live: Shows that the command (run and number) waits, if it is for longer than a moment.
        """
        if not interval and not self.limits(provider):
            return None
        gap = max(self._gaps.get(provider, 0.0), interval)

        def show(seconds: float) -> None:
            if live and live.watched and seconds >= A_MOMENT:
                live.show(RateLimited(*command, provider, seconds))

        if not gap:  # it only waits for what others have caused
            await self._until_free(provider, None, show)
            self._free.pop(provider, None)
            self._stopped.pop(provider, None)
            return Departure()
        turn = self._turns.setdefault(provider, asyncio.Lock())
        if turn.locked():
            show(max(0.0, self._free.get(provider, 0.0) - self._now()) + gap)
        await turn.acquire()
        shared: SharedTurn | None = None
        try:
            shared = await self._shared.turn(provider) if self._shared else None
            await self._until_free(provider, shared, show)
        except BaseException:
            if shared:
                shared.end(0.0, 0.0)
            turn.release()
            raise

        def left() -> None:
            free = self._now() + gap
            self._free[provider] = max(self._free.get(provider, 0.0), free)
            if shared:
                shared.end(free, gap)
            turn.release()

        return Departure(left)

    async def _until_free(self, provider: str, shared: SharedTurn | None, show: Callable[[float], None]) -> None:
        while True:
            now = self._now()
            free = max(self._free.get(provider, 0.0), self._stopped.get(provider, 0.0))
            wait = max(free, shared.free_at(now) if shared else 0.0) - now
            if wait <= 0:
                return
            show(wait)
            sleeping = asyncio.create_task(asyncio.sleep(wait))
            self._sleeping.add(sleeping)
            try:
                await asyncio.wait([sleeping])
            finally:
                sleeping.cancel()
                self._sleeping.discard(sleeping)

    def now(self) -> float:
        """The time of its clock, in seconds."""
        return self._now()

    def refused(self, provider: str, made: float, pause_after: Callable[[int], float]) -> None:
        """A call was answered "too many": hold all calls to its provider for a while.

        Args:
            made: When the call went out, as `now` said.
            pause_after: The seconds after so many refusals in a row.
        """
        if not provider:
            return
        now = self._now()
        row = self._refused.get(provider) or _RefusedRow(0, now, -math.inf)
        times = row.times + (made > row.last)
        self._refused[provider] = _RefusedRow(times, row.first, now)
        self.pause(provider, pause_after(times))

    def served(self, provider: str, made: float) -> None:
        """A call that went out then has succeeded: the next stop is a short one again."""
        row = self._refused.get(provider)
        if row and made > row.first:
            del self._refused[provider]

    def pause(self, provider: str, seconds: float) -> None:
        """Hold calls to this provider for a while. A call without a provider is not held up."""
        if not provider:
            return
        until = self._now() + seconds
        self._stopped[provider] = max(self._stopped.get(provider, 0.0), until)
        # once for each wait: others that were answered "too many" at the same time hardly make it longer
        if seconds >= WORTH_LOGGING and until >= self._held.get(provider, 0.0) + WORTH_LOGGING:
            self._held[provider] = until
            log.warning("All calls to %s wait for %.0f s: it says that there were too many.", provider, seconds)

    def lift(self, provider: str) -> None:
        """Hold calls to this provider no longer, because a person wants one made now. The pause between two stays."""
        if self._stopped.pop(provider, None) is not None:
            self._held.pop(provider, None)
            for sleeping in self._sleeping:
                sleeping.cancel()

    def held(self) -> dict[str, int]:
        """The providers to which no call goes out now, because they said "too many", each with the seconds left."""
        now = self._now()
        self._held = {provider: until for provider, until in self._held.items() if until > now}
        return {provider: math.ceil(until - now) for provider, until in self._held.items()}


LONGEST_PAUSE = 600.0
"""Seconds between two attempts, whatever a server asks for. A run's own limit in seconds ends it earlier."""


def pause_before_retry(wanted: float | None, usual: float) -> float:
    """Seconds until the next attempt: `wanted` if that is a time at all, else what is usual.

    "At once" is none: a server that is down and says so would use up all patience within a second.
    """
    if wanted is None or not 0 < wanted < math.inf:
        wanted = usual
    return min(wanted, LONGEST_PAUSE)
