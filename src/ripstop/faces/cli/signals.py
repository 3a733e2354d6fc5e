"""Ctrl-C, SIGTERM and SIGHUP, from the first moment of the process to its last, never with a traceback.

- A command that works is asked to stop in order, once (`stop_requested`).
- The next signal, or the first for any other command, ends the process at once: the journal is made for that.
- Both say that nothing is lost and how to resume. The exit code is 128 + the signal's number.
- Once the result is known (`finishing`), a signal only shortens the end.

A handler runs between any two instructions, in the middle of a write or an import, too. So it imports nothing and
writes past Python's streams.
"""

import atexit
import contextlib
import json
import os
import signal
import sys
import termios
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

from ripstop.text.visible_text import visible_line

if TYPE_CHECKING:
    import asyncio

IMPATIENT = 5
"""Signals after which the process ends even if its last words cannot be written."""
NOTHING_LOST = "Interrupted. Nothing is lost"
STOPPING = "stopping …"
"""The message that is shown at once, while calls under way get a moment to finish."""
_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SHOW_CURSOR = "\r\x1b[2K\x1b[?25h\x1b[?2004l"
"""Erases the progress line, shows the cursor that it hid, and ends what marks pasted text."""


class _State:
    request: Callable[[int], None] | None = None
    """Asks the command to stop in order."""
    resume: str = ""
    """The command that resumes what is under way."""
    told: bool = False
    """Whether a person knows how to resume."""
    holding: bool = False
    """Whether signals are held back."""
    held: tuple[int, ...] = ()
    """The signals that were held back."""
    leaving: int = 0
    """How many signals have asked to leave at once."""
    exit_code: int | None = None
    """The exit code, once it is known."""
    modes: "list[Any] | None" = None
    """How the terminal was before a command changed it."""


_state = _State()


def take_signals() -> None:
    for number in _STOPPING:
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:  # nohup
            signal.signal(number, _on_signal)


def stop_requested() -> "asyncio.Future[int]":
    """Done, with the signal's number, when the command is to stop in order."""
    import asyncio

    take_signals()
    loop = asyncio.get_running_loop()
    arrived: asyncio.Future[int] = loop.create_future()

    def stop(number: int) -> None:
        if not arrived.done():
            arrived.set_result(number)

    def request(number: int) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has just been closed: the command has ended
            loop.call_soon_threadsafe(stop, number)

    _state.request = request
    return arrived


@contextlib.contextmanager
def leaving_at_once() -> Iterator[None]:
    """While a person is asked something, the first signal ends the process: that is an answer, too."""
    request, _state.request = _state.request, None
    try:
        yield
    finally:
        _state.request = request


def resume_with(command: str) -> None:
    """Say this, if the process is to end before the command could say it."""
    _state.resume = command


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Hold signals back: the message is shown once, even if the next signal comes in the middle of it.

    The handler holds them: a signal mask would be that of this thread alone, and any other thread can get the signal.
    """
    _state.holding = True
    try:
        yield
    finally:
        _state.holding = False
        if _state.held:
            _on_signal(_state.held[0], None)


@contextlib.contextmanager
def keys_at_once(handle: int) -> Iterator[Callable[[], None]]:
    """Have a terminal pass every key on as it is pressed, unseen; only Ctrl-C and its like still act.

    Gives what does so again, after the process was stopped and continued. However the process ends, unless it is
    killed, the terminal is as before.
    """
    before = termios.tcgetattr(handle)

    def set_modes() -> None:
        modes = termios.tcgetattr(handle)
        modes[3] &= ~(termios.ICANON | termios.ECHO)
        modes[6][termios.VMIN], modes[6][termios.VTIME] = 1, 0
        termios.tcsetattr(handle, termios.TCSADRAIN, modes)

    _state.modes = before
    set_modes()
    try:
        yield set_modes
    finally:
        _state.modes = None
        with contextlib.suppress(termios.error):  # it was closed
            termios.tcsetattr(handle, termios.TCSADRAIN, before)


def interruption(resume: str = "") -> str:
    """The message for the person at the terminal; shown only once."""
    _state.told = True
    return _in_words(resume)


def _in_words(resume: str) -> str:
    return f"{NOTHING_LOST}; resume with:  {resume}" if resume else f"{NOTHING_LOST}."


def finishing(exit_code: int) -> None:
    _state.exit_code = exit_code
    atexit.register(_ignore_signals)


def _ignore_signals() -> None:
    """Python puts back the signals' default while it ends, and then Ctrl-C would change the exit code.

    Its threads have ended by now, so there is nothing left whose end a signal could shorten.
    """
    for number in _STOPPING:
        signal.signal(number, signal.SIG_IGN)


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether `--json` was asked for. Reads the raw arguments: the error may be in them, so they were not parsed."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in options


def _on_signal(number: int, _: FrameType | None) -> None:
    if _state.holding and len(_state.held) < IMPATIENT:
        _state.held += (number,)
    elif _state.exit_code is not None:
        _leave(_state.exit_code)
    elif _state.request is not None and not _state.told:
        request, _state.request = _state.request, None
        request(number)
    else:
        code = 128 + number
        # not noted as shown yet: the next signal can come before the first word is written
        _leave(code, "" if _state.told else _in_words(_state.resume))


def _leave(code: int, text: str = "") -> None:
    _state.leaving += 1
    if _state.leaving > IMPATIENT:  # what is written below is not read by anybody
        os._exit(code)
    if _state.leaving > 1:
        return  # the first signal is about to leave, and still has to say how to resume
    for stream in (sys.stdout, sys.stderr):
        # RuntimeError: we are in the middle of a write to it; ValueError: it is closed; AttributeError: there is none
        with contextlib.suppress(OSError, RuntimeError, ValueError, AttributeError):
            stream.flush()
    if _state.modes is not None:
        with contextlib.suppress(termios.error):
            termios.tcsetattr(0, termios.TCSANOW, _state.modes)
    with contextlib.suppress(OSError):
        if os.isatty(2):
            os.write(2, _SHOW_CURSOR.encode())
        if text:
            os.write(2, f"{visible_line(text)}\n".encode())
            if wants_json(sys.argv[1:]):
                said = {"error": text, "kind": "interrupted", "exit_code": code}
                os.write(1, f"{json.dumps(said)}\n".encode())
    os._exit(code)
