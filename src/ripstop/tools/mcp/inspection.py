"""What a server sends, looked at before the SDK gets it: the SDK starts a task for every message and trusts its peer.

- Between two requests of ours a server can send so much and no more; beyond that the connection ends.
- Notifications are dropped, except that the server does not need an answer any more.
- A list of tools is read leniently. The SDK would refuse all of it for one tool that is wrong.
"""

import logging
import time
from collections.abc import Callable, Sequence
from contextvars import Context
from types import TracebackType
from typing import Any

import anyio
from mcp.client._transport import ReadStream
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from .card import ToolCard

log = logging.getLogger("ripstop.mcp")

MOST_UNASKED = 20_000
"""Messages that answer nothing, and lines that are no messages."""
UNASKED_PER_SECOND = 100
"""How many more with every second: a call can take hours."""
MOST_REQUESTS = 500
"""Requests of the server to us."""
CANCELLED = "notifications/cancelled"
Incoming = SessionMessage | Exception
TakeTools = Callable[[Sequence[Any]], list[ToolCard]]


class Flooded(Exception):
    """Raised when a server has sent too much."""


class Inspection:
    """Counts and filters what one server sends."""

    def __init__(self) -> None:
        self._unasked = 0.0
        self._since = time.monotonic()
        self._requests = 0
        self.take_tools: TakeTools | None = None
        """Reads a page of tools, while one was asked for."""

    def sent(self) -> None:
        """We have sent a request, so the server may send again."""
        self._unasked, self._requests = 0.0, 0

    def take(self, item: Incoming) -> Incoming | None:
        """What the SDK gets of it; `None`: nothing. Raises `Flooded`."""
        if isinstance(item, Exception):
            self._count_unasked()
            return None
        message = item.message
        if isinstance(message, JSONRPCResponse):
            if self.take_tools and isinstance(message.result.get("tools"), list):
                cards = self.take_tools(message.result["tools"])
                message.result["tools"] = [{"name": card.tool, "inputSchema": card.schema} for card in cards]
            return item
        if isinstance(message, JSONRPCRequest):
            self._requests += 1
            if self._requests > MOST_REQUESTS:
                raise Flooded(f"it asked for more than {MOST_REQUESTS} things at a time")
            return item
        if isinstance(message, JSONRPCNotification):
            self._count_unasked()
            return item if message.method == CANCELLED else None
        return item

    def _count_unasked(self) -> None:
        now = time.monotonic()
        self._unasked = max(0.0, self._unasked - UNASKED_PER_SECOND * (now - self._since)) + 1
        self._since = now
        if self._unasked > MOST_UNASKED:
            raise Flooded(f"it sent more than {MOST_UNASKED:,} messages that nobody asked for")


class InspectedStream:
    """A read stream of the SDK from which only what the inspection lets through is read."""

    def __init__(self, inner: ReadStream[Incoming], inspection: Inspection, on_end: Callable[[str], None]) -> None:
        """`on_end` is called with why the connection ended; empty: the server closed it."""
        self._inner = inner
        self._inspection = inspection
        self._on_end = on_end

    @property
    def last_context(self) -> Context | None:
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> Incoming:
        while True:
            try:
                taken = self._inspection.take(await self._inner.receive())
            except Flooded as error:
                self._on_end(str(error))
                raise anyio.EndOfStream from None
            except (anyio.EndOfStream, anyio.ClosedResourceError):
                self._on_end("")
                raise
            if taken is not None:
                return taken

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> "InspectedStream":
        return self

    async def __anext__(self) -> Incoming:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> "InspectedStream":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
