"""Starts a server as a process and exchanges lines of JSON with it.

The SDK has a transport of its own, but its reader takes time that grows with the square of a message and has no bound.

- A message has at most `MAX_MESSAGE` bytes; a server that sends a longer one is killed.
- The process is the leader of its own group, and the group is killed as a whole: servers start helpers.
- It gets a short list of variables and those that the settings name, so no key of a provider.
- It begins in the folder of the project that names it. The user's own one begins in the home: `python -m` and `npx` run
  what is in the current folder, and no project is to choose what the user's own server is.
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

import anyio
import httpx2
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client._transport import TransportStreams
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

from ripstop.engine.performers import Refused, TryAgain
from ripstop.kernel.errors import UsageError
from ripstop.security.addresses import UNCOMPRESSED, compression
from ripstop.security.endpoints import parse_endpoint
from ripstop.tools.http.request import addresses_of, resolve

from .inspection import Incoming
from .servers import ServerSpec

MAX_MESSAGE = 4_000_000
PASSED_ON = ("PATH", "HOME", "LANG", "TERM", "USER", "SHELL")
LAST_WORDS = 2_000
"""Bytes of what the server wrote to its standard error, for when it does not work."""
GRACE = 2.0
"""Seconds that a server has to end after its standard input was closed."""
_CHUNK = 1 << 16


def environment_of(server: ServerSpec, variables: Mapping[str, str]) -> dict[str, str]:
    return {name: variables[name] for name in (*PASSED_ON, *server.env) if name in variables}


def folder_of(server: ServerSpec) -> str:
    home = os.path.expanduser("~")
    return server.project or (home if os.path.isdir(home) else os.sep)


class ServerProcess:
    """A server that runs, and how it ended."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._said = b""
        self.problem = ""
        """Why we ended it; empty: we did not."""

    @property
    def last_words(self) -> str:
        """The end of what it wrote to its standard error."""
        return self._said.decode(errors="replace").strip()

    def kill(self) -> None:
        """Kill it and all that it started."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    async def listen(self) -> None:
        assert self._process.stderr is not None
        while data := await self._process.stderr.read(_CHUNK):
            self._said = (self._said + data)[-LAST_WORDS:]

    async def read(self, send: MemoryObjectSendStream[Incoming]) -> None:
        """Pass on what it sends, message by message."""
        assert self._process.stdout is not None
        parts: list[bytes] = []
        size = 0
        with send, suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            while data := await self._process.stdout.read(_CHUNK):
                first, *others = data.split(b"\n")
                parts.append(first)
                size += len(first)
                for line in others:
                    if size > MAX_MESSAGE:
                        break
                    await _pass_on(b"".join(parts), send)
                    parts, size = [line], len(line)
                if size > MAX_MESSAGE:
                    self.problem = f"it sent a message of more than {MAX_MESSAGE:,} bytes"
                    self.kill()
                    return
                await asyncio.sleep(0)  # reading what is there already lets nobody else work

    async def write(self, receive: MemoryObjectReceiveStream[SessionMessage]) -> None:
        assert self._process.stdin is not None
        with receive, suppress(OSError):
            async for item in receive:
                line = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
                self._process.stdin.write(line)
                await self._process.stdin.drain()

    async def end(self) -> None:
        """Have it end, and wait for it; one that does not is killed, and so is what it leaves behind."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._ended()
        self.kill()
        await self._ended()
        # a helper that has left the group can keep the pipes open
        self._process._transport.close()  # type: ignore[attr-defined]

    async def _ended(self) -> None:
        """Return when it has ended, or when its time is up. `wait` would also wait for the pipes to be closed."""
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE):
                while self._process.returncode is None:  # noqa: ASYNC110  # nothing tells us
                    await asyncio.sleep(0.01)


async def _pass_on(line: bytes, send: MemoryObjectSendStream[Incoming]) -> None:
    if not line.strip():
        return
    try:
        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError as error:  # something that the server prints, and that is not for us
        await send.send(error)
    else:
        await send.send(SessionMessage(message))


@asynccontextmanager
async def stdio_transport(
    server: ServerSpec, environment: Mapping[str, str]
) -> AsyncIterator[tuple[TransportStreams, ServerProcess]]:
    """Raises `OSError` if the process cannot be started."""
    process = ServerProcess(
        await asyncio.create_subprocess_exec(
            *server.command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment_of(server, environment),
            cwd=folder_of(server),
            start_new_session=True,
        )
    )
    incoming, read = anyio.create_memory_object_stream[Incoming](0)
    write, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    tasks = [asyncio.create_task(work) for work in (process.listen(), process.read(incoming), process.write(outgoing))]
    try:
        yield (read, write), process
    finally:
        for stream in (read, write):
            await stream.aclose()
        ending = asyncio.ensure_future(process.end())
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            process.kill()
            await ending
            raise
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for stream in (incoming, outgoing):
                stream.close()


# Connects to a server over HTTP, by the SDK's transport with a client of our own below it.
#
# - Only the origin that the settings name is reached, and never through a proxy that the environment names.
# - A host is resolved and checked before every connection, and the address that was checked is the one connected to. A
#   private one is for servers that the user's own settings name, or whose origin they allow.
# - Nothing is decompressed, and what a response can have is bounded.


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
