"""Runs a web server in this process, behind the door. Signals are for the caller, who says when to stop."""

import asyncio
import contextlib
import errno
import socket
from collections.abc import AsyncIterator, Generator

import uvicorn

from ripstop.kernel.errors import UsageError

from .asgi import AsgiApp
from .connection import MOST_CONNECTIONS, HttpConnection

HEAD_BYTES = 16 << 10
"""Of a request line with all headers."""
IDLE_SECONDS = 10
"""Between two requests of one connection."""


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Leave signals alone."""
        yield


def bind(host: str, port: int) -> socket.socket:
    """A socket with this address; port 0 is any that is free. It listens when `serving` can answer.

    Raises `UsageError`.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        raise UsageError(f"{host!r} is not an address of this machine. Expected one like 127.0.0.1.") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise _cannot_listen(host, port, error) from error
    return listener


def _listen(listener: socket.socket) -> None:
    try:
        listener.listen(socket.SOMAXCONN)
    except OSError as error:  # another process can have bound the address, too, and is first to listen
        host, port, *_ = listener.getsockname()
        raise _cannot_listen(host, port, error) from error


def _cannot_listen(host: str, port: int, error: OSError) -> UsageError:
    is_taken = error.errno == errno.EADDRINUSE
    hint = " Another process listens there; name another port with --port." if is_taken else ""
    return UsageError(f"Cannot listen on {host}, port {port}: {error.strerror}.{hint}")


@contextlib.asynccontextmanager
async def serving(app: AsgiApp, listener: socket.socket, grace: float = 3.0) -> AsyncIterator[asyncio.Task[None]]:
    """Answer requests while the context is open. The task ends early only if the server fails.

    Raises `UsageError` if another process listens at this address.

    Args:
        listener: A socket with an address (`bind`).
        grace: Seconds that requests under way get to finish at the end.
    """
    config = uvicorn.Config(
        app,
        http=HttpConnection,
        ws="none",
        lifespan="off",
        loop="asyncio",
        interface="asgi3",
        log_config=None,
        log_level="error",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=max(1, round(grace)),
        h11_max_incomplete_event_size=HEAD_BYTES,
    )
    server = _Server(config)
    _listen(listener)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield task
    finally:
        server.should_exit = True
        await task
