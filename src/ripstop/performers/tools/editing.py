"""Replacing a piece of a text that stands in it exactly once. Pure.

The piece is looked for as it is; if it ends with a line break it has to begin at the beginning of a line, too.
If it is not there, it is looked for once more with the ends of lines (blanks, CR, the last line break) left out
of account: whole lines then. Nothing else is guessed.
"""

import difflib
from collections.abc import Iterator
from itertools import islice

NEAREST = 0.5
"""How alike a line must be to be named as the one that was meant."""
MAX_LINES = 2000
"""Lines among which the nearest is looked for."""
MAX_PLACEMENTS = 200
"""Places at which a replacement is taken for one that was made."""

Span = tuple[int, int]


class NotOnce(Exception):
    """The piece does not stand in the text exactly once; says what is there instead."""


class Undecidable(Exception):
    """Whether an edit was made cannot be seen from the text."""


def edited(text: str, search: str, replace: str) -> str:
    """The text with the piece replaced."""
    found = occurrences(text, search)
    if len(found) != 1:
        raise NotOnce(_why(text, search, len(found)))
    start, end = found[0]
    return text[:start] + _with_line_ends(replace, like=text[start:end]) + text[end:]


def is_edited(text: str, search: str, replace: str) -> bool:
    """Whether the text is as the edit leaves it. Raises `Undecidable`.

    It is if the old piece, put back where the new one stands, would be there exactly once, as it is or as whole lines
    (the ends of its lines may have been others); unless it is there now, somewhere else, so that the edit could just
    as well be still to come. An edit that only adds to a piece
    counts as made when the result stands there, and one that removes a piece when the piece is gone.
    """
    pending = occurrences(text, search)
    if not replace:
        return not pending
    doubtful = False
    for start, end in islice(_placements(text, replace), MAX_PLACEMENTS):
        before = text[:start] + search + text[end:]
        there = [(start, start + len(search))]
        if occurrences(before, search) == there or _by_lines(before, search) == there:
            if len(pending) != 1 or (start <= pending[0][0] and pending[0][1] <= end):
                return True
            doubtful = True
    if doubtful:
        raise Undecidable("both the text to replace and its replacement are there")
    return False


def _placements(text: str, piece: str) -> Iterator[Span]:
    """Where the piece may have been put; these may overlap."""
    for written in dict.fromkeys((piece, _with_line_ends(piece, like="\r\n"))):
        start = text.find(written)
        while start >= 0:
            yield start, start + len(written)
            start = text.find(written, start + 1)


def _with_line_ends(piece: str, like: str) -> str:
    """The piece with the line ends of a text of which `like` is a part; its own, if it has CRs already."""
    return piece.replace("\n", "\r\n") if "\r\n" in like and "\r" not in piece else piece


def occurrences(text: str, piece: str) -> list[Span]:
    """Where the piece stands; pieces that overlap count once."""
    return _exact(text, piece) or _by_lines(text, piece)


def _exact(text: str, piece: str) -> list[Span]:
    found, position = [], 0
    while (start := text.find(piece, position)) >= 0:
        if piece.endswith("\n") and start > 0 and text[start - 1] != "\n":
            position = start + 1
        else:
            position = start + len(piece)
            found.append((start, position))
    return found


def _by_lines(text: str, piece: str) -> list[Span]:
    wanted = [line.rstrip() for line in piece.removesuffix("\n").split("\n")]
    if not any(wanted):
        return []
    lines = text.split("\n")
    plain = [line.rstrip() for line in lines]
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    found, number = [], 0
    while number + len(wanted) <= len(lines):
        if plain[number] == wanted[0] and plain[number : number + len(wanted)] == wanted:
            after = starts[number + len(wanted)]
            found.append((starts[number], min(after if piece.endswith("\n") else after - 1, len(text))))
            number += len(wanted)
        else:
            number += 1
    return found


def _why(text: str, search: str, count: int) -> str:
    if count:
        return f"the text to replace stands there {count} times; give more of the lines around it, so that it is once"
    line = next((line.strip() for line in search.split("\n") if line.strip()), "")
    lines = [candidate.strip() for candidate in text.split("\n")[:MAX_LINES]]
    nearest = difflib.get_close_matches(line[:200], [candidate[:200] for candidate in lines], 1, NEAREST)
    if not nearest:
        return "the text to replace is not there, nor any line like its first"
    number = next(n for n, candidate in enumerate(lines, 1) if candidate[:200] == nearest[0])
    return f"the text to replace is not there; line {number} is like its first line: {nearest[0]!r}"
