"""The runs whose documents are in a folder.

- A document that a person made, or that was found in the folder, has a run named after both (`folder_runs.py`).
- A document that another workflow started has a run named after that workflow's command. It belongs to the folder
  that its settings or its definition name.

Which folder a run belongs to is looked up once. After the first list only the runs that have changed are listed.
"""

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ripstop.engine.engine import Engine
from ripstop.engine.ports import MAX_PAGE, RunInfo, RunQuery
from ripstop.kernel.events import OUTCOMES
from ripstop.kernel.run import Run

from .document import Malformed, read
from .folder import LETTERS, OURS, WORKFLOWS, Folder
from .markdown import as_id

# Which run is that of a document. The run's id follows from the folder's id and the document's.
#
# Nothing is changed here, and nothing is taken in: a reader needs only the name.


_UNSAFE = re.compile(r"[^\w-]+")
NAMED_AFTER_FOLDER = re.compile(rf"docs-([{LETTERS}]{{5}})\.")
"""How the id of a run begins that is named after a folder and a document. The group is the folder's id."""


def prefix_of(folder: Folder) -> str:
    """What the ids of all runs of a folder begin with."""
    return prefix_for(folder.id)


def prefix_for(folder_id: str) -> str:
    return f"docs-{folder_id}"


def is_named_after_folder(run_id: str) -> bool:
    return NAMED_AFTER_FOLDER.match(run_id) is not None


def run_of(prefix: str, document: str) -> str:
    safe = _UNSAFE.sub("_", document)[:80]
    if safe != document:
        safe += "-" + hashlib.sha256(document.encode()).hexdigest()[:6]
    return f"{prefix}.{safe}"


def run_named(named: str, here: Path) -> str:
    """The run that the document with an id, or in a file, would have; empty if there are no documents here."""
    file = next((path for path in (here / named, here / WORKFLOWS / named) if path.is_file()), None)
    root = file.resolve().parent.parent if file else here.resolve()
    if not (root / WORKFLOWS / OURS).is_dir():
        return ""
    document = _id_in(file) if file else as_id(named)
    return run_of(prefix_of(Folder(root)), document) if document else ""


def _id_in(file: Path) -> str:
    try:
        return read(file.read_text(encoding="utf-8")).id
    except (Malformed, OSError, UnicodeDecodeError):
        return ""  # it has no id that could be known


STYLE = "handoff"
OVERLAP = 60_000_000
"""Microseconds by which the clocks of two processes may differ: what changed so long before is listed again."""


def folder_of_run(run: Run[Any]) -> str:
    """The folder that a run's document is in, as its settings say, else as its definition does."""
    return run.settings.folder or run.settings.where(str(run.state.definition.folder))


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
        self._started_by_others[run.state.document.id] = info.run_id
        return True


# Which folder this is: the id that the names of its documents' runs begin with.
#
# The id is in a hidden file of the folder. If that file is gone, the journal still knows the folder: by its path, or,
# if it was moved as well, by the ids of the documents in it. So nothing is taken in a second time.


class Identity(Struct, frozen=True):
    id: str
    """Empty if neither the folder nor the journal has one."""
    lost: bool = False
    """The folder had lost it; the journal knows it."""


async def identity_of(engine: Engine, folder: Folder) -> Identity:
    known = await asyncio.to_thread(folder.known_id)
    if known:
        return Identity(known)
    by_id: dict[str, list[RunInfo]] = {}
    for info in sorted(await _documents(engine), key=lambda info: info.updated, reverse=True):
        match = NAMED_AFTER_FOLDER.match(info.run_id)
        if match:
            by_id.setdefault(match[1], []).append(info)
    for id, infos in by_id.items():  # the one that was used last comes first
        places = {await _place(engine, info.run_id) for info in infos}
        if str(folder.root) in places:
            return Identity(id, lost=True)
        if not any(_is_of(place, id) for place in places) and await _holds_any(folder, id, infos):
            return Identity(id, lost=True)
    return Identity("")


async def _documents(engine: Engine) -> list[RunInfo]:
    """The runs of all documents that the journal has, of every folder."""
    found, query = [], RunQuery(styles=("handoff",), size=MAX_PAGE)
    while True:
        page = await engine.runs(query)
        found += page.items
        if not page.next:
            return found
        query = replace(query, cursor=page.next)


async def _place(engine: Engine, run_id: str) -> str:
    """The folder in which a run was begun."""
    return (await engine.look(run_id)).run.started.settings.folder


def _is_of(place: str, id: str) -> bool:
    """Whether the folder at a place is still the one with this id."""
    return bool(place) and Folder(Path(place)).known_id() == id


async def _holds_any(folder: Folder, id: str, infos: list[RunInfo]) -> bool:
    """Whether a file in the folder is a document of the folder with this id."""
    runs = {info.run_id for info in infos}
    for found in await asyncio.to_thread(folder.documents):
        try:
            if found.text is not None and run_of(prefix_for(id), read(found.text).id) in runs:
                return True
        except Malformed:
            continue
    return False
