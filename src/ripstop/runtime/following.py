"""Following a run until nothing more happens to it by itself."""

import asyncio

from ripstop.kernel.effects import StartRun
from ripstop.kernel.events import Asked, Doubted, Ended
from ripstop.kernel.run import waits_for

from .engine import Engine, View
from .live import Appended, Sight
from .worker import Worker

LOOK = 1.0
"""Seconds between two looks, in case another process works on the run."""


async def until_settled(engine: Engine, worker: Worker, run_id: str) -> View:
    """Return when the run has ended, is stuck, or waits for a person or a timer."""
    turned = asyncio.Event()

    def watch(sight: Sight) -> None:
        if isinstance(sight, Appended) and any(_matters(record.event) for record in sight.records):
            turned.set()

    stop = engine.live.watch(watch)
    try:
        while True:
            turned.clear()
            if worker.failure:
                raise worker.failure
            view = await engine.look(run_id)
            if not await _moving(engine, view):
                return view
            try:
                async with asyncio.timeout(LOOK):  # wait_for can swallow a cancellation
                    await turned.wait()
            except TimeoutError:
                continue
    finally:
        stop()


def _matters(event: object) -> bool:
    return isinstance(event, Ended | Doubted) or (isinstance(event, Asked) and waits_for(event.command) != "worker")


async def _moving(engine: Engine, view: View) -> bool:
    """Whether somebody works on the run or on one of its children."""
    if view.status == "working":
        return True
    for number, opened in view.run.open.items():
        if isinstance(opened.command, StartRun):
            # the child may be starting just now, or have ended just now: look again in a moment
            infos = {info.run_id: info for info in await engine.runs()}
            child = infos.get(f"{view.run.id}.{number}")
            if child is None or await _moving(engine, await engine.look(child.run_id)):
                return True
            if (await engine.look(child.run_id)).run.ended:
                return True
    return False
