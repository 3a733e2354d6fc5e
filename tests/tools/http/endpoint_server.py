"""A server on loopback that counts, and answers as a test says; and calls of `http_request` to it."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from ripstop.kernel.effects import CallTool, ToolReturned
from ripstop.security.consent import Consent, EndpointConsents
from ripstop.tools.http.tool import NAME, HttpEndpoints
from tests.tools.tool_requests import request_for


class Seen:
    """A request that came, and the connection to answer on."""

    def __init__(self, head: bytes, body: bytes, writer: asyncio.StreamWriter, server: "EndpointServer") -> None:
        line, *rest = head.decode("latin-1").split("\r\n")
        self.method, self.target, _ = line.split(" ", 2)
        self.headers = {name.lower(): value.strip() for name, _, value in (one.partition(":") for one in rest if one)}
        self.body = body
        self.writer = writer
        self.server = server

    async def send(self, *pieces: bytes, pause: float = 0.0) -> None:
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()
            self.server.sent += len(piece)
            if pause:
                await asyncio.sleep(pause)

    async def forever(self, piece: bytes, pause: float = 0.0) -> None:
        while True:
            await self.send(piece, pause=pause)
            await asyncio.sleep(0)


Answers = Callable[[Seen], Awaitable[None]]


class EndpointServer:
    def __init__(self, answer: Answers) -> None:
        self._answer = answer
        self.port = 0
        self.connections = 0
        self.seen: list[Seen] = []
        self.sent = 0

    @property
    def origin(self) -> str:
        return f"http://shop.example:{self.port}"

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = [one for one in head.lower().split(b"\r\n") if one.startswith(b"content-length:")]
            body = await reader.readexactly(int(length[0].partition(b":")[2])) if length else b""
            self.seen.append(Seen(head, body, writer, self))
            await self._answer(self.seen[-1])
        except (OSError, asyncio.IncompleteReadError):
            pass  # the client has gone, as it may
        finally:
            writer.close()


@asynccontextmanager
async def serving(answer: Answers, everywhere: bool = False, **options: Any) -> AsyncIterator[EndpointServer]:
    """`everywhere`: on all addresses of this machine, also in IPv6."""
    server = EndpointServer(answer)
    dual = everywhere and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if dual else socket.AF_INET
    listener = socket.create_server(("" if everywhere else "127.0.0.1", 0), family=family, dualstack_ipv6=dual)
    listening = await asyncio.start_server(server.take, sock=listener, **options)
    server.port = listener.getsockname()[1]
    try:
        yield server
    finally:
        listening.close()


def head(status: str = "200 OK", kind: str = "application/json", *more: str) -> bytes:
    return "\r\n".join((f"HTTP/1.1 {status}", f"Content-Type: {kind}", *more)).encode() + b"\r\n\r\n"


def answering(
    body: bytes = b'{"ok": true}', status: str = "200 OK", *more: str, kind: str = "application/json"
) -> Answers:
    async def answer(seen: Seen) -> None:
        await seen.send(head(status, kind, f"Content-Length: {len(body)}", *more), body)

    return answer


def by_path(**answers: Answers) -> Answers:
    """Another answer for each first part of the path."""

    async def answer(seen: Seen) -> None:
        await answers[seen.target.split("/")[1].partition("?")[0]](seen)

    return answer


def redirecting(status: int, location: str) -> Answers:
    return answering(b"", f"{status} X", f"Location: {location}")


async def at_home(_: str) -> list[str]:
    """Every name is this machine."""
    return ["127.0.0.1"]


class AgreedToAll(EndpointConsents):
    """A user who agreed to every origin with every secret, which does not allow private addresses."""

    def missing(self, origin: str, secrets: Iterable[str] = ()) -> Consent | None:
        return None


def endpoints(*allowed: str, environment: Mapping[str, str] | None = None, **options: Any) -> HttpEndpoints:
    consents = AgreedToAll(allowed)
    return HttpEndpoints(consents, **{"resolver": at_home, "environment": environment or {}, **options})


async def called(performer: HttpEndpoints, url: str, effect: Any = "pure", run_id: str = "r", **call: Any) -> Any:
    """The value that a call returns. Raises what the performer raises."""
    arguments = {"tool": "lookup", "url": url, "timeout": 5.0, **call}
    command = CallTool(tool=NAME, arguments=arguments, effect=effect)
    answer = await performer.perform(request_for(command, run_id, arguments=arguments))
    assert isinstance(answer, ToolReturned)
    return answer.value
