"""The lines of stdin, read without holding up the work of this process; whether it is a pipe, a file or a terminal."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator

from ripstop.kernel.errors import UsageError
from ripstop.kernel.plain import shown

PIECE = 65536
LONGEST = 100_000
"""Bytes of a line."""


async def stdin_lines() -> AsyncIterator[str]:
    """Raises `UsageError` for a line that is too long or not UTF-8."""
    rest = b""
    while sys.stdin is not None:
        piece = await _piece(sys.stdin.fileno())
        *lines, rest = (rest + piece).split(b"\n")
        for line in (*lines, rest) if not piece else lines:
            try:
                text = line.decode()
            except UnicodeDecodeError:
                raise UsageError(f"This line of stdin is not UTF-8 text: {shown(line)}.") from None
            yield text
        if not piece:
            return
        if len(rest) > LONGEST:
            raise UsageError(f"A line of stdin has at most {LONGEST:,} bytes.")


async def _piece(handle: int) -> bytes:
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    try:
        loop.add_reader(handle, ready.set)
    except PermissionError:  # a file, which can always be read
        return os.read(handle, PIECE)
    try:
        await ready.wait()
        return os.read(handle, PIECE)
    except OSError:  # EIO: the terminal was closed
        return b""
    finally:
        loop.remove_reader(handle)
