"""A knowledge folder as people look at it: what a question finds there, and which files cannot be searched."""

from pathlib import Path

from ripstop.kernel.errors import UsageError
from ripstop.performers.knowledge.index import SearchResult
from ripstop.performers.knowledge.search import KnowledgeBases
from ripstop.runtime.performers import Refused


def search_knowledge(folder: Path, question: str, most: int) -> SearchResult:
    """What a style would get for a question. Raises `UsageError` if the folder cannot be read."""
    try:
        return KnowledgeBases().search(folder, question, most)
    except Refused as refusal:
        raise UsageError(str(refusal)) from refusal
