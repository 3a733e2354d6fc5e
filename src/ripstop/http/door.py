"""The one door of every HTTP face, as ASGI middleware. Nothing behind it sees a request that did not pass:

1. `Host` is a name of this server (421), and the target is a path of it (400);
2. its sender may come in (401), also on localhost; wrong ones are answered rarely (429);
3. it does not come from a page of another origin (403);
4. its head is bounded (431), no header is there twice that must be there once, and it has one length (400);
5. its client has not sent too many (429);
6. its body is complete, in time (408) and not too large (413).

An `Admission` says who may come in, and from where. Behind the door `scope["ripstop.by"]` says who it was, and the
token is gone from the headers. Every answer has the headers that keep a browser from reading, framing or guessing.
There is no CORS: no other origin gets an answer.
"""

import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct

from ripstop.visible_text import visible_line

from .admission import BY, Admission
from .asgi import AsgiApp, Headers, Message, Receive, Scope, Send
from .body import LATE, ClientGone, discard_body, receive_body, replay
from .hosts import AllowedHosts
from .refusals import RequestRefused, send_refusal, too_many
from .request_rate import RequestRate

log = logging.getLogger("ripstop.http")

LONGEST_LOGGED = 200
_ONCE = (b"host", b"authorization", b"origin", b"sec-fetch-site", b"content-type", b"content-length", b"cookie")
Refuse = Callable[[Scope, Send, RequestRefused], Awaitable[None]]
"""Answers a request that is refused."""
SAFE_HEADERS = {
    b"cache-control": b"no-store",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"referrer-policy": b"no-referrer",
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
}
"""Of every answer; a face can send others in their place."""


class DoorBounds(Struct, frozen=True):
    body: int = 1 << 20
    """Bytes."""
    body_seconds: float = 20.0
    """Until a body is complete."""
    head: int = 16 << 10
    """Bytes of the target and all headers. The server's own bound is for what arrives in pieces."""
    headers: int = 64
    rate: float = 1000.0
    """Requests per second of one sender; twice as many at once."""


async def refuse_with_json(_scope: Scope, send: Send, refusal: RequestRefused) -> None:
    await send_refusal(send, refusal)


class Door:
    def __init__(
        self,
        app: AsgiApp,
        hosts: AllowedHosts,
        admission: Admission,
        bounds: DoorBounds = DoorBounds(),
        refuse: Refuse = refuse_with_json,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app = app
        self._hosts = hosts
        self._admission = admission
        self._bounds = bounds
        self._refuse = refuse
        self._rate = RequestRate(bounds.rate, 2 * bounds.rate, now)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        if scope["type"] != "http":  # nothing here speaks over a web socket
            return await send({"type": "websocket.close", "code": 1008})
        answer = _Answer(send)
        try:
            sender, body = await self._admitted(scope, receive)
        except RequestRefused as refusal:
            # a client that expects our word first does not send its body, and one that was late does not, either
            if refusal.status != LATE and not any(name.lower() == b"expect" for name, _ in scope["headers"]):
                await discard_body(receive)
            return await self._refuse(scope, answer.send, refusal)
        except ClientGone:
            return None
        headers = [(name, value) for name, value in scope["headers"] if name.lower() != b"authorization"]
        try:
            await self._app({**scope, "headers": headers, **sender}, replay(body, receive), answer.send)
        except Exception:
            if answer.has_started:
                raise  # the server cuts the connection, so that the client does not take a part for the whole
            log.exception("%s %s failed", scope["method"], visible_line(scope["path"])[:LONGEST_LOGGED])
            failure = RequestRefused(
                500, "This is a bug in ripstop, not in your request.", "The server's log has more."
            )
            await self._refuse(scope, answer.send, failure)

    async def _admitted(self, scope: Scope, receive: Receive) -> tuple[dict[str, Any], bytes]:
        """The sender and the body of a request that may pass. Raises `RequestRefused`."""
        headers: Headers = scope["headers"]
        given: dict[bytes, list[bytes]] = {name: [] for name in _ONCE}
        for name, value in headers:
            if (values := given.get(name.lower())) is not None:
                values.append(value)
        host = self._checked_host(scope, given[b"host"])
        sender = self._admission.identify(scope, given)
        self._admission.check_origin(scope, host, given)
        self._check_head(scope, given)
        length = _checked_length(headers, given[b"content-length"])
        if wait := self._rate.take(sender[BY]):
            raise too_many("Too many requests.", wait)
        return sender, await receive_body(receive, length, self._bounds.body, self._bounds.body_seconds)

    def _checked_host(self, scope: Scope, hosts: list[bytes]) -> str:
        host = hosts[0].decode("latin-1") if len(hosts) == 1 else ""
        if not self._hosts.answers(host):
            raise RequestRefused(421, "This server does not answer under that name.", "List it in [serve] hosts.")
        if not scope.get("raw_path", scope["path"].encode()).startswith(b"/"):
            raise RequestRefused(400, "The target is not a path.", "Send `GET /path`, without scheme and host.")
        return host

    def _check_head(self, scope: Scope, given: dict[bytes, list[bytes]]) -> None:
        headers: Headers = scope["headers"]
        size = len(scope["path"]) + len(scope["query_string"]) + sum(len(name) + len(value) for name, value in headers)
        if len(headers) > self._bounds.headers or size > self._bounds.head:
            most = f"{self._bounds.headers} headers or {self._bounds.head} bytes"
            raise RequestRefused(431, f"The head of the request has more than {most}.")
        if scope["http_version"] not in ("1.0", "1.1"):
            raise RequestRefused(400, "This version of HTTP is not spoken here.", "Send HTTP/1.1.")
        if twice := next((name for name in _ONCE if len(given[name]) > 1), None):
            raise RequestRefused(400, f"The header {twice.decode()} is there twice.")


def _checked_length(headers: Headers, lengths: list[bytes]) -> int | None:
    """What `Content-Length` says, if it is there. Two readers of one request must not see two lengths."""
    if not lengths:
        return None
    if any(name.lower() == b"transfer-encoding" for name, _ in headers):
        hint = "Send Content-Length or Transfer-Encoding."
        # what follows on this connection may be part of the body, by the other length
        raise RequestRefused(400, "The body has two lengths.", hint, {"connection": "close"})
    if not lengths[0].isdigit() or len(lengths[0]) > 18:
        raise RequestRefused(400, "Content-Length is not a number.")
    return int(lengths[0])


class _Answer:
    """Sends an answer, with the headers that every answer has."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.has_started = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.has_started = True
            own: Headers = list(message.get("headers", ()))
            named = {name.lower() for name, _ in own}
            safe = [(name, value) for name, value in SAFE_HEADERS.items() if name not in named]
            message = {**message, "headers": own + safe}
        await self._send(message)
