"""Whether a line of a reply names a file, and which.

Agents write a path bare, in backticks, bold, as a heading, in a list, after `File:`, or with a colon behind it.
A line of prose is never a path: a path has no blanks (unless it stands in backticks), and either a file name with
a suffix, or a folder before the name, or it is one of the few names that have neither. Paths that lead
somewhere forbidden are paths as well: whoever writes files refuses them and says so.
"""

import re
from typing import NamedTuple

_LABEL = re.compile(
    r"(\*\*)?(?:file ?name|file ?path|file|path|文件名|文件路径|文件|路径)[ \t]*[:：](?(1)\*\*)\s*", re.IGNORECASE
)
_HEADING = re.compile(r"\A#{1,6}\s*(?=\S)")
_BULLET = re.compile(r"\A(?:[-*+]|\d{1,3}[.)])\s+")
_WRAPPED = ("**", "__", "`")
_WITH_SUFFIX = re.compile(r"[^\s<>|*?\"'`;={}$&,，。；！？、“”《》：]*\.(?=[0-9_+-]*[A-Za-z])[A-Za-z0-9_+-]{1,16}")
_IN_FOLDER = re.compile(r"(?:[\w.@+~-]*/)+\.?[\w@+~-]+")
_PLAIN_NAMES = frozenset(
    {"Makefile", "Dockerfile", "Procfile", "Gemfile", "Rakefile", "LICENSE", "README", "CHANGELOG"}
)
MAX_LENGTH = 250


class Named(NamedTuple):
    path: str
    marked: bool
    """The line says that this is a path; it is not just a word that could be one."""


def named_path(line: str) -> Named | None:
    text = line.strip()
    if not text or len(text) > MAX_LENGTH:
        return None
    text, marked, quoted = _unwrapped(text)
    candidate = re.sub(r"\s", "_", text) if quoted else text
    if "://" in text or not text.isprintable() or not _is_path(candidate):
        return None
    return Named(text, marked)


def _is_path(text: str) -> bool:
    return bool(text in _PLAIN_NAMES or _WITH_SUFFIX.fullmatch(text) or _IN_FOLDER.fullmatch(text))


def _unwrapped(text: str) -> tuple[str, bool, bool]:
    """What stands inside the decorations, whether one of them marks it as a path, and whether it is in backticks."""
    marked = quoted = False
    before = ""
    while text != before:
        before = text
        text = text.removesuffix(":").removesuffix("：").strip()
        text = _HEADING.sub("", _BULLET.sub("", text)) if not quoted else text
        if label := _LABEL.match(text):
            text, marked = text[label.end() :], True
        for mark in _WRAPPED:
            inner = text[len(mark) : -len(mark)]
            if len(text) > 2 * len(mark) and text.startswith(mark) and text.endswith(mark) and mark not in inner:
                text, marked, quoted = inner.strip(), True, quoted or mark == "`"
    return text, marked, quoted
