"""Work until a run has nothing to do now, or a signal comes; the process says then how to continue."""

import asyncio
from typing import TYPE_CHECKING, Any

from ripstop.faces.cli.signals import interruption, undisturbed
from ripstop.faces.cli.summary import GRACE
from ripstop.faces.cli.terminal import say
from ripstop.runtime.following import until_settled

if TYPE_CHECKING:
    from ripstop.app import App
    from ripstop.runtime.engine import View
    from ripstop.runtime.worker import Worker


async def settled(
    app: "App", worker: "Worker", run_id: str, interrupted: "asyncio.Future[int]", again: str
) -> "View | None":
    """The run when it is settled. If a signal comes first: none, once work is stopped and `again` was told."""
    following = asyncio.ensure_future(until_settled(app.engine, worker, run_id))
    waited: list[asyncio.Future[Any]] = [following, interrupted]
    await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
    if following.done():
        return following.result()
    following.cancel()
    await asyncio.wait([following])
    await worker.stop(GRACE)
    with undisturbed():
        say(interruption(again), err=True)
    return None
