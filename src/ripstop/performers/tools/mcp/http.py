"""Connects to a server over HTTP, by the SDK's transport with a client of our own below it.

- Only the origin that the settings name is reached, and never through a proxy that the environment names.
- A host is resolved and checked before every connection, and the address that was checked is the one connected to. A
  private one is for servers that the user's own settings name, or whose origin they allow.
- Nothing is decompressed, and what a response can have is bounded.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
from mcp.client._transport import TransportStreams
from mcp.client.streamable_http import streamable_http_client

from ripstop.kernel.errors import UsageError
from ripstop.performers.http_headers import UNCOMPRESSED, compression
from ripstop.performers.tools.http.names import addresses_of, resolve
from ripstop.runtime.performers import Refused, TryAgain
from ripstop.security.endpoints import parse_endpoint

from .server import ServerSpec
from .stdio import MAX_MESSAGE

MAX_RESPONSE = 64_000_000
"""Bytes of one response, which can be a stream of many messages."""
CONNECTING = 30.0
"""Seconds to connect, and to send. How long a reply can take is for the call to say."""


class CheckedTransport(httpx2.AsyncBaseTransport):
    """Sends requests of one origin to addresses that were checked."""

    def __init__(self, server: ServerSpec, inner: httpx2.AsyncBaseTransport | None = None) -> None:
        self._origin = _origin(httpx2.URL(server.url))
        self._allow_private = server.allow_private
        self._inner = inner or httpx2.AsyncHTTPTransport(trust_env=False)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url = request.url
        if _origin(url) != self._origin:
            raise httpx2.ConnectError(f"it leads to {url.host!r}, which is not the server that the settings name")
        request.extensions = {**request.extensions, "sni_hostname": url.host}
        request.url = url.copy_with(host=await self._checked(url))
        response = await self._inner.handle_async_request(request)
        if how := compression(response.headers):
            await response.aclose()
            raise httpx2.RemoteProtocolError(f"it compresses its reply ({how}), although it was asked not to")
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        is_stream = response.headers.get("content-type", "").lower().startswith("text/event-stream")
        most = MAX_RESPONSE if is_stream else MAX_MESSAGE
        return httpx2.Response(
            response.status_code,
            headers=response.headers,
            stream=_BoundedBody(response.stream, most),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def _checked(self, url: httpx2.URL) -> str:
        """The address to connect to: the first of the host's, if all of them can be used."""
        try:
            meant = parse_endpoint(str(url.copy_with(query=None)), "The address of the server")
            return (await addresses_of(meant, resolve, self._allow_private))[0]
        except (Refused, TryAgain, UsageError) as error:
            raise httpx2.ConnectError(str(error)) from error


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


class _BoundedBody(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream, most: int) -> None:
        self._inner = inner
        self._left = most
        self._most = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._inner:
            self._left -= len(piece)
            if self._left < 0:
                raise httpx2.RemoteProtocolError(f"it sent more than {self._most:,} bytes")
            yield piece

    async def aclose(self) -> None:
        await self._inner.aclose()


@asynccontextmanager
async def http_transport(server: ServerSpec) -> AsyncIterator[TransportStreams]:
    client = httpx2.AsyncClient(
        transport=CheckedTransport(server),
        headers=UNCOMPRESSED,
        timeout=httpx2.Timeout(CONNECTING, read=None),
        trust_env=False,
        max_redirects=3,
    )
    async with (
        client,
        streamable_http_client(server.url, http_client=client, max_sse_event_size=MAX_MESSAGE) as streams,
    ):
        yield streams
