"""Whose turn it is: one process delivers for a webhook, however many work on the journal.

It holds a lock on a file next to the journal, which the kernel releases when it dies. Then another takes over.
"""

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from ripstop.files.private_files import PRIVATE_FILE

LOOK = 1.0
"""Seconds between two looks at whether the process that delivers has gone."""


@asynccontextmanager
async def turn_of(journal: Path | None, name: str) -> AsyncIterator[None]:
    """Wait for the turn of a webhook, and have it. A journal without a file is this process's own."""
    if journal is None:
        yield
        return
    path = journal.with_name(f"{journal.name}-webhook-{name}")
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE_FILE)
    try:
        while not _locked(handle):  # noqa: ASYNC110  # the kernel does not say when a lock is free
            await asyncio.sleep(LOOK)
        yield
    finally:
        os.close(handle)


def _locked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
