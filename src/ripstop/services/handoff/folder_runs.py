"""The runs whose documents are in a folder.

- A document that a person made, or that was found in the folder, has a run named after both (`run_names.py`).
- A document that another workflow started has a run named after that workflow's command. It belongs to the folder
  that its settings or its definition name.

Which folder a run belongs to is looked up once. After the first list only the runs that have changed are listed.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ripstop.kernel.events import OUTCOMES
from ripstop.kernel.run import Run
from ripstop.runtime.engine import Engine
from ripstop.runtime.ports import MAX_PAGE, RunInfo, RunQuery

from .run_names import is_named_after_folder, run_of

STYLE = "handoff"
OVERLAP = 60_000_000
"""Microseconds by which the clocks of two processes may differ: what changed so long before is listed again."""


def folder_of_run(run: Run[Any]) -> str:
    """The folder that a run's document is in, as its settings say, else as its definition does."""
    return str(run.settings.folder or run.state.definition.folder)


class FolderRuns:
    def __init__(self, engine: Engine, root: Path, prefix: str) -> None:
        self._engine = engine
        self._root = str(root)
        self.prefix = prefix
        """What the ids of runs begin with that are named after the folder."""
        self._started_by_others: dict[str, str] = {}
        """Document → run, of the runs in this folder that other workflows started."""
        self._ended: dict[str, bool] = {}
        """Every run of the folder, and whether it has ended."""
        self._elsewhere: set[str] = set()
        self._seen = 0
        """When the run changed last that was listed last."""

    def holds(self, run_id: str) -> bool:
        """Whether a run is known to belong to the folder."""
        return run_id.startswith(f"{self.prefix}.") or run_id in self._started_by_others.values()

    async def find(self, document: str) -> str:
        """The run of a document; the id that it would have if there is none."""
        named = run_of(self.prefix, document)
        if await self._engine.journal.run(named) is None:
            if document not in self._started_by_others:
                await self.list()
            return self._started_by_others.get(document, named)
        return named

    async def list(self) -> dict[str, bool]:
        """Every run of the folder, and whether it has ended."""
        async for info in self._changed():
            if await self._is_here(info):
                self._ended[info.run_id] = info.status in OUTCOMES
        return self._ended.copy()

    async def documents(self) -> dict[str, str]:
        """The run of every document that another workflow started here, by the document's id."""
        await self.list()
        return self._started_by_others.copy()

    async def _changed(self) -> AsyncIterator[RunInfo]:
        """The runs that have changed since the last list, and some that were listed already."""
        query = RunQuery(styles=(STYLE,), since=max(0, self._seen - OVERLAP), size=MAX_PAGE)
        while True:
            page = await self._engine.runs(query)
            for info in page.items:
                self._seen = max(self._seen, info.updated)
                yield info
            if not page.next:
                return
            query = replace(query, cursor=page.next)

    async def _is_here(self, info: RunInfo) -> bool:
        if info.run_id.startswith(f"{self.prefix}.") or info.run_id in self._ended:
            return True
        if is_named_after_folder(info.run_id) or info.run_id in self._elsewhere:
            return False
        run = (await self._engine.look(info.run_id)).run
        if folder_of_run(run) != self._root:
            self._elsewhere.add(info.run_id)
            return False
        self._started_by_others[run.state.paper.id] = info.run_id
        return True
