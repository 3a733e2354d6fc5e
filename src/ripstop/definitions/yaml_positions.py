r"""From a character of a text back to where its author wrote it.

YAML changes a text while reading it: lines are folded, indentation goes, escapes are replaced. But what is
not blank stays, in order. So the n-th character that is not blank in the text is the n-th one in the file,
if an escape (`\"`, `''`, `\u4e2d`) counts as the character that it encodes.
"""

import re
from collections.abc import Iterator

import yaml
from msgspec import Struct

from .problems import Position

BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
"""What YAML takes for the end of a line."""
_DOUBLE = re.compile(r"\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[\s\S])|[\s\S]")
_SINGLE = re.compile(r"''|[\s\S]")
_PLAIN = re.compile(r"[\s\S]")


class Span(Struct, frozen=True):
    """A scalar as it is written: `text[start:end]`, in one of YAML's styles (`|`, `>`, `'`, `"`, or none)."""

    text: str
    start: int
    end: int
    style: str

    def inside(self, value: str, offset: int, file: str) -> tuple[Position, str]:
        """Position in the file of the character `offset` of the value, and the text of its line."""
        offset = min(offset, len(value))
        wanted = sum(1 for c in value[:offset] if not c.isspace())
        on_text = offset < len(value) and not value[offset].isspace()
        index = self._index(wanted, on_text)
        return place_at(self.text, index, file), line_at(self.text, index)

    def _index(self, wanted: int, on_text: bool) -> int:
        """Where the character after `wanted` others begins; for a blank, where the one before it ends."""
        seen, after = 0, self._first()
        for start, end, blank in self._units():
            if blank:
                continue
            if seen == wanted and on_text:
                return start
            if seen == wanted:
                break
            seen, after = seen + 1, end
        return after

    def _first(self) -> int:
        if self.style in ("|", ">"):
            newline = BREAK.search(self.text, self.start, self.end)
            return newline.end() if newline else self.end
        return self.start + 1 if self.style in ("'", '"') else self.start

    def _units(self) -> Iterator[tuple[int, int, bool]]:
        """(start, end, whether it is blank) of every character, escapes as one."""
        last = self.end - 1 if self.style in ("'", '"') else self.end
        pattern = {"'": _SINGLE, '"': _DOUBLE}.get(self.style, _PLAIN)
        for unit in pattern.finditer(self.text, self._first(), last):
            yield unit.start(), unit.end(), _meaning(unit[0], self.style).isspace()


def _meaning(unit: str, style: str) -> str:
    """The character that a unit encodes. A line continuation (`\\` at the end) counts as blank."""
    if style != '"' or unit[0] != "\\":
        return unit[0]
    if unit[1] in "xuU" and len(unit) > 2:
        return chr(int(unit[2:], 16))
    return str(yaml.scanner.Scanner.ESCAPE_REPLACEMENTS.get(unit[1], unit[1]))


def place_at(text: str, index: int, file: str) -> Position:
    """The line and column of a character of a file."""
    line, start = 1, 0
    for line_break in BREAK.finditer(text, 0, index):
        line, start = line + 1, line_break.end()
    return Position(file, line, index - start + 1)


def line_at(text: str, index: int) -> str:
    start = max((b.end() for b in BREAK.finditer(text, 0, index)), default=0)
    end = BREAK.search(text, index)
    return text[start : end.start() if end else len(text)]
