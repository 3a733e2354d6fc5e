"""Which folder this is: the id that the names of its documents' runs begin with.

The id is in a hidden file of the folder. If that file is gone, the journal still knows the folder: by its path, or, if
it was moved as well, by the ids of the documents in it. So nothing is taken in a second time.
"""

import asyncio
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from ripstop.performers.handoff.folder import Folder
from ripstop.runtime.engine import Engine
from ripstop.runtime.ports import MAX_PAGE, RunInfo, RunQuery
from ripstop.styles.handoff.document import Malformed, read

from .run_names import NAMED_AFTER_FOLDER, prefix_for, run_of


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
