"""The runs that a process has folded in memory: those used last, and never more than so many, but all in use."""

import asyncio
from collections import OrderedDict
from typing import Any

from ripstop.kernel.run import Run
from ripstop.kernel.step import Style


class Cell:
    """One run in memory."""

    __slots__ = ("lock", "run", "style", "users")

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.style: Style[Any] | None = None
        self.run: Run[Any] | None = None
        self.users = 0


class Cells:
    def __init__(self, most: int) -> None:
        self._most = most
        self._cells: OrderedDict[str, Cell] = OrderedDict()
        self.get = self._cells.get
        """The cell of a run, if there is one; asked with every step, so without a detour."""

    def __len__(self) -> int:
        return len(self._cells)

    def use(self, run_id: str) -> Cell:
        """The cell of a run, which is now the one used last."""
        cell = self._cells.get(run_id)
        if cell is None:
            cell = self._cells[run_id] = Cell()
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
            if not cell.users and not cell.lock.locked():
                del self._cells[run_id]
