"""The tool with which a style searches a knowledge folder."""

from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ripstop.performers.own_thread import start_thread
from ripstop.performers.own_tools import OwnTool, arguments_of
from ripstop.runtime.performers import Performer, Refused, Request

from .search import KnowledgeBases

SEARCH = "search_knowledge"


class SearchCall(Struct, frozen=True, forbid_unknown_fields=True):
    folder: str
    query: str
    most: int = 5


def own_tools() -> dict[str, Performer]:
    bases = KnowledgeBases()

    async def search(request: Request) -> dict[str, Any]:
        call = arguments_of(request, SearchCall)
        if not Path(call.folder).is_absolute():
            raise Refused(f"The knowledge folder {call.folder!r} must be an absolute path.", "definition")
        found = await start_thread(bases.search, folder=Path(call.folder), question=call.query, most=max(call.most, 1))
        return {"passages": [msgspec.to_builtins(passage) for passage in found.passages]}

    return {SEARCH: OwnTool(SEARCH, search)}
