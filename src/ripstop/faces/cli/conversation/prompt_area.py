"""The end of the screen while a person chats: what is being written, the status, and the line that they type.

It is drawn again whenever something changes; what is printed appears above it. The cursor is where the next character
goes, so that input methods show their candidates there.
"""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Group
from rich.control import Control
from rich.text import Text

from ripstop.faces.cli.paragraphs import LABEL
from ripstop.faces.cli.signals import keys_at_once
from ripstop.faces.cli.terminal import Part, console_for, line_of, live_area, marked_pastes, text_of

from .keys import KeyReader
from .line_editor import LineEditor, ShownInput

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live

PROMPT = "› "
KEPT_FREE = 6
"""Rows of the screen that a reply which is being written leaves free."""
PIECE = 4096
DRAFT_LABEL = "bold green"


class PromptArea:
    def __init__(self, on_text: Callable[[str], None], on_leave: Callable[[], None]) -> None:
        """Args:
        on_text: Called with what is typed, when Enter is pressed.
        on_leave: Called for Ctrl-D on an empty line, and when the terminal is gone.
        """
        self.console: Console = console_for()
        self.editor = LineEditor()
        self._on_text = on_text
        self._on_leave = on_leave
        self._keys = KeyReader()
        self._live: Live | None = None
        self._status: Part = ""
        self._draft: tuple[str, str] = ("", "")

    @contextmanager
    def open(self) -> Iterator[None]:
        """Show the area and take keys, until the end of the block."""
        loop, handle = asyncio.get_running_loop(), sys.stdin.fileno()
        with keys_at_once(handle) as set_modes, marked_pastes(), live_area(self.console) as live:
            self._live = live
            self.console.show_cursor(True)
            loop.add_reader(handle, self._read, handle)
            loop.add_signal_handler(signal.SIGCONT, self._go_on, set_modes)
            loop.add_signal_handler(signal.SIGWINCH, self.draw)
            try:
                self.draw()
                yield
            finally:
                for number in (signal.SIGCONT, signal.SIGWINCH):
                    loop.remove_signal_handler(number)
                loop.remove_reader(handle)
                self._live = None

    def _go_on(self, set_modes: Callable[[], None]) -> None:
        """The process was stopped, and is continued: others had the terminal meanwhile."""
        set_modes()
        self.draw()

    def show_status(self, status: Part) -> None:
        if status != self._status:
            self._status = status
            self.draw()

    def show_draft(self, label: str, text: str) -> None:
        """Show a reply while it is written; empty: none is."""
        if (label, text) != self._draft:
            self._draft = label, text
            self.draw()

    @contextmanager
    def printing(self) -> "Iterator[Console]":
        """Print above the area."""
        yield self.console
        self._place_cursor()

    def draw(self) -> None:
        if self._live:
            typed = line_of((PROMPT, "bold cyan"), self._shown().text)
            rows = [*self._draft_rows(), Text(), line_of(self._status), typed]
            for row in rows:
                row.no_wrap, row.overflow = True, "ellipsis"
            self._live.update(Group(*rows), refresh=True)
            self._place_cursor()

    def _draft_rows(self) -> list[Text]:
        label, text = self._draft
        if not text:
            return []
        head = line_of((f"{label} ".ljust(LABEL), DRAFT_LABEL))
        width = max(self.console.width - len(head) - 1, 10)
        rows = [*text_of(text).wrap(self.console, width)]
        shown = rows[-max(1, self.console.height - KEPT_FREE) :]
        return [(head if row is rows[0] else Text(" " * len(head))) + row for row in shown]

    def _shown(self) -> ShownInput:
        return self.editor.shown(max(self.console.width - len(PROMPT) - 1, 4))

    def _place_cursor(self) -> None:
        if self._live:
            self.console.control(Control.move_to_column(len(PROMPT) + self._shown().cursor))

    def _read(self, handle: int) -> None:
        piece = b""
        with contextlib.suppress(OSError):  # EIO: the terminal was closed
            piece = os.read(handle, PIECE)
        if not piece:
            asyncio.get_running_loop().remove_reader(handle)
            return self._on_leave()
        for key in self._keys.read(piece):
            text = self.editor.press(key)
            if text is None:
                return self._on_leave()
            if text:
                self._on_text(text)
        return self.draw()
