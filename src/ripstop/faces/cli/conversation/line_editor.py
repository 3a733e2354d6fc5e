"""The line that a person types: its text, where the cursor is, and what was sent before. Pure: it shows nothing."""

from typing import NamedTuple

from rich.cells import cell_len

from ripstop.visible_text import visible_line

from .keys import Key

MOST_REMEMBERED = 200
LONGEST = 100_000
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
        room = LONGEST - len(self.text)
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
