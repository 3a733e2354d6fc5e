"""`ripstop serve`: bots over HTTP, and a worker on the whole journal."""

import asyncio
import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ripstop.faces.cli.options import Options, allow_option, shared_options
from ripstop.faces.cli.output import keep_working_without_readers
from ripstop.faces.cli.signals import stop_requested
from ripstop.faces.cli.summary import GRACE
from ripstop.faces.cli.terminal import say, say_json
from ripstop.faces.cli.trusting import with_consent
from ripstop.faces.cli.whole_journal import working_on_everything
from ripstop.kernel.errors import UsageError

from .http_server import (
    PORT,
    address_of,
    answering,
    check_extra,
    names_of,
    token_of,
    until_stopped,
    warn_of_others,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


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
    addresses each has its own name, as in /conversations/shop/SESSION/messages. `ripstop web WORKFLOW…` serves the same
    and the web desk, in one server.

    Every request carries a token, also on this machine. It is made at the first start, in a file that only you can
    read; RIPSTOP_TOKEN is used instead where it is set.

    \b
    Examples:
      ripstop serve examples/shop
      ripstop serve examples/shop --port 8000 --allow http://127.0.0.1:9000
    """
    check_extra("serve")
    sys.exit(with_consent(options, lambda: asyncio.run(_serve(options, workflows, host, port, token_file))))


async def _serve(options: Options, workflows: tuple[str, ...], host: str, port: int, token_file: Path | None) -> int:
    from ripstop.http.admission import TokenAdmission
    from ripstop.http.door import Door
    from ripstop.http.server import bind

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
                    await until_stopped(interrupted, server, lambda: worker.failure or webhooks.failure)
                finally:
                    face.stopping.set()
            await worker.stop(GRACE)
    return 128 + interrupted.result() if interrupted.done() else 0


def _tell_where(options: Options, served: "Sequence[str]", address: str, token: str) -> None:
    """Say where the server is and where its token is; never the token itself."""
    if options.as_json:
        say_json({"address": address, "token": token, "workflows": list(served)})
    else:
        say(f"Serving {', '.join(served)} at {address}. Ctrl-C stops; nothing is lost.", err=True)
        say(f"The token is in {token}. Send it with every request:  Authorization: Bearer TOKEN", err=True)
