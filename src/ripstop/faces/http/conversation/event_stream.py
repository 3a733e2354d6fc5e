"""A session as server-sent events: what is on record, each event once and in order, and words while they are written.

    event: message
    id: 12
    data: {"id": "chat:shop:ann/12", "kind": "answer", "text": "It is on its way."}

- The id is the number of the record. Of a record with several events the first has `12.0`, the next `12.1`, the last
  `12`. So a client that comes back with `Last-Event-ID` misses nothing and gets nothing twice.
- `token` events have no id. They are a draft that the message replaces: a higher `attempt` starts it again.
- Nothing is kept for a client. It is read as fast as it reads; one that does not read is cut by its connection.
- A comment every 15 seconds shows that the connection is alive. A stream ends after an hour; the client comes back.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager, suppress
from typing import Any, NamedTuple, TypeVar

from ripstop.http.asgi import Headers, Receive, Scope, Send
from ripstop.http.refusals import too_many
from ripstop.kernel.events import Record
from ripstop.runtime.live import LiveEvent, Token
from ripstop.services.conversation.draft_words import DraftWords

from .requests import StreamPosition, as_json

HEARTBEAT = 15.0
"""Seconds without an event after which a comment is sent."""
LONGEST = 3600.0
"""Seconds of one stream."""
RETRY = 2000
"""Milliseconds after which a client comes back."""
MOST_STREAMS = 256
_HEADERS: Headers = [(b"content-type", b"text/event-stream"), (b"x-accel-buffering", b"no")]
T = TypeVar("T")


class StreamSlots:
    """How many streams are open at once."""

    def __init__(self, most: int = MOST_STREAMS) -> None:
        self._most = most
        self.taken = 0

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Raises `RequestRefused` if there are too many."""
        if self.taken >= self._most:
            raise too_many("There are too many streams.", 5)
        self.taken += 1
        try:
            yield
        finally:
            self.taken -= 1


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
                yield b": still here\n\n"
            elif isinstance(one, Record):
                events = await events_of(one)
                given = after.events if one.number == after.record else 0
                for index, event in enumerate(events[given:], given):
                    is_last = index == len(events) - 1
                    yield _lines(event.kind, event.data, str(one.number) if is_last else f"{one.number}.{index}")
            elif isinstance(one, Token) and (words := draft.words(one)):
                yield _lines("token", {"number": one.number, "attempt": one.attempt, "text": words})


def _lines(kind: str, data: Any, id: str = "") -> bytes:
    """An event. JSON has no line breaks, so the data is one line."""
    return b"event: %s\n%sdata: %s\n\n" % (kind.encode(), f"id: {id}\n".encode() if id else b"", as_json(data))


async def with_pauses(items: AsyncIterator[T], seconds: float) -> AsyncGenerator[T | None, None]:
    """The items, and `None` whenever there was none for so long."""
    coming: asyncio.Future[T] | None = None
    try:
        while True:
            coming = coming or asyncio.ensure_future(anext(items))
            done, _ = await asyncio.wait([coming], timeout=seconds)
            if not done:
                yield None
                continue
            try:
                item = coming.result()
            except StopAsyncIteration:
                return
            finally:
                coming = None
            yield item
    finally:
        if coming is not None:
            coming.cancel()
            with suppress(asyncio.CancelledError, StopAsyncIteration):
                await coming


class EventStreamResponse:
    """Sends a stream until it ends, its client leaves, the server stops, or an hour has passed."""

    def __init__(self, lines: AsyncGenerator[bytes, None], slots: StreamSlots, stopping: asyncio.Event) -> None:
        self._lines = lines
        self._slots = slots
        self._stopping = stopping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._slots.slot():
            await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            if scope["method"] != "HEAD":
                await self._send_until_over(receive, send)
            await send({"type": "http.response.body", "body": b""})

    async def _send_until_over(self, receive: Receive, send: Send) -> None:
        sending = asyncio.ensure_future(self._send(send))
        over = [asyncio.ensure_future(_until_gone(receive)), asyncio.ensure_future(self._stopping.wait())]
        try:
            await asyncio.wait([sending, *over], timeout=LONGEST, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sending, *over):
                task.cancel()
            await asyncio.gather(sending, *over, return_exceptions=True)
        if not sending.cancelled():
            sending.result()

    async def _send(self, send: Send) -> None:
        async with aclosing(self._lines) as lines:
            async for line in lines:
                await send({"type": "http.response.body", "body": line, "more_body": True})


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
