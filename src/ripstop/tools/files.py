"""An agent's files: read, write, edit, list and search text, in its two roots and nowhere else.

- Every call walks from the root's descriptor (`workspace.py`) and decides by what it has opened, never by what a name
  meant a moment ago. Only regular files with one name are read: no links of any kind, devices, pipes.
- A file is replaced as a whole: temporary file in the same folder → fsync → rename → fsync of the folder. The
  writer holds a lock on the folder, so that two edits of one file do not undo each other; what a killed process
  left behind is removed by the next one that writes there.
- Text is UTF-8 and of bounded size. What goes wrong is `Refused`, with words that help the agent.
"""

import difflib
import errno
import os
import stat
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

from msgspec import Struct

from ripstop.engine.failpoints import failpoint
from ripstop.engine.performers import Refused

from .shared_folder import READING, complete_file, sweep, wait_for_lock
from .workspace import MAX_PARTS, RESERVED, Project, RootedPath, Roots, SharedWorkspace, enter, refuse_repository

# Replacing a piece of a text that occurs in it exactly once. Pure.
#
# The piece is looked for as it is; if it ends with a line break it must also begin at the start of a line.
# If it is not there, it is looked for once more with the ends of lines (spaces, CR, the last line break) left out
# of account: whole lines then. Nothing else is guessed.
#
# Text and piece come from agents, so the work is linear in their length. All searching is left to `str.find`, which is
# linear for long pieces; it is called at most once per piece's length of text, because each call costs a piece's
# length.


NEAREST = 0.5
"""How alike a line must be to be named as the one that was meant."""
MAX_LINES = 1000
"""Different lines among which the nearest is looked for."""
MAX_SHOWN = 200
"""Characters of a line that are compared and shown."""
MAX_COUNTED = 1000
"""Occurrences of a piece that are counted; more are as wrong as these."""
MAX_PLACEMENTS = 200
"""Places at which a replacement is taken for one that was made."""
MAX_COMPARED = 10_000_000
"""Characters that are compared at these places in all: a long text has fewer of them."""

Span = tuple[int, int]


class NotOnce(Exception):
    """The piece does not occur in the text exactly once; says what is there instead."""


class Undecidable(Exception):
    """Whether an edit was made cannot be seen from the text."""


def edited(text: str, search: str, replace: str) -> str:
    """The text with the piece replaced."""
    found = occurrences(text, search)
    if len(found) != 1:
        raise NotOnce(_why(text, search, len(found)))
    start, end = found[0]
    return text[:start] + _with_line_ends(replace, like=text[start:end]) + text[end:]


