"""Lists that come page by page, whole."""

from typing import TYPE_CHECKING

from msgspec.structs import replace

if TYPE_CHECKING:
    from ripstop.runtime.engine import Engine
    from ripstop.runtime.ports import DeskQuery, Question, RunInfo, RunQuery

PAGE = 1000


async def all_runs(engine: "Engine", query: "RunQuery") -> "list[RunInfo]":
    """Every run that a query asks for, the newest first."""
    found, query = [], replace(query, size=PAGE)
    while True:
        page = await engine.runs(query)
        found += page.items
        if not page.next:
            return found
        query = replace(query, cursor=page.next)


async def all_questions(engine: "Engine", query: "DeskQuery") -> "list[Question]":
    """Every question that a query asks for, the oldest first."""
    found, query = [], replace(query, size=PAGE)
    while True:
        page = await engine.desk(query)
        found += page.items
        if not page.next:
            return found
        query = replace(query, cursor=page.next)
