"""Steps made by hand, for tests of journals: what an engine would append, without an engine."""

import hashlib
from collections.abc import Awaitable, Sequence

from ripstop.kernel.effects import CallTool, Command, ToolReturned
from ripstop.kernel.errors import JournalError
from ripstop.kernel.events import (
    Answered,
    Asked,
    Event,
    Record,
    Started,
)
from ripstop.runtime.ports import Entry

SECOND = 1_000_000
NOW = 1_800_000_000 * SECOND
LATER = NOW + 3600 * SECOND
"""Long after every lease has run out."""

CONTENT = b"what the run follows"
DIGEST = hashlib.sha256(CONTENT).hexdigest()
STARTED = Started(style="errands", definition=DIGEST)
TOOL = CallTool(tool="hammer", arguments={"nail": 1})


def entry(
    run_id: str,
    *events: Event,
    after: int = 0,
    at: int = NOW,
    status: str = "working",
    fork: tuple[str, int] | None = None,
    holder: int | None = None,
    begun: tuple[int, ...] = (),
    fence: tuple[int, int] | None = None,
    inherited: Sequence[Record] = (),
) -> Entry:
    """A step whose records follow the record `after`."""
    return Entry(
        run_id=run_id,
        records=[Record(after + place, at, event) for place, event in enumerate(events, 1)],
        status=status,
        blobs={DIGEST: CONTENT} if any(isinstance(event, Started) for event in events) else {},
        fork=fork,
        holder=holder,
        begun=begun,
        fence=fence,
        inherited=list(inherited),
    )


def start(run_id: str, *commands: Command, holder: int | None = None, begun: tuple[int, ...] = ()) -> Entry:
    """A run that starts and asks for something. Its commands are the records 2, 3, …"""
    return entry(run_id, STARTED, *(Asked(command=command) for command in commands), holder=holder, begun=begun)


def answer(to: int, value: object = "done") -> Answered:
    return Answered(to=to, answer=ToolReturned(value=value))


async def refuses(error: type[JournalError], doing: Awaitable[object]) -> None:
    try:
        await doing
    except error:
        return
    raise AssertionError(f"{error.__name__} was not raised")
