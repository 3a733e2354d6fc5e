"""The text files of a knowledge folder, and what tells whether one has changed.

- Searched are `.md`, `.markdown` and `.txt` below the folder. What is hidden (`.git`, `.draft.md`) is left out.
- Links are not followed: one could lead to any file of this user. A hard link is left out for the same reason.
- Numbers, sizes and depth are bounded. What is left out for that, or cannot be read, is reported and fails nothing.
"""

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from ripstop.engine.clock import system_time
from ripstop.engine.performers import Refused
from ripstop.security.files import HARD_LINK

from ..shared_folder import read_file
from ..workspace import enter

MARKDOWN = (".md", ".markdown")
SUFFIXES = (*MARKDOWN, ".txt")
MAX_FILES = 10_000
MAX_ENTRIES = 50_000
"""Files and folders of any kind that are looked at."""
MAX_DEPTH = 16
MAX_FILE = 2_000_000
"""Bytes of one file."""
MAX_BYTES = 64_000_000
"""Of all files together."""
UNSETTLED = 1_000_000_000
"""Nanoseconds in which a file can be written twice at what the file system takes for one time."""


class Skipped(Struct, frozen=True):
    """A file that is not searched, and why."""

    path: str
    reason: str


class FileList(Struct, frozen=True):
    stamps: dict[str, str]
    """Of each file, by its path: another stamp is another content."""
    skipped: tuple[Skipped, ...]


class KnowledgeFile(Struct, frozen=True):
    data: bytes
    stamp: str
    """Empty: it was changed a moment ago, and has to be read again before it can be relied on."""


class KnowledgeFolder:
    def __init__(self, root: Path) -> None:
        self.root = root

    def files(self) -> FileList:
        """Every file as it is now, in the order of the paths. Raises `Refused` if the folder cannot be read."""
        found = _Found()
        with _OpenFolder(self.root) as top:
            _look_into(top, (), found)
        return FileList(found.stamps, tuple(found.skipped))

    def read(self, path: str) -> KnowledgeFile:
        """One file. Raises `OSError` and `Refused`."""
        *folders, name = path.split("/")
        current = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for part in folders:
                deeper = enter(current, part)
                os.close(current)
                current = deeper
            data, status = read_file(current, name, MAX_FILE)
        finally:
            os.close(current)
        if status.st_nlink > 1:
            raise OSError(errno.EMLINK, HARD_LINK, path)
        age = system_time() * 1000 - status.st_ctime_ns
        return KnowledgeFile(data, "" if abs(age) < UNSETTLED else _stamp(status))


class _Found:
    """What a walk has found so far."""

    def __init__(self) -> None:
        self.stamps: dict[str, str] = {}
        self.skipped: list[Skipped] = []
        self.size = 0
        self.entries = 0

    def take(self, path: str, status: os.stat_result) -> None:
        if not stat.S_ISREG(status.st_mode):
            self.leave_out(path, "it is not a regular file")
        elif status.st_nlink > 1:
            self.leave_out(path, HARD_LINK)
        elif status.st_size > MAX_FILE:
            self.leave_out(path, f"it has {status.st_size:,} bytes, at most {MAX_FILE:,} are read")
        elif len(self.stamps) == MAX_FILES:
            self.leave_out(path, f"there are more than {MAX_FILES:,} files")
        elif self.size + status.st_size > MAX_BYTES:
            self.leave_out(path, f"all files together have more than {MAX_BYTES:,} bytes")
        else:
            self.stamps[path] = _stamp(status)
            self.size += status.st_size

    def leave_out(self, path: str, reason: str) -> None:
        self.skipped.append(Skipped(path, reason))


class _OpenFolder:
    def __init__(self, root: Path) -> None:
        self._root = root

    def __enter__(self) -> int:
        try:
            self._descriptor = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except (OSError, ValueError) as error:
            raise _cannot_be_read(self._root, error) from error
        return self._descriptor

    def __exit__(self, *error: object) -> None:
        os.close(self._descriptor)


def _cannot_be_read(root: Path, error: OSError | ValueError) -> Refused:
    if isinstance(error, FileNotFoundError):
        said = f"There is no knowledge folder {str(root)!r}. Create it, or name another."
    elif isinstance(error, NotADirectoryError):
        said = f"The knowledge base {str(root)!r} is not a folder. Name the folder that has the files."
    else:
        reason = (error.strerror if isinstance(error, OSError) else "") or "its name cannot be one"
        said = f"The knowledge folder {str(root)!r} cannot be read: {reason}. Allow this user to read it."
    return Refused(said, "definition")


def _look_into(folder: int, parts: tuple[str, ...], found: _Found) -> None:
    for entry in _entries(folder, parts, found):
        path = "/".join((*parts, entry.name))
        try:
            if entry.is_symlink():
                if entry.name.lower().endswith(SUFFIXES) or entry.is_dir():
                    found.leave_out(path, "it is a symbolic link, and links are not followed")
            elif entry.is_dir(follow_symlinks=False):
                _go_down(folder, (*parts, entry.name), found)
            elif entry.name.lower().endswith(SUFFIXES):
                found.take(path, entry.stat(follow_symlinks=False))
        except FileNotFoundError:
            continue  # removed since the folder was listed
        except (OSError, Refused) as error:
            found.leave_out(path, reason_of(error))


def _go_down(above: int, parts: tuple[str, ...], found: _Found) -> None:
    if len(parts) > MAX_DEPTH:
        found.leave_out("/".join(parts), f"at most {MAX_DEPTH} folders deep is searched")
        return
    deeper = enter(above, parts[-1])
    try:
        _look_into(deeper, parts, found)
    finally:
        os.close(deeper)


def _entries(folder: int, parts: tuple[str, ...], found: _Found) -> Iterator["os.DirEntry[str]"]:
    """What is in a folder and not hidden, by name."""
    entries = []
    with os.scandir(folder) as listed:
        for entry in listed:
            if found.entries == MAX_ENTRIES:
                found.leave_out("/".join(parts) or ".", f"there are more than {MAX_ENTRIES:,} entries in all")
                break
            found.entries += 1
            if entry.name.startswith("."):
                continue
            if _is_utf8(entry.name):
                entries.append(entry)
            else:
                shown = entry.name.encode(errors="backslashreplace").decode()
                found.leave_out("/".join((*parts, shown)), "its name is not UTF-8")
    yield from sorted(entries, key=lambda entry: entry.name)


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def reason_of(error: OSError | Refused) -> str:
    """Why a file cannot be read, as the end of a sentence."""
    said = (error.strerror or "it cannot be read") if isinstance(error, OSError) else str(error)
    return said.rstrip(".")


def _stamp(status: os.stat_result) -> str:
    # the time of change, too: a file that is put back with its old time and size is another one all the same
    return f"{status.st_ino}.{status.st_size}.{status.st_mtime_ns}.{status.st_ctime_ns}"
