"""The difference between two texts, for people: which lines changed and, within them, which words.

- Lines that are alike are paired, and a pair is compared word by word; Chinese, Japanese and Korean by character.
- `apply_difference` makes the new text of the old one and the difference, whatever the texts are.
- The work is bounded: first the lines that each text has once are matched, in time that grows little faster than the
  texts. Only what is left between two of them is compared closely, and not more of it than `EFFORT`. Beyond it, lines
  count as changed that were only moved or repeated; the difference is longer then, and still right.
"""

import re
from bisect import bisect_left
from collections.abc import Hashable, Iterator, Sequence
from typing import Literal

from msgspec import Struct

CONTEXT = 3
"""Lines before and after a change that are shown with it."""
EFFORT = 2_000_000
"""Pairs of lines or words that are compared for one difference, at most."""
LONGEST_LINE = 20_000
"""Characters of a line that is compared word by word."""
ALIKE = 0.45
"""The share of two lines that must be the same if one is to be the other, changed."""
REACH = 5
"""Added lines among which the one is sought that a removed line became."""
SHORT = 3
"""Characters that are the same by chance between two changed words, and are easier to read as changed, too."""

_WORD = re.compile(
    "[\u1100-\u11ff\u2e80-\u303f\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u9fff\ua960-\ua97f\uac00-\ud7ff"
    "\uf900-\ufaff\uff00-\uffef\U0001b000-\U0001b16f\U00020000-\U0003ffff]|\\w+|\\s+|.",
    re.DOTALL,
)
"""A character of a script without spaces between words, a word, space, or any other character."""
_LINE = re.compile("[^\n]*\n|[^\n]+")

Kind = Literal["same", "removed", "added"]


class Segment(Struct, frozen=True, array_like=True):
    """A part of a line."""

    kind: Kind
    text: str


class DifferenceLine(Struct, frozen=True):
    """A line of the old text, of the new one, or of both."""

    kind: Kind
    old: int
    """Its number in the old text, from 1; 0 for a line that was added."""
    new: int
    """Its number in the new text; 0 for a line that was removed."""
    segments: tuple[Segment, ...]
    """Its parts, with the newline at its end. A removed line has no added parts, and an added one no removed parts."""

    @property
    def text(self) -> str:
        return "".join(segment.text for segment in self.segments)


class Hunk(Struct, frozen=True):
    """Lines that changed, with a few around them. What is between two hunks is the same in both texts."""

    lines: tuple[DifferenceLine, ...]


def difference(old: str, new: str) -> list[Hunk]:
    """The changes from one text to another; empty if they are the same."""
    return list(_hunks(_lines(old), _lines(new)))


def apply_difference(old: str, hunks: Sequence[Hunk]) -> str:
    """The new text. Raises `ValueError` if the difference was not made from this old text."""
    lines, taken = _lines(old), 0
    new: list[str] = []
    for line in (line for hunk in hunks for line in hunk.lines):
        if line.kind == "added":
            new.append(line.text)
            continue
        if not taken < line.old <= len(lines) or lines[line.old - 1] != line.text:
            raise ValueError(f"line {line.old} is not in the old text")
        new += lines[taken : line.old - 1]
        taken = line.old
        if line.kind == "same":
            new.append(line.text)
    return "".join([*new, *lines[taken:]])


def _lines(text: str) -> list[str]:
    return _LINE.findall(text)


def _hunks(old: list[str], new: list[str]) -> Iterator[Hunk]:
    effort = _Effort()
    lines: list[DifferenceLine] = []
    blocks = _blocks(old, new, effort)
    for index, (same, (old_from, old_to), (new_from, new_to)) in enumerate(blocks):
        if not same:
            lines += _changed(old[old_from:old_to], new[new_from:new_to], old_from, new_from, effort)
            continue
        after = CONTEXT if index else 0  # lines that are shown after the change before it
        ahead = CONTEXT if index < len(blocks) - 1 else 0
        length, offset = old_to - old_from, new_from - old_from
        if length > after + ahead:
            lines += _same(old, range(old_from, old_from + after), offset)
            if lines:
                yield Hunk(tuple(lines))
            lines = _same(old, range(old_to - ahead, old_to), offset)
        else:
            lines += _same(old, range(old_from, old_to), offset)
    if any(line.kind != "same" for line in lines):
        yield Hunk(tuple(lines))


