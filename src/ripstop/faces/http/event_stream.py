"""Server-sent events: how a stream is written, kept alive and ended.

- Nothing is kept for a client. It is read as fast as it reads; one that does not read is cut by its connection.
- A stream ends after an hour at the latest; the client comes back.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, contextmanager, suppress
from typing import Any, TypeVar

import msgspec

from .asgi import Headers, Receive, Scope, Send, too_many

HEARTBEAT = 15.0
"""Seconds without an event after which a comment is sent."""
ALIVE = b": still here\n\n"
MAX_STREAM_SECONDS = 3600.0
"""Seconds of one stream."""
MOST_STREAMS = 256
_HEADERS: Headers = [(b"content-type", b"text/event-stream"), (b"x-accel-buffering", b"no")]
T = TypeVar("T")


def event_lines(kind: str, data: Any, id: str = "") -> bytes:
    """An event. JSON has no line breaks, so the data is one line."""
    body = msgspec.json.encode(data)
    return b"event: %s\n%sdata: %s\n\n" % (kind.encode(), f"id: {id}\n".encode() if id else b"", body)


class StreamSlots:
    """How many streams are open at once."""

    def __init__(self, most: int = MOST_STREAMS) -> None:
        self._most = most
        self.taken = 0

    @property
    def is_full(self) -> bool:
        return self.taken >= self._most

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Raises `RequestRefused` if there are too many."""
        if self.is_full:
            raise too_many("There are too many streams.", 5)
        self.taken += 1
        try:
            yield
        finally:
            self.taken -= 1


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
            await asyncio.wait([sending, *over], timeout=MAX_STREAM_SECONDS, return_when=asyncio.FIRST_COMPLETED)
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
