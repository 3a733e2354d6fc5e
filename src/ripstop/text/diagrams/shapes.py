"""How large things are drawn: fonts, and the sizes of states and labels that follow from their texts."""

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from ..visible_text import visible_line
from .diagram import Edge, Node, turns_in_words

# How wide a text is, and how it is cut into lines, without a font at hand.
#
# Widths are estimates on the wide side, in ems: a box may end up a little too large, never too small for
# ordinary text.


WIDE, EMOJI, MONOSPACED = 1.0, 1.35, 0.61
MAX_MEASURED = 1000
"""Characters that are measured; no label shows more."""
_NARROW = frozenset("ijl.,:;|!'`()[]{}/\\ftrI ")
_BROAD = frozenset("mwMW@%&")
_CLAUSE = re.compile(r" (?=(?:AND|OR)\b)")


def clean(text: str) -> str:
    """On one line; what XML or a terminal cannot take is written out."""
    return visible_line(" ".join(text.split()))


@lru_cache(maxsize=4096)
def _em(char: str, monospaced: bool) -> float:
    if ord(char) >= 0x1F000:
        return EMOJI
    if unicodedata.combining(char) or char in "\u200b\u200c\u200d\ufe0e\ufe0f":
        return 0.0
    if unicodedata.east_asian_width(char) in "WF":
        return WIDE
    if ord(char) >= 0x2000:
        return WIDE
    if monospaced:
        return MONOSPACED
    if char in _NARROW:
        return 0.42
    if char in _BROAD:
        return 0.98
    return 0.74 if char.isupper() or ord(char) >= 0x250 else 0.62


def width(text: str, size: float, monospaced: bool = False) -> float:
    return size * sum(_em(char, monospaced) for char in text)


def wrap(text: str, size: float, most: float, lines: int, monospaced: bool = False) -> tuple[str, ...]:
    """`text` on at most `lines` lines of about `most` points, as even as can be; the rest is cut with …"""
    text = clean(text[:MAX_MEASURED])[:MAX_MEASURED]
    found = _fill(text, size, most, monospaced)
    if len(found) > lines:
        last = _cut(" ".join(found[lines - 1 :]), size, most, monospaced)
        return (*found[: lines - 1], last)
    narrower = most
    while len(found) > 1 and narrower > most / 2:
        narrower -= size
        tighter = _fill(text, size, narrower, monospaced)
        if len(tighter) > len(found) or _clauses_broken(tighter) > _clauses_broken(found):
            break
        found = tighter
    return tuple(found)


def _clauses_broken(lines: list[str]) -> int:
    return sum(not line.startswith(("AND", "OR")) for line in lines[1:])


def _fill(text: str, size: float, most: float, monospaced: bool) -> list[str]:
    """Break before AND and OR where that is enough, else between words, else anywhere."""
    lines: list[str] = []
    for clause in _CLAUSE.split(text):
        if lines and width(f"{lines[-1]} {clause}", size, monospaced) <= most:
            lines[-1] = f"{lines[-1]} {clause}"
        else:
            lines.extend(_fill_words(clause, size, most, monospaced))
    return lines


def _fill_words(text: str, size: float, most: float, monospaced: bool) -> list[str]:
    lines = [""]
    for word in text.split(" "):
        joined = f"{lines[-1]} {word}" if lines[-1] else word
        if width(joined, size, monospaced) <= most:
            lines[-1] = joined
            continue
        if not lines[-1]:
            lines.pop()
        lines.extend(_pieces(word, size, most, monospaced))
    return [line for line in lines if line]


def _pieces(word: str, size: float, most: float, monospaced: bool) -> list[str]:
    """A word that may be too long for a line (Chinese has no spaces), broken after `_`, or anywhere."""
    pieces, line = [], ""
    for part in re.split(r"(?<=_)", word) if width(word, size, monospaced) > most else [word]:
        if line and width(line + part, size, monospaced) > most:
            pieces.append(line)
            line = ""
        for char in part:
            if line and width(line + char, size, monospaced) > most:
                pieces.append(line)
                line = ""
            line += char
    return [*pieces, line]


def cut_to(text: str, size: float, most: float) -> str:
    """A text on one line, cut if it is wider than `most`."""
    return text if width(text[:MAX_MEASURED], size) <= most else _cut(text[:MAX_MEASURED], size, most, False)


def _cut(text: str, size: float, most: float, monospaced: bool) -> str:
    room = most - width("…", size, monospaced)
    for at, char in enumerate(text):
        room -= width(char, size, monospaced)
        if room < 0:
            return f"{text[:at].rstrip()}…"
    return f"{text.rstrip()}…"


NAME, AGENT, CONDITION, END = 14.0, 12.0, 12.0, 13.0
"""Sizes of letters."""
NAME_LINE, AGENT_LINE, CONDITION_LINE = 18.0, 16.0, 16.0
MOST_NAME, MOST_CONDITION = 190.0, 200.0
LINES_OF_NAME, LINES_OF_CONDITION = 3, 3
LOOP = 26.0
"""How far a loop reaches out, and the least height that it needs."""
PORT = 18.0
"""Between two edges at the same border."""
START_MARK = 34.0
"""Room for the mark of the start, at the left of its state."""
LEAST_WIDTH = 84.0


@dataclass(frozen=True, slots=True)
class Size:
    lines: tuple[str, ...]
    more: str
    """The line below the name: who, and how often."""
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Label:
    """The condition of an edge, below the numbers of the turns that led along it."""

    turns: str
    lines: tuple[str, ...]
    width: float
    height: float


def size_of(node: Node) -> Size:
    if node.end:
        return Size((node.name,), "", max(72.0, round(width(node.name, END) + 36, 1)), 34.0)
    lines = wrap(node.name, NAME, MOST_NAME, LINES_OF_NAME) or (" ",)
    often = f" · {node.turns}×" if node.turns else ""
    (agent,) = wrap(node.agent, AGENT, MOST_NAME - 50, 1) or ("",)
    more = clean(f"{agent}{often}")
    widest = max(*(width(line, NAME) for line in lines), width(more, AGENT))
    height = len(lines) * NAME_LINE + (AGENT_LINE if more else 0.0) + 18
    return Size(lines, more, round(max(LEAST_WIDTH, widest + 28), 1), height)


def label_of(edge: Edge) -> Label:
    lines = wrap(edge.condition, CONDITION, MOST_CONDITION, LINES_OF_CONDITION, monospaced=True)
    turns = turns_in_words(edge.turns)
    if not lines and not turns:
        return Label("", (), 0.0, 0.0)
    widest = max(width(turns, CONDITION), *(width(line, CONDITION, monospaced=True) for line in lines), 0.0)
    height = (len(lines) + bool(turns)) * CONDITION_LINE + 6
    return Label(turns, lines, round(widest + 16, 1), height)
