"""`ripstop web`: the web desk, and a worker on the whole journal unless it only looks."""

import asyncio
import contextlib
import os
import sys
import tempfile
import webbrowser
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from ripstop.faces.cli.options import Options, allow_option, shared_options, user_name, without_tools
from ripstop.faces.cli.signals import stop_requested
from ripstop.faces.cli.terminal import keep_working_without_readers, say, say_json
from ripstop.faces.cli.trust import with_consent
from ripstop.faces.cli.work import drain_option, working_on_everything
from ripstop.kernel.errors import UsageError

from .serve import (
    LOOPBACK,
    PORT,
    address_of,
    answering,
    by_path,
    check_extra,
    names_of,
    token_of,
    until_stopped,
    warn_of_others,
)

if TYPE_CHECKING:
    from ripstop.app.application import App
    from ripstop.app.plugin import StyleHttpFace
    from ripstop.app.webhooks.service import WebhookService
    from ripstop.engine.worker import Worker
    from ripstop.faces.http.asgi import AsgiApp
    from ripstop.faces.web.application import WebFace

BOTS = ("/conversations/", "/openapi.json", "/healthz")
"""Where bots are, beside the pages."""


class WebOptions(NamedTuple):
    """What `ripstop web` was asked for."""

    workflows: tuple[str, ...]
    host: str
    port: int
    by: str
    allowed: tuple[str, ...]
    token_file: Path | None
    look_only: bool
    open: bool
    demo: bool
    drain: float


@click.command(short_help="Open the web desk, and work on the journal.")
@click.argument("workflows", metavar="[WORKFLOW]…", nargs=-1)
@click.option("--port", type=click.IntRange(0, 65_535), default=PORT, show_default=True, help="0: any that is free.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--as", "by", metavar="NAME", default="", help="Who decides here. Default: your name on this machine.")
@click.option("--look-only", is_flag=True, help="Only look: no worker, and nothing can be decided.")
@click.option("--open", "open_", is_flag=True, help="Open it in your browser, signed in.")
@click.option("--demo", is_flag=True, help="A world to try it with: scripted agents at work in all five styles.")
@click.option("--allow-host", multiple=True, metavar="NAME", help="Answer under this name too; for --host; repeatable.")
@click.option("--token-file", type=click.Path(path_type=Path), help="Holds the token. Default: in your state folder.")
@drain_option
@allow_option
@shared_options
@click.pass_obj
def web(
    options: Options,
    workflows: tuple[str, ...],
    port: int,
    host: str,
    by: str,
    look_only: bool,
    open_: bool,
    demo: bool,
    allow_host: tuple[str, ...],
    token_file: Path | None,
    drain: float,
) -> None:
    """Open the web desk: what waits for a person, every run as it happens, and all that can be decided.

    It also works on every run and timer of the journal, until Ctrl-C or SIGTERM, unless it is told to look only. With
    WORKFLOWs it also answers for these bots over HTTP, as `ripstop serve` does.

    The address that it prints signs you in; it works once, for two minutes. Later, sign in with the token: it is in a
    file that only you can read, and RIPSTOP_TOKEN is used instead where it is set.

    \b
    Examples:
      ripstop web --open
      ripstop web --demo --open
      ripstop init conversation shop && ripstop web shop --port 8000
    """
    check_extra("web")
    wanted = WebOptions(workflows, host, port, by or user_name(), allow_host, token_file, look_only, open_, demo, drain)
    _check(wanted)
    sys.exit(with_consent(options, lambda: asyncio.run(_web(options, wanted))))


def _check(wanted: WebOptions) -> None:
    if wanted.demo and (wanted.look_only or wanted.workflows):
        raise click.UsageError("--demo is a world of its own. Leave out --look-only and workflows.")
    if wanted.look_only and wanted.workflows:
        raise click.UsageError("With --look-only nothing works, so no bot can answer. Leave out the workflows.")
    if wanted.host not in LOOPBACK and not wanted.allowed:
        raise click.UsageError(
            f"--host {wanted.host} lets others in. Say under which name they come: --allow-host desk.example.com"
        )


class _Opened(NamedTuple):
    app: "App"
    worker: "Worker | None"
    webhooks: "WebhookService | None" = None

    def failure(self) -> BaseException | None:
        """What stopped the worker or the webhooks, if anything did."""
        found = self.worker.failure if self.worker else None
        return found or (self.webhooks.failure if self.webhooks else None)


class _Desk(NamedTuple):
    """The faces of one server."""

    asgi: "AsgiApp"
    face: "WebFace"
    bots: "StyleHttpFace | None"
    link: str
    """Signs in once."""
    token: str
    """Where the token is, for people."""
    store: str

    def end_streams(self) -> None:
        self.face.end_streams()
        if self.bots:
            self.bots.stopping.set()


