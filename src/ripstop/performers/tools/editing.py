"""Replacing a piece of a text that occurs in it exactly once. Pure.

The piece is looked for as it is; if it ends with a line break it must also begin at the start of a line.
If it is not there, it is looked for once more with the ends of lines (spaces, CR, the last line break) left out
of account: whole lines then. Nothing else is guessed.

Text and piece come from agents, so the work is linear in their length. All searching is left to `str.find`, which is
linear for long pieces; it is called at most once per piece's length of text, because each call costs a piece's length.
"""

import difflib
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate, islice

NEAREST = 0.5
"""How alike a line must be to be named as the one that was meant."""
MAX_LINES = 1000
"""Different lines among which the nearest is looked for."""
MAX_SHOWN = 200
"""Characters of a line that are compared and shown."""
MAX_COUNTED = 1000
"""Occurrences of a piece that are counted; more are as wrong as these."""
MAX_PLACEMENTS = 200
"""Places at which a replacement is taken for one that was made."""
MAX_COMPARED = 10_000_000
"""Characters that are compared at these places in all: a long text has fewer of them."""

Span = tuple[int, int]


class NotOnce(Exception):
    """The piece does not occur in the text exactly once; says what is there instead."""


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

    It is if the old piece, put back in the place of the new one, would be there exactly once, as it is or as whole
    lines (with any line ends); unless it is there now, somewhere else, so that the edit could just
    as well be still to come. An edit that only adds to a piece
    counts as made when the result is there, and one that removes a piece when the piece is gone.
    """
    pending = occurrences(text, search)
    if not replace:
        return not pending
    doubtful = False
    most = min(MAX_PLACEMENTS, 2 + MAX_COMPARED // (len(text) + len(search)))
    placements = list(islice(_placements(text, replace), most + 1))
    for start, end in placements[:most]:
        before = text[:start] + search + text[end:]
        there = [(start, start + len(search))]
        if occurrences(before, search) == there or _by_lines(before, search) == there:
            if len(pending) != 1 or (start <= pending[0][0] and pending[0][1] <= end):
                return True
            doubtful = True
    if doubtful:
        raise Undecidable("both the text to replace and its replacement are there")
    if len(placements) > most:
        raise Undecidable(f"the replacement is there more than {most} times")
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
    """Where the piece is, at most `MAX_COUNTED` times; pieces that overlap count once."""
    return _exact(text, piece) or _by_lines(text, piece)


def _exact(text: str, piece: str) -> list[Span]:
    if not piece.endswith("\n"):
        return [(start, start + len(piece)) for start in _found(text, piece)]
    # found together with the line break before it, as a piece of "\n" + text
    return [(start, start + len(piece)) for start in _found("\n" + text, "\n" + piece, overlap=1)]


def _by_lines(text: str, piece: str) -> list[Span]:
    wanted = [line.rstrip() for line in piece.removesuffix("\n").split("\n")]
    if not any(wanted):
        return []
    lines = text.split("\n")
    plain = [line.rstrip() for line in lines]
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    plain_starts = [0, *accumulate(len(line) + 1 for line in plain)]
    found = []
    for position in _found("\n" + "\n".join(plain) + "\n", "\n" + "\n".join(wanted) + "\n", overlap=1):
        number = bisect_right(plain_starts, position) - 1
        after = starts[number + len(wanted)]
        found.append((starts[number], min(after if piece.endswith("\n") else after - 1, len(text))))
    return found


def _found(text: str, piece: str, overlap: int = 0) -> Iterator[int]:
    """Where the piece begins; two may share `overlap` characters."""
    position = text.find(piece)
    for _ in range(MAX_COUNTED):
        if position < 0:
            return
        yield position
        position = text.find(piece, position + len(piece) - overlap)


def _why(text: str, search: str, count: int) -> str:
    if count:
        times = f"{count} times" if count < MAX_COUNTED else f"at least {count} times"
        return f"the text to replace is there {times}; give more of the lines around it, so that it is there once"
    if part := _part_of_a_line(text, search):
        return part
    line = next((line.strip() for line in search.split("\n") if line.strip()), "")
    lines: dict[str, int] = {}
    for number, candidate in enumerate(text.split("\n"), 1):
        lines.setdefault(candidate.strip()[:MAX_SHOWN], number)
        if len(lines) == MAX_LINES:
            break
    nearest = difflib.get_close_matches(line[:MAX_SHOWN], lines, 1, NEAREST)
    if not nearest:
        return "the text to replace is not there, nor any line like its first"
    number = lines[nearest[0]]
    return f"the text to replace is not there; line {number} is like its first line: {nearest[0]!r}"


def _part_of_a_line(text: str, search: str) -> str:
    """What is wrong if a line of the piece is not a line of the text, but a part of one; empty if that is not it."""
    if not search.endswith("\n"):
        return ""
    whole = {line.strip() for line in text.split("\n")}
    missing = next((line.strip() for line in search.split("\n") if line.strip() not in whole and line.strip()), "")
    position = text.find(missing) if missing else -1
    if position < 0:
        return ""
    number = text.count("\n", 0, position) + 1
    line = text.split("\n", number)[number - 1].strip()
    return (
        f"the text to replace is not there: it is compared by whole lines, and {missing[:MAX_SHOWN]!r} is only a part "
        f"of line {number}: {line[:MAX_SHOWN]!r}; give whole lines"
    )
