"""Key lines of a text: a line that begins with a key such as `Verdict:`, in the notation in which models write it.

- Case, the full-width colon, blanks and characters that nobody sees do not matter: `VERDICT : FAIL` is a verdict.
- Before the key there can be marks of an item, a heading or a quotation, a check box, symbols, emphasis and quotation
  marks: `- **Verdict:** FAIL`. They are not part of the value, nor is the emphasis around it. What is struck out is not
  read.
- A line in a quotation (`>`, backticks, quotation marks), or four columns to the right, has the words of somebody else
  or is an example, so it is told apart (`is_quoted`).
- What is in a block of code, a `<pre>` or an HTML comment is not said by the text; `shown_lines` leaves it out. Four
  columns behind an empty line are a block of code, as in Markdown, except in a list. A tag that is never closed is only
  mentioned (`<script> was added`); an open comment goes on to the end.
- A key without a value behind marks is a title, and no key line.
- Each line is read once per key, in time proportional to its length.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache

from msgspec import Struct

from ripstop.text.markdown import MAX_INDENT, TAB, fence_of, item_of, split_lines
from ripstop.text.visible_text import without_hidden

MAX_QUOTE = 200
_QUOTES = "`\"'“”„«»「」『』"
_SYMBOLS = "\u2190-\u21ff\u2300-\u23ff\u25a0-\u27bf\u2b00-\u2bff\ufe0f\U0001f000-\U0001faff"
_MARKS = (
    rf"(?P<marks>(?:[\s>{_SYMBOLS}]|[-*+•·–—](?=\s)|#{{1,6}}(?=\s)|\d{{1,9}}[.)、](?=\s)|\[[ xX]\](?=\s))*)"
    rf"(?P<open>[*_{_QUOTES}]*)"
)
_EMPHASISED = re.compile(r"([*`]+)([^*`]*)\1")
_OPENING = re.compile(r"<(?:!--|(pre|script|style|textarea)\b)", re.IGNORECASE)
_ENDS = ("-->", "</pre>", "</script>", "</style>", "</textarea>")


class FieldLine(Struct, frozen=True):
    """A line that begins with a key."""

    number: int
    column: int
    """Where the value begins."""
    value: str
    text: str
    is_marked: bool = False
    """Whether there are marks before the key."""
    is_quoted: bool = False
    """Whether it can be somebody else's words, or an example."""


def lines_of(text: str) -> list[str]:
    """The lines as editors count them; `str.splitlines` breaks at more characters."""
    lines = split_lines(text.removeprefix("\ufeff"))
    return lines if lines[-1] else lines[:-1]


def one_colon(text: str) -> str:
    return text.replace("：", ":")


def key_lines(lines: Sequence[str], key: str) -> list[FieldLine]:
    """The lines that begin with a key, each with what comes after it; for an empty key all that are not empty."""
    start = _start_of(without_hidden(one_colon(key).strip()))
    found = []
    for number, line in enumerate(without_hidden("\n".join(lines)).split("\n"), 1):
        match = start.match(one_colon(line))
        if match is None:
            continue
        rest = line[match.end() :].lstrip()
        value = _value(rest.rstrip(), match)
        is_marked = bool(match["marks"].strip() or match["open"])
        if not value and (is_marked or not key.strip()):
            continue
        original = lines[number - 1]
        column = max(1, len(original) - len(rest) + 1)
        found.append(FieldLine(number, column, value, original.strip()[:MAX_QUOTE], is_marked, _is_quoted(line, match)))
    return found


@cache
def _start_of(key: str) -> re.Pattern[str]:
    words = r"\s+".join(map(re.escape, key.removesuffix(":").split()))
    colon = r"\s*+(?P<inner>[*_`]*+)\s*+:" if key.endswith(":") else "(?P<inner>)"
    return re.compile(rf"{_MARKS}{words}{colon}(?P<close>[*_{_QUOTES}]*)", re.IGNORECASE)


def _value(value: str, start: re.Match[str]) -> str:
    """Without the marks that were opened before the key or the value, and close behind it."""
    if _is_open(start):
        return value.rstrip(start["open"] + _QUOTES * _has_quotes(start))
    if not start["open"]:
        value = start["close"] + value
    return found[2].strip() if (found := _EMPHASISED.fullmatch(value)) else value


def _is_open(start: re.Match[str]) -> bool:
    return bool(start["open"]) and not (start["inner"] or start["close"])


def _has_quotes(start: re.Match[str]) -> bool:
    return any(mark in start["open"] for mark in _QUOTES)


def _is_quoted(line: str, start: re.Match[str]) -> bool:
    return ">" in start["marks"] or (_is_open(start) and _has_quotes(start)) or _indent(line) > MAX_INDENT


def _indent(line: str) -> int:
    """Columns before a line, as Markdown counts them."""
    if line[:1] not in (" ", "\t"):
        return 0
    wide = line.expandtabs(TAB)
    return len(wide) - len(wide.lstrip(" "))


def shown_lines(lines: Sequence[str]) -> list[str]:
    """The lines, each at its place, without those that are code or an HTML comment: they are empty."""
    return list(_shown(lines, _last_ends(lines)))


def _shown(lines: Sequence[str], last_ends: dict[str, int]) -> Iterator[str]:
    fence, until, in_list, in_text = None, "", False, False
    for number, line in enumerate(lines):
        mark = fence_of(line)
        if fence:
            if mark and mark.indent <= MAX_INDENT + fence.indent * in_list and mark.closes(fence):
                fence = None
            yield ""
            continue
        if until:
            until = "" if until in line.casefold() else until
            yield ""
            continue
        indent = _indent(line)
        if mark and (indent <= MAX_INDENT or in_list):
            fence = mark
            yield ""
            continue
        in_text = bool(line.strip()) and (in_text or in_list or indent <= MAX_INDENT)
        if indent > MAX_INDENT and not in_text:
            yield ""
            continue
        if in_text and indent <= MAX_INDENT:
            in_list = item_of(line) is not None or (in_list and indent > 0)
        left, until = _without_comments(line, number, last_ends) if "<" in line else (line, "")
        yield left


def _without_comments(line: str, number: int, last_ends: dict[str, int]) -> tuple[str, str]:
    """A line without comments, and what ends the one that goes on in the next line, if one does."""
    left, at, looked, endless = "", 0, 0, set[str]()
    while opening := _OPENING.search(line, looked):
        end = f"</{opening[1].casefold()}>" if opening[1] else "-->"
        close = None if end in endless else re.compile(end, re.IGNORECASE).search(line, opening.end())
        if close:
            left, at = left + line[at : opening.start()], close.end()
        elif (end == "-->" and not line[: opening.start()].strip()) or last_ends.get(end, -1) > number:
            return left + line[at : opening.start()], end
        else:
            endless.add(end)
        looked = close.end() if close else opening.end()
    return left + line[at:], ""


def _last_ends(lines: Sequence[str]) -> dict[str, int]:
    """The last line in which each kind of comment can end."""
    marked = [(number, line.casefold()) for number, line in enumerate(lines) if ">" in line]
    return {end: number for number, line in marked for end in _ENDS if end in line}
