"""Which session a person means: by the id of its run, or by its own name."""

from typing import TYPE_CHECKING, Any

from ripstop.faces.cli.words import one_of

if TYPE_CHECKING:
    from ripstop.runtime.engine import Engine

PAGE = 200
MOST_LISTED = 10


async def session_meant(engine: "Engine", named: str) -> str:
    """The id of a session's run. Raises `UsageError` if there is none, or if several bots have one of that name."""
    from ripstop.kernel.errors import UsageError
    from ripstop.services.conversation.bots import STYLE
    from ripstop.services.conversation.session_names import run_of

    info = await engine.journal.run(named)
    if info is not None:
        if info.style != STYLE:
            raise UsageError(f"{named} is a run of the style {info.style!r}, not a session of a bot.")
        return named
    found = [run_of(one["workflow_id"], one["id"]) async for one in documents(engine, "sessions") if one["id"] == named]
    if len(found) > 1:
        raise UsageError(f"Several bots have a session {named!r}. Say which: {one_of(found[:MOST_LISTED])}.")
    if not found:
        raise UsageError(f"There is no session {named!r}. `ripstop sessions` lists those that there are.")
    return found[0]


async def documents(engine: "Engine", collection: str) -> Any:
    """All documents of a collection, as they are."""
    import msgspec

    cursor = ""
    while True:
        page = await engine.journal.documents(collection, cursor, PAGE)
        for _, body in page.items:
            yield msgspec.json.decode(body)
        cursor = page.next
        if not cursor:
            return
