"""The tool with which a style searches a knowledge folder."""

from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ripstop.engine.performers import Performer, Refused, Request, start_thread
from ripstop.kernel.errors import UsageError

from ..style_tools import OwnTool, arguments_of
from .index import KnowledgeBases, SearchResult

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


# A knowledge folder as people look at it: what a question finds there, and which files cannot be searched.


def search_knowledge(folder: Path, question: str, most: int) -> SearchResult:
    """What a style would get for a question. Raises `UsageError` if the folder cannot be read."""
    try:
        return KnowledgeBases().search(folder, question, most)
    except Refused as refusal:
        raise UsageError(str(refusal)) from refusal
