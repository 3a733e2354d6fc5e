"""The run that is at work while the demonstration is open: its agents take their time, and can be watched."""

from ripstop.app import App
from ripstop.demonstration.demo_world import DemoWorld

from .starting import start


async def start_live_review(app: App, world: DemoWorld, run_id: str) -> None:
    await start(app, world, run_id, world.workflow("review"), "review.live", "a handbook for new bakers")


async def review(app: App, world: DemoWorld) -> None:
    """It begins when somebody opens the demonstration: there is no worker yet."""
    await start_live_review(app, world, world.runs["working"])
