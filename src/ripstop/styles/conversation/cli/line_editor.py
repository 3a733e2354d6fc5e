"""The line that a person types: its text, where the cursor is, and what was sent before. Pure: it shows nothing."""

import asyncio
import codecs
import contextlib
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len
from rich.console import Group
from rich.control import Control
from rich.text import Text

from ripstop.faces.cli.blocks import LABEL
from ripstop.faces.cli.signals import keys_at_once
from ripstop.faces.cli.terminal import Part, console_for, line_of, live_area, marked_pastes, text_of
from ripstop.text.visible_text import visible_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live


# What is typed, as keys: characters, names of special keys, and whole texts that are pasted.
#
# A terminal sends bytes in pieces of any size: a character, or the sequence of one key, can be cut anywhere. What is
# not understood is dropped, so that no sequence gets into a text.


PASTE_BEGINS, PASTE_ENDS = "\x1b[200~", "\x1b[201~"
LONGEST_PASTE = 100_000
LONGEST_SEQUENCE = 32
NAMES = {
    "\x01": "home",
    "\x02": "left",
    "\x04": "end of input",
    "\x05": "end",
    "\x06": "right",
    "\x08": "backspace",
    "\n": "enter",
    "\x0b": "cut to end",
    "\x0c": "redraw",
    "\r": "enter",
    "\x0e": "down",
    "\x10": "up",
    "\x15": "cut to start",
    "\x17": "cut word",
    "\x7f": "backspace",
    "\x1b\r": "newline",
    "\x1b\n": "newline",
    "\x1bb": "word left",
    "\x1bf": "word right",
    "\x1b\x7f": "cut word",
    "\x1b[A": "up",
    "\x1b[B": "down",
    "\x1b[C": "right",
    "\x1b[D": "left",
    "\x1b[H": "home",
    "\x1b[F": "end",
    "\x1bOA": "up",
    "\x1bOB": "down",
    "\x1bOC": "right",
    "\x1bOD": "left",
    "\x1bOH": "home",
    "\x1bOF": "end",
    "\x1b[1~": "home",
    "\x1b[3~": "delete",
    "\x1b[4~": "end",
    "\x1b[7~": "home",
    "\x1b[8~": "end",
    "\x1b[1;5C": "word right",
    "\x1b[1;5D": "word left",
    "\x1b[1;3C": "word right",
    "\x1b[1;3D": "word left",
}
_SEQUENCE = re.compile(r"\x1b(?:\[[0-9;?<=>]*[ -/]*[@-~]|O.|[^\[O])", re.DOTALL)


class Key(NamedTuple):
    name: str = ""
    """A special key; empty: `text` was typed or pasted."""
    text: str = ""


