"""The one way out: everything that the commands print is printed here.

A text is data wherever it comes from: it is made visible first and styled then, so what reaches the terminal is
text, newlines and our own styles. Other modules call neither `print` nor `click.echo` nor a `Console` of rich
(a test keeps it so); what gets out in another way is filtered below.
"""

import errno
import io
import json
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, cast

import click

from ripstop.security.redaction import redacted, secrets_in
from ripstop.text.visible_text import visible, visible_json, visible_line

from .signals import leaving_at_once

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.status import Status
    from rich.text import Text


# Stdout and stderr: streams that show every text as it is and let none of it act on the terminal.
#
# - `write` makes control characters visible for every caller: a traceback, a warning, a library.
# - `write_rendered` is the one way past that, for the consoles below, which filter texts before they style them.
# - A reader that has gone (`ripstop log | head`) is a `BrokenPipeError`; for a command that works it is nothing
#   (`work_goes_on`). What else goes wrong with stdout (a full disk, a quota) is `OutputLost`.


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


Part = str | tuple[str, str]
"""A text, or a text and its style: a colour, `bold`, `dim`, or several of these words."""


def say(*parts: Part, err: bool = False) -> None:
    """Print one line. A newline in it is shown as `\\n`, so a text cannot fake a line of output."""
    stream = sys.stderr if err else sys.stdout
    coloured = _coloured(stream)
    pieces = [_styled(part, coloured) for part in parts]
    _write(stream, "".join(pieces) + "\n")


def say_text(text: str, err: bool = False) -> None:
    """Print a text that can have several lines."""
    _write(sys.stderr if err else sys.stdout, visible(text).removesuffix("\n") + "\n")


def say_json(value: Any, indent: int | None = None) -> None:
    """Print a JSON document. Letters stay readable; what would act on a terminal is escaped, as JSON does it."""
    _write(sys.stdout, visible_json(json.dumps(value, ensure_ascii=False, indent=indent)) + "\n")


def can_ask() -> bool:
    """Whether a person can be asked: what we say and what is typed are both on a terminal."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


def text_of(*parts: Part) -> "Text":
    """A text for rich that can have several lines."""
    from rich.text import Text

    return Text.assemble(*((visible(text), style) for text, style in map(with_style, parts)))


def line_of(*parts: Part) -> "Text":
    """A text for rich on one line, as in a cell of a table."""
    return text_of(*((visible_line(text), style) for text, style in map(with_style, parts)))


def console_for(stderr: bool = False) -> "Console":
    """A console of rich that shows texts as they are: no markup, no `:name:` becomes a picture, no number a colour."""
    from .safe_console import SafeConsole

    stream = sys.stderr if stderr else sys.stdout
    file = cast(IO[str], _Rendered(stream)) if isinstance(stream, Output) else stream
    return SafeConsole(file=file, stderr=stderr, highlight=False, emoji=False, markup=False, soft_wrap=True)


@contextmanager
def live_line(console: "Console", text: "Text") -> "Iterator[Status]":
    """A line below everything else while work is in progress. Other output to stdout and stderr appears above it."""
    with console.status(text) as status:
        _filter_proxies()
        _live_lines.append(status)
        try:
            yield status
        finally:
            _live_lines.remove(status)


@contextmanager
def live_area(console: "Console") -> "Iterator[Live]":
    """Lines below everything else that are drawn again whenever they change (`Live.update`); gone at the end."""
    from rich.live import Live

    with Live(console=console, auto_refresh=False, transient=True, vertical_overflow="crop") as live:
        _filter_proxies()
        _live_lines.append(live)
        try:
            yield live
        finally:
            _live_lines.remove(live)


@contextmanager
def marked_pastes() -> Iterator[None]:
    """Have the terminal say where a text that is pasted begins and ends."""
    _write(sys.stdout, "\x1b[?2004h")
    try:
        yield
    finally:
        _write(sys.stdout, "\x1b[?2004l")


def at_terminal(as_json: bool) -> bool:
    """Whether a person reads our output and types: they are asked on the spot then. Not those of a job with `&`."""
    if as_json or not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout)):
        return False
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except OSError:
        return False


def show_prompt(*parts: Part) -> None:
    """Print the beginning of a line that a person completes."""
    coloured = _coloured(sys.stdout)
    _write(sys.stdout, "".join(_styled(part, coloured) for part in parts))


@contextmanager
def no_live_lines() -> Iterator[None]:
    """Take the live line away, for as long as a person is asked something."""
    for status in _live_lines:
        status.stop()
    try:
        yield
    finally:
        for status in _live_lines:
            status.start()
            _filter_proxies()


def confirm(question: str) -> bool:
    """Ask on stderr whether to do something. No answer is a no."""
    with no_live_lines(), leaving_at_once():
        answer = "?"
        while answer not in ("", "y", "yes", "n", "no"):
            _write(sys.stderr, f"{visible_line(question)} [y/N]: ")
            answer = sys.stdin.readline().strip().lower()
    return answer in ("y", "yes")


_live_lines: "list[Status | Live]" = []


def _filter_proxies() -> None:
    """Filter what is written to the streams: the proxies that rich sets for a live line obey escape sequences."""
    sys.stdout, sys.stderr = (cast(Any, _Filtered(stream)) for stream in (sys.stdout, sys.stderr))


OWN_LOG = "ripstop"
"""The logger of which all of ripstop's are children."""


def log_to_stderr(verbosity: int = 0) -> None:
    """Show warnings, also of asyncio and of libraries. Of ripstop's own log 1 shows INFO, and more shows DEBUG."""
    handler = _LogLines()
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    for old in [one for one in root.handlers if isinstance(one, _LogLines)]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    levels = (logging.WARNING, logging.INFO, logging.DEBUG)
    logging.getLogger(OWN_LOG).setLevel(levels[min(verbosity, len(levels) - 1)])


class _LogLines(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        try:
            say_text(redacted(self.format(record), *secrets_in(os.environ)), err=True)
        except OSError:
            raise
        except Exception:  # noqa: BLE001  # what a handler of the standard library does with a message it cannot format
            self.handleError(record)


class _Rendered:
    """A stream for rich, whose output is filtered already."""

    def __init__(self, stream: Output) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write_rendered(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Filtered:
    """A wrapper for a stream that does not filter."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(visible(text))
        return len(text)

    def write_rendered(self, text: str) -> int:
        return cast(int, self._stream.write(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _write(stream: Any, rendered: str) -> None:
    if stream is None:  # as it is where a program was started without one
        return
    write = getattr(stream, "write_rendered", stream.write)
    write(rendered)
    stream.flush()


def with_style(part: Part) -> tuple[str, str]:
    """A part as a text and its style."""
    return (part, "") if isinstance(part, str) else part


def _styled(part: Part, coloured: bool) -> str:
    text, style = with_style(part)
    if not style or not coloured:
        return visible_line(text)
    words = set(style.split())
    colour = next(iter(words - {"bold", "dim"}), None)
    return click.style(visible_line(text), fg=colour, bold="bold" in words or None, dim="dim" in words or None)


def _coloured(stream: Any) -> bool:
    return bool(
        stream is not None and stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    )
