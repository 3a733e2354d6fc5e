"""Lines that a person types, read without holding up the work of this process.

- Lines that are pasted at once are one text: the second must not answer the next question.
- What was typed before a question was shown is not an answer to it: an empty line would be one.
- The terminal itself edits the line (backspace, Ctrl-U), and cuts one that is too long; that is noticed.
"""

import asyncio
import os
import sys
import termios

from ripstop.kernel.errors import UsageError

LONGEST_LINE = 4095 if sys.platform == "linux" else 1023
"""Bytes of a line that a terminal passes on, with its newline."""
PASTED = 0.05
"""Seconds within which the rest of a pasted text follows its first line."""
MOST = 4_000_000
"""Bytes of an answer."""


def forget_typed() -> None:
    """Drop what was typed and not read yet."""
    termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


async def typed_text() -> str | None:
    """The next line that a person types, or the lines that they paste; `None` for Ctrl-D on an empty line.

    Without the newline at the end. Raises `UsageError` for a line that the terminal has cut, and for too many lines.
    """
    piece = text = await _line(None)
    while piece.endswith(b"\n") and (piece := await _line(PASTED)):
        text += piece
        if len(text) > MOST:
            forget_typed()
            raise UsageError(f"An answer has at most {MOST:,} bytes. Put it into a file: --file FILE.")
    return text.removesuffix(b"\n").decode("utf-8", "replace") if text else None


async def _line(patience: float | None) -> bytes:
    """The next line; empty if there is none in time, for Ctrl-D, and if the terminal is gone."""
    loop, handle, ready = asyncio.get_running_loop(), sys.stdin.fileno(), asyncio.Event()
    loop.add_reader(handle, ready.set)
    try:
        async with asyncio.timeout(patience):
            await ready.wait()
        line = os.read(handle, LONGEST_LINE + 1)
    except (TimeoutError, OSError):  # EIO: the terminal was closed
        return b""
    finally:
        loop.remove_reader(handle)
    if len(line) >= LONGEST_LINE:
        forget_typed()
        raise UsageError(f"The terminal has cut this line: it passes on {LONGEST_LINE:,} bytes. Break it into several.")
    return line