async def _web(options: Options, wanted: WebOptions) -> int:
    from ripstop.faces.http.server import bind

    interrupted = stop_requested()
    keep_working_without_readers()
    drain = 0 if wanted.demo else wanted.drain
    with contextlib.closing(bind(wanted.host, wanted.port)) as listener:
        address = address_of(wanted.host, listener.getsockname()[1])
        async with _opened(options, wanted) as opened:
            desk = await _desk(opened.app, wanted, listener.getsockname()[1], address)
            async with desk.face.open(), answering(desk.asgi, listener) as server:
                _tell_where(options, wanted, address, desk)
                try:
                    await until_stopped(interrupted, server, opened.worker, opened.failure, drain)
                finally:
                    desk.end_streams()
            if opened.worker:
                await opened.worker.stop(drain)
    return 128 + interrupted.result() if interrupted.done() else 0


@contextlib.asynccontextmanager
async def _opened(options: Options, wanted: WebOptions) -> AsyncIterator[_Opened]:
    """The journal, with a worker on all of it unless the desk only looks."""
    if wanted.demo:
        async with _demonstration() as app:
            yield _Opened(app, app.worker)
    elif wanted.look_only:
        async with options.app(without_tools(options.settings()), scope=None, create=False, look_only=True) as app:
            yield _Opened(app, None)
    else:
        async with working_on_everything(options, options.settings()) as (app, worker), app.webhooks() as webhooks:
            yield _Opened(app, worker, webhooks)


@contextlib.asynccontextmanager
async def _demonstration() -> "AsyncIterator[App]":
    """A world in a folder of its own, which is gone afterwards."""
    from .demo import demo_app

    say("Setting up the demonstration …", err=True)
    before = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="ripstop-demo-") as folder:
        try:
            async with demo_app(Path(folder)) as (app, world):
                os.chdir(world.folder)  # its workflows are found as those of any folder are
                yield app
        finally:
            os.chdir(before)


async def _desk(app: "App", wanted: WebOptions, port: int, address: str) -> _Desk:
    from ripstop.faces.http.door import Door, TokenAdmission
    from ripstop.faces.web.application import WebFace
    from ripstop.faces.web.errors import refuse_with_page
    from ripstop.faces.web.sessions import SessionAdmission, WebSessions

    found = token_of(app.settings, wanted.token_file)
    hosts = names_of(wanted.host, port, app.settings, wanted.allowed)
    sessions = WebSessions(found.token, wanted.by, port)
    face = WebFace(app, sessions, wanted.look_only)
    pages = Door(face.asgi, hosts, SessionAdmission(sessions), refuse=refuse_with_page(face))
    bots = await _bots(app, wanted)
    asgi = by_path({BOTS: Door(bots.asgi, hosts, TokenAdmission(found.token))}, pages) if bots else pages
    return _Desk(asgi, face, bots, f"{address}/login?once={sessions.link_secret()}", found.where, app.settings.store)


async def _bots(app: "App", wanted: WebOptions) -> "StyleHttpFace | None":
    """The face for bots, if any was named."""
    open_face = app.plugins.open_http_face
    if not wanted.workflows and not app.settings.serve.workflows:
        return None
    if open_face is None:
        raise UsageError("No style that is installed can be served over HTTP.")
    return await open_face(app, app.settings.serve.workflows, wanted.workflows)


def _what_it_does(wanted: WebOptions) -> str:
    if wanted.demo:
        return "Its agents are scripted. Ctrl-C stops it, and the demonstration is gone."
    works = "It only looks." if wanted.look_only else "It also works on every run and timer of this journal."
    return f"{works} Ctrl-C stops; nothing is lost."


def _tell_where(options: Options, wanted: WebOptions, address: str, desk: _Desk) -> None:
    """Say where the desk is, how to sign in, and what this process does; never the token itself."""
    served = list(desk.bots.served) if desk.bots else []
    if options.as_json:
        told = {"address": address, "sign_in": desk.link, "token": desk.token, "store": desk.store}
        say_json({**told, "workflows": served})
    else:
        say("The desk is open. This address signs you in, once, within two minutes:", err=True)
        say(f"  {desk.link}", err=True)
        say(f"Later, sign in at {address} with the token in {desk.token}.", err=True)
        say(_what_it_does(wanted), err=True)
        if served:
            say(f"Serving {', '.join(served)} at {address}/conversations/.", err=True)
    warn_of_others(wanted.host)
    if wanted.open:
        webbrowser.open(desk.link)
