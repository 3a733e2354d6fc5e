"""The types of ASGI, the interface between a web server and what answers requests."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import msgspec

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]


# A request that is refused: a status, what is wrong, and what to do next, as JSON.
#
# Nothing that the client sent is quoted, unless the face that refuses it has checked it.


TOO_MANY = 429


class RequestRefused(Exception):
    """Raised to answer a request with an error instead."""

    def __init__(self, status: int, error: str, hint: str = "", headers: dict[str, str] | None = None) -> None:
        super().__init__(error)
        self.status, self.error, self.hint = status, error, hint
        self.headers = headers or {}


def too_many(error: str, seconds: float) -> RequestRefused:
    """A request that may be sent again after this many seconds."""
    wait = str(max(1, round(seconds + 0.5)))
    return RequestRefused(TOO_MANY, error, f"Try again in {wait} s.", {"retry-after": wait})


def error_document(error: str, hint: str = "") -> bytes:
    return msgspec.json.encode({"error": error, "hint": hint})


async def send_refusal(send: Send, refusal: RequestRefused) -> None:
    body = error_document(refusal.error, refusal.hint)
    headers: Headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [(name.encode(), value.encode()) for name, value in refusal.headers.items()]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
