"""The tool with which a conversation searches the knowledge base of its bot."""

from pathlib import Path

from ripstop.engine.performers import Performer, Refused, Request, start_thread
from ripstop.tools.knowledge.index import KnowledgeBases
from ripstop.tools.style_tools import typed_tool

from .calls import SEARCH, KnowledgeFound, KnowledgePassage, SearchCall


def own_tools() -> dict[str, Performer]:
    """The performer of the tool that only this style calls, by the tool's name."""
    bases = KnowledgeBases()

    async def search(_: Request, call: SearchCall) -> KnowledgeFound:
        folder = Path(call.folder)
        if not folder.is_absolute():
            raise Refused(f"The knowledge folder {call.folder!r} must be an absolute path.", "definition")
        found = await start_thread(bases.search, folder=folder, question=call.query, most=max(call.most, 1))
        return KnowledgeFound(tuple(KnowledgePassage(one.source, one.text) for one in found.passages))

    return {SEARCH: typed_tool(SEARCH, SearchCall, search)}
