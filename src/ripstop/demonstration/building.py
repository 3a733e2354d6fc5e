"""Builds the demonstration: copies its files, then plays its scenes through an ordinary `App`, the oldest first.

Everything on record was done by the engine, as in any other journal. Made up are what agents and people say, and the
time: the clock is as far back as each scene says. The desk shows the oldest question first: the review.
"""

import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

from ripstop.app import App
from ripstop.files.private_files import OURS, make_folder
from ripstop.kernel.errors import UsageError

from .demo_world import EVERYONE, DemoWorld, world_in
from .opening import open_app
from .past_clock import PastClock
from .scenes import boards, conversations, documents, graphs, live, projects, trouble
from .scripts import write_scripts

WORLD = Path(__file__).parent / "world"
SCRIPTS = "scripts"
MINUTE, HOUR, DAY = 60, 3600, 86_400


class Scene(NamedTuple):
    ago: float
    """Seconds."""
    play: Callable[[App, DemoWorld], Awaitable[None]]


class Process(NamedTuple):
    """The scenes of one process, from the oldest to the newest."""

    scenes: tuple[Scene, ...]
    works: bool = True
    """Whether it has a worker; without one, what is started waits for the next process."""


PROCESSES = (
    Process(
        (
            Scene(3 * DAY, graphs.poem),
            Scene(3 * DAY - HOUR, trouble.old_import),
            Scene(2 * DAY, documents.menu_card),
            Scene(2 * DAY - 2 * HOUR, documents.papers_of_people),
            Scene(DAY + 4 * HOUR, projects.begin),
            Scene(DAY + 3 * HOUR, projects.first_feedback),
            Scene(DAY + 2 * HOUR, projects.second_feedback),
            Scene(DAY + HOUR, graphs.newsletter),
            Scene(9 * HOUR, graphs.broken_poem),
            Scene(8 * HOUR, graphs.translation),
            Scene(6 * HOUR, documents.allergens),
            Scene(5 * HOUR, graphs.circle),
            Scene(4 * HOUR, documents.papers_go_on),
            Scene(3 * HOUR, graphs.debate),
            Scene(130 * MINUTE, conversations.kowalska),
            Scene(108 * MINUTE, conversations.nudge),
            Scene(100 * MINUTE, graphs.completed_review),
            Scene(88 * MINUTE, conversations.close_idle),
            Scene(70 * MINUTE, conversations.okafor),
            Scene(64 * MINUTE, boards.poster),
            Scene(50 * MINUTE, graphs.stricter_fork),
            Scene(44 * MINUTE, conversations.li_mei),
            Scene(36 * MINUTE, boards.test_first),
            Scene(9 * MINUTE, conversations.weber),
            Scene(6 * MINUTE, conversations.wang_qiang),
            Scene(4 * MINUTE, trouble.interrupted_deployment),
        )
    ),
    Process((Scene(2 * MINUTE, trouble.doubtful_deployment),)),
    Process((Scene(0, trouble.from_a_colleague), Scene(0, live.review)), works=False),
)


async def build(folder: Path) -> DemoWorld:
    """Build the demonstration in a folder, which must be new or empty. Raises `UsageError` if it is not."""
    world = _write_files(folder)
    for process in PROCESSES:
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
