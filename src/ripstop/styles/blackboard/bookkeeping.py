"""What the engine notes about a board, in `.ripstop/board/` beside it.

    index.json     the hashes of all files as a run knows them, and as it knew them before
    pending.json   what a write is about to change: a file may be old or new until it has ended
    copies/<sha>   the known texts, so that a difference can be shown; of the history only its end (<sha>.end)
    lock, mutex    see `locks`

- The board's files are written as a whole (temporary file → fsync → rename → fsync of the folder), and so is
  `pending.json`, before them. The temporary files are here, so none appears on the board.
- A run knows the board by its digest, which is in the journal. The index only says which files had that digest: one
  that is lost or forged has another digest, and is not used. A copy is used only if it has its hash. So neither has to
  be on disk if the power fails; a process that is killed loses nothing that was written.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from ripstop.engine.failpoints import failpoint
from ripstop.engine.performers import Refused
from ripstop.security.files import OURS, make_folder
from ripstop.tools.shared_folder import (
    complete_file,
    in_words,
    mode_of,
    opened,
    put,
    read_file,
    remove_files,
    sweep,
)

from .calls import ChangedFile
from .contents import MAX_TEXT, Files, digest_of, sha_of, unified

Note = TypeVar("Note", bound=Struct)

KEPT = (OURS, "board")
COPIES = (*KEPT, "copies")
INDEX, PENDING = "index.json", "pending.json"
MAX_NOTE = 4_000_000
"""Bytes of a note: twice as many files as a board can have, with paths of some 300 bytes."""
KEPT_TAIL = 65_536
"""Bytes of the history that are kept."""
NEW_FILE = 0o644
_UNFINISHED, _END = ".unfinished-", ".end"
_SHA = re.compile(r"[0-9a-f]{64}")


class Index(Struct, frozen=True):
    files: dict[str, str] = {}
    before: dict[str, str] = {}
    """What was known until then: an attempt that was killed after it took note is repeated with that digest."""


class Pending(Struct, frozen=True):
    """Files that a command writes: their hashes before and after; empty if there is no file."""

    key: str = ""
    files: dict[str, tuple[str, str]] = {}
    history_bytes: int = 0
    """How long the history was before."""


class _Tail(Struct, frozen=True):
    """The end of a text, and what comes before it."""

    skipped: int
    """Bytes."""
    head: str
    """Their hash."""
    text: str


class Bookkeeping:
    def __init__(self, root: Path, history: str) -> None:
        self._root = root
        self._history = history

    def prepare(self) -> None:
        """Make our folder, in a board that exists."""
        ours = self._root / OURS
        if self._root.is_dir():
            try:
                make_folder(ours)
            except OSError as error:
                raise in_words(ours, error) from error
        with opened(self._root, COPIES, create=True):
            pass

    # Notes

    def known_by(self, digest: str) -> Files | None:
        """The files that had this digest; `None` if that is no longer known."""
        index = self._index()
        return next((files for files in (index.files, index.before) if digest_of(files) == digest), None)

    def _index(self) -> Index:
        return self._note(INDEX, Index) or Index()  # without its files, its digest is not the one that is wanted

    def take(self, now: Files, before: Files | None) -> None:
        """From now on the files are known as they are now."""
        old = self._index()
        index = Index(dict(now), dict(old.files if before is None else before))
        if index != old:
            self._put(INDEX, msgspec.json.encode(index), sync=False)
            self._sweep(index)

    def pending(self, key: str) -> Pending:
        """What an attempt at this command was about to write; nothing if there was none."""
        found = self._note(PENDING, Pending)
        return found if found and found.key == key else Pending()

    def announce(self, pending: Pending) -> None:
        failpoint("board.before_pending")
        self._put(PENDING, msgspec.json.encode(pending), sync=True)
        failpoint("board.after_pending")

    def _note(self, name: str, kind: type[Note]) -> Note | None:
        """A note; `None` if there is none, or one that we have not written: ours are renamed when complete."""
        with opened(self._root, KEPT) as above, _words_about(self._root.joinpath(*KEPT, name)):
            try:
                return _decoded(read_file(above, name, MAX_NOTE)[0], kind)
            except (FileNotFoundError, Refused):
                return None

    # Files

    def _put(self, name: str, data: bytes, sync: bool) -> None:
        with opened(self._root, KEPT) as ours, _words_about(self._root.joinpath(*KEPT, name)):
            put(ours, name, data, _UNFINISHED, sync=sync)

    def replace(self, path: str, data: bytes) -> None:
        """Write a file of the board as a whole. It keeps its permissions."""
        *folders, name = path.split("/")
        with opened(self._root, KEPT) as ours, opened(self._root, tuple(folders), create=True) as above:
            mode = mode_of(above, name)
            with complete_file(ours, data, _UNFINISHED, NEW_FILE if mode is None else mode, into=above) as new:
                failpoint("board.before_rename")
                new.replace(above, name)
                failpoint("board.after_rename")

    def remove(self, path: str) -> None:
        *folders, name = path.split("/")
        with opened(self._root, tuple(folders)) as above:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=above)
            os.fsync(above)

    def _sweep(self, index: Index) -> None:
        """Remove what killed processes have left, and copies of texts that are no longer known."""
        known = {*index.files.values(), *index.before.values()}
        with opened(self._root, KEPT) as ours:
            sweep(ours, _UNFINISHED)
        with opened(self._root, COPIES) as copies:
            remove_files(copies, [name for name in os.listdir(copies) if name.removesuffix(_END) not in known])

    # Copies

    def keep(self, path: str, data: bytes) -> None:
        """Keep a text, unless it is kept already."""
        name = sha_of(data) + (_END if path == self._history else "")
        try:
            text = _tail(data) if path == self._history else data
            text.decode()
        except UnicodeDecodeError:
            return  # there is no difference to show
        with opened(self._root, COPIES) as copies:
            if mode_of(copies, name) is None:
                put(copies, name, text, _UNFINISHED, sync=False)

    def kept(self, sha: str) -> bytes | None:
        """The bytes that have this hash; `None` if they were not kept."""
        data = self._copy(sha)
        return data if data is not None and sha_of(data) == sha else None

    def _copy(self, sha: str, end: str = "") -> bytes | None:
        if not _SHA.fullmatch(sha):
            return None  # a forged note could name any file
        with opened(self._root, COPIES) as copies:
            try:
                return read_file(copies, sha + end, MAX_TEXT)[0]
            except (FileNotFoundError, Refused):
                return None

    def difference(self, change: ChangedFile, before: str, data: bytes | None) -> str:
        """What has changed in a file that had the hash `before`; empty if that cannot be said."""
        try:
            now = (data or b"").decode()
            if change.path == self._history and before:
                return self._difference_of_history(before, data or b"")
            old = self.kept(before) if before else b""
            return "" if old is None else unified(change.path, old.decode(), now)
        except UnicodeDecodeError:
            return ""

    def _difference_of_history(self, before: str, data: bytes) -> str:
        kept = self._copy(before, _END)
        if kept is None:
            return ""
        tail = _decoded(kept, _Tail)
        if tail is None:
            return ""
        if sha_of(data[: tail.skipped]) == tail.head:
            return unified(self._history, tail.text, data[tail.skipped :].decode(errors="replace"))
        end = data[-len(tail.text.encode()) :].decode(errors="replace")
        return f"(more than the last {KEPT_TAIL:,} bytes has changed)\n{unified(self._history, tail.text, end)}"


@contextmanager
def _words_about(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise in_words(place, error) from error


def _decoded(data: bytes, kind: type[Note]) -> Note | None:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _tail(data: bytes) -> bytes:
    start = max(0, len(data) - KEPT_TAIL)
    if start:
        start = data.find(b"\n", start) + 1 or start
    return msgspec.json.encode(_Tail(start, sha_of(data[:start]), data[start:].decode()))
