"""Stdout, whose troubles can be told from those with other files: a full disk, a quota.

A reader that has gone (`ripstop log | head`) is no trouble; that stays a `BrokenPipeError`.
"""

import contextlib
import io
import os
import sys

import click


class OutputLost(OSError):
    """What was to be shown cannot be written."""


class Output(io.TextIOWrapper):
    def write(self, text: str, /) -> int:
        try:
            return super().write(text)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputLost(error.errno, error.strerror) from error

    def flush(self) -> None:
        try:
            super().flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputLost(error.errno, error.strerror) from error


def use_output() -> None:
    """From now on stdout is an `Output`, if it is a file at all."""
    stream = sys.stdout
    if isinstance(stream, io.TextIOWrapper):
        encoding, errors, by_line = stream.encoding, stream.errors, stream.line_buffering
        sys.stdout = Output(stream.detach(), encoding, errors, line_buffering=by_line)


def tell_of_lost_output(error: OutputLost) -> None:
    """One line on stderr. What still waits to be written is given up, or Python would try again as it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
    with contextlib.suppress(OSError):  # if stderr goes to the same place, there is nobody to tell
        click.echo(f"ripstop: The output cannot be written: {error.strerror}. The journal is not affected.", err=True)
