"""The files that the text of a reply delivers, for agents that cannot call tools.

- A path on a line of its own, directly above a fenced block, makes the block a whole file. If the line is marked
  as a path (bold, backticks, `File:`), empty lines may be between. What counts as a path: `file_naming.py`.
- Without one, the path may be in the fence's info string, or in a comment with which the block begins (a `#!` line
  may come before it). Such a comment only names the file, as a line above the block does, so it is not in the file.
- A block next to which a path is only mentioned is `Unclear`: it is not delivered, and not passed over in silence.
- A block with `<<<<<<< SEARCH`, `=======`, `>>>>>>> REPLACE` holds edits; the path is above the block or
  above the edit inside it. Without one it is the file delivered last; if there is none either, the path
  is empty, so that the performer refuses it and the agent learns of it.
- A shorter fence, one of the other kind, or one that is indented further than the file's own is text.
- Same-length fences inside a file. One with an info string always opens a block, and the next bare one closes
  that. A bare one closes the file, except in a document (`.md`, `.txt`, …): there it opens a block if text
  follows on the very next line, because agents leave a blank line after a file, and none at the start of a
  block. Where this reading finds no end, every bare fence closes, as in other files.
- A file that is never closed continues to the next file, to the control object or to the end: `complete` is false.
- Thoughts (`<think…>`) and the control object deliver nothing, and neither does a block without a path. A closing tag
  that nothing has opened, at an end of its line, says that all before it was a thought.
- `MAX_LINES` lines are read. A file that is not closed in them is `Unclear`, and so is a rest that may hold files.
"""

import re
from bisect import bisect_left, bisect_right, insort
from collections.abc import Generator, Iterable, Iterator
from functools import lru_cache
from itertools import islice

from msgspec import Struct

from ripstop.text.markdown import Fence, fence_of, unindented

from .file_naming import MAX_LENGTH, mentioned_path, named_path, path_in_comment, path_in_info
from .reply import NoReply, strict

_SEARCH = re.compile(r"[ \t]*<{5,9} SEARCH>?\s*")
_DIVIDER = re.compile(r"[ \t]*={5,9}\s*")
_REPLACE = re.compile(r"[ \t]*>{5,9} REPLACE\s*")
_THINKING = re.compile(r"<(think[\w-]*)>", re.IGNORECASE)
_THOUGHT_BEGINS_LINE = re.compile(r"[ \t]*+</think[\w-]*>", re.IGNORECASE)
_THOUGHT_ENDS_LINE = re.compile(r"</think[\w-]*>[ \t\r]*+$", re.IGNORECASE)
_DOCUMENTS = (".md", ".markdown", ".mdx", ".rst", ".adoc", ".txt")
_CONTROL = "decisions"
MAX_INNER = 100
"""Fences that are looked at to find blocks in a block, where another reading is at hand; keeps it quick on any text."""
MAX_BLOCKS = 2000
"""Blocks, edits and thoughts of a reply that are read."""
MAX_LINES = 100_000
"""Lines of a reply that are read for files: more than any model writes. Each line, and each fence, costs memory."""
MAX_OBJECTS = 50
"""Lines from the end at which the control object behind an unclosed file is looked for."""
MAX_READ = 500_000
"""Characters that are read in all to find it."""
MAX_REMEMBERED = 64
"""Replies whose files are kept: at least one for every command that a worker performs at a time."""


class WholeFile(Struct, frozen=True):
    path: str
    content: str
    complete: bool = True


class Edit(Struct, frozen=True):
    path: str
    search: str
    """What is there now; empty for a new file."""
    replace: str
    complete: bool = True


class Unclear(Struct, frozen=True):
    """A block that may have been meant as a file and is not taken for one."""

    path: str
    reason: str


Delivery = WholeFile | Edit | Unclear


def deliveries(text: str) -> tuple[Delivery, ...]:
    """What a reply delivers, in order. Any text will do."""
    return _read(text) if _may_deliver(text) else ()  # the usual case: only words, or only the control object


def _may_deliver(text: str) -> bool:
    fenced = "\n" in text and ("```" in text or "~~~" in text)  # a block takes more than one line
    return fenced or ("<" in text and "<<<<<" in text)  # one character is found much faster than five


