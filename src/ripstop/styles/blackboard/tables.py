"""Tables of Markdown, as far as a plan needs them: which cell of a row is the status."""

import re
from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

_RULE = re.compile(r"^\|?[ \t:|-]*-[ \t:|-]*\|?$")
_BORDER = re.compile(r"(?<!\\)\|")
_STATUS = re.compile(r"(?i)^[*_`]*(?:status|state|状态)[*_`]*$")


class Cell(Struct, frozen=True):
    text: str
    start: int
    """Where its text is in the line, without spaces and marks of emphasis around it."""
    end: int


class Table(Struct, frozen=True):
    """Lines that begin with `|`; the second one is a rule, and the first one the head."""

    first: int
    status: int | None
    """The column below `Status`; none if there is no such column."""

    def is_head(self, number: int) -> bool:
        return number < self.first + 2


def cells_of(line: str) -> tuple[Cell, ...]:
    borders = [found.start() for found in _BORDER.finditer(line)]
    if not borders or line[borders[-1] + 1 :].strip():
        borders.append(len(line))
    return tuple(_cell(line, start + 1, end) for start, end in pairwise(borders))


def _cell(line: str, start: int, end: int) -> Cell:
    inside = line[start:end]
    bare = inside.strip(" \t*_`")
    begin = start + (inside.index(bare) if bare else min(1, len(inside)))
    return Cell(inside.strip(), begin, begin + len(bare))


def tables_in(lines: Sequence[str]) -> dict[int, Table]:
    """The table that each line with a row belongs to, by the line's number."""
    found: dict[int, Table] = {}
    number = 0
    while number < len(lines):
        if not lines[number].startswith("|"):
            number += 1
            continue
        end = next((one for one in range(number, len(lines)) if not lines[one].startswith("|")), len(lines))
        if end - number > 1 and _RULE.match(lines[number + 1]):
            heads = [cell.text for cell in cells_of(lines[number])]
            status = next((column for column, head in enumerate(heads) if _STATUS.match(head)), None)
            found.update(dict.fromkeys(range(number, end), Table(number, status)))
        number = end
    return found
