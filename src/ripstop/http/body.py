"""Receives the body of a request whole, before anything looks at it: at most so many bytes, in so many seconds.

The body of a request that is refused is read for a moment, too. A server that closes a connection on which bytes are
still arriving resets it, and the client never reads why it was refused.
"""

import asyncio
from contextlib import suppress

from .asgi import Receive
from .refusals import RequestRefused

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
