"""A receiver of webhooks on loopback, which checks signatures as the specification says and misbehaves when told to."""

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from functools import wraps
from typing import Any, NamedTuple

KEY = bytes(range(32))
SECRET = "whsec_" + base64.b64encode(KEY).decode()


def in_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """An async test as pytest calls one."""

    @wraps(test)
    def run(**fixtures: Any) -> None:
        asyncio.run(test(**fixtures))

    return run


class Received(NamedTuple):
    id: str
    body: dict[str, Any]
    headers: dict[str, str]
    target: str

    @property
    def text(self) -> str:
        return str(self.body["data"].get("text", ""))


Reply = Callable[[Received], "int | tuple[int, str]"]


class Receiver:
    def __init__(self) -> None:
        self.port = 0
        self.got: list[Received] = []
        """What was taken, in order."""
        self.tried: list[Received] = []
        """Every request."""
        self.reply: Reply = lambda received: 200
        """A status, or a status and more headers, for a request."""
        self.delay = 0.0
        """Seconds before an answer."""
        self.closing = asyncio.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?from=ripstop"

    def ids(self) -> list[str]:
        return [one.id for one in self.got]

    async def until(self, holds: Callable[["Receiver"], object]) -> None:
        async with asyncio.timeout(20):
            while not holds(self):
                await asyncio.sleep(0.01)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("ascii")
            line, *lines = head.strip().split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (one.partition(":") for one in lines)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            received = Received(headers["webhook-id"], json.loads(body), headers, line.split(" ")[1])
            check_signature(headers, body)
            assert line.startswith("POST ")
            self.tried.append(received)
            with suppress(TimeoutError):
                async with asyncio.timeout(self.delay):
                    await self.closing.wait()
            answer = self.reply(received)
            status, more = answer if isinstance(answer, tuple) else (answer, "")
            if 200 <= status < 300:
                self.got.append(received)
            writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: 0\r\n{more}Connection: close\r\n\r\n".encode())
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the sender was killed
        finally:
            writer.close()


def check_signature(headers: dict[str, str], body: bytes) -> None:
    version, _, signature = headers["webhook-signature"].partition(",")
    content = b".".join((headers["webhook-id"].encode(), headers["webhook-timestamp"].encode(), body))
    expected = hmac.new(base64.b64decode(SECRET[6:]), content, hashlib.sha256).digest()
    assert version == "v1" and hmac.compare_digest(base64.b64decode(signature), expected)
    assert "." not in headers["webhook-id"] and headers["webhook-timestamp"].isdecimal()


@asynccontextmanager
async def a_receiver() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    failures: list[BaseException] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await receiver._serve(reader, writer)
        except Exception as error:
            failures.append(error)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        receiver.closing.set()
        server.close()
        await asyncio.sleep(0.01)
    assert failures == []
