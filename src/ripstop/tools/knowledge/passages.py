"""Cuts a text into passages: by headings first, then by paragraphs, so that each is about one thing and fits a prompt.

- Short paragraphs of one section stay together; one that is too long is cut where a sentence, a line or a word ends.
- Fences and headings are CommonMark's (`text/markdown.py`), so a heading is text in fenced code.
- A section that is nothing but its heading is a passage, unless deeper sections follow: they name it as theirs.
"""

import re
from collections.abc import Iterator

from msgspec import Struct

from ripstop.text.markdown import blocks, heading_of, split_lines

MAX_PASSAGE = 1_000
"""Characters of a passage."""
LONGEST_HEADING = 120

_UNDERLINE = re.compile(r" {0,3}(=+|-{2,})[ \t]*$")
_NOT_UNDERLINED = re.compile(r"[ \t]*(?:[-*+>|]|\d+[.)])(?:[ \t]|$)|[ \t]*\|")
_SENTENCE_END = re.compile(r"[。！？；][”’」』）]?|[.!?;]['\")]?(?=\s)|\n")
_SPACES = re.compile(r"\s+")


class Passage(Struct, frozen=True):
    text: str
    heading: str = ""
    """The heading of its section; empty: it is before the first."""
    title: str = ""
    """That heading and those above it, for the search."""


def passages_of(text: str, is_markdown: bool = True) -> list[Passage]:
    """The passages of a text, in their order."""
    lines = split_lines(text)
    if not is_markdown:
        return [Passage(piece) for piece in _pieces(_paragraphs(lines))]
    found: list[Passage] = []
    above: list[tuple[int, str]] = []
    sections = list(_sections(lines))
    for number, (level, heading, body) in enumerate(sections):
        if level:
            above = [*(one for one in above if one[0] < level), (level, heading)]
        title = " / ".join(name for _, name in above if name)
        pieces = list(_pieces(_paragraphs(body)))
        has_deeper = number + 1 < len(sections) and sections[number + 1][0] > level
        if not pieces and heading and not has_deeper:
            pieces = [heading]
        found += [Passage(piece, heading, title) for piece in pieces]
    return found


def _sections(lines: list[str]) -> Iterator[tuple[int, str, list[str]]]:
    """Level, heading and lines of each section; level 0 before the first heading."""
    level, heading = 0, ""
    start = _behind_front_matter(lines)
    body: list[str] = lines[1 : start - 1] if start else []
    rest = lines[start:]
    code = {number for block in blocks(rest) for number in range(block.start, block.end)}
    for number, line in enumerate(rest):
        if number in code:
            body.append(line)
        elif "#" in line and (found := heading_of(line)):
            yield level, heading, body
            level, heading, body = found.level, _one_line(found.text), []
        elif (match := _UNDERLINE.match(line)) and _can_be_underlined(body):
            name = _one_line(body.pop())
            yield level, heading, body
            level, heading, body = (1 if match[1][0] == "=" else 2), name, []
        else:
            body.append(line)
    yield level, heading, body


def _behind_front_matter(lines: list[str]) -> int:
    """The index of the first line behind the data that some files begin with, between two `---`."""
    if lines[0].rstrip() != "---":
        return 0
    return next((n + 1 for n, line in enumerate(lines[1:100], 1) if line.rstrip() == "---"), 0)


def _can_be_underlined(body: list[str]) -> bool:
    """Whether the last line is a paragraph of its own."""
    if not body or not body[-1].strip() or _NOT_UNDERLINED.match(body[-1]):
        return False
    return len(body) == 1 or not body[-2].strip()


def _one_line(text: str) -> str:
    return _SPACES.sub(" ", text).strip()[:LONGEST_HEADING].rstrip()


def _paragraphs(lines: list[str]) -> Iterator[str]:
    kept: list[str] = []
    for line in [*lines, ""]:
        if line.strip():
            kept.append(line.rstrip())
        elif kept:
            yield "\n".join(kept)
            kept = []


def _pieces(paragraphs: Iterator[str]) -> Iterator[str]:
    """Paragraphs joined, or cut, to what fits a passage."""
    joined = ""
    for paragraph in paragraphs:
        for piece in _cut(paragraph):
            if joined and len(joined) + len(piece) + 2 > MAX_PASSAGE:
                yield joined
                joined = ""
            joined = f"{joined}\n\n{piece}" if joined else piece
    if joined:
        yield joined


def _cut(paragraph: str) -> Iterator[str]:
    start = 0
    while len(paragraph) - start > MAX_PASSAGE:
        end = _good_end(paragraph, start)
        if piece := paragraph[start:end].strip("\n "):
            yield piece
        start = end
    if rest := paragraph[start:].strip("\n "):
        yield rest


def _good_end(text: str, start: int) -> int:
    """Where to end a piece: behind a sentence, else a word, else where it must end."""
    limit, least = start + MAX_PASSAGE, start + MAX_PASSAGE // 2
    ends = [match.end() for match in _SENTENCE_END.finditer(text, least, limit)]
    if ends:
        return ends[-1]
    space = text.rfind(" ", least, limit)
    return space + 1 if space >= 0 else limit
