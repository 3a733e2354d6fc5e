"""Calls what blocks in its own thread, so that deadlines and signals are heard meanwhile.

Not in the pool of `asyncio.to_thread`: a process waits for that pool before it ends, however long its threads take.
"""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any


def start_thread(function: Callable[..., Any], **arguments: Any) -> "asyncio.Future[Any]":
    """Call a function in its own thread; what it returns or raises comes with the future."""
    loop = asyncio.get_running_loop()
    working: asyncio.Future[Any] = loop.create_future()
    # if its caller has gone, its exception is not reported
    working.add_done_callback(lambda done: None if done.cancelled() else done.exception())

    def settle(value: Any, error: BaseException | None) -> None:
        if working.done():
            return
        if error is None:
            working.set_result(value)
        else:
            working.set_exception(error)

    def call() -> None:
        value: Any = None
        error: BaseException | None = None
        try:
            value = context.run(function, **arguments)
        except StopIteration as raised:  # no future can hold it
            error = RuntimeError(f"{function.__name__} raised {type(raised).__name__}.")
        except BaseException as raised:  # noqa: BLE001  # it is raised again where it is awaited
            error = raised
        with suppress(RuntimeError):  # the loop is closed: the process is about to end
            loop.call_soon_threadsafe(settle, value, error)

    context = contextvars.copy_context()
    threading.Thread(target=call, name=f"ripstop-{function.__name__}", daemon=True).start()
    return working
