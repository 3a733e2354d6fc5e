"""What both commands share: where a server listens, under which names, with which token, and until when."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ripstop.faces.cli.signals import STOPPING
from ripstop.faces.cli.summary import GRACE
from ripstop.faces.cli.terminal import say
from ripstop.kernel.errors import UsageError

if TYPE_CHECKING:
    import socket

    from ripstop.http.asgi import AsgiApp, Receive, Scope, Send
    from ripstop.http.hosts import AllowedHosts
    from ripstop.http.tokens import FoundToken
    from ripstop.settings.settings_file import Settings

PORT = 8517
LOOK = 1.0
"""Seconds between two looks at whether the worker has given up."""
LOOPBACK = ("127.0.0.1", "localhost", "::1", "[::1]")
ANY_ADDRESS = ("", "0.0.0.0", "::", "[::]")  # noqa: S104  # these are compared with


def check_extra(command: str) -> None:
    """Raise `UsageError` if the libraries of the extra `web` are missing."""
    try:
        import jinja2  # noqa: F401
        import nh3  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise UsageError(f"`ripstop {command}` needs the extra `web`. Run `pip install 'ripstop[web]'`.") from error


def names_of(host: str, port: int, settings: "Settings", more: tuple[str, ...] = ()) -> "AllowedHosts":
    """The names under which the server answers."""
    from ripstop.http.hosts import AllowedHosts

    own_name = () if host in (*LOOPBACK, *ANY_ADDRESS) else (host,)
    return AllowedHosts(port, (*own_name, *settings.serve.hosts, *more))


def token_of(settings: "Settings", token_file: Path | None) -> "FoundToken":
    """The token of the environment, or of a file next to the journal, which is made if it is missing."""
    from ripstop.http.tokens import find_token
    from ripstop.settings.settings_file import store_path

    journal = store_path(settings.store)
    return find_token(token_file or journal.with_name(f"{journal.name}.token"), os.environ)


def address_of(host: str, port: int) -> str:
    shown = host if host not in ANY_ADDRESS else "127.0.0.1"
    return f"http://{f'[{shown}]' if ':' in shown and not shown.startswith('[') else shown}:{port}"


def warn_of_others(host: str) -> None:
    if host not in LOOPBACK:
        say("Others can reach this address, and nothing is encrypted. Put a proxy with TLS in front of it.", err=True)


def by_path(apps: "Mapping[tuple[str, ...], AsgiApp]", other: "AsgiApp") -> "AsgiApp":
    """One application of several: by how a path begins, or what it is; all else is for the `other`."""

    async def choose(scope: "Scope", receive: "Receive", send: "Send") -> None:
        path = str(scope.get("path", ""))
        for beginnings, app in apps.items():
            if any(path == one or (one.endswith("/") and path.startswith(one)) for one in beginnings):
                return await app(scope, receive, send)
        await other(scope, receive, send)

    return choose


@contextlib.asynccontextmanager
async def answering(asgi: "AsgiApp", listener: "socket.socket") -> "AsyncIterator[asyncio.Task[None]]":
    from ripstop.http.server import serving

    async with serving(asgi, listener, GRACE) as server:
        yield server


async def until_stopped(
    interrupted: "asyncio.Future[int]", server: "asyncio.Task[None]", failure: Callable[[], BaseException | None]
) -> None:
    """Wait for a signal, or for what can only get worse. Raises what stopped the worker."""
    while not (interrupted.done() or failure() or server.done()):
        await asyncio.wait([interrupted], timeout=LOOK)
    if interrupted.done():
        say(STOPPING, err=True)
    if found := failure():
        raise found