def _same(old: list[str], places: range, offset: int) -> list[DifferenceLine]:
    return [DifferenceLine("same", at + 1, at + offset + 1, (Segment("same", old[at]),)) for at in places]


class _Effort:
    """What is left of the pairs that may be compared."""

    def __init__(self) -> None:
        self.left = EFFORT

    def allows(self, pairs: int) -> bool:
        allowed = pairs <= self.left
        self.left -= pairs if allowed else 0
        return allowed


# Sequences of lines, or of words


Span = tuple[int, int]
Block = tuple[bool, Span, Span]
"""Whether it is the same in both, and where it is in the old and in the new sequence."""


def _blocks(old: Sequence[Hashable], new: Sequence[Hashable], effort: _Effort) -> list[Block]:
    """Two sequences as blocks that are the same and blocks that are not, in order."""
    pairs = sorted(_matches(old, new, effort))
    blocks: list[Block] = []
    at, to = 0, 0
    for i, j in [*pairs, (len(old), len(new))]:
        if (i, j) != (at, to):
            blocks.append((False, (at, i), (to, j)))
        if (i, j) == (len(old), len(new)):
            break
        at, to = i + 1, j + 1
        if blocks and blocks[-1][0] and (i, j) == (blocks[-1][1][1], blocks[-1][2][1]):
            _, (old_from, _), (new_from, _) = blocks.pop()
            blocks.append((True, (old_from, at), (new_from, to)))
        else:
            blocks.append((True, (i, at), (j, to)))
    return blocks


def _matches(old: Sequence[Hashable], new: Sequence[Hashable], effort: _Effort) -> Iterator[tuple[int, int]]:
    """Places that are the same in both: a common subsequence, in any order."""
    open_spans: list[tuple[Span, Span]] = [((0, len(old)), (0, len(new)))]
    is_first = True
    while open_spans:
        (a, b), (c, d) = open_spans.pop()
        while a < b and c < d and old[a] == new[c]:
            yield a, c
            a, c = a + 1, c + 1
        while a < b and c < d and old[b - 1] == new[d - 1]:
            b, d = b - 1, d - 1
            yield b, d
        if a == b or c == d:
            continue
        # the whole is looked at in any case; spans in spans in spans could be as many as there are lines
        anchors = _anchors(old, new, (a, b), (c, d)) if is_first or effort.allows(b - a + d - c) else []
        is_first = False
        if anchors:
            for i, j in anchors:
                open_spans.append(((a, i), (c, j)))
                yield i, j
                a, c = i + 1, j + 1
            open_spans.append(((a, b), (c, d)))
        elif effort.allows((b - a) * (d - c)):
            yield from _longest(old, new, (a, b), (c, d))


def _anchors(old: Sequence[Hashable], new: Sequence[Hashable], in_old: Span, in_new: Span) -> list[tuple[int, int]]:
    """What both spans have exactly once, as far as it is in the same order: patience sorting."""
    once_in_old, once_in_new = _once(old, in_old), _once(new, in_new)
    pairs = [(i, once_in_new[one]) for one, i in once_in_old.items() if one in once_in_new]
    tops: list[int] = []
    piles: list[int] = []
    before: list[int] = []
    for index, (_, j) in enumerate(pairs):  # in the order of the old sequence
        pile = bisect_left(tops, j)
        tops[pile : pile + 1] = [j]
        piles[pile : pile + 1] = [index]
        before.append(piles[pile - 1] if pile else -1)
    chain: list[tuple[int, int]] = []
    at = piles[-1] if piles else -1
    while at >= 0:
        chain.append(pairs[at])
        at = before[at]
    return chain[::-1]


