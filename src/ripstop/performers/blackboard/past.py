"""What a run is told of a board's history when it begins, or when a person has edited the file."""

import re
from typing import Any

from ripstop.runtime.performers import Refused

HEADER = "# Project History\n"
ITERATION = r"^## Iteration (\d{1,9})\b"
"""How the entry of an iteration begins, unless a style says otherwise."""
TAIL = 200_000
"""Characters."""
MAX_DIGITS = 9
_ENTRY = re.compile(r"^## ", re.MULTILINE)


def past_of(text: str, pattern: str, tail: int) -> dict[str, Any]:
    """The end of the history, how many entries come before it, and the highest iteration in all of it."""
    try:
        numbers = [found[1] for found in re.finditer(pattern, text, re.MULTILINE)]
    except (re.error, IndexError) as error:
        raise Refused(f"{pattern!r} cannot be used to find iterations: {error}.", "ours") from error
    known = [int(number) for number in numbers if number and number.isdecimal() and len(number) <= MAX_DIGITS]
    start = max(0, len(text) - max(0, tail))
    if start:
        entry = _ENTRY.search(text, start)
        start = entry.start() if entry else start
    return {
        "history": text[start:],
        "left_out": sum(found.start() < start for found in _ENTRY.finditer(text)),
        "iteration": max(known, default=0),
    }


def appended(before: bytes | None, entry: str) -> bytes:
    """The history with an entry behind it."""
    old = HEADER.encode() if before is None else before
    if not entry:
        return old
    return old + (b"" if not old or old.endswith(b"\n") else b"\n") + entry.encode()
