"""Keeps the demonstration alive: an app with a worker on everything, and one run that is always at work."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from ripstop.app import App, new_id

from .building import build
from .demo_world import DemoWorld, world_in
from .opening import open_app
from .scenes.live import start_live_review

PAUSE = 5.0
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
        await asyncio.sleep(PAUSE)
        run_id = new_id("review")
        await start_live_review(app, world, run_id)
