"""Which lines of a text are fenced code. A fence that is never closed is not a fence."""

import re
from collections.abc import Sequence

_FENCE = re.compile(r"[ \t]*+(`{3,}+(?!.*`)|~{3,}+)(.*)", re.DOTALL)
TEXT, FENCED, LOOSE = 0, 1, 2
"""What a line is: ordinary text, part of fenced code (its fences included), a fence that is never closed."""


def is_fence(line: str) -> bool:
    return _FENCE.match(line) is not None


def fences(lines: Sequence[str]) -> bytearray:
    """What each line is. One pass from each side, so that any text is read in linear time."""
    marks = bytearray(len(lines))
    found = [
        (n, match[1][0], len(match[1]), not match[2].strip())
        for n, line in enumerate(lines)
        if ("```" in line or "~~~" in line) and (match := _FENCE.match(line))
    ]
    longest = {"`": 0, "~": 0}
    ahead = []  # for each fence, how long the longest one is that could close it
    for _, kind, length, bare in reversed(found):
        ahead.append(longest[kind])
        if bare:
            longest[kind] = max(longest[kind], length)
    opening: tuple[int, str, int] | None = None
    for (number, kind, length, bare), most in zip(found, reversed(ahead), strict=True):
        if opening is None:
            if most >= length:
                opening = (number, kind, length)
            else:
                marks[number] = LOOSE
        elif bare and kind == opening[1] and length >= opening[2]:
            marks[opening[0] : number + 1] = bytes([FENCED]) * (number + 1 - opening[0])
            opening = None
    return marks