@lru_cache(maxsize=MAX_REMEMBERED)
def _read(text: str) -> tuple[Delivery, ...]:
    """Every file of a reply is written in a separate step, and each step asks. A text remembers its hash, so only
    the first question costs more than a look."""
    read = _first_lines(text)
    found = list[Delivery]()
    for one in islice(_ReplyReading(read).found(), MAX_BLOCKS + 1):
        if one is None:
            found.clear()
        else:
            found.append(one)
    if len(read) == len(text) or len(found) > MAX_BLOCKS:
        return tuple(found)
    limit = f"the reply has more than {MAX_LINES:,} lines, and what follows them was not read for files"
    if found and isinstance(found[-1], WholeFile | Edit) and not found[-1].complete:
        path = found.pop().path
        return (*found, Unclear(path, f"{limit}; {path[:MAX_LENGTH]!r} does not end before, so it was not written"))
    return (*found, Unclear("", limit)) if _may_deliver(text[len(read) :]) else tuple(found)


def _first_lines(text: str) -> str:
    """As much of a text as is read."""
    if text.count("\n") < MAX_LINES:
        return text
    end = -1
    for _ in range(MAX_LINES):
        end = text.index("\n", end + 1)
    return text[: end + 1]


def _may_begin(line: str) -> bool:
    """Whether a line can be a fence, begin an edit, or open or close a thought."""
    return "```" in line or "~~~" in line or ("<" in line and ("<<<<<" in line or _tags(line)))


def _tags(line: str) -> bool:
    return bool(_THINKING.search(line) or _ends_thought(line))


def _ends_thought(line: str) -> bool:
    """Whether a closing tag begins or ends the line."""
    return "</" in line and bool(_THOUGHT_BEGINS_LINE.match(line) or _THOUGHT_ENDS_LINE.search(line))


def _concerns(fence: Fence, opening: Fence) -> bool:
    """Whether it is of the same level as a file's own fence, or above."""
    return fence.matches(opening) and fence.indent <= opening.indent


def _may_close(fence: Fence, opening: Fence) -> bool:
    return not fence.info and _concerns(fence, opening)


