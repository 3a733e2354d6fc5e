"""Waiting for a store that is unreachable for a while: its disk is full, or another program has locked it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

from ripstop.kernel.errors import Unreachable

P = ParamSpec("P")
T = TypeVar("T")

STORE_PAUSE = 1.0
"""Seconds after which it is tried again."""


async def until_reachable(
    waits: Callable[[], bool], act: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Do something that can be repeated as long as the store was not reached. Raises `Unreachable` unless `waits()`."""
    while True:
        try:
            return await act(*args, **kwargs)
        except Unreachable:
            if not waits():
                raise
        await asyncio.sleep(STORE_PAUSE)
