"""`ripstop serve`: bots over HTTP, and a worker on the whole journal."""

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ripstop.faces.cli.options import Options, allow_option, shared_options
from ripstop.faces.cli.signals import stop_requested
from ripstop.faces.cli.terminal import keep_working_without_readers, say, say_json
from ripstop.faces.cli.trust import with_consent
from ripstop.faces.cli.words import GRACE
from ripstop.faces.cli.work import drain_option, say_stopping, working_on_everything
from ripstop.kernel.errors import UsageError

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence

    from ripstop.app.settings.settings_file import Settings
    from ripstop.engine.worker import Worker
    from ripstop.faces.http.asgi import AsgiApp, Receive, Scope, Send
    from ripstop.faces.http.door import AllowedHosts
    from ripstop.faces.http.tokens import FoundToken


# What both commands share: where a server listens, under which names, with which token, and until when.


PORT = 8517
POLL_INTERVAL = 1.0
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
    from ripstop.faces.http.door import AllowedHosts

    own_name = () if host in (*LOOPBACK, *ANY_ADDRESS) else (host,)
    return AllowedHosts(port, (*own_name, *settings.serve.hosts, *more))


def token_of(settings: "Settings", token_file: Path | None) -> "FoundToken":
    """The token of the environment, or of a file in the user's state folder, which is made if it is missing."""
    from ripstop.app.settings.settings_file import store_path
    from ripstop.faces.http.tokens import VARIABLE, find_token, token_file_of

    journal = store_path(settings.store)
    beside = journal.with_name(f"{journal.name}.token")
    if not token_file and VARIABLE not in os.environ:
        token_file = token_file_of(journal)
        if os.path.lexists(beside):
            say(f"{beside} is not used: it may have come with the folder. The token is in {token_file}.", err=True)
    return find_token(token_file or beside, os.environ)


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
    from ripstop.faces.http.server import serving

    async with serving(asgi, listener, GRACE) as server:
        yield server


async def until_stopped(
    interrupted: "asyncio.Future[int]",
    server: "asyncio.Task[None]",
    worker: "Worker | None",
    failure: Callable[[], BaseException | None],
    drain: float,
) -> None:
    """Wait for a signal, or for what can only get worse; then nothing new is taken. Raises what stopped the worker."""
    while not (interrupted.done() or failure() or server.done()):
        await asyncio.wait([interrupted], timeout=POLL_INTERVAL)
    if worker is not None:
        worker.take_no_more()
    if interrupted.done():
        say_stopping(worker, drain)
    if found := failure():
        raise found


@click.command(short_help="Serve bots over HTTP, and work on the journal.")
@click.argument("workflows", metavar="[WORKFLOW]…", nargs=-1)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65_535), default=PORT, show_default=True, help="0: any that is free.")
@click.option("--token-file", type=click.Path(path_type=Path), help="Holds the token. Default: in your state folder.")
@drain_option
@allow_option
@shared_options
@click.pass_obj
def serve(
    options: Options, workflows: tuple[str, ...], host: str, port: int, token_file: Path | None, drain: float
) -> None:
    """Answer for bots over HTTP, and work on every run and timer of the journal, until Ctrl-C or SIGTERM.

    WORKFLOW is a bot: a file, a folder, or a name found in workflows/; [serve.workflows] in ripstop.toml names more. In
    addresses each has its own name, as in /conversations/shop/SESSION/messages. `ripstop web WORKFLOW…` serves the same
    and the web desk, in one server.

    Every request carries a token, also on this machine. It is made at the first start, in a file that only you can
    read; RIPSTOP_TOKEN is used instead where it is set.

    \b
    Examples:
      ripstop init conversation shop && ripstop serve shop
      ripstop serve shop --port 8000 --allow http://127.0.0.1:9000
    """
    check_extra("serve")
    sys.exit(with_consent(options, lambda: asyncio.run(_serve(options, workflows, host, port, token_file, drain))))


async def _serve(
    options: Options, workflows: tuple[str, ...], host: str, port: int, token_file: Path | None, drain: float
) -> int:
    from ripstop.faces.http.door import Door, TokenAdmission
    from ripstop.faces.http.server import bind

    interrupted = stop_requested()
    keep_working_without_readers()
    settings = options.settings()
    with contextlib.closing(bind(host, port)) as listener:
        port = listener.getsockname()[1]
        hosts = names_of(host, port, settings)
        async with working_on_everything(options, settings) as (app, worker), app.webhooks() as webhooks:
            open_face = app.plugins.open_http_face
            if open_face is None:
                raise UsageError("No style that is installed can be served over HTTP.")
            face = await open_face(app, settings.serve.workflows, workflows)
            found = token_of(settings, token_file)
            async with answering(Door(face.asgi, hosts, TokenAdmission(found.token)), listener) as server:
                _tell_where(options, face.served, address_of(host, port), found.where)
                warn_of_others(host)
                try:
                    await until_stopped(interrupted, server, worker, lambda: worker.failure or webhooks.failure, drain)
                finally:
                    face.stopping.set()
            await worker.stop(drain)
    return 128 + interrupted.result() if interrupted.done() else 0


def _tell_where(options: Options, served: "Sequence[str]", address: str, token: str) -> None:
    """Say where the server is and where its token is; never the token itself."""
    if options.as_json:
        say_json({"address": address, "token": token, "workflows": list(served)})
    else:
        say(f"Serving {', '.join(served)} at {address}. Ctrl-C stops; nothing is lost.", err=True)
        say(f"The token is in {token}. Send it with every request:  Authorization: Bearer TOKEN", err=True)
