"""How two states of a board differ, and the differences as people read them."""

import re
from difflib import unified_diff
from typing import NamedTuple

from .contents import Files

MAX_LINES = 60
MAX_CHARS = 6_000
MAX_COMPARED = 1_000
"""Lines of each text that are compared: comparing takes time that grows faster than the texts."""
CONTEXT = 3
_HUNK = re.compile(r"@@ -(\d+)(.*?) \+(\d+)(.*)")


class Change(NamedTuple):
    path: str
    what: str
    """`changed`, `deleted` or `created`."""


def changes(before: Files, now: Files) -> list[Change]:
    """Every file that differs, by path."""
    differing = sorted(path for path in before.keys() | now.keys() if before.get(path) != now.get(path))
    return [Change(path, _what(path, before, now)) for path in differing]


def _what(path: str, before: Files, now: Files) -> str:
    if path not in before:
        return "created"
    return "changed" if path in now else "deleted"


def unified(path: str, before: str, after: str) -> str:
    """A bounded unified diff."""
    old, new = before.splitlines(), after.splitlines()
    same = 0
    while same < min(len(old), len(new)) and old[same] == new[same]:
        same += 1
    skipped = max(0, same - CONTEXT)
    old, new = old[skipped:], new[skipped:]
    while len(old) > CONTEXT and len(new) > CONTEXT and old[-CONTEXT - 1 :] == new[-CONTEXT - 1 :]:
        old.pop()
        new.pop()
    compared = unified_diff(old[:MAX_COMPARED], new[:MAX_COMPARED], path, path, n=CONTEXT, lineterm="")
    lines = [_moved(line, skipped) if line.startswith("@@") else line for line in compared]
    if len(lines) > MAX_LINES:
        lines = [*lines[: MAX_LINES - 1], f"… and {len(lines) - MAX_LINES + 1} more lines"]
    whole = "\n".join(lines)
    return whole if len(whole) <= MAX_CHARS else f"{whole[: MAX_CHARS - 1]}…"


def _moved(hunk: str, lines: int) -> str:
    """The first line of a hunk, for texts whose first lines were left out."""
    return _HUNK.sub(lambda found: f"@@ -{int(found[1]) + lines}{found[2]} +{int(found[3]) + lines}{found[4]}", hunk)
