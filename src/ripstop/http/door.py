"""The one door of every HTTP face, as ASGI middleware. Nothing behind it sees a request that did not pass:

1. `Host` is a name of this server (421), and the target is a path of it (400);
2. the request carries the token (401), also on localhost; wrong ones are answered rarely (429);
3. it does not come from a page of another origin (403); programs send no `Origin`, and pass;
4. its head is bounded (431), no header is there twice that must be there once, and it has one length (400);
5. its client has not sent too many (429);
6. its body is complete, in time (408) and not too large (413).

Behind the door `scope["ripstop.by"]` says who it was, and the token is gone from the headers. Every answer has the
headers that keep a browser from reading, framing or guessing. There is no CORS: no other origin gets an answer.
"""

import logging
import time
from collections.abc import Callable

from msgspec import Struct

from ripstop.visible_text import visible_line

from .asgi import AsgiApp, Headers, Message, Receive, Scope, Send
from .body import LATE, ClientGone, discard_body, receive_body, replay
from .hosts import AllowedHosts, is_same_origin
from .refusals import RequestRefused, send_refusal, too_many
from .request_rate import RequestRate, client_of
from .tokens import BearerToken

log = logging.getLogger("ripstop.http")

BY = "ripstop.by"
"""The key of the scope that says who sends a request."""
LONGEST_LOGGED = 200
_ONCE = (b"host", b"authorization", b"origin", b"sec-fetch-site", b"content-type", b"content-length")
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
    """Requests per second with the token; twice as many at once."""
    wrong_tokens: int = 10
    """Requests with a wrong token or none, per minute and client, that are told so."""


class Door:
    def __init__(
        self,
        app: AsgiApp,
        hosts: AllowedHosts,
        token: str,
        bounds: DoorBounds = DoorBounds(),
        by: str = "http",
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Args:
        by: Who sends a request that has the token.
        """
        self._app = app
        self._hosts = hosts
        self._token = BearerToken(token)
        self._bounds = bounds
        self._by = by
        self._rate = RequestRate(bounds.rate, 2 * bounds.rate, now)
        self._wrong = RequestRate(bounds.wrong_tokens / 60, bounds.wrong_tokens, now)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        if scope["type"] != "http":  # nothing here speaks over a web socket
            return await send({"type": "websocket.close", "code": 1008})
        answer = _Answer(send)
        try:
            body = await self._admitted(scope, receive)
        except RequestRefused as refusal:
            # a client that expects our word first does not send its body, and one that was late does not, either
            if refusal.status != LATE and not any(name.lower() == b"expect" for name, _ in scope["headers"]):
                await discard_body(receive)
            return await send_refusal(answer.send, refusal)
        except ClientGone:
            return None
        headers = [(name, value) for name, value in scope["headers"] if name.lower() != b"authorization"]
        try:
            await self._app({**scope, "headers": headers, BY: self._by}, replay(body, receive), answer.send)
        except Exception:
            if answer.has_started:
                raise  # the server cuts the connection, so that the client does not take a part for the whole
            log.exception("%s %s failed", scope["method"], visible_line(scope["path"])[:LONGEST_LOGGED])
            failure = RequestRefused(
                500, "This is a bug in ripstop, not in your request.", "The server's log has more."
            )
            await send_refusal(answer.send, failure)

    async def _admitted(self, scope: Scope, receive: Receive) -> bytes:
        """The body of a request that may pass. Raises `RequestRefused`."""
        headers: Headers = scope["headers"]
        given: dict[bytes, list[bytes]] = {name: [] for name in _ONCE}
        for name, value in headers:
            if (values := given.get(name.lower())) is not None:
                values.append(value)
        host = self._checked_host(scope, given[b"host"])
        self._check_token(scope, given[b"authorization"])
        self._check_origin(host, given[b"origin"], given[b"sec-fetch-site"])
        self._check_head(scope, given)
        length = _checked_length(headers, given[b"content-length"])
        if wait := self._rate.take(self._by):
            raise too_many("Too many requests.", wait)
        return await receive_body(receive, length, self._bounds.body, self._bounds.body_seconds)

    def _checked_host(self, scope: Scope, hosts: list[bytes]) -> str:
        host = hosts[0].decode("latin-1") if len(hosts) == 1 else ""
        if not self._hosts.answers(host):
            raise RequestRefused(421, "This server does not answer under that name.", "List it in [serve] hosts.")
        if not scope.get("raw_path", scope["path"].encode()).startswith(b"/"):
            raise RequestRefused(400, "The target is not a path.", "Send `GET /path`, without scheme and host.")
        return host

    def _check_token(self, scope: Scope, values: list[bytes]) -> None:
        if len(values) == 1 and self._token.accepts(values[0].decode("latin-1")):
            return
        if wait := self._wrong.take(client_of((scope.get("client") or ("",))[0])):
            raise too_many("Too many requests without the token.", wait)
        raise RequestRefused(
            401,
            "The token is wrong." if values else "The token is missing.",
            "Send the header `Authorization: Bearer TOKEN`; `ripstop serve` says where the token is.",
            {"www-authenticate": "Bearer"},
        )

    def _check_origin(self, host: str, origins: list[bytes], sites: list[bytes]) -> None:
        origin, site = (one[0].decode("latin-1") if one else None for one in (origins, sites))
        if len(origins) > 1 or len(sites) > 1 or not is_same_origin(host, origin, site):
            raise RequestRefused(403, "Pages of other origins get no answer.", "Send it from a program.")

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
