"""Calls a tool's function: a coroutine in the loop, anything else in its own thread, within its time limit.

A thread cannot be stopped, and a coroutine can refuse to be. Such a call is left to itself, and is then not known to
have ended: what it does later is not reported.
"""

import asyncio
import inspect
import logging
from collections.abc import Callable, Mapping
from typing import Any

from ripstop.performers.own_thread import start_thread
from ripstop.runtime.performers import InDoubt

log = logging.getLogger("ripstop.tools")

GRACE = 2.0
"""Seconds that a call has to end after it was cancelled: its run has ended, or its time is up."""
_left: set["asyncio.Future[Any]"] = set()
"""Calls that did not end in time; the loop itself keeps no reference to them."""


class TimedOut(InDoubt):
    """Raised for a call that took longer than its tool may."""

    def __init__(self, seconds: float | None, left: "asyncio.Future[Any] | None") -> None:
        super().__init__(f"It did not finish within its time limit of {seconds:g} s")
        self.left = left
        """The call, if it did not even end when its time was up: it can still take effect."""


async def call(function: Callable[..., Any], arguments: Mapping[str, Any], seconds: float | None = None) -> Any:
    """Call it, and return what it returns. `seconds`: its time limit. Raises `TimedOut`."""
    in_loop = inspect.iscoroutinefunction(function)
    if in_loop and seconds is None:
        return await function(**arguments)
    working: asyncio.Future[Any] = (
        asyncio.ensure_future(function(**arguments)) if in_loop else start_thread(function, **arguments)
    )
    try:
        await asyncio.wait([working], timeout=seconds)
    except asyncio.CancelledError:
        # giving the command back while it still acts would invite a repeat
        await _end(working, function, in_loop)
        raise
    in_time = working.done()
    if not in_time:
        await _end(working, function, in_loop, grace=GRACE if in_loop else 0.0)
    if not working.done() or (not in_time and working.cancelled()):
        raise TimedOut(seconds, None if working.done() else working)
    return working.result()


async def _end(
    working: "asyncio.Future[Any]", function: Callable[..., Any], in_loop: bool, grace: float = GRACE
) -> None:
    """Have a call end, and wait for it; one that does not is left to itself."""
    if in_loop:
        working.cancel()
    _, pending = await asyncio.wait([working], timeout=grace)
    if not pending:
        return
    log.warning("The tool %s does not stop; it is left to itself", function.__name__)
    _left.add(working)
    working.add_done_callback(_forget)


def _forget(ended: "asyncio.Future[Any]") -> None:
    _left.discard(ended)
    if not ended.cancelled():
        ended.exception()  # its caller has gone
