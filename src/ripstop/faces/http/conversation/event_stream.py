"""A session as server-sent events: what is on record, each event once and in order, and words while they are written.

    event: message
    id: 12
    data: {"id": "chat:shop:ann/12", "kind": "answer", "text": "It is on its way."}

- The id is the number of the record. Of a record with several events the first has `12.0`, the next `12.1`, the last
  `12`. So a client that comes back with `Last-Event-ID` misses nothing and gets nothing twice.
- `token` events have no id. They are a draft that the message replaces: a higher `attempt` starts it again.
- A comment every 15 seconds shows that the connection is alive.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, NamedTuple

from ripstop.http.event_stream import ALIVE, HEARTBEAT, event_lines, with_pauses
from ripstop.kernel.events import Record
from ripstop.runtime.live import LiveEvent, Token
from ripstop.services.conversation.draft_words import DraftWords

from .requests import StreamPosition

RETRY = 2000
"""Milliseconds after which a client comes back."""


class ShownEvent(NamedTuple):
    kind: str
    data: dict[str, Any]


async def session_events(
    happening: AsyncIterator[Record | LiveEvent],
    after: StreamPosition,
    events_of: Callable[[Record], Awaitable[list[ShownEvent]]],
    draft: DraftWords,
) -> AsyncGenerator[bytes, None]:
    """What happens to a session, as the lines of a stream; empty when nothing happens for a while."""
    yield f"retry: {RETRY}\n\n".encode()
    async with aclosing(with_pauses(happening, HEARTBEAT)) as items:
        async for one in items:
            if one is None:
                yield ALIVE
            elif isinstance(one, Record):
                events = await events_of(one)
                given = after.events if one.number == after.record else 0
                for index, event in enumerate(events[given:], given):
                    is_last = index == len(events) - 1
                    yield event_lines(event.kind, event.data, str(one.number) if is_last else f"{one.number}.{index}")
            elif isinstance(one, Token) and (words := draft.words(one)):
                yield event_lines("token", {"number": one.number, "attempt": one.attempt, "text": words})
