"""Which folder this is: the id that the names of its documents' runs begin with.

The id is in a hidden file of the folder. If that file is gone, the journal still knows the folder: by its path, or, if
it was moved as well, by the ids of the documents in it. So nothing is taken in a second time.
"""

import asyncio
import re
from pathlib import Path

from msgspec import Struct

from ripstop.performers.handoff.folder import LETTERS, Folder
from ripstop.runtime.engine import Engine
from ripstop.runtime.ports import RunInfo
from ripstop.styles.handoff.document import Malformed, read

from .run_names import prefix_for, run_of

_RUN = re.compile(rf"docs-([{LETTERS}]{{5}})\.")


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
    for info in sorted(await engine.runs(), key=lambda info: info.updated, reverse=True):
        match = _RUN.match(info.run_id)
        if match and info.style == "handoff":
            by_id.setdefault(match[1], []).append(info)
    for id, infos in by_id.items():  # the one that was used last comes first
        places = {await _place(engine, info.run_id) for info in infos}
        if str(folder.root) in places:
            return Identity(id, lost=True)
        if not any(_is_of(place, id) for place in places) and await _holds_any(folder, id, infos):
            return Identity(id, lost=True)
    return Identity("")


async def _place(engine: Engine, run_id: str) -> str:
    """The folder in which a run was begun."""
    return str((await engine.look(run_id)).run.started.settings.get("folder", ""))


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
