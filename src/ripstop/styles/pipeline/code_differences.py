"""The difference between what code was and what it is, as a person reads it: file by file, bounded, nothing hidden.

What is left out is said where it is left out. All of it is in a file beside the project's records.
"""

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from ripstop.text.differences import Hunk, difference
from ripstop.text.plurals import count
from ripstop.text.visible_text import visible, visible_line
from ripstop.tools.snapshots.run_files import DifferingFile

MAX_SHOWN = 60_000
"""Characters that a person is shown."""
MAX_LINES = 400
"""Lines of one file that a person is shown."""
MAX_NAMED = 200
"""Files that are named although there is no room for their lines."""
NO_NEWLINE = "\\ No newline at the end of the file"
NOTHING = "No file is different from what it was before this run: nothing was written."
_TICKS = re.compile("`{3,}")


class ShownDifference(Struct, frozen=True):
    text: str
    """Markdown, bounded."""
    whole: str
    """All of it, as `diff -u` writes it."""


def difference_of(files: Sequence[DifferingFile], problem: str, where: str) -> ShownDifference:
    """Args:
    problem: Why there is nothing to compare with.
    where: The file with all of it.
    """
    whole: list[str] = []
    shown: list[str] = []
    left_out: list[str] = []
    room = MAX_SHOWN
    for one in files:
        what, lines = _what(one), list(_lines(one))
        whole += [f"--- {visible_line(one.path)} ({what})", *lines]
        section = _section(one.path, what, lines)
        room -= len(section)
        if room >= 0:
            shown.append(section)
        else:
            left_out.append(f"- {visible_line(one.path)} ({what})")
    parts = ["# The code, against what was there before this run", _summary(files) if files else NOTHING]
    if problem:
        parts.append(f"There is nothing to compare with, so whole files are shown: {problem}")
    parts += shown
    if left_out:
        more = [f"- and {len(left_out) - MAX_NAMED:,} more"] if len(left_out) > MAX_NAMED else []
        parts += ["## Not shown here", "\n".join([*left_out[:MAX_NAMED], *more])]
    if files:
        parts.append(f"All of it is in {where}.")
    return ShownDifference("\n\n".join(parts) + "\n", "\n".join(whole) + "\n")


def _summary(files: Sequence[DifferingFile]) -> str:
    new = sum(not one.was_there for one in files)
    gone = sum(not one.is_there for one in files)
    return f"{count(len(files), 'file')}: {new} new, {len(files) - new - gone} changed, {gone} removed."


def _section(path: str, what: str, lines: list[str]) -> str:
    title = f"## {visible_line(path)} ({what})"
    if not lines:
        return title
    body = "\n".join(lines[:MAX_LINES])
    mark = "`" * max((len(found) + 1 for found in _TICKS.findall(body)), default=3)
    rest = (
        f"\n\n({len(lines) - MAX_LINES:,} more lines of this file are not shown here.)"
        if len(lines) > MAX_LINES
        else ""
    )
    return f"{title}\n\n{mark}diff\n{body}\n{mark}{rest}"


def _what(one: DifferingFile) -> str:
    if not one.is_there:
        return "removed"
    size = "a link, or too large to be compared" if one.now is None else f"{len(one.now):,} bytes"
    if not one.was_there:
        return f"new, {size}"
    return f"changed, {size}" if one.before is not None else f"changed, {size}; what it was is not known"


def _lines(one: DifferingFile) -> Iterator[str]:
    """Its lines with a sign before each; none for a file that is not text, or whose content is not known."""
    if (one.was_there and one.before is None and not one.is_there) or (one.is_there and one.now is None):
        return
    old, new = _text(one.before), _text(one.now)
    if old is None or new is None:
        yield "(not text)"
        return
    for hunk in difference(old, new):
        yield from _hunk(hunk)


def _text(data: bytes | None) -> str | None:
    if data is None:
        return ""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _hunk(hunk: Hunk) -> Iterator[str]:
    old = [line.old for line in hunk.lines if line.old]
    new = [line.new for line in hunk.lines if line.new]
    yield f"@@ -{min(old, default=0)},{len(old)} +{min(new, default=0)},{len(new)} @@"
    signs = {"same": " ", "removed": "-", "added": "+"}
    for line in hunk.lines:
        yield signs[line.kind] + visible(line.text.removesuffix("\n"))
        if not line.text.endswith("\n"):
            yield NO_NEWLINE
