"""Agents' text inside a report: readable Markdown that cannot pass for a section of the report, or swallow one.

- Headings become at least third level; the sections of a report are second level. Underlined headings lose their line.
- HTML is shown, not rendered: an open comment would hide everything behind it. So are images, which a reader's program
  would fetch.
- A code fence at the beginning of a line that is left open is closed. Others, inside lists and quotations, are shown:
  in which line such a fence ends depends on more than the fence.
"""

import re
from collections.abc import Sequence

from ripstop.visible_text import visible, visible_line

LOWEST = 3
"""The level of the highest heading in prose."""
MAX_CELL = 120
"""Characters of a table's cell."""
_HEADING = re.compile(r"^((?:\s|>|[-*+]\s|\d{1,9}[.)]\s)*)(#{1,6})(?=\s|$)")
_UNDERLINE = re.compile(r"^(?:\s|>)*(=+|-+)\s*$")
_FENCE = re.compile(r"^(`{3,}|~{3,})([^`]*|(?<=~).*)$")
_INNER_FENCE = re.compile(r"^((?:\s|>|[-*+]\s|\d{1,9}[.)]\s)*)(?=```|~~~)")
_TAG = re.compile(r"<(?=[A-Za-z/!?])")


def embedded(text: str) -> str:
    """The text as it goes into a report."""
    lines: list[str] = []
    fence = ""
    for line in visible(text).strip().split("\n"):
        if fence:
            lines.append(line)
            if re.fullmatch(rf" {{0,3}}{fence}{fence[0]}*\s*", line):
                fence = ""
            continue
        if found := _FENCE.match(line):
            fence = found[1]
            lines.append(line)
            continue
        if _UNDERLINE.match(line) and lines and lines[-1].strip():
            lines.append("")
        shown = _INNER_FENCE.sub(r"\1\\", _HEADING.sub(_lowered, line))
        lines.append(_TAG.sub("&lt;", shown.replace("![", "\\![")))
    if fence:
        lines.append(fence)
    return "\n".join(lines)


def _lowered(found: re.Match[str]) -> str:
    return found[1] + "#" * min(6, max(LOWEST, len(found[2]) + LOWEST - 1))


def cell(text: object) -> str:
    """A text in a cell of a table, or in a line: one line, without Markdown's own signs."""
    plain = visible_line(" ".join(str(text).split()))
    short = plain if len(plain) <= MAX_CELL else f"{plain[: MAX_CELL - 1]}…"
    return re.sub(r"([\\|`*_\[\]<>#])", r"\\\1", short)


def code(text: str) -> str:
    """A path or an id, in the type of code."""
    plain = visible_line(text).replace("|", "\\|")
    return f"`` {plain} ``" if "`" in plain else f"`{plain}`"


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in (head, tuple("---" for _ in head), *rows)]
    return "\n".join(lines)
