"""What is on a board: every regular file in `memory/` and `reports/`, by path, with the hash of its bytes.

- Anything else there (links, pipes, devices) is refused by name, because it could be anything tomorrow.
- A run that another run started works on a copy: the plan, the history and the reports. All is copied under a temporary
  name and made durable; then the name is changed. Half a copy is never used.
"""

import errno
import hashlib
import os
import re
import secrets
import shutil
import stat
from collections.abc import Collection, Iterator, Mapping
from difflib import unified_diff
from pathlib import Path
from typing import Literal

from ripstop.engine.performers import Refused
from ripstop.security.files import make_folder
from ripstop.tools.shared_folder import CREATING, PathMissing, in_words, opened, opened_file, parts_of, read_file
from ripstop.tools.workspace import MAX_PARTS, MAX_PATH, RESERVED, enter, is_name

from .calls import ChangedFile
from .definition import MEMORY, REPORTS

MAX_FILES = 5_000
MAX_BYTES = 200_000_000
"""Of all files together."""
MAX_TEXT = 5_000_000
"""Bytes of a file that is read as text."""
BOARDS = "boards"
"""The folder of copies in a workspace."""
MAX_LINES, MAX_CHARS = 60, 6_000
"""Of one difference."""
MAX_COMPARED = 1_000
"""Lines of each text that are compared: comparing takes time that grows faster than the texts."""
CONTEXT = 3
_CHUNK = 1 << 20
_REPORT = re.compile(r"report_[^/]+\.md")
_HUNK = re.compile(r"@@ -(\d+)(.*?) \+(\d+)(.*)")

Files = Mapping[str, str]
"""The sha256 of each file, by its path."""


# Paths


def check_memory_path(path: str) -> None:
    """Raise `Refused` unless it names a file in `memory/`, as the board lists it."""
    parts = parts_of(path)
    if len(parts) < 2 or parts[0] != MEMORY or "/".join(parts) != path:
        raise Refused(f"{path!r} is not a file in {MEMORY}/, so it cannot be the plan or the history.", "definition")


def check_report_path(path: str) -> None:
    """Raise `Refused` unless it is `reports/report_<name>.md`."""
    if not is_report_path(path):
        raise Refused(f"{path!r} cannot be a report; a report is {REPORTS}/report_<name>.md.", "definition")


def is_report_path(path: str) -> bool:
    folder, _, name = path.partition("/")
    return folder == REPORTS and len(path) <= MAX_PATH and is_name(name) and bool(_REPORT.fullmatch(name))


# Files


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


# Copies


def copied_board(source: Path, workspace: Path, run_id: str, wanted: Collection[str], create: bool) -> Path:
    """The folder of the copy; with `create` it is made if there is none.

    Args:
        wanted: Files that are copied besides the reports, if there are any.
    """
    name = run_id.replace("/", "-")
    try:
        with opened(workspace, (BOARDS, name)):
            return workspace / BOARDS / name
    except PathMissing:
        if not create:
            raise
    try:
        make_folder(workspace)
    except OSError as error:
        raise in_words(workspace, error) from error
    if not source.is_dir():
        raise PathMissing(f"There is no folder {str(source)!r}. Put it back, or choose another.")
    unfinished = f"{RESERVED}{secrets.token_hex(8)}"
    with opened(workspace, (BOARDS,), create=True) as boards:
        try:
            with opened(workspace, (BOARDS, unfinished), create=True):
                _copy(source, workspace / BOARDS / unfinished, wanted)
            os.rename(unfinished, name, src_dir_fd=boards, dst_dir_fd=boards)
            os.fsync(boards)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True, dir_fd=boards)  # what went wrong with the copy matters more
            raise
    return workspace / BOARDS / name


def _copy(source: Path, target: Path, wanted: Collection[str]) -> None:
    for path in scan(source):
        if path in wanted or path.startswith(f"{REPORTS}/"):
            *folders, name = path.split("/")
            with (
                opened(source, tuple(folders)) as above,
                opened(target, tuple(folders), create=True) as into,
            ):
                _copy_file(above, into, name, path)


def _copy_file(above: int, into: int, name: str, path: str) -> None:
    try:
        with opened_file(above, name) as (old, status), open(os.open(name, CREATING, 0o666, dir_fd=into), "wb") as new:
            with os.fdopen(old, "rb", closefd=False) as file:
                shutil.copyfileobj(file, new)
            new.flush()
            os.fchmod(new.fileno(), stat.S_IMODE(status.st_mode))
            os.fsync(new.fileno())
    except FileNotFoundError as error:
        raise Refused(f"{path!r} was deleted while the board was copied. Resume to try again.") from error
    os.fsync(into)


# Differences


def changes(before: Files, now: Files) -> list[ChangedFile]:
    """Every file that differs, by path, without its difference."""
    differing = sorted(path for path in before.keys() | now.keys() if before.get(path) != now.get(path))
    return [ChangedFile(path, _what(path, before, now)) for path in differing]


def _what(path: str, before: Files, now: Files) -> Literal["created", "changed", "deleted"]:
    if path not in before:
        return "created"
    return "changed" if path in now else "deleted"


def unified(path: str, before: str, after: str) -> str:
    """A bounded unified diff."""
    old, new = before.splitlines(), after.splitlines()
    same = 0
    while same < min(len(old), len(new)) and old[same] == new[same]:
        same += 1
    skipped = max(0, same - CONTEXT)
    old, new = old[skipped:], new[skipped:]
    while len(old) > CONTEXT and len(new) > CONTEXT and old[-CONTEXT - 1 :] == new[-CONTEXT - 1 :]:
        old.pop()
        new.pop()
    compared = unified_diff(old[:MAX_COMPARED], new[:MAX_COMPARED], path, path, n=CONTEXT, lineterm="")
    lines = [_moved(line, skipped) if line.startswith("@@") else line for line in compared]
    if len(lines) > MAX_LINES:
        lines = [*lines[: MAX_LINES - 1], f"… and {len(lines) - MAX_LINES + 1} more lines"]
    whole = "\n".join(lines)
    return whole if len(whole) <= MAX_CHARS else f"{whole[: MAX_CHARS - 1]}…"


def _moved(hunk: str, lines: int) -> str:
    """The first line of a hunk, for texts whose first lines were left out."""
    return _HUNK.sub(lambda found: f"@@ -{int(found[1]) + lines}{found[2]} +{int(found[3]) + lines}{found[4]}", hunk)