class KeyReader:
    """Makes keys of the bytes of a terminal."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("ignore").decode
        self._rest = ""
        self._pasted: str | None = None

    def read(self, piece: bytes) -> list[Key]:
        self._rest += self._decode(piece)
        keys: list[Key] = []
        while self._rest:
            key = self._paste() if self._pasted is not None else self._key()
            if key is None:
                break
            if key.name or key.text:
                keys.append(key)
        return keys

    def _paste(self) -> Key | None:
        assert self._pasted is not None
        text, ends, rest = self._rest.partition(PASTE_ENDS)
        if not ends:
            kept = next((n for n in range(len(PASTE_ENDS) - 1, 0, -1) if text.endswith(PASTE_ENDS[:n])), 0)
            text, rest = text[: len(text) - kept], text[len(text) - kept :]
        self._pasted, self._rest = (self._pasted + text)[:LONGEST_PASTE], rest
        if not ends:
            return None
        pasted, self._pasted = self._pasted, None
        return Key(text=pasted.replace("\r\n", "\n").replace("\r", "\n"))

    def _key(self) -> Key | None:
        first = self._rest[0]
        if first != "\x1b":
            self._rest = self._rest[1:]
            return Key(NAMES.get(first, "")) if first < " " or first == "\x7f" else Key(text=first)
        found = _SEQUENCE.match(self._rest)
        if found is None:
            if len(self._rest) > LONGEST_SEQUENCE:
                self._rest = ""
            return None
        self._rest = self._rest[found.end() :]
        if found[0] == PASTE_BEGINS:
            self._pasted = ""
            return Key()
        return Key(NAMES.get(found[0], ""))


MOST_REMEMBERED = 200
MAX_TYPED = 100_000
"""Characters; a message that is too long is refused when it is sent, and can still be shortened."""
NEWLINE = "⏎"
MOST_IN_COLUMN = 4
"""Characters that share a column, as accents do; only so many are looked at, because a pasted text can be long."""


class ShownInput(NamedTuple):
    """The part of the text that fits, and the column of the cursor in it."""

    text: str
    cursor: int


class LineEditor:
    def __init__(self) -> None:
        self.text = ""
        self.cursor = 0
        self._sent: list[str] = []
        self._place = 0
        """The text of the history that is shown; its length: the new one."""
        self._draft = ""

    def press(self, key: Key) -> str | None:
        """Take a key in. Returns a text that is to be sent; empty for none, `None` to leave."""
        if not key.name:
            self._insert(key.text)
            return ""
        if key.name == "enter":
            return self._enter()
        if key.name == "end of input" and not self.text:
            return None
        self._edit(key.name)
        return ""

    def shown(self, width: int) -> ShownInput:
        """What fits into so many columns; the cursor is always among it."""
        first = max(0, self.cursor - MOST_IN_COLUMN * width)
        nearby = self.text[first : self.cursor + MOST_IN_COLUMN * width]
        cells = [NEWLINE if char == "\n" else visible_line(char) for char in nearby]
        widths = [cell_len(cell) for cell in cells]
        room = max(width - 1, 1)
        start, before = self.cursor - first, 0
        while start and before + widths[start - 1] <= room:
            start -= 1
            before += widths[start]
        end, used = start, 0
        while end < len(cells) and used + widths[end] <= room:
            used += widths[end]
            end += 1
        return ShownInput("".join(cells[start:end]), before)

    def _insert(self, text: str) -> None:
        room = MAX_TYPED - len(self.text)
        self.text = self.text[: self.cursor] + text[:room] + self.text[self.cursor :]
        self.cursor += len(text[:room])

    def _enter(self) -> str:
        if self.text.endswith("\\"):
            self.text = f"{self.text[:-1]}\n"
            self.cursor = len(self.text)
            return ""
        text = self.text
        self.text, self.cursor, self._draft = "", 0, ""
        if text.strip() and self._sent[-1:] != [text]:
            self._sent = [*self._sent[1 - MOST_REMEMBERED :], text]
        self._place = len(self._sent)
        return text if text.strip() else ""

    def _edit(self, name: str) -> None:
        """Move the cursor, cut something, or bring back what was sent before; any other key does nothing."""
        text, cursor = self.text, self.cursor
        places = {
            "left": max(0, cursor - 1),
            "right": min(len(text), cursor + 1),
            "home": 0,
            "end": len(text),
            "word left": self._word_start(),
            "word right": self._word_end(),
        }
        cuts = {
            "backspace": (max(0, cursor - 1), cursor),
            "delete": (cursor, cursor + 1),
            "end of input": (cursor, cursor + 1),
            "cut word": (self._word_start(), cursor),
            "cut to start": (0, cursor),
            "cut to end": (cursor, len(text)),
        }
        if name in places:
            self.cursor = places[name]
        elif name in cuts:
            self._cut(*cuts[name])
        elif name == "newline":
            self._insert("\n")
        elif name in ("up", "down"):
            self._recall(-1 if name == "up" else 1)

    def _cut(self, start: int, end: int) -> None:
        self.text, self.cursor = self.text[:start] + self.text[end:], start

    def _word_start(self) -> int:
        before = self.text[: self.cursor].rstrip()
        return len(before) - len(before.split()[-1]) if before else 0

    def _word_end(self) -> int:
        after = self.text[self.cursor :].lstrip()
        return len(self.text) - len(after) + len(after.split()[0] if after else "")

    def _recall(self, step: int) -> None:
        place = min(max(self._place + step, 0), len(self._sent))
        if place == self._place:
            return
        if self._place == len(self._sent):
            self._draft = self.text
        self._place = place
        self.text = self._draft if place == len(self._sent) else self._sent[place]
        self.cursor = len(self.text)


# The end of the screen while a person chats: what is being written, the status, and the line that they type.
#
# It is drawn again whenever something changes; what is printed appears above it. The cursor is where the next character
# goes, so that input methods show their candidates there.


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