def _once(sequence: Sequence[Hashable], span: Span) -> dict[Hashable, int]:
    """What is in a span exactly once, and where."""
    places: dict[Hashable, int] = {}
    for index in range(*span):
        places[sequence[index]] = -1 if sequence[index] in places else index
    return {one: index for one, index in places.items() if index >= 0}


def _longest(old: Sequence[Hashable], new: Sequence[Hashable], in_old: Span, in_new: Span) -> Iterator[tuple[int, int]]:
    """The longest common subsequence of two short spans, by the table of all pairs."""
    (a, b), (c, d) = in_old, in_new
    width = d - c + 1
    table = [[0] * width]
    for i in range(b - 1, a - 1, -1):
        below, row, one = table[-1], [0] * width, old[i]
        for j in range(d - c - 1, -1, -1):
            row[j] = below[j + 1] + 1 if one == new[c + j] else max(below[j], row[j + 1])
        table.append(row)
    table.reverse()
    i, j = 0, 0
    while i < b - a and j < d - c:
        if old[a + i] == new[c + j]:
            yield a + i, c + j
            i, j = i + 1, j + 1
        elif table[i + 1][j] >= table[i][j + 1]:
            i += 1
        else:
            j += 1


# Within lines


def _changed(old: list[str], new: list[str], after_old: int, after_new: int, effort: _Effort) -> list[DifferenceLine]:
    """Lines that were replaced by others: each removed line before the line that it became."""
    found: list[DifferenceLine] = []
    i = j = 0
    for at, to, removed, added in [*_pairs(old, new, effort), (len(old), len(new), (), ())]:
        found += [_whole("removed", old[index], after_old + index + 1) for index in range(i, at)]
        found += [_whole("added", new[index], after_new + index + 1) for index in range(j, to)]
        if removed:
            found.append(DifferenceLine("removed", after_old + at + 1, 0, removed))
            found.append(DifferenceLine("added", 0, after_new + to + 1, added))
        i, j = at + 1, to + 1
    return found


def _whole(kind: Kind, text: str, number: int) -> DifferenceLine:
    old, new = (number, 0) if kind == "removed" else (0, number)
    return DifferenceLine(kind, old, new, (Segment(kind, text),))


Paired = tuple[int, int, tuple[Segment, ...], tuple[Segment, ...]]


def _pairs(old: list[str], new: list[str], effort: _Effort) -> Iterator[Paired]:
    """Lines that became others, in order: a removed line and the next added one that is like it."""
    to = 0
    for at, text in enumerate(old):
        for candidate in range(to, min(len(new), to + REACH)):
            found = _in_words(text, new[candidate], effort)
            if found:
                yield at, candidate, *found
                to = candidate + 1
                break


def _in_words(old: str, new: str, effort: _Effort) -> tuple[tuple[Segment, ...], tuple[Segment, ...]] | None:
    """Two lines, word by word; `None` if they are not alike, or too long to be compared."""
    if max(len(old), len(new)) > LONGEST_LINE or not effort.allows(len(old) + len(new)):
        return None
    old_words, new_words = _WORD.findall(old), _WORD.findall(new)
    blocks = _blocks(old_words, new_words, effort)
    common = sum(len("".join(old_words[slice(*span)]).strip()) for same, span, _ in blocks if same)
    if 2 * common < ALIKE * (len(old.strip()) + len(new.strip())) or not common:
        return None
    removed: list[Segment] = []
    added: list[Segment] = []
    for index, (same, in_old, in_new) in enumerate(blocks):
        gone, come = "".join(old_words[slice(*in_old)]), "".join(new_words[slice(*in_new)])
        by_chance = 0 < index < len(blocks) - 1 and len(gone) <= SHORT
        kept = same and not by_chance
        _append(removed, "same" if kept else "removed", gone)
        _append(added, "same" if kept else "added", come)
    return tuple(removed), tuple(added)


def _append(segments: list[Segment], kind: Kind, text: str) -> None:
    if segments and segments[-1].kind == kind:
        segments[-1] = Segment(kind, segments[-1].text + text)
    elif text:
        segments.append(Segment(kind, text))
