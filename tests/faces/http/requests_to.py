"""Requests to an ASGI application, as a server would pass them on: any headers, any body, any order."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ripstop.faces.http.asgi import AsgiApp, Message, Receive, Scope, Send
from ripstop.faces.http.door import BY, WRONG_TOKENS, AllowedHosts, Door, DoorBounds, TokenAdmission

TOKEN = "t0ken-" + "x" * 40
HOST = b"127.0.0.1:8517"
GOOD = ((b"host", HOST), (b"authorization", f"Bearer {TOKEN}".encode()))


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


async def request(
    app: AsgiApp,
    headers: Sequence[tuple[bytes, bytes]] = GOOD,
    *,
    method: str = "GET",
    path: str = "/",
    raw_path: bytes | None = None,
    body: Iterable[bytes] = (b"",),
    client: str = "127.0.0.1",
    receive: Receive | None = None,
    **more: Any,
) -> Reply:
    """What the application answers; status 0 if nothing."""
    pieces = list(body)
    sent: list[Message] = []

    async def receive_body() -> Message:
        if not pieces:
            return {"type": "http.disconnect"}
        piece = pieces.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(pieces)}

    async def send(message: Message) -> None:
        sent.append(message)

    scope: Scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "scheme": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode() if raw_path is None else raw_path,
        "query_string": b"",
        "root_path": "",
        "headers": list(headers),
        "client": (client, 50_000),
        "server": ("127.0.0.1", 8517),
        "state": {},
        **more,
    }
    await app(scope, receive or receive_body, send)
    if not sent:
        return Reply(0, {}, b"")
    start = sent[0]
    found = {name.decode().lower(): value.decode() for name, value in start["headers"]}
    return Reply(start["status"], found, b"".join(one.get("body", b"") for one in sent[1:]))


class Inside:
    """What is behind a door in a test: notes who came in, and echoes what they sent."""

    def __init__(self) -> None:
        self.seen: list[Scope] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.seen.append(scope)
        if scope["path"] == "/broken":
            raise ValueError("a secret detail")
        body = scope[BY].encode() + b":" + (await receive())["body"]
        headers = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def door(
    inside: AsgiApp, names: Iterable[str] = (), now: Any = lambda: 0.0, wrong_tokens: int = WRONG_TOKENS, **bounds: Any
) -> Door:
    admission = TokenAdmission(TOKEN, wrong_tokens=wrong_tokens, now=now)
    return Door(inside, AllowedHosts(8517, names), admission, DoorBounds(**bounds), now=now)
