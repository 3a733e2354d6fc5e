"""The one door of every HTTP face, as ASGI middleware. Nothing behind it sees a request that did not pass:

1. it has one length (400, and the connection is closed);
2. `Host` is a name of this server (421), and the target is a path of it (400);
3. its sender may come in (401), also on localhost; wrong ones are answered rarely (429);
4. it does not come from a page of another origin (403);
5. its head is bounded (431), and no header is there twice that must be there once (400);
6. its client has not sent too many (429);
7. its body is complete, in time (408) and not too large (413).

An `Admission` says who may come in, and from where. Behind the door `scope["ripstop.by"]` says who it was, and the
token is gone from the headers. Every answer has the headers that keep a browser from reading, framing or guessing.
There is no CORS: no other origin gets an answer.
"""

import asyncio
import ipaddress
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Protocol

from msgspec import Struct

from ripstop.kernel.errors import UsageError
from ripstop.kernel.text_limits import shown
from ripstop.text.visible_text import visible_line

from .asgi import AsgiApp, Headers, Message, Receive, RequestRefused, Scope, Send, send_refusal, too_many
from .tokens import BearerToken

# Receives the whole body of a request before anything looks at it, within a limit of bytes and of seconds.
#
# The body of a request that is refused is also read, for a moment. A server that closes a connection on which bytes are
# still arriving resets it, and the client never reads why it was refused.


LATE = 408
UNWANTED_BYTES, UNWANTED_SECONDS = 8 << 20, 2.0
"""That are read of the body of a request that is refused."""


class ClientGone(Exception):
    """Raised when the client has left before its request was complete."""


async def receive_body(receive: Receive, declared: int | None, at_most: int, seconds: float) -> bytes:
    """The body. Raises `RequestRefused` if it is too large or too late, and `ClientGone`.

    Args:
        declared: What `Content-Length` says. A body without it is counted as it comes.
    """
    if declared is not None and declared > at_most:
        raise _too_large(at_most)
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    raise ClientGone
                body += message.get("body", b"")
                if len(body) > at_most:
                    raise _too_large(at_most)
                if not message.get("more_body", False):
                    return bytes(body)
    except TimeoutError:
        raise RequestRefused(LATE, f"The body did not arrive within {seconds:g} s.") from None


async def discard_body(receive: Receive) -> None:
    """Read what is left of a body, within bounds, and keep nothing."""
    seen = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(UNWANTED_SECONDS):
            while seen <= UNWANTED_BYTES:
                message = await receive()
                if message["type"] != "http.request" or not message.get("more_body", False):
                    return
                seen += len(message.get("body", b""))


def _too_large(at_most: int) -> RequestRefused:
    return RequestRefused(413, f"The body is larger than {at_most} bytes.")


