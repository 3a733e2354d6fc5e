"""One connection of the server: uvicorn's, with bounds on what a client may keep us waiting for.

uvicorn waits without end for the head of a request, for the rest of a body that is not wanted any more, and for a
client that does not read. Each of these keeps a connection, and there is a bounded number of them.
"""

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from .asgi import error_document
from .door import SAFE_HEADERS

MOST_CONNECTIONS = 1000
"""Open at once; the next one is cut."""
HEAD_SECONDS = 10.0
"""Until the head of a request is complete, from its first byte or from the beginning of the connection."""
UNREAD_SECONDS = 30.0
"""That a client may leave an answer unread that does not fit into the buffers."""
UNWANTED_BYTES = 1 << 20
"""Of a body that a client goes on sending after it was refused and told so."""


class _Deadline:
    """Cuts a connection, unless it is stopped in time."""

    def __init__(self, seconds: float, connection: "HttpConnection") -> None:
        self._seconds = seconds
        self._connection = connection
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start it, unless it runs already: more of the same does not gain time."""
        if self._timer is None:
            self._timer = self._connection.loop.call_later(self._seconds, self._connection.transport.abort)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class HttpConnection(H11Protocol):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._complete = _Deadline(HEAD_SECONDS, self)
        """For the client to complete what it has begun."""
        self._read = _Deadline(UNREAD_SECONDS, self)
        self._unwanted = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()
        else:
            self._complete.start()

    def connection_lost(self, exc: Exception | None) -> None:
        self._complete.stop()
        self._read.stop()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        is_refused = self.conn.our_state is h11.DONE and self.conn.their_state is h11.SEND_BODY
        self._unwanted = self._unwanted + len(data) if is_refused else 0
        if self._unwanted > UNWANTED_BYTES:
            self.transport.abort()
        if is_refused or self.conn.their_state is h11.IDLE:
            self._complete.start()
        else:
            self._complete.stop()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._read.start()

    def resume_writing(self) -> None:
        self._read.stop()
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP. In the middle of an answer there is no place for another one: it is cut."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = error_document("This is not a valid HTTP request, or its head is too long.")
            headers = [(b"content-type", b"application/json"), (b"connection", b"close"), *SAFE_HEADERS.items()]
            headers.append((b"content-length", str(len(body)).encode()))
            for event in (h11.Response(status_code=400, headers=headers), h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
