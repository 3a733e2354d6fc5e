"""An LRU cache of folded runs. Runs in use are never evicted."""

import asyncio
from collections import OrderedDict, deque
from typing import Any

from ripstop.kernel.run import Run
from ripstop.kernel.style import Style


class CachedRun:
    """One run in memory. To advance it, lock it first (`async with cell`); other callers wait in line.

    Its own lock, because asyncio's costs three coroutines even without a waiter.
    """

    __slots__ = ("_line", "checked", "run", "style", "taken")

    def __init__(self) -> None:
        self.style: Style[Any] | None = None
        self.run: Run[Any] | None = None
        self.checked = False
        """Whether the run was found to be what was written, so that this process can act on it."""
        self.taken = False
        self._line: deque[asyncio.Future[None]] | None = None
        """Made for the first waiter: it is larger than all the rest, and few cells ever need one."""

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
        self._cells: OrderedDict[str, CachedRun] = OrderedDict()
        self.get = self._cells.get
        """The cell of a run, if there is one; asked with every step, so without a detour."""

    def __len__(self) -> int:
        return len(self._cells)

    def use(self, run_id: str) -> CachedRun:
        """The cell of a run, which is now the one used last."""
        cell = self._cells.get(run_id)
        if cell is None:
            cell = self._cells[run_id] = CachedRun()
            if len(self._cells) > self._most:
                self._forget()
        else:
            self._cells.move_to_end(run_id)
        return cell

    def drop(self, run_id: str) -> None:
        self._cells.pop(run_id, None)

    def _forget(self) -> None:
        """Drop the runs that were used longest ago, but none that is in use."""
        for run_id in list(self._cells)[: len(self._cells) - self._most]:
            cell = self._cells[run_id]
            if not cell.taken:
                del self._cells[run_id]
