"""Stdout and stderr: streams that show every text as it is and let none of it act on the terminal.

- `write` makes control characters visible for every caller: a traceback, a warning, a library.
- `write_rendered` is the one way past that, for `terminal.py`, which filters texts before it styles them.
- A reader that has gone (`ripstop log | head`) is a `BrokenPipeError`; for a command that works it is nothing
  (`work_goes_on`). What else goes wrong with stdout (a full disk, a quota) is `OutputLost`.
"""

import errno
import io
import os
import sys

from ripstop.visible_text import visible


class OutputLost(OSError):
    """Raised when what was to be shown cannot be written."""


class Output(io.TextIOWrapper):
    work_goes_on = False
    """Whether to continue after the reader has gone."""

    def write(self, text: str, /) -> int:
        self.write_rendered(visible(text))
        return len(text)

    def write_rendered(self, text: str) -> int:
        try:
            return super().write(text)
        except OSError as error:
            self._failed(error)
            return len(text)

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as error:
            self._failed(error)

    def _failed(self, error: OSError) -> None:
        has_reader = not isinstance(error, BrokenPipeError) and error.errno != errno.EIO  # EIO: the terminal was closed
        if self.work_goes_on and not (has_reader and self is sys.stdout):
            self.discard()
        elif has_reader:
            raise OutputLost(error.errno, error.strerror) from error
        else:
            raise BrokenPipeError(error.errno, error.strerror) from error

    def discard(self) -> None:
        """Write nowhere from now on, what still waits to be written included: Python would try again as it ends."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.fileno())
        os.close(nowhere)


def use_output() -> None:
    """From now on stdout and stderr are `Output`s, if they are files at all."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper) and not isinstance(stream, Output):
            encoding, by_line = stream.encoding, stream.line_buffering
            # "backslashreplace": a terminal that cannot show a character must not stop the story
            setattr(sys, name, Output(stream.detach(), encoding, "backslashreplace", line_buffering=by_line))


def keep_working_without_readers() -> None:
    """Work matters more than its picture: a reader that goes away does not stop this command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, Output):
            stream.work_goes_on = True


def discard_output() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, Output):
            stream.discard()
