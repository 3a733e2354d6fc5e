"""Markdown line by line: which lines are fenced code, headings, list items and rows of tables.

- A fence is a run of at least three backticks or tildes. Behind backticks, the info string has none.
- A block lasts to the first fence of the same character that is at least as long and has nothing but white space behind
  it; without one, to the end of the text. Lines in a block, its fences included, are nothing else. White space is what
  Unicode calls so, and not only spaces and tabs as in CommonMark: models write the ideographic space, and a fence that
  did not close would swallow the files behind it.
- A line with four or more columns before the fence is text, as in CommonMark outside lists and quotes. Which list a
  line is in is not followed here. Readers of text in which lists hold code therefore ask for `any_indent`: a fence then
  opens a block in any column, and one at most three columns further to the right closes it.
- Readers with rules of their own for whole blocks use `fence_of` and `Fence.closes`.
- Every line is read once, in time proportional to its length. Readers ask only about the lines that concern them: an
  object for each line would cost as much as all the rest of what they do.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec import Struct

MAX_INDENT = 3
"""Columns before a fence or a heading."""
TAB = 4

_NEWLINE = re.compile(r"\r\n|\r|\n")
_FENCE = re.compile(r"([ \t]*+)(`{3,}+(?!.*`)|~{3,}+)(.*)", re.DOTALL)
_HEADING = re.compile(r" {0,3}+(#{1,6}+)(?=[ \t\r\n]|$)")
_ITEM = re.compile(r"([ \t]*+)([-*+]|[0-9]{1,9}[.)])(?:[ \t]++|(?=\r?\n?\Z))")
_BORDER = re.compile(r"(?<!\\)\|")


class Fence(Struct, frozen=True, gc=False):
    """A line that can open a block of code or, without an info string, close one."""

    indent: int
    """Columns before it."""
    kind: str
    """A backtick or a tilde."""
    length: int
    info: str

    @property
    def mark(self) -> str:
        """The fence without indentation and info string."""
        return self.kind * self.length

    def matches(self, opening: "Fence") -> bool:
        """Whether it has the character of `opening`, and at least its length."""
        return self.kind == opening.kind and self.length >= opening.length

    def closes(self, opening: "Fence") -> bool:
        """Whether it closes what `opening` opened. The caller has compared how far they are indented."""
        return not self.info and self.matches(opening)


class Block(Struct, frozen=True, gc=False):
    """Lines of fenced code, with the fences around them."""

    start: int
    """The number of the line with the opening fence."""
    end: int
    """One more than the number of the last line."""
    fence: Fence
    """The opening one."""
    is_closed: bool

    def inside(self, lines: Sequence[str]) -> Sequence[str]:
        """The lines between the fences."""
        return lines[self.start + 1 : self.end - self.is_closed]


class Heading(Struct, frozen=True, gc=False):
    """A heading that begins with `#`."""

    level: int
    text: str


class ListItem(Struct, frozen=True, gc=False):
    """The first line of an item, however far it is indented."""

    indent: int
    """Columns before its mark."""
    mark: str
    """`-`, `*` or `+`, or a number and `.` or `)`."""
    text: str


class Cell(Struct, frozen=True, gc=False):
    """A cell of a table's row."""

    text: str
    start: int
    """Where its text is in the line, without spaces and marks of emphasis around it."""
    end: int


def blocks(lines: Sequence[str], any_indent: bool = False) -> Iterator[Block]:
    """The blocks of fenced code in the lines of a text, in their order.

    Args:
        any_indent: Fences count however far they are indented.
    """
    start, opening = 0, None
    for number, line in enumerate(lines):
        if "```" not in line and "~~~" not in line:  # nearly all lines, told apart without a call
            continue
        fence = fence_of(line)
        if fence is None:
            continue
        if opening is None:
            if any_indent or fence.indent <= MAX_INDENT:
                start, opening = number, fence
        elif fence.indent <= MAX_INDENT + any_indent * opening.indent and fence.closes(opening):
            yield Block(start, number + 1, opening, True)
            opening = None
    if opening is not None:
        yield Block(start, len(lines), opening, False)


def split_lines(text: str) -> list[str]:
    """The lines without their ends (LF, CR LF or CR)."""
    return _NEWLINE.split(text) if "\r" in text else text.split("\n")


def fence_of(line: str) -> Fence | None:
    """The fence in a line, with or without its end, however far it is indented."""
    match = _FENCE.match(line) if "```" in line or "~~~" in line else None
    if match is None:
        return None
    return Fence(_columns(match[1]), match[2][0], len(match[2]), match[3].strip())


def unindented(line: str, columns: int) -> str:
    """A line of a block without the indentation that its fence has, or as much of it as there is."""
    at = column = 0
    while column < columns and at < len(line) and line[at] in " \t":
        column += TAB - column % TAB if line[at] == "\t" else 1
        at += 1
    return " " * (column - columns) + line[at:]


def heading_of(line: str) -> Heading | None:
    """The heading in a line outside fenced code."""
    match = _HEADING.match(line)
    if match is None:
        return None
    text = line[match.end() :].strip(" \t\r\n")
    bare = text.rstrip("#")
    return Heading(len(match[1]), text if bare and bare[-1] not in " \t" else bare.rstrip(" \t"))


def item_of(line: str) -> ListItem | None:
    """The item that begins in a line outside fenced code."""
    match = _ITEM.match(line)
    return ListItem(_columns(match[1]), match[2], line[match.end() :].strip(" \t\r\n")) if match else None


def cells_of(row: str) -> tuple[Cell, ...]:
    """The cells of a row that begins with `|`; the last one need not be closed."""
    borders = [found.start() for found in _BORDER.finditer(row)]
    if not borders or row[borders[-1] + 1 :].strip():
        borders.append(len(row))
    return tuple(_cell(row, start + 1, end) for start, end in pairwise(borders))


def _cell(row: str, start: int, end: int) -> Cell:
    inside = row[start:end]
    bare = inside.strip(" \t*_`")
    begin = start + (inside.index(bare) if bare else min(1, len(inside)))
    return Cell(inside.strip(), begin, begin + len(bare))


def _columns(indent: str) -> int:
    return len(indent.expandtabs(TAB)) if "\t" in indent else len(indent)
