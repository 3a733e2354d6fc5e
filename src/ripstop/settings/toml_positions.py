"""The line of a key in a TOML file, which the standard library's reader does not report.

A line that only looks like a key, inside a text of several lines, may be taken for one; it is a hint for people.
"""

import re
import tomllib
from collections.abc import Iterator
from typing import Any

Keys = tuple[str, ...]

_PART = r"""(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')"""
_NAME = rf"{_PART}(?:\s*\.\s*{_PART})*"
_HEADER = re.compile(rf"\s*\[\[?\s*({_NAME})\s*\]")
_KEY = re.compile(rf"\s*({_NAME})\s*=")


def line_of(text: str, keys: Keys) -> int | None:
    """The line of a key, or of the innermost thing around it that has a line of its own."""
    found: dict[Keys, int] = {}
    for number, place in _places(text):
        found.setdefault(place, number)
    around = (keys[:length] for length in range(len(keys), 0, -1))
    return next((found[place] for place in around if place in found), None)


def _places(text: str) -> Iterator[tuple[int, Keys]]:
    table: Keys = ()
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            table = _keys(header[1])
            yield number, table
        elif key := _KEY.match(line):
            yield number, table + _keys(key[1])


def _keys(name: str) -> Keys:
    """A dotted name, taken apart as TOML does it."""
    try:
        value: Any = tomllib.loads(f"{name} = 0")
    except tomllib.TOMLDecodeError:
        return ()
    keys = []
    while isinstance(value, dict):
        ((key, value),) = value.items()
        keys.append(key)
    return tuple(keys)
