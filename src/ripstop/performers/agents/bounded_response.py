"""Reads what a model server sends, within bounds: bytes, the size of one JSON document, the number of events.

Nothing here decompresses. We ask for no compression, so a compressed response is refused: one megabyte of it
can expand to a gigabyte.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING

from ripstop.performers.http_headers import compression
from ripstop.runtime.performers import Refused, TryAgain

from .event_stream import EventStream, TooLong

if TYPE_CHECKING:
    import httpx2

MEBIBYTE = 2**20
MOST_BYTES = 64 * MEBIBYTE
"""Bytes of one streamed reply, with all that is around its words."""
LARGEST_DOCUMENT = 4 * MEBIBYTE
"""Bytes of one JSON document: an event of a stream, or a whole reply that is not streamed."""
MOST_EVENTS = 500_000
LONGEST_ERROR = 8 * 1024
"""Bytes that are read of what a server says about an error."""
CALL_SECONDS = 900.0
"""For one call from its beginning to its end, however alive the server is."""


async def error_body(response: "httpx2.Response") -> bytes:
    """The beginning of what a server says about an error."""
    how = compression(response.headers)
    if how:
        return f"(its text is compressed with {how})".encode()
    body = bytearray()
    async with aclosing(response.aiter_raw()) as pieces:
        async for piece in pieces:
            body += piece
            if len(body) >= LONGEST_ERROR:
                break
    return bytes(body[:LONGEST_ERROR])


async def documents(response: "httpx2.Response", streamed: bool) -> AsyncGenerator[bytes]:
    """The JSON documents of a response: its events, or its body if it is not a stream of events."""
    how = compression(response.headers)
    if how:
        raise Refused(
            f"The server compresses its reply ({how}), although it was asked not to. Turn compression off there.",
            fault="definition",
        )
    stream, total, events, body = EventStream(LARGEST_DOCUMENT), 0, 0, bytearray()
    most = MOST_BYTES if streamed else LARGEST_DOCUMENT
    async with aclosing(response.aiter_raw()) as pieces:
        async for piece in pieces:
            total += len(piece)
            if not streamed:
                body += piece
            if total > most:
                raise _too_large(most)
            for data in _events(stream, piece) if streamed else ():
                events += 1
                if events > MOST_EVENTS:
                    raise TryAgain(f"The server sent more than {MOST_EVENTS:,} pieces in one reply.")
                yield data
    if streamed:
        for data in stream.end():
            yield data
    else:
        yield bytes(body)


def _events(stream: EventStream, piece: bytes) -> list[bytes]:
    try:
        return stream.feed(piece)
    except TooLong:
        raise _too_large(LARGEST_DOCUMENT) from None


def _too_large(limit: int) -> TryAgain:
    return TryAgain(f"The server sent more than {limit // MEBIBYTE} MiB in one reply, which is all that is read.")
