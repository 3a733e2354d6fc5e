"""What is on a board: every regular file in `memory/` and `reports/`, by path, with the hash of its bytes.

Anything else there (links, pipes, devices) is refused by name, because it could be anything tomorrow.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from ripstop.performers.folders import PathMissing, opened
from ripstop.performers.regular_files import opened_file, read_file
from ripstop.performers.tools.roots import MAX_PARTS, enter
from ripstop.runtime.performers import Refused

from .folders import MEMORY, REPORTS

MAX_FILES = 5_000
MAX_BYTES = 200_000_000
"""Of all files together."""
MAX_TEXT = 5_000_000
"""Bytes of a file that is read as text."""
_CHUNK = 1 << 20

Files = Mapping[str, str]
"""The sha256 of each file, by its path."""


def digest_of(files: Files) -> str:
    """A hash of all that is on the board."""
    whole = hashlib.sha256()
    for path in sorted(files):
        whole.update(f"{path}\0{files[path]}\n".encode())
    return whole.hexdigest()


def sha_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def scan(root: Path) -> dict[str, str]:
    """Every file of the board as it is now. Raises `Refused` if there is something that does not belong there."""
    found: dict[str, str] = {}
    size = 0
    for top in (MEMORY, REPORTS):
        try:
            with opened(root, (top,)) as folder:
                for path, sha, length in _below(folder, (top,)):
                    found[path] = sha
                    size += length
                    _check_bounds(root, len(found), size)
        except PathMissing:
            continue
    return found


def _check_bounds(root: Path, count: int, size: int) -> None:
    if count > MAX_FILES:
        raise Refused(f"The board {str(root)!r} has more than {MAX_FILES:,} files. Move some away.")
    if size > MAX_BYTES:
        raise Refused(f"The board {str(root)!r} has more than {MAX_BYTES:,} bytes. Move some files away.")


def _below(folder: int, parts: tuple[str, ...]) -> Iterator[tuple[str, str, int]]:
    """Path, hash and length of every file below an open folder."""
    if len(parts) > MAX_PARTS:
        raise Refused(f"{'/'.join(parts)!r} on the board is too deep: at most {MAX_PARTS} folders.")
    for name in sorted(os.listdir(folder)):
        path = "/".join((*parts, name))
        _check_name(path)
        try:
            mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode):
                deeper = enter(folder, name)
                try:
                    yield from _below(deeper, (*parts, name))
                finally:
                    os.close(deeper)
            elif stat.S_ISREG(mode):
                yield (path, *_hashed(folder, name))
            else:
                raise _misplaced(path, mode)
        except FileNotFoundError:
            continue  # removed since the folder was listed
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise _misplaced(path, stat.S_IFLNK) from error
            raise OSError(error.errno, os.strerror(error.errno or 0), path) from error


def _hashed(folder: int, name: str) -> tuple[str, int]:
    whole, length = hashlib.sha256(), 0
    with opened_file(folder, name) as (descriptor, _):
        while length <= MAX_BYTES and (piece := os.read(descriptor, _CHUNK)):
            whole.update(piece)
            length += len(piece)
    return whole.hexdigest(), length


def _check_name(path: str) -> None:
    try:
        path.encode()
    except UnicodeEncodeError as error:
        shown = path.encode(errors="backslashreplace").decode()
        raise Refused(f"{shown!r} on the board has a name that is not UTF-8. Rename it.") from error


def _misplaced(path: str, mode: int) -> Refused:
    what = "a symbolic link, and links are not followed" if stat.S_ISLNK(mode) else "not a regular file"
    return Refused(f"{path!r} on the board is {what}. Remove it.")


def read(root: Path, path: str) -> bytes | None:
    """The bytes of a file of the board; `None` if there is none. Raises `Refused` if it is too large."""
    *folders, name = path.split("/")
    try:
        with opened(root, tuple(folders)) as above:
            try:
                data, _ = read_file(above, name, MAX_TEXT)
            except FileNotFoundError:
                return None
            except Refused as refusal:
                raise Refused(f"{path!r} on the board cannot be read: {refusal}") from refusal
    except PathMissing:
        return None
    if len(data) > MAX_TEXT:
        raise Refused(f"{path!r} on the board is too large: at most {MAX_TEXT:,} bytes are read.")
    return data


def as_text(path: str, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Refused(f"{path!r} is not UTF-8 text: byte {error.start} is wrong. Save it as UTF-8.") from error


def as_data(path: str, text: str) -> bytes:
    """A text as the bytes of a file. Raises `Refused` if it cannot be one."""
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise Refused(f"Character {error.start} of {path!r} cannot be written as UTF-8.") from error
    if len(data) > MAX_TEXT:
        raise Refused(
            f"{path!r} would have {len(data):,} bytes; at most {MAX_TEXT:,} are possible. Move older parts of it to "
            "another file."
        )
    return data
