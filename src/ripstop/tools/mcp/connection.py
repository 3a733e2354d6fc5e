"""A connection to one server, owned by one task: it is opened, used and closed there, whoever calls.

What the SDK opens must be closed in the task that opened it, so a call cannot open a connection that others use.

- A server of 2025 and earlier asks people in the middle of a call, and does not say of which one: it gets one call at a
  time, so that the question is known to belong to that call.
- A connection that let a call time out is used no more: nobody knows what its server is doing.
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from typing import Any, Protocol, cast

from mcp import Client, MCPError
from mcp.client._transport import TransportStreams
from mcp.client.session import ClientRequestContext, ClientSession
from mcp.types import (
    INVALID_REQUEST,
    CallToolResult,
    ElicitRequestParams,
    ElicitResult,
    ErrorData,
    Implementation,
    InputRequiredResult,
    InputResponses,
    ListRootsResult,
    PaginatedRequestParams,
    RequestParamsMeta,
)
from pydantic import ValidationError

from ripstop import __version__
from ripstop.security.redaction import redacted

from .card import clean
from .inspection import InspectedStream, Inspection
from .servers import MOST_PAGES, ServerSpec, ToolListing

log = logging.getLogger("ripstop.mcp")
for _name in ("mcp", "client"):
    if logging.getLogger(_name).level == logging.NOTSET:
        logging.getLogger(_name).setLevel(logging.CRITICAL)  # the SDK reports a server's mistakes as errors of ours

IDLE = 300.0
"""Seconds after which a connection that nobody uses is closed."""
OPENING = 60.0
"""Seconds that connecting can take, if the time limit of calls is not longer: some servers are downloaded first."""
CLOSING = 10.0
"""Seconds that closing can take."""
LONGEST_REASON = 600


class CannotConnect(Exception):
    """Raised if a server cannot be used; says why."""


class ConnectionOver(Exception):
    """Raised if a connection has ended while a call waited for its turn; nothing was sent."""


class Caller(Protocol):
    """The call that is being made: it answers what its server asks in the middle of it."""

    async def elicit(self, params: ElicitRequestParams) -> ElicitResult: ...

    def roots(self) -> ListRootsResult: ...


class Connection:
    mode = "auto"
    """Which protocol is spoken: `auto` as the server does, `legacy` that of 2025."""

    def __init__(self, server: ServerSpec, idle: float = IDLE) -> None:
        self._server = server
        self._idle = idle
        self._inspection = Inspection()
        self.listing = ToolListing(server.name)
        self._session: ClientSession | None = None
        self._one_call = asyncio.Lock()
        self._caller: Caller | None = None
        self._calls = 0
        self._suspect = False
        self._is_listed = False
        self._used = asyncio.Event()
        self._over = asyncio.Event()
        self._reason = ""
        self._last_words: Callable[[], str] = str
        self._kill: Callable[[], None] = _nothing
        self._owner: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Connect and list the tools. Raises `CannotConnect`."""
        opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._owner = asyncio.create_task(self._own(opened))
        try:
            await asyncio.shield(opened)
        except asyncio.CancelledError:
            opened.add_done_callback(lambda done: None if done.cancelled() else done.exception())
            await self.close()
            raise

    @property
    def is_open(self) -> bool:
        """Whether another call can be made."""
        return not (self._over.is_set() or self._suspect or self._owner is None or self._owner.done())

    async def close(self) -> None:
        self._over.set()
        if self._owner is None:
            return
        if not self._is_listed:  # it does not look whether it is over
            self._owner.cancel()
        await asyncio.wait([self._owner], timeout=CLOSING)
        if not self._owner.done():
            self._owner.cancel()

    @asynccontextmanager
    async def calling(self, caller: Caller) -> AsyncIterator["Connection"]:
        """Make calls for a caller, who answers what the server asks meanwhile. Raises `ConnectionOver`."""
        async with self._one_call if self._is_legacy else nullcontext():
            if not self.is_open:
                raise ConnectionOver
            self._calls += 1
            if self._is_legacy:
                self._caller = caller
            try:
                yield self
            finally:
                self._calls -= 1
                self._caller = None
                self._used.set()
                if self._suspect and not self._calls:
                    self._kill()
                    self._over.set()

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        key: str,
        responses: InputResponses | None = None,
        state: str | None = None,
    ) -> CallToolResult | InputRequiredResult:
        """Raises `MCPError`, or `ValidationError` if the server's answer has the wrong shape."""
        assert self._session is not None
        self._inspection.sent()
        known: dict[str, Any] = {"ripstop/key": key}
        return await self._session.call_tool(
            tool,
            dict(arguments),
            input_responses=responses,
            request_state=state,
            meta=cast("RequestParamsMeta", known),
            allow_input_required=True,
        )

    @property
    def reason(self) -> str:
        """Why it ended, as far as that is known."""
        return self._clean(self._reason)

    def use_no_more(self) -> None:
        """A call timed out: end it with the calls that are still at work."""
        self._suspect = True

    @property
    def _is_legacy(self) -> bool:
        return self._session is not None and self._session.discover_result is None

    # In the task that owns it

    async def _own(self, opened: "asyncio.Future[None]") -> None:
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(max(self._server.timeout, OPENING)):
                    client = await stack.enter_async_context(self._client())
                    self._session = client.session
                    await self._list()
                self._is_listed = True
                opened.set_result(None)
                await self._until_over()
        except BaseException as error:  # of the server, the SDK or anyio; also groups of them
            self._reason = self._reason or self._why(error)
            if not opened.done():
                opened.set_exception(CannotConnect(self.reason))
            if isinstance(error, asyncio.CancelledError):
                raise
            log.debug("The MCP server %r ended: %s", self._server.name, self.reason)
        finally:
            self._over.set()

    def _client(self) -> Client:
        return Client(
            self._transport(),
            mode=self.mode,
            cache=None,
            elicitation_callback=self._elicit,
            list_roots_callback=self._roots,
            client_info=Implementation(name="ripstop", version=__version__),
        )

    @asynccontextmanager
    async def _transport(self) -> AsyncIterator[TransportStreams]:
        async with AsyncExitStack() as stack:
            if self._server.url:
                from .transports import http_transport

                read, write = await stack.enter_async_context(http_transport(self._server))
            else:
                from .transports import stdio_transport

                entered = stdio_transport(self._server, os.environ)
                (read, write), process = await stack.enter_async_context(entered)

                def last_words() -> str:
                    return f"{process.problem} {process.last_words}".strip()

                self._last_words, self._kill = last_words, process.kill
            yield InspectedStream(read, self._inspection, self._ended), write

    def _ended(self, reason: str) -> None:
        if reason:  # it misbehaves
            self._reason = self._reason or reason
            self._kill()
        self._over.set()

    async def _list(self) -> None:
        assert self._session is not None
        self._inspection.take_tools = self.listing.take
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            self._inspection.sent()
            page = await self._session.list_tools(params=PaginatedRequestParams(cursor=cursor) if cursor else None)
            cursor = page.next_cursor
            if not cursor or self.listing.is_full:
                break
        else:
            self.listing.note(f"its list has more than {MOST_PAGES} pages; the others are not read")
        self._inspection.take_tools = None

    async def _until_over(self) -> None:
        """Return when the connection has ended, or nobody has used it for a while."""
        over = asyncio.ensure_future(self._over.wait())
        try:
            while not self._over.is_set():
                used = asyncio.ensure_future(self._used.wait())
                await asyncio.wait([over, used], timeout=self._idle, return_when=asyncio.FIRST_COMPLETED)
                used.cancel()
                if not self._used.is_set() and not self._calls:
                    return
                self._used.clear()
        finally:
            over.cancel()

    def _why(self, error: BaseException) -> str:
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, TimeoutError):
            return f"it did not answer within {max(self._server.timeout, OPENING):g} s"
        if isinstance(error, ValidationError):
            return "its answer has the wrong shape"
        return error.message if isinstance(error, MCPError) else str(error) or type(error).__name__

    def _clean(self, reason: str) -> str:
        """A reason with the server's last words, for people: they can hold anything, also the variables it got."""
        secrets = [os.environ[name] for name in self._server.env if name in os.environ]
        words = ". ".join(part for part in (reason.rstrip("."), self._last_words()) if part)
        return clean(redacted(words, *secrets), LONGEST_REASON) or "it closed the connection"

    # What the server asks in the middle of a call

    async def _elicit(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult | ErrorData:
        if self._caller is None:
            return ErrorData(code=INVALID_REQUEST, message="There is no call that could ask.")
        return await self._caller.elicit(params)

    async def _roots(self, context: ClientRequestContext) -> ListRootsResult:
        return self._caller.roots() if self._caller else ListRootsResult(roots=[])


def _nothing() -> None:
    """For a server that is not a process of ours."""