class _ReplyReading:
    """Reads a text once, from mark to mark: the lines that can begin something (fences, edits, thoughts)."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        self._marks = [number for number, line in enumerate(self._lines) if _may_begin(line)]
        self._fences = {number: fence for number in self._marks if (fence := fence_of(self._lines[number]))}
        self._fence_lines = sorted(self._fences)
        self._searches = [number for number in self._marks if _SEARCH.fullmatch(self._lines[number])]
        self._taken = 0
        """Lines before this one belong to something already."""
        self._path = ""
        """Of the last delivery."""
        self._broken = False
        """A file was not closed: from now on every new path ends the file before it."""

    def found(self) -> Iterator[Delivery | None]:
        """`None`: all before it was only a thought."""
        at = 0
        for _ in range(MAX_BLOCKS):
            mark = bisect_left(self._marks, at)
            if mark == len(self._marks):
                return
            at = self._marks[mark]
            line = self._lines[at]
            if thinking := _THINKING.search(line):
                at = self._after_thinking(at, thinking)
            elif at in self._fences:
                at = yield from self._block(at, self._fences[at])
            elif _SEARCH.fullmatch(line):
                at = yield from self._edits(at, None, self._path_above(at))
            else:
                if _ends_thought(line):
                    self._path, self._broken = "", False
                    yield None
                at += 1
        if at <= self._marks[-1]:
            yield Unclear("", f"the reply has more than {MAX_BLOCKS} blocks; what follows them was not read")

    def _after_thinking(self, at: int, opening: re.Match[str]) -> int:
        closing = re.compile(f"</{re.escape(opening[1])}>", re.IGNORECASE)
        rest = opening.end()
        for number in range(at, len(self._lines)):
            if end := closing.search(self._lines[number], rest):
                self._lines[number] = self._lines[number][end.end() :]
                if fence := fence_of(self._lines[number]):
                    self._fences[number] = fence
                    insort(self._fence_lines, number)
                    insort(self._marks, number)
                self._taken = number
                return number
            rest = 0
        return len(self._lines)

    # Blocks

    def _block(self, at: int, opening: Fence) -> Generator[Delivery, None, int]:
        """Yields what the block delivers; returns the line after it."""
        path = self._path_above(at)
        if self._holds_edits(at, opening):
            return (yield from self._edits(at + 1, opening, path))
        marker = -1
        """The line in the block that names its file and does not belong to it."""
        if path is None:
            path, marker, doubt = self._path_inside(at, opening)
            if not path:
                if doubt and not self._is_control_block(at, opening):
                    reason = f"a block next to {doubt[:MAX_LENGTH]!r} was not taken for that file"
                    yield Unclear(doubt, f"{reason}; if it is meant, put the path alone on the line above the block")
                return self._take(self._end_of_nameless(at, opening) + 1)
        end = self._end_of_file(at, opening, path)
        complete = end is not None
        if end is None:
            self._broken = True
            end = self._end_of_unclosed(at)
        content = self._content(at + 1, end, opening, marker)
        if not complete or path.lower().endswith("json") or not _is_control(content):
            self._path = path
            yield WholeFile(path, content, complete)
        return self._take(end + complete)

    def _take(self, until: int) -> int:
        self._taken = until
        return until

    def _path_above(self, at: int) -> str | None:
        above = self._line_above(at)
        named = named_path(self._lines[above]) if above is not None else None
        return named.path if named and (named.marked or above == at - 1) else None

    def _line_above(self, at: int) -> int | None:
        """The last line above that is not empty and belongs to nothing else."""
        above = at - 1
        while above > self._taken and not self._lines[above].strip():
            above -= 1
        return above if above >= self._taken else None

    def _path_inside(self, at: int, opening: Fence) -> tuple[str, int, str]:
        """The path in the block's own first lines, the number of the line with it, and one that is only mentioned."""
        if path := path_in_info(opening.info):
            return path, -1, ""
        first = at + 1 + self._line(at + 1).startswith("#!")
        path, plain = path_in_comment(self._line(first), opening.info) if first not in self._fences else ("", False)
        if plain:
            return path, first, ""
        above = self._line_above(at)
        return "", -1, path or (mentioned_path(self._lines[above]) if above is not None else "")

    def _is_control_block(self, at: int, opening: Fence) -> bool:
        return _is_control(self._content(at + 1, self._end_of_nameless(at, opening), opening))

    def _content(self, start: int, end: int, opening: Fence, without: int = -1) -> str:
        """The lines, but for one, without the indentation that the block itself has."""
        lines = self._lines[start:end]
        if start <= without < end:
            del lines[without - start]
        if opening.indent:
            lines = [unindented(line, opening.indent) for line in lines]
        return "".join([line + "\n" for line in lines])

    # The end of a file

    def _end_of_file(self, at: int, opening: Fence, path: str) -> int | None:
        limit = self._next_file(at) if self._broken else len(self._lines)
        end = None
        if path.lower().endswith(_DOCUMENTS):
            end = self._closing(islice(self._fences_after(at, limit), MAX_INNER), opening, nested=True)
        return self._closing(self._fences_after(at, limit), opening, nested=False) if end is None else end

    def _end_of_nameless(self, at: int, opening: Fence) -> int:
        fences = list(islice(self._fences_after(at, len(self._lines)), MAX_INNER))
        end = self._closing(fences, opening, nested=False)
        if end is None:
            end = next((number for number in fences if _may_close(self._fences[number], opening)), at)
        return end

    def _closing(self, fences: Iterable[int], opening: Fence, nested: bool) -> int | None:
        """Which of the fences closes what `opening` opens; `nested`: bare ones may open blocks in it."""
        inside = ""
        for number in fences:
            fence = self._fences[number]
            if not _concerns(fence, opening):
                continue
            if not inside:
                if not fence.info and not (nested and self._opens(number)):
                    return number
                inside = "a block with info" if fence.info else "a bare block"
            elif not fence.info:
                if inside == "a bare block" and self._begins_file(number):
                    return None  # so the fence before did not open anything
                inside = ""
        return None

    def _fences_after(self, at: int, limit: int) -> Iterator[int]:
        for index in range(bisect_right(self._fence_lines, at), len(self._fence_lines)):
            if self._fence_lines[index] >= limit:
                return
            yield self._fence_lines[index]

    def _opens(self, number: int) -> bool:
        """Whether a bare fence looks like the beginning of a block: text follows at once, but no file or object."""
        below = self._line(number + 1)
        if not below.strip() or below.lstrip().startswith("{"):
            return False
        return not (number + 2 in self._fences and self._begins_file(number + 2))

    def _begins_file(self, number: int) -> bool:
        """Whether the fence in this line has a path above it and text directly below."""
        return named_path(self._line(number - 1)) is not None and bool(self._line(number + 1).strip())

    def _line(self, number: int) -> str:
        return self._lines[number] if 0 <= number < len(self._lines) else ""

    def _next_file(self, at: int) -> int:
        starts = (n - 1 for n in self._fences_after(at + 1, len(self._lines)) if self._begins_file(n))
        return next(starts, len(self._lines))

    def _end_of_unclosed(self, at: int) -> int:
        end = self._next_file(at)
        if end == len(self._lines):
            end = self._control(at + 1)
        while end > at + 1 and not self._lines[end - 1].strip():
            end -= 1
        return end

    def _control(self, start: int) -> int:
        """Where the control object begins that ends the text, or the fence around it; else the end of the text."""
        end = len(self._lines)
        while end > start and (not self._lines[end - 1].strip() or end - 1 in self._fences):
            end -= 1
        if end <= start or not self._lines[end - 1].rstrip().endswith("}"):
            return len(self._lines)
        tried = length = read = 0
        for number in range(end - 1, start - 1, -1):
            length += len(self._lines[number]) + 1
            if not self._lines[number].lstrip().startswith("{"):
                continue
            tried, read = tried + 1, read + length
            if tried > MAX_OBJECTS or read > MAX_READ:
                break
            if _is_control("\n".join(self._lines[number:end])):
                return number - 1 if number - 1 >= start and number - 1 in self._fences else number
        return len(self._lines)

    # Edits

    def _holds_edits(self, at: int, opening: Fence) -> bool:
        """Whether an edit begins before anything that could close the block."""
        following = bisect_right(self._searches, at)
        if following == len(self._searches):
            return False
        between = list(islice(self._fences_after(at, self._searches[following]), MAX_INNER))
        return len(between) < MAX_INNER and not any(_concerns(self._fences[number], opening) for number in between)

    def _edits(self, at: int, opening: Fence | None, path: str | None) -> Generator[Delivery, None, int]:
        path = path if path is not None else self._path
        while at < len(self._lines):
            line = self._lines[at]
            if _SEARCH.fullmatch(line):
                edit, at = self._edit(at, opening or Fence(0, "`", 3, ""), path)
                self._path = path
                yield edit
                continue
            if opening and at in self._fences and _may_close(self._fences[at], opening):
                return self._take(at + 1)
            if _SEARCH.fullmatch(self._line(at + 1)) and (named := named_path(line)):
                path = named.path
            elif opening is None and line.strip():
                break
            at += 1
        return self._take(at)

    def _edit(self, at: int, opening: Fence, path: str) -> tuple[Edit, int]:
        divider = self._marker(_DIVIDER, at + 1)
        if divider is None:
            end = self._end_of_edit(at + 1)
            return Edit(path, self._content(at + 1, end, opening), "", complete=False), end
        search = self._content(at + 1, divider, opening)
        last = self._marker(_REPLACE, divider + 1)
        end = self._end_of_edit(divider + 1) if last is None else last
        edit = Edit(path, search, self._content(divider + 1, end, opening), complete=last is not None)
        return edit, end if last is None else end + 1

    def _marker(self, wanted: re.Pattern[str], start: int) -> int | None:
        """The next such line of this edit."""
        for number in range(start, len(self._lines)):
            if wanted.fullmatch(self._lines[number]):
                return number
            if _SEARCH.fullmatch(self._lines[number]):
                return None
        return None

    def _end_of_edit(self, start: int) -> int:
        """Where an edit that lacks a marker ends: at the next edit, or at the end of its block."""
        for number in range(start, len(self._lines)):
            if _SEARCH.fullmatch(self._lines[number]) or number in self._fences:
                return number
        return len(self._lines)


def _is_control(content: str) -> bool:
    if not content.lstrip().startswith("{"):
        return False  # not even behind a thought: in a block that is part of a file
    try:
        return _CONTROL in strict(content)
    except NoReply:
        return False
