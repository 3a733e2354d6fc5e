"""Following a run until nothing more happens to it by itself."""

import asyncio
from collections.abc import Sequence

from ripstop.kernel.effects import StartRun
from ripstop.kernel.errors import RunNotFound
from ripstop.kernel.events import Asked, Doubted, Ended, Event
from ripstop.kernel.run import waits_for

from .engine import Engine, View
from .live import Appended, LiveEvent
from .worker import Worker

POLL_INTERVAL = 1.0
"""Seconds between two checks whether another process has written."""
LONGEST_BLIND = 30.0
"""Seconds after which the run is read again, even if no other process seems to have written."""


async def until_settled(engine: Engine, worker: Worker, run_id: str) -> View:
    """Return when the run has ended, is stuck, or waits for a person or a timer."""
    turned = asyncio.Event()

    def watch(sight: LiveEvent) -> None:
        if isinstance(sight, Appended) and _can_settle([record.event for record in sight.records]):
            turned.set()

    stop = engine.live.watch(watch, run_id)
    try:
        while True:
            turned.clear()
            if worker.failure:
                raise worker.failure
            seen = worker.foreign_writes
            view = await engine.look(run_id)
            if not await _moving(engine, view):
                return view
            await _until_news(turned, worker, seen)
    finally:
        stop()


async def _until_news(turned: asyncio.Event, worker: Worker, seen: int) -> None:
    """Return when the run should be looked at again: reading it every second costs too much with thousands of runs."""
    waited = 0.0
    while waited < LONGEST_BLIND and worker.foreign_writes == seen and not worker.failure:
        try:
            async with asyncio.timeout(POLL_INTERVAL):  # wait_for can swallow a cancellation
                await turned.wait()
            return
        except TimeoutError:
            waited += POLL_INTERVAL


def _can_settle(step: Sequence[Event]) -> bool:
    """Whether nothing may be left to do after a step: reading a run after every one would cost too much."""
    asks_a_worker = False
    for event in step:
        if isinstance(event, Ended | Doubted):
            return True
        if isinstance(event, Asked):
            if waits_for(event.command) != "worker":
                return True
            asks_a_worker = True
    return not asks_a_worker


async def _moving(engine: Engine, view: View) -> bool:
    """Whether a worker has something to do for the run or for one of its children."""
    if view.status == "working":
        return True
    for number, opened in view.run.open.items():
        if isinstance(opened.command, StartRun):
            # the child may be starting just now, or have ended just now: look again in a moment
            try:
                child = await engine.look(f"{view.run.id}.{number}")
            except RunNotFound:
                return True
            if child.run.ended or await _moving(engine, child):
                return True
    return False
