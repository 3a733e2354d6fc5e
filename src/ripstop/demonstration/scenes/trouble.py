"""What goes wrong: a call in doubt, a run that is stuck, and one that workers leave alone."""

import asyncio
import shutil

import msgspec

from ripstop.app import App
from ripstop.demonstration.demo_world import DemoWorld
from ripstop.demonstration.import_style import Import
from ripstop.demonstration.opening import open_app
from ripstop.kernel.effects import CallTool
from ripstop.kernel.errors import UntrustedFolder
from ripstop.runtime.live import Began, LiveEvent

from .starting import start


async def old_import(app: App, world: DemoWorld) -> None:
    """The file has a row that is not whole, and the style has no case for it."""
    run_id = world.runs["stuck"]
    content = msgspec.json.encode(Import(str(world.folder / "imports" / "orders-2019.csv")))
    await app.engine.start(run_id, "import", content)
    await app.wait(run_id)


async def interrupted_deployment(app: App, world: DemoWorld) -> None:
    """The worker is stopped while `deploy` is at work: nobody learns how it ended."""
    begun = asyncio.Event()

    def watch(event: LiveEvent) -> None:
        if isinstance(event, Began) and isinstance(event.command, CallTool) and event.command.tool == "deploy":
            begun.set()

    app.live.watch(watch, world.runs["doubt"])
    await start(app, world, world.runs["doubt"], world.workflow("deploy"), "deploy", "release 4 to production")
    await begun.wait()
    await app.worker.stop(grace=0)


async def doubtful_deployment(app: App, world: DemoWorld) -> None:
    """The next worker finds the call that was begun, does not repeat it, and asks a person."""
    await app.wait(world.runs["doubt"])


async def from_a_colleague(app: App, world: DemoWorld) -> None:
    """A run that puts its files into a folder which was named on another machine, so nobody here agreed to it."""
    run_id, elsewhere = world.runs["set_aside"], world.folder / "colleague"
    async with open_app(world, works=False, consents=elsewhere / "consents") as theirs:
        workspace = elsewhere / "crumb-notes"
        await start(
            theirs, world, run_id, world.workflow("review"), "review", "the note for Crumb 2.1", workspace=workspace
        )
    shutil.rmtree(elsewhere)
    run = (await app.engine.look(run_id)).run
    try:
        await app.check_allowed(run)
    except UntrustedFolder as refusal:  # as a worker does that finds it
        await app.engine.journal.set_aside(run_id, str(refusal))