def replay(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives the body at once, and then what the server says."""
    given = False

    async def receive_again() -> dict[str, object]:
        nonlocal given
        if given:
            return dict(await receive())
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_again


# The names under which a server answers.
#
# A page of another site can make a browser send requests here: under a name of its own that resolves to this machine
# (DNS rebinding), or from its own origin. The first has a foreign `Host`, the second a foreign `Origin`. So only names
# that were listed are answered, compared as they are: no suffixes, no patterns, no trailing dots.


LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_NAME = re.compile(r"(?P<host>[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::(?P<port>[0-9]{1,5}))?")
_SAME_ORIGIN = ("same-origin", "none")
"""Values of `Sec-Fetch-Site` for a request that no page of another origin caused; `none` is the user's own doing."""


class AllowedHosts:
    """The values of `Host` that are answered: the loopback names with the port, and those that were listed."""

    def __init__(self, port: int, names: Iterable[str] = ()) -> None:
        """Args:
        names: With a port, only with that; without one, also with `port`, as behind a proxy and without it.

        Raises `UsageError` for a name that cannot be one.
        """
        self._allowed: set[str] = set()
        for name in LOOPBACK:
            self._add(name, port)
        for name in names:
            host, own_port = _taken_apart(name)
            if own_port:
                self._add(host, own_port)
            else:
                self._allowed.add(host)
                self._add(host, port)

    def _add(self, host: str, port: int) -> None:
        self._allowed.add(f"{host}:{port}")
        if port == 80:  # a client leaves out the port of the scheme
            self._allowed.add(host)

    def answers(self, host: str) -> bool:
        return host.lower() in self._allowed


def _taken_apart(name: str) -> tuple[str, int]:
    """Host and port, 0 without one."""
    bare = f"[{name}]" if name.count(":") > 1 and not name.startswith("[") else name
    found = _NAME.fullmatch(bare.lower())
    port = int(found["port"] or 0) if found else 0
    if found is None or ".." in found["host"] or port > 65_535 or (found["port"] and not port):
        raise UsageError(f"{shown(name)} is not the name of a host. Expected one like bot.example.com or [::1]:8080.")
    return found["host"], port


def is_same_origin(host: str, origin: str | None, fetch_site: str | None) -> bool:
    """Whether a request comes from no page, or from a page of this server; `host` is its checked `Host`.

    Both schemes are taken: behind a proxy with TLS a page has `https`, and this server does not see that. A page with
    the other scheme at the same host and port is not another site; nothing else can listen there.
    """
    if fetch_site is not None and fetch_site not in _SAME_ORIGIN:
        return False
    return origin is None or origin.lower() in (f"http://{host.lower()}", f"https://{host.lower()}")


# How many requests a client may send: a token bucket for each.


MOST_CLIENTS = 10_000
"""Buckets that are kept; beyond that, the client that was quiet for longest begins again with a full one."""


class RequestRate:
    def __init__(self, per_second: float, burst: float, now: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_second
        self._burst = burst
        self._now = now
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """What is left for each client, and when that was so."""

    def take(self, client: str) -> float:
        """Count a request: 0 if it may pass, else the seconds until one may."""
        now = self._now()
        left, then = self._buckets.pop(client, (self._burst, now))
        left = min(self._burst, left + (now - then) * self._per_second)
        passes = left >= 1
        self._buckets[client] = (left - 1 if passes else left, now)
        if len(self._buckets) > MOST_CLIENTS:
            self._buckets.popitem(last=False)
        return 0.0 if passes else (1 - left) / self._per_second


def client_of(address: str) -> str:
    """The client behind an address: all addresses of an IPv6 network of 64 bits are one."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if found.version == 4:
        return address
    return str(ipaddress.ip_network((found.packed[:8] + bytes(8), 64)))


# Who may come through the door, by what a request carries. Each HTTP face says it in its own way.
#
# `TokenAdmission` is for programs: every request carries the token, and none comes from a page of another origin.


BY = "ripstop.by"
"""The key of the scope that says who sends a request."""
GivenHeaders = Mapping[bytes, list[bytes]]
"""The values of the headers that must be there once, by their names in lower case."""
WRONG_TOKENS = 10
"""Requests with a wrong token or none, per minute and client, that are told so."""


class Admission(Protocol):
    def identify(self, scope: Scope, given: GivenHeaders) -> dict[str, Any]:
        """What the scope says of the sender from now on; `BY` is among it. Raises `RequestRefused`."""

    def check_origin(self, scope: Scope, host: str, given: GivenHeaders) -> None:
        """Raise `RequestRefused` for a request that a page of another origin may have caused."""


class WrongTokens:
    """Counts the requests of each client that do not have the token."""

    def __init__(self, per_minute: int = WRONG_TOKENS, now: Callable[[], float] = time.monotonic) -> None:
        self._rate = RequestRate(per_minute / 60, per_minute, now)

    def count(self, scope: Scope) -> None:
        """Raise `RequestRefused` if its client has had too many of them."""
        if wait := self._rate.take(client_of((scope.get("client") or ("",))[0])):
            raise too_many("Too many requests without the token.", wait)


class TokenAdmission:
    def __init__(
        self,
        token: str,
        by: str = "http",
        wrong_tokens: int = WRONG_TOKENS,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Args:
        by: Who sends a request that has the token.
        """
        self._token = BearerToken(token)
        self._by = by
        self._wrong = WrongTokens(wrong_tokens, now)

    def identify(self, scope: Scope, given: GivenHeaders) -> dict[str, Any]:
        values = given[b"authorization"]
        if len(values) == 1 and self._token.accepts(values[0].decode("latin-1")):
            return {BY: self._by}
        self._wrong.count(scope)
        raise RequestRefused(
            401,
            "The token is wrong." if values else "The token is missing.",
            "Send the header `Authorization: Bearer TOKEN`; `ripstop serve` says where the token is.",
            {"www-authenticate": "Bearer"},
        )

    def check_origin(self, scope: Scope, host: str, given: GivenHeaders) -> None:
        if not is_from_here(host, given):
            raise RequestRefused(403, "Pages of other origins get no answer.", "Send it from a program.")


def is_from_here(host: str, given: GivenHeaders) -> bool:
    """Whether a request comes from no page, or from a page of this server; `host` is its checked `Host`."""
    origins, sites = given[b"origin"], given[b"sec-fetch-site"]
    origin, site = (one[0].decode("latin-1") if one else None for one in (origins, sites))
    return len(origins) < 2 and len(sites) < 2 and is_same_origin(host, origin, site)


log = logging.getLogger("ripstop.http")

LONGEST_LOGGED = 200
_LENGTHS = (b"content-length", b"transfer-encoding")
_ONCE = (b"host", b"authorization", b"origin", b"sec-fetch-site", b"content-type", b"cookie", *_LENGTHS)
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
        length = _checked_length(scope, given)
        host = self._checked_host(scope, given[b"host"])
        sender = self._admission.identify(scope, given)
        self._admission.check_origin(scope, host, given)
        self._check_head(scope, given)
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


def _checked_length(scope: Scope, given: GivenHeaders) -> int | None:
    """What `Content-Length` says, if it is there. Two readers of one request must not see two lengths."""
    lengths, codings = (given[name] for name in _LENGTHS)
    # after a refusal, what follows on this connection may be part of the body by another reading
    close = {"connection": "close"}
    if len(lengths) + len(codings) > 1:
        raise RequestRefused(400, "The body has two lengths.", "Send Content-Length or Transfer-Encoding.", close)
    if codings and (codings[0].lower() != b"chunked" or scope["http_version"] != "1.1"):
        raise RequestRefused(400, "This Transfer-Encoding is not taken.", "Send Content-Length.", close)
    if not lengths:
        return None
    if not lengths[0].isdigit() or len(lengths[0]) > 18:
        raise RequestRefused(400, "Content-Length is not a number.", "", close)
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
