"""`ripstop serve`: HTTP faces and a worker in one process, behind one door.

Above the faces, because it puts them together; they do not know one another.
"""

import asyncio
import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ripstop.faces.cli.options import Options, allow_option, shared_options
from ripstop.faces.cli.output import keep_working_without_readers
from ripstop.faces.cli.signals import STOPPING, stop_requested
from ripstop.faces.cli.summary import GRACE
from ripstop.faces.cli.terminal import say, say_json
from ripstop.faces.cli.trusting import with_consent
from ripstop.faces.cli.whole_journal import working_on_everything
from ripstop.kernel.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

PORT = 8517
LOOK = 1.0
"""Seconds between two looks at whether the worker has given up."""
LOOPBACK = ("127.0.0.1", "localhost", "::1", "[::1]")
ANY_ADDRESS = ("", "0.0.0.0", "::", "[::]")  # noqa: S104  # these are compared with


@click.command(short_help="Serve bots over HTTP, and work on the journal.")
@click.argument("workflows", metavar="[WORKFLOW]…", nargs=-1)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65_535), default=PORT, show_default=True, help="0: any that is free.")
@click.option("--token-file", type=click.Path(path_type=Path), help="Holds the token. Default: next to the journal.")
@allow_option
@shared_options
@click.pass_obj
def serve(options: Options, workflows: tuple[str, ...], host: str, port: int, token_file: Path | None) -> None:
    """Answer for bots over HTTP, and work on every run and timer of the journal, until Ctrl-C or SIGTERM.

    WORKFLOW is a bot: a file, a folder, or a name found in workflows/; [serve.workflows] in ripstop.toml names more. In
    addresses each has its own name, as in /conversations/shop/SESSION/messages.

    Every request carries a token, also on this machine. It is made at the first start, in a file that only you can
    read; RIPSTOP_TOKEN is used instead where it is set.

    \b
    Examples:
      ripstop serve examples/shop
      ripstop serve examples/shop --port 8000 --allow http://127.0.0.1:9000
    """
    check_extra()
    sys.exit(with_consent(options, lambda: asyncio.run(_serve(options, workflows, host, port, token_file))))


def check_extra() -> None:
    """Raise `UsageError` if the libraries of the extra `web` are missing."""
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise UsageError("`ripstop serve` needs the extra `web`. Run `pip install 'ripstop[web]'`.") from error


async def _serve(options: Options, workflows: tuple[str, ...], host: str, port: int, token_file: Path | None) -> int:
    from ripstop.http.door import Door
    from ripstop.http.hosts import AllowedHosts
    from ripstop.http.server import listen, serving
    from ripstop.http.tokens import find_token
    from ripstop.settings.settings_file import store_path

    interrupted = stop_requested()
    keep_working_without_readers()
    settings = options.settings()
    with contextlib.closing(listen(host, port)) as listener:
        port = listener.getsockname()[1]
        own_name = () if host in (*LOOPBACK, *ANY_ADDRESS) else (host,)
        hosts = AllowedHosts(port, (*own_name, *settings.serve.hosts))
        async with working_on_everything(options, settings) as (app, worker), app.webhooks() as webhooks:
            open_face = app.plugins.open_http_face
            if open_face is None:
                raise UsageError("No style that is installed can be served over HTTP.")
            face = await open_face(app, settings.serve.workflows, workflows)
            journal = store_path(settings.store)
            found = find_token(token_file or journal.with_name(f"{journal.name}.token"), os.environ)
            async with serving(Door(face.asgi, hosts, found.token), listener, GRACE) as server:
                _tell_where(options, face.served, host, port, found.where)
                while not (interrupted.done() or worker.failure or webhooks.failure or server.done()):
                    await asyncio.wait([interrupted], timeout=LOOK)
                if interrupted.done():
                    say(STOPPING, err=True)
                face.stopping.set()
            if failure := worker.failure or webhooks.failure:
                raise failure
            await worker.stop(GRACE)
    return 128 + interrupted.result() if interrupted.done() else 0


def _tell_where(options: Options, served: "Sequence[str]", host: str, port: int, token: str) -> None:
    """Say where the server is and where its token is; never the token itself."""
    address = f"http://{f'[{host}]' if ':' in host and not host.startswith('[') else host}:{port}"
    if options.as_json:
        say_json({"address": address, "token": token, "workflows": list(served)})
    else:
        say(f"Serving {', '.join(served)} at {address}. Ctrl-C stops; nothing is lost.", err=True)
        say(f"The token is in {token}. Send it with every request:  Authorization: Bearer TOKEN", err=True)
    if host not in LOOPBACK:
        say("Others can reach this address, and nothing is encrypted. Put a proxy with TLS in front of it.", err=True)
