"""Starts a server as a process and exchanges lines of JSON with it.

The SDK has a transport of its own, but its reader takes time that grows with the square of a message and has no bound.

- A message has at most `MAX_MESSAGE` bytes; a server that sends a longer one is killed.
- The process is the leader of its own group, and the group is killed as a whole: servers start helpers.
- It gets a short list of variables and those that the settings name, so no key of a provider.
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

from .inspection import Incoming
from .server import ServerSpec

MAX_MESSAGE = 4_000_000
PASSED_ON = ("PATH", "HOME", "LANG", "TERM", "USER", "SHELL")
LAST_WORDS = 2_000
"""Bytes of what the server wrote to its standard error, for when it does not work."""
GRACE = 2.0
"""Seconds that a server has to end after its standard input was closed."""
_CHUNK = 1 << 16


def environment_of(server: ServerSpec, variables: Mapping[str, str]) -> dict[str, str]:
    return {name: variables[name] for name in (*PASSED_ON, *server.env) if name in variables}


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
