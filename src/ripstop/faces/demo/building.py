"""Builds the demonstration: copies its files, then plays its scenes through an ordinary `App`, the oldest first.

Everything on record was done by the engine, as in any other journal. Made up are what agents and people say, and the
time: the clock is as far back as each scene says. The desk shows the oldest question first: the review.
"""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import msgspec

from ripstop.app.application import App
from ripstop.app.plugins import BUILT_IN, Plugins, imported
from ripstop.app.start import new_id
from ripstop.engine.clock import ProcessClock
from ripstop.engine.live import Began, LiveEvent
from ripstop.engine.ports import ALL
from ripstop.kernel.effects import AskAgent, CallTool
from ripstop.kernel.errors import UntrustedFolder, UsageError
from ripstop.kernel.events import CallRefused
from ripstop.security.consent import Consents, TrustedFolders
from ripstop.security.files import OURS, make_folder

from .import_style import IMPORTS, TOOLS, Import
from .world import DAY, EVERYONE, HOUR, MINUTE, DemoWorld, PastClock, Scene, start, world_in, write_scripts

# Opens an `App` on the demonstration's journal.
#
# - Its tools, and a style of its own, are brought along; other plug-ins of the user are not in this world.
# - Consents are kept in the world's own folder: looking at a demonstration changes nothing among the user's.


CONSENTS = "consents"


@asynccontextmanager
async def open_app(
    world: DemoWorld, clock: ProcessClock | None = None, works: bool = True, consents: Path | None = None
) -> AsyncIterator[App]:
    """Open the app, with a worker on every run unless `works` is false.

    `consents`: where they are kept, if not in the world's own folder.
    """
    app = App(world.settings, tools=TOOLS, plugins=_plugins(), scope=None, clock=clock)
    async with app:
        kept = Consents(consents or world.folder / OURS / CONSENTS)
        app.folders = TrustedFolders(world.journal, world.folder, kept)
        app.attach(world.folder)
        if not works:
            yield app
            return
        async with app.working(ALL, admit=app.admit):
            yield app


@cache
def _plugins() -> Plugins:
    """The same for all scenes: putting it together for each would take longer than most scenes."""
    return Plugins((*BUILT_IN, IMPORTS))


# The run that is at work while the demonstration is open: its agents take their time, and can be watched.


async def start_live_review(app: App, world: DemoWorld, run_id: str) -> None:
    await start(app, world, run_id, world.workflow("review"), "review.live", "a handbook for new bakers")


async def review(app: App, world: DemoWorld) -> None:
    """It begins when somebody opens the demonstration: there is no worker yet."""
    await start_live_review(app, world, world.runs["working"])


# What goes wrong: a call in doubt, a run that is stuck, one that is paused, and one that workers leave alone.


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


async def refused_poem(app: App, world: DemoWorld) -> None:
    """The model's provider wants to be paid: the run is paused until somebody has the call made again."""
    run = await start(app, world, world.runs["outage"], world.workflow("haiku"), "haiku", "the first frost")
    number = next(number for number, opened in run.open.items() if isinstance(opened.command, AskAgent))
    reason = "https://models.example.com/v1 answered 402: Your credit is used up."
    await app.engine.tell(run.id, CallRefused(to=number, reason=reason, by="openai", pauses=True))


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
        await app.admit(run)
    except UntrustedFolder as refusal:  # as a worker does that finds it
        await app.engine.journal.set_aside(run_id, str(refusal))


WORLD = Path(__file__).parent / "world"
SCRIPTS = "scripts"


class Process(NamedTuple):
    """The scenes of one process, from the oldest to the newest."""

    scenes: tuple[Scene, ...]
    works: bool = True
    """Whether it has a worker; without one, what is started waits for the next process."""


def _processes() -> tuple[Process, ...]:
    """What styles show, and what goes wrong in between; then two processes that come after a crash."""
    of_styles = (imported(plugin.demo) for plugin in BUILT_IN if plugin.demo)
    own = (Scene(3 * DAY - HOUR, old_import), Scene(4 * MINUTE, interrupted_deployment))
    scenes = sorted((*own, *chain.from_iterable(of_styles)), key=lambda scene: -scene.ago)
    return (
        Process(tuple(scenes)),
        Process((Scene(2 * MINUTE, doubtful_deployment),)),
        Process((Scene(0, refused_poem), Scene(0, from_a_colleague), Scene(0, review)), works=False),
    )


async def build(folder: Path) -> DemoWorld:
    """Build the demonstration in a folder, which must be new or empty. Raises `UsageError` if it is not."""
    world = _write_files(folder)
    for process in _processes():
        clock = PastClock(process.scenes[0].ago)
        async with open_app(world, clock.as_process_clock(), process.works) as app:
            app.live.watch(clock.watch)
            for scene in process.scenes:
                clock.move_on(scene.ago)
                if process.works:
                    app.worker.wake()  # timers may be due
                await scene.play(app, world)
    world.mark_as_built()
    return world


def _write_files(folder: Path) -> DemoWorld:
    if folder.is_dir() and any(folder.iterdir()):
        raise UsageError(f"{folder} is not empty. Name a new folder for the demonstration.")
    folder.mkdir(parents=True, exist_ok=True)
    world = world_in(folder)
    shutil.copytree(WORLD, world.folder, ignore=shutil.ignore_patterns(SCRIPTS), dirs_exist_ok=True)
    write_scripts(WORLD / SCRIPTS, world.folder / SCRIPTS, EVERYONE)
    make_folder(world.folder / OURS)
    return world


# Keeps the demonstration alive: an app with a worker on everything, and one run that is always at work.


REVIEW_INTERVAL = 5.0
"""Seconds between two runs that are watched."""


@asynccontextmanager
async def demo_app(folder: Path) -> AsyncIterator[tuple[App, DemoWorld]]:
    """Open the demonstration in a folder; it is built first if it is not there yet.

    Raises `UsageError` if the folder holds something else.
    """
    world = world_in(folder)
    if not world.is_built:
        world = await build(folder)
    async with open_app(world) as app:
        busy = asyncio.create_task(_keep_busy(app, world), name="ripstop-demonstration")
        try:
            yield app, world
        finally:
            busy.cancel()
            await asyncio.gather(busy, return_exceptions=True)
            await app.worker.stop(grace=0)  # nobody wants to wait for agents of a demonstration


async def _keep_busy(app: App, world: DemoWorld) -> None:
    """When the run at work has ended, begin another one."""
    run_id = world.runs["working"]
    while True:
        await app.wait(run_id)
        await asyncio.sleep(REVIEW_INTERVAL)
        run_id = new_id("review")
        await start_live_review(app, world, run_id)
