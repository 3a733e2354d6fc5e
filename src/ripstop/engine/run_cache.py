"""An LRU cache of folded runs. Runs in use are never evicted."""

import asyncio
from collections import OrderedDict, deque
from typing import Any

from ripstop.kernel.run import Run
from ripstop.kernel.style import Picture, Style


class CachedRun:
    """One run in memory. To advance it, lock it first (`async with cached`); other callers wait in line.

    Its own lock, because asyncio's costs three coroutines even without a waiter.
    """

    __slots__ = ("_line", "_picture", "_pictured", "checked", "run", "style", "taken")

    def __init__(self) -> None:
        self.style: Style[Any] | None = None
        self.run: Run[Any] | None = None
        self.checked = False
        """Whether the run was found to be what was written, so that this process can act on it."""
        self.taken = False
        self._line: deque[asyncio.Future[None]] | None = None
        """Made for the first waiter: it is larger than all the rest, and few cells ever need one."""
        self._picture: Picture | None = None
        self._pictured = 0
        """How long the run was when the picture was made."""

    def picture(self) -> Picture:
        """The run as it is, as its style shows it; made once however many look at it."""
        assert self.run is not None and self.style is not None
        if self._picture is None or self._pictured != self.run.length:
            self._picture, self._pictured = self.style.view.picture(self.run), self.run.length
        return self._picture

    async def wait(self) -> None:
        """Wait in line until the one before gives the cell back. It is taken then."""
        turn = asyncio.get_running_loop().create_future()
        if self._line is None:
            self._line = deque()
        self._line.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give_back()  # it was our turn already; the next one must not wait for us
            raise

    def give_back(self) -> None:
        while self._line:
            turn = self._line.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self.taken = False

    async def __aenter__(self) -> None:
        if self.taken:
            await self.wait()
        self.taken = True

    async def __aexit__(self, *_: object) -> None:
        self.give_back()


class RunCache:
    def __init__(self, most: int) -> None:
        self._most = most
        self._cache: OrderedDict[str, CachedRun] = OrderedDict()
        self.get = self._cache.get
        """The cell of a run, if there is one; asked with every step, so without a detour."""

    def __len__(self) -> int:
        return len(self._cache)

    def use(self, run_id: str) -> CachedRun:
        """The cell of a run, which is now the one used last."""
        cached = self._cache.get(run_id)
        if cached is None:
            cached = self._cache[run_id] = CachedRun()
            if len(self._cache) > self._most:
                self._forget()
        else:
            self._cache.move_to_end(run_id)
        return cached

    def drop(self, run_id: str) -> None:
        self._cache.pop(run_id, None)

    def _forget(self) -> None:
        """Drop the runs that were used longest ago, but none that is in use."""
        for run_id in list(self._cache)[: len(self._cache) - self._most]:
            cached = self._cache[run_id]
            if not cached.taken:
                del self._cache[run_id]