def is_edited(text: str, search: str, replace: str) -> bool:
    """Whether the text is as the edit leaves it. Raises `Undecidable`.

    It is if the old piece, put back in the place of the new one, would be there exactly once, as it is or as whole
    lines (with any line ends); unless it is there now, somewhere else, so that the edit could just
    as well be still to come. An edit that only adds to a piece
    counts as made when the result is there, and one that removes a piece when the piece is gone.
    """
    pending = occurrences(text, search)
    if not replace:
        return not pending
    doubtful = False
    most = min(MAX_PLACEMENTS, 2 + MAX_COMPARED // (len(text) + len(search)))
    placements = list(islice(_placements(text, replace), most + 1))
    for start, end in placements[:most]:
        before = text[:start] + search + text[end:]
        there = [(start, start + len(search))]
        if occurrences(before, search) == there or _by_lines(before, search) == there:
            if len(pending) != 1 or (start <= pending[0][0] and pending[0][1] <= end):
                return True
            doubtful = True
    if doubtful:
        raise Undecidable("both the text to replace and its replacement are there")
    if len(placements) > most:
        raise Undecidable(f"the replacement is there more than {most} times")
    return False


def _placements(text: str, piece: str) -> Iterator[Span]:
    """Where the piece may have been put; these may overlap."""
    for written in dict.fromkeys((piece, _with_line_ends(piece, like="\r\n"))):
        start = text.find(written)
        while start >= 0:
            yield start, start + len(written)
            start = text.find(written, start + 1)


def _with_line_ends(piece: str, like: str) -> str:
    """The piece with the line ends of a text of which `like` is a part; its own, if it has CRs already."""
    return piece.replace("\n", "\r\n") if "\r\n" in like and "\r" not in piece else piece


def occurrences(text: str, piece: str) -> list[Span]:
    """Where the piece is, at most `MAX_COUNTED` times; pieces that overlap count once."""
    return _exact(text, piece) or _by_lines(text, piece)


def _exact(text: str, piece: str) -> list[Span]:
    if not piece.endswith("\n"):
        return [(start, start + len(piece)) for start in _found(text, piece)]
    # found together with the line break before it, as a piece of "\n" + text
    return [(start, start + len(piece)) for start in _found("\n" + text, "\n" + piece, overlap=1)]


def _by_lines(text: str, piece: str) -> list[Span]:
    wanted = [line.rstrip() for line in piece.removesuffix("\n").split("\n")]
    if not any(wanted):
        return []
    lines = text.split("\n")
    plain = [line.rstrip() for line in lines]
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    plain_starts = [0, *accumulate(len(line) + 1 for line in plain)]
    found = []
    for position in _found("\n" + "\n".join(plain) + "\n", "\n" + "\n".join(wanted) + "\n", overlap=1):
        number = bisect_right(plain_starts, position) - 1
        after = starts[number + len(wanted)]
        found.append((starts[number], min(after if piece.endswith("\n") else after - 1, len(text))))
    return found


def _found(text: str, piece: str, overlap: int = 0) -> Iterator[int]:
    """Where the piece begins; two may share `overlap` characters."""
    position = text.find(piece)
    for _ in range(MAX_COUNTED):
        if position < 0:
            return
        yield position
        position = text.find(piece, position + len(piece) - overlap)


def _why(text: str, search: str, count: int) -> str:
    if count:
        times = f"{count} times" if count < MAX_COUNTED else f"at least {count} times"
        return f"the text to replace is there {times}; give more of the lines around it, so that it is there once"
    if part := _part_of_a_line(text, search):
        return part
    line = next((line.strip() for line in search.split("\n") if line.strip()), "")
    lines: dict[str, int] = {}
    for number, candidate in enumerate(text.split("\n"), 1):
        lines.setdefault(candidate.strip()[:MAX_SHOWN], number)
        if len(lines) == MAX_LINES:
            break
    nearest = difflib.get_close_matches(line[:MAX_SHOWN], lines, 1, NEAREST)
    if not nearest:
        return "the text to replace is not there, nor any line like its first"
    number = lines[nearest[0]]
    return f"the text to replace is not there; line {number} is like its first line: {nearest[0]!r}"


def _part_of_a_line(text: str, search: str) -> str:
    """What is wrong if a line of the piece is not a line of the text, but a part of one; empty if that is not it."""
    if not search.endswith("\n"):
        return ""
    whole = {line.strip() for line in text.split("\n")}
    missing = next((line.strip() for line in search.split("\n") if line.strip() not in whole and line.strip()), "")
    position = text.find(missing) if missing else -1
    if position < 0:
        return ""
    number = text.count("\n", 0, position) + 1
    line = text.split("\n", number)[number - 1].strip()
    return (
        f"the text to replace is not there: it is compared by whole lines, and {missing[:MAX_SHOWN]!r} is only a part "
        f"of line {number}: {line[:MAX_SHOWN]!r}; give whole lines"
    )


MAX_READ = 1_000_000
"""Bytes, as all sizes here."""
MAX_WRITE = 5_000_000
MAX_ENTRIES = 1000
MAX_HITS = 200
MAX_SEARCHED = 50_000_000
"""In one search, over all files."""
MAX_LINE = 300
"""Characters of a line that a search shows."""
PAGE_LINES = 1000
PAGE_SIZE = 30_000
"""Characters of a page of a file."""


class _Entry(Struct, frozen=True):
    """A file or folder met on a walk, and the open folder that it is in."""

    above: int
    place: RootedPath
    is_folder: bool


class Files:
    def __init__(self, workspace: Path, agent: str, shared: SharedWorkspace | None = None) -> None:
        """`shared`: the folder that all agents work in; left out: the agent has its own, and `collab`."""
        self._workspace = workspace
        self.shared = shared
        if shared:
            self._roots: Roots | SharedWorkspace = shared
            return
        if agent.startswith("."):
            raise Refused(
                f"The agent {agent!r} can have no folder of its own: its name begins with a dot.", "definition"
            )
        project = Project(workspace, Path.cwd())
        project.check_name(agent)
        self._roots = Roots(workspace, agent, project)

    def read(self, path: str, offset: int = 1, lines: int = PAGE_LINES) -> str:
        """The text of a file from line `offset` on, as many whole lines as a page has."""
        if offset < 1 or lines < 1:
            raise Refused("`offset` is the number of a line, from 1, and `lines` is 1 or more.", "agent")
        place = self._file(path)
        with self._told(place), self._roots.folder(place.root, place.parts[:-1]) as above:
            return _page(_text(_content(above, place, MAX_READ), place), offset, lines)

    def write(self, path: str, content: str) -> dict[str, Any]:
        """Create a file, or replace all of it."""
        place, data = self._file(path, writing=True), _data(content)
        with self._told(place), self._writing(place) as above:
            return _replace(above, place, data, _mode(above, place))

    def edit(self, path: str, search: str, replace: str) -> dict[str, Any]:
        """Replace a piece of a file that occurs in it exactly once; with nothing to search, make a new file."""
        place = self._file(path, writing=True)
        if search and not self._is_there(place):
            raise Refused(self._roots.missing(place), "agent")
        with self._told(place), self._writing(place) as above:
            mode = _mode(above, place)
            before = "" if mode is None else _text(_content(above, place, MAX_WRITE), place)
            return _replace(above, place, _data(_after_edit(place, before, search, replace)), mode)

    def was_edited(self, path: str, search: str, replace: str) -> dict[str, Any] | None:
        """What `edit` returned if the file is as it leaves it, else nothing. `Refused` if it cannot be told."""
        place = self._file(path)
        if not self._is_there(place):
            return None
        with self._told(place), self._roots.folder(place.root, place.parts[:-1]) as above:
            data = _content(above, place, MAX_WRITE)
        text = _text(data, place)
        try:
            happened = is_edited(text, search, replace) if search else text == replace
        except Undecidable as problem:
            raise Refused(f"Nobody can say whether {place.shown!r} was edited: {problem}.") from problem
        return _written(place, data) if happened else None

    def list(self, path: str = ".") -> dict[str, Any]:
        """The files and folders below a folder; for "." those of both roots."""
        entries: list[str] = []
        for entry in self._walk(path):
            if len(entries) == MAX_ENTRIES:
                return {"entries": entries, "more": True}
            entries.append(entry.place.shown + ("/" if entry.is_folder else ""))
        return {"entries": entries, "more": False}

    def search(self, text: str, path: str = ".") -> dict[str, Any]:
        """The lines that contain a text, in a file or in all files below a folder."""
        if not text or "\n" in text:
            raise Refused("Search for a piece of one line: not empty, and without line breaks.", "agent")
        hits: list[dict[str, Any]] = []
        left = MAX_SEARCHED
        for entry in self._walk(path):
            if entry.is_folder:
                continue
            try:
                data = _content(entry.above, entry.place, MAX_READ)
                lines = _text(data, entry.place).split("\n")
            except (Refused, OSError):
                continue  # not a text file that we read, or gone: nothing to find in it
            left -= len(data)
            found = ((number, line) for number, line in enumerate(lines, 1) if text in line)
            for number, line in found:
                if len(hits) == MAX_HITS:
                    return {"hits": hits, "more": True}
                hits.append({"path": entry.place.shown, "line": number, "text": _cut(line, text)})
            if left < 0:
                return {"hits": hits, "more": True}
        return {"hits": hits, "more": False}

    def command_folders(self, path: str) -> tuple[Path, tuple[Path, ...], Path]:
        """The workspace, the folders that a command can write (the agent's own first), and the one where it begins."""
        place, workspace = self._roots.locate(path), Path(os.path.realpath(self._workspace))
        with self._told(place):
            for root in self._roots.names:
                with self._roots.folder(root, (), create=True):
                    pass
            with self._roots.folder(place.root, place.parts):
                pass
        writable = tuple(workspace / root for root in self._roots.names)
        return workspace, writable, workspace.joinpath(place.root, *place.parts)

    @property
    def roots(self) -> tuple[str, ...]:
        """The folders of the workspace that the agent can write; empty for the workspace itself."""
        return self._roots.names

    def below_workspace(self, path: str) -> str:
        """A path of the agent as one below the workspace. Raises `Refused`."""
        place = self._roots.locate(path)
        return "/".join(filter(None, (place.root, *place.parts)))

    # Paths

    def _file(self, path: str, writing: bool = False) -> RootedPath:
        place = self._roots.locate(path, writing)
        if not place.parts or path.endswith("/"):
            raise Refused(f"{path!r} is a folder; name a file in it.", "agent")
        return place

    def _is_there(self, place: RootedPath) -> bool:
        """Only spares the creation of folders for nothing; what is done is decided by what is opened then."""
        with self._told(place):
            try:
                with self._roots.folder(place.root, place.parts[:-1]) as above:
                    os.stat(place.parts[-1], dir_fd=above, follow_symlinks=False)
            except FileNotFoundError:
                return False
        return True

    @contextmanager
    def _told(self, place: RootedPath) -> Iterator[None]:
        """What the system says about a path, in words for an agent."""
        try:
            yield
        except FileNotFoundError as error:
            raise Refused(self._roots.missing(place), "agent") from error
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise Refused(f"{place.shown!r} is a symbolic link, and links are not followed.", "agent") from error
            if error.errno in (errno.EISDIR, errno.ENXIO):
                raise Refused(f"{place.shown!r} is not a regular file.", "agent") from error
            raise Refused(f"{place.shown!r}: {os.strerror(error.errno or 0)}.") from error

    @contextmanager
    def _writing(self, place: RootedPath) -> Iterator[int]:
        with self._roots.folder(place.root, place.parts[:-1], create=True) as above:
            refuse_repository(above, place.parts[-1])
            wait_for_lock(above)
            sweep(above, RESERVED)
            yield above

    # Walking

    def _walk(self, path: str) -> Iterator[_Entry]:
        place = self._roots.locate(path)
        everything = not place.parts and path.strip("./") == ""
        starts = [(root, ()) for root in self._roots.names] if everything else [(place.root, place.parts)]
        for root, parts in starts:
            start = self._roots.place(root, parts)
            with self._told(start):
                yield from self._walk_from(start)

    def _walk_from(self, start: RootedPath) -> Iterator[_Entry]:
        """Below a folder; of a file, only itself."""
        try:
            with self._roots.folder(start.root, start.parts[:-1]) as above:
                if start.parts and stat.S_ISREG(os.stat(start.parts[-1], dir_fd=above, follow_symlinks=False).st_mode):
                    yield _Entry(above, start, is_folder=False)
                    return
            with self._roots.folder(start.root, start.parts) as folder:
                yield from self._below(folder, start)
        except FileNotFoundError:
            if start.parts:  # a root that was never written to is empty
                raise

    def _below(self, folder: int, place: RootedPath) -> Iterator[_Entry]:
        for name in sorted(filter(self._roots.is_met, os.listdir(folder))):
            found = self._roots.place(place.root, (*place.parts, name))
            with suppress(FileNotFoundError, PermissionError, Refused):  # gone or changed meanwhile, or not for us
                mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
                if stat.S_ISREG(mode):
                    yield _Entry(folder, found, is_folder=False)
                elif stat.S_ISDIR(mode) and len(found.parts) < MAX_PARTS:
                    yield _Entry(folder, found, is_folder=True)
                    deeper = enter(folder, name)
                    try:
                        yield from self._below(deeper, found)
                    finally:
                        os.close(deeper)


# One file in an open folder


@contextmanager
def _opened(above: int, place: RootedPath) -> Iterator[tuple[int, os.stat_result]]:
    descriptor = os.open(place.parts[-1], READING, dir_fd=above)
    try:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise Refused(f"{place.shown!r} is a folder, not a file.", "agent")
        if not stat.S_ISREG(status.st_mode):
            raise Refused(f"{place.shown!r} is not a regular file.", "agent")
        if status.st_nlink > 1:
            raise Refused(f"{place.shown!r} is a hard link: it may be a file outside your folders.", "agent")
        yield descriptor, status
    finally:
        os.close(descriptor)


def _content(above: int, place: RootedPath, most: int) -> bytes:
    with _opened(above, place) as (descriptor, status):
        if status.st_size <= most:
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                data = file.read(most + 1)
            if len(data) <= most:
                return data
        raise Refused(f"{place.shown!r} is too large: {status.st_size} bytes, at most {most}.", "agent")


def _mode(above: int, place: RootedPath) -> int | None:
    """The permissions of a file that may be replaced; nothing if there is no file."""
    try:
        with _opened(above, place) as (_, status):
            return stat.S_IMODE(status.st_mode)
    except FileNotFoundError:
        return None


def _replace(above: int, place: RootedPath, data: bytes, mode: int | None) -> dict[str, Any]:
    with complete_file(above, data, RESERVED, mode) as new:
        failpoint("files.before_rename")
        new.replace(above, place.parts[-1])
        failpoint("files.after_rename")
    return _written(place, data)


def _written(place: RootedPath, data: bytes) -> dict[str, Any]:
    return {"path": place.shown, "bytes": len(data)}


# Text


def _text(data: bytes, place: RootedPath) -> str:
    if b"\0" in data:
        raise Refused(f"{place.shown!r} is a binary file of {len(data)} bytes; only text can be read.", "agent")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Refused(f"{place.shown!r} is not UTF-8 text (byte {error.start} is wrong).", "agent") from error


def _page(text: str, offset: int, most: int) -> str:
    """Some lines of a text. If it has others, what is shown is said, and how to read on."""
    if offset == 1 and len(text) <= PAGE_SIZE and text.count("\n") < most:
        return text  # nearly always
    lines = text.removesuffix("\n").split("\n")  # as editors count them
    total = len(lines)
    if offset > total:
        raise Refused(f"The file has {total:,} lines; there is no line {offset:,}.", "agent")
    wanted, size, count = lines[offset - 1 : offset - 1 + most], 0, 0
    for line in wanted:
        size += len(line) + 1
        if size > PAGE_SIZE:
            break
        count += 1
    if not count:
        long = f"line {offset:,} has {len(wanted[0]):,} characters, of which the first {PAGE_SIZE:,} are shown"
        return f"{wanted[0][:PAGE_SIZE]}\n[{long}{_read_on(offset, total)}]"
    last = offset - 1 + count
    shown = "\n".join(wanted[:count])
    return text if count == total else f"{shown}\n[lines {offset:,} to {last:,} of {total:,}{_read_on(last, total)}]"


def _read_on(last: int, total: int) -> str:
    return f"; read on with offset {last + 1}" if last < total else ""


def _data(content: str) -> bytes:
    try:
        data = content.encode()
    except UnicodeEncodeError as error:
        raise Refused(f"Character {error.start} of the text cannot be written as UTF-8.", "agent") from error
    if b"\0" in data:
        raise Refused("The text has a NUL character in it; only text can be written.", "agent")
    if len(data) > MAX_WRITE:
        raise Refused(f"The text is too long: {len(data)} bytes, at most {MAX_WRITE}.", "agent")
    return data


def _after_edit(place: RootedPath, before: str, search: str, replace: str) -> str:
    if not search:
        if before:
            raise Refused(f"{place.shown!r} has content, so say which piece of it to replace.", "agent")
        return replace
    try:
        return edited(before, search, replace)
    except NotOnce as problem:
        raise Refused(f"{place.shown!r} was not edited: {problem}.", "agent") from problem


def _cut(line: str, text: str) -> str:
    """A long line is cut around what was found in it."""
    start = max(0, line.find(text) - MAX_LINE // 3) if len(line) > MAX_LINE else 0
    cut = line[start : start + MAX_LINE].rstrip("\r")
    return ("…" if start else "") + cut + ("…" if start + MAX_LINE < len(line) else "")
