"""Characters that look like YAML's own and are not, as other keyboards and word processors write them.

Only asked when a file is not YAML. YAML takes such a character for part of a text and complains later, often on the
next line, so the line of the complaint and a few before it are searched, the nearest first.
"""

import re
from collections.abc import Iterator

from .problems import Problem
from .yaml_positions import BREAK, place_at

LONGEST = 1000
"""Characters of a line that are searched: the patterns take time that grows with the square of its length."""
LINES_BACK = 3
"""Lines with text on them, before the one that YAML complains about."""
_SPACE = r"[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]"
_NAMES = {"\u00a0": "a non-breaking space", "\u3000": "a full-width space"}
_KEY = r"""["']?[A-Za-z_][\w-]{0,60}["']?"""
_ITEM = r"[ ]*(?:-[ ]+)*"
_COLON = r"[：﹕∶︰꞉]"
_DOUBLE, _SINGLE = r"[“”„‟＂«»]", r"[‘’‚‛＇]"
_QUOTED = re.compile(r""""(?:[^"\\]|\\.)*"|'[^']*'""")
_BEFORE = (
    # a pattern whose group is the character, what it is not, what would be right
    (re.compile(rf"[ ]*({_SPACE})\s*\S"), "a space", "indent with spaces"),
    (re.compile(rf"{_ITEM}{_KEY}\s*({_COLON})"), "`:`", "write `key: value`"),
    (re.compile(rf"{_ITEM}{_KEY}:[ ]*({_SPACE})"), "a space", "write `key: value`"),
    (re.compile(rf"[ ]*([–—－‐−﹣])\s*{_KEY}\s*(?::|{_COLON})"), "`-`", "begin an item with `- `"),
)
_HERE = (
    (re.compile(rf"{_ITEM}{_KEY}:\s+({_DOUBLE})"), '`"`', "use straight quotes"),
    (re.compile(rf"{_ITEM}{_KEY}:\s+({_SINGLE})"), "`'`", "use straight quotes"),
    (re.compile(r"[^#]*[{\[][^}\]]*?([，、﹐])"), "`,`", "separate entries with `, `"),
    (re.compile(rf"[^#]*[{{\[,]\s*{_KEY}\s*({_COLON})"), "`:`", "write `key: value`"),
    (re.compile(rf"(?:{_ITEM}|[ ]*{_KEY}:\s+)([｛﹛])"), "`{`", "begin a mapping with `{`"),
    (re.compile(rf"(?:{_ITEM}|[ ]*{_KEY}:\s+)([［【])"), "`[`", "begin a list with `[`"),
    (re.compile(r"[^#]*\{[^}]*([｝﹜])"), "`}`", "end a mapping with `}`"),
    (re.compile(r"[^#]*\[[^\]]*([］】])"), "`]`", "end a list with `]`"),
)
"""Looked for only on the line of the complaint, because elsewhere they can be part of a text."""
_UNCLOSED = (
    (re.compile(rf'{_ITEM}{_KEY}:\s+"[^"]*({_DOUBLE})\s*$'), '`"`', "close the quotes with a straight one"),
    (re.compile(rf"{_ITEM}{_KEY}:\s+'[^']*({_SINGLE})\s*$"), "`'`", "close the quotes with a straight one"),
)
"""Looked for on every line before the complaint: quotes that are not closed swallow lines."""


def look_alike(text: str, index: int, file: str) -> Problem | None:
    """The character that is to blame for a complaint about `text[index]`, if there is one."""
    lines = list(_lines_back(text, index))
    found = _first(lines[:1], _HERE) or _first(lines[: LINES_BACK + 1], _BEFORE) or _first(lines, _UNCLOSED)
    if found is None:
        return None
    at, line, meant, hint = found
    character = text[at]
    shown = f"`{character}`"
    if character.isspace():
        shown = f"{_NAMES.get(character, 'this white space')} (U+{ord(character):04X})"
    return Problem(place_at(text, at, file), f"{shown} is not {meant}", hint, source=line)


def _lines_back(text: str, index: int) -> Iterator[tuple[int, str]]:
    """The lines with text, each with where it begins: that of a character, and those before it."""
    end = BREAK.search(text, index)
    starts = [0, *(one.end() for one in BREAK.finditer(text, 0, index))]
    until = end.start() if end else len(text)
    for start in reversed(starts):
        line = BREAK.split(text[start:until], maxsplit=1)[0]
        until = start
        if line.strip():
            yield start, line


def _first(
    lines: list[tuple[int, str]], patterns: tuple[tuple[re.Pattern[str], str, str], ...]
) -> tuple[int, str, str, str] | None:
    for start, line in lines:
        for pattern, meant, hint in patterns:
            searched = line[:LONGEST] if patterns is _UNCLOSED else _QUOTED.sub(_blotted, line[:LONGEST])
            if found := pattern.match(searched):
                return start + found.start(1), line, meant, hint
    return None


def _blotted(quoted: re.Match[str]) -> str:
    """A text in quotes without what is in it: that is not YAML's."""
    return quoted[0][0] + "x" * (len(quoted[0]) - 2) + quoted[0][-1]
