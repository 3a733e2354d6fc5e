"""One file in an open folder: how it is read, made, replaced and moved. The rules are `folder`'s."""

import hashlib
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from ripstop.performers.file_errors import in_words
from ripstop.performers.regular_files import CREATING, complete_file, mode_of, read_file
from ripstop.runtime.failpoints import failpoint
from ripstop.runtime.performers import Refused, TryAgain

from .exchange import replace_if
from .names import MAX_NAME, MAX_SIZE, checked, cut, decoded, numbered, safe

_UNFINISHED = ".unfinished-"
"""How the names of our hidden files begin. Not as those of the file tools, which delete theirs under another lock."""
_OLD, _LOOKS = 3600.0, 5
REFUSED = ".refused-"
PAUSE = 0.01
"""Seconds until we look again."""


class FoundFile(Struct, frozen=True):
    """A file that was read: it has a text or a problem. `mtime` is in microseconds since 1970."""

    name: str
    text: str | None
    problem: str
    mtime: int


class Missing(Refused):
    """There is no such folder or file."""


def found(above: int, name: str) -> FoundFile | None:
    """Nothing if it has gone in the meantime."""
    text, problem, mtime = None, "", 0
    try:
        mtime = os.stat(name, dir_fd=above, follow_symlinks=False).st_mtime_ns // 1000
        data = look(above, name)
        text = None if data is None else decoded(name, data)
    except FileNotFoundError:
        return None
    except OSError as error:
        problem = str(in_words(Path(name), error))
    except (Refused, TryAgain) as trouble:
        problem = str(trouble)
    return FoundFile(name, text, problem, mtime) if text is not None or problem else None


def is_there(above: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=above, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def is_older(above: int, name: str, before: float) -> bool:
    try:
        return os.stat(name, dir_fd=above, follow_symlinks=False).st_mtime < before
    except FileNotFoundError:
        return False


def look(above: int, name: str) -> bytes | None:
    looked = look_closely(above, name)
    return None if looked is None else looked[0]


def look_closely(above: int, name: str) -> tuple[bytes, os.stat_result] | None:
    """All of a file as it was at one moment: if it is written or replaced meanwhile, we look again."""
    for _ in range(_LOOKS):
        try:
            data, status = read_file(above, name, MAX_SIZE)
        except FileNotFoundError:
            return None
        with suppress(FileNotFoundError):
            now = os.stat(name, dir_fd=above, follow_symlinks=False)
            if os.path.samestat(now, status) and (now.st_size, now.st_mtime_ns) == (len(data), status.st_mtime_ns):
                return data, now
        time.sleep(PAUSE)
    raise TryAgain(f"{name!r} is being written all the time and cannot be read.")


def sha(above: int, name: str) -> str:
    """The hash of the file; empty if there is none."""
    data = look(above, name)
    return "" if data is None else hashlib.sha256(data).hexdigest()


def sha_of_any(above: int, name: str) -> str:
    """Like `sha`, but returns a text that is not a hash if the file cannot be read."""
    try:
        return sha(above, name)
    except (Refused, TryAgain, OSError):
        return "unreadable"


@contextmanager
def _unfinished(above: int, data: bytes, mode: int | None = None, into: int | None = None) -> Iterator[str]:
    """A complete file, safely on disk, under a hidden name that goes away again; `into`: where it is to go."""
    name = _UNFINISHED + secrets.token_hex(8)
    with complete_file(above, name, data, mode, when_open=lambda: failpoint("documents.before_write")):
        yield name
    os.fsync(above if into is None else into)


def sweep(above: int) -> None:
    """Remove what killed processes have left. The time is the file system's own: when the folder last changed."""
    now = os.fstat(above).st_mtime
    for name in os.listdir(above):
        if name.startswith(_UNFINISHED):
            with suppress(FileNotFoundError):
                if now - os.stat(name, dir_fd=above, follow_symlinks=False).st_mtime > _OLD:
                    os.unlink(name, dir_fd=above)


def create(above: int, names: Iterator[str], data: bytes) -> str:
    """Put a new file under the first name that is free; returns it, or nothing if none was."""
    with _unfinished(above, data) as unfinished:
        for name in names:
            failpoint("documents.before_link")
            try:
                os.link(unfinished, name, src_dir_fd=above, dst_dir_fd=above, follow_symlinks=False)
            except FileExistsError:
                continue
            failpoint("documents.after_link")
            return name
    return ""


def put(above: int, name: str, data: bytes) -> None:
    with _unfinished(above, data, mode_of(above, name)) as unfinished:
        failpoint("documents.before_rename")
        os.rename(unfinished, name, src_dir_fd=above, dst_dir_fd=above)
        failpoint("documents.after_rename")


def put_in_place_of(above: int, name: str, data: bytes, over: str, beside: int, key: str) -> bool:
    """The new file has a separate name, which only complete files get. After an error it stays: see `rescue`."""
    with _unfinished(beside, data, mode_of(above, name), into=above) as unfinished:
        failpoint("documents.before_rename")
        os.rename(unfinished, key, src_dir_fd=beside, dst_dir_fd=beside)
        done = replace_if((beside, key), (above, name), over, sha_of_any)
        failpoint("documents.after_rename")
        with suppress(FileNotFoundError):  # where there is no exchange, it was renamed
            os.unlink(key, dir_fd=beside)
    return done


def refused(name: str, tag: str) -> Iterator[str]:
    """Names under which a refused text may be kept beside its document."""
    return numbered(f"{cut(checked(name), MAX_NAME - 90)}{REFUSED}{cut(safe(tag), 80)}", "")


def move(above: int, name: str, into: int, names: Iterator[str]) -> str:
    """Move a file under a name that is free there. An empty file takes the name first, for a rename overwrites."""
    for target in names:
        with suppress(FileExistsError):
            os.close(os.open(target, CREATING, 0o666, dir_fd=into))
            break
    failpoint("documents.before_move")
    try:
        os.rename(name, target, src_dir_fd=above, dst_dir_fd=into)
    except OSError as error:
        os.unlink(target, dir_fd=into)
        if isinstance(error, FileNotFoundError):
            raise Missing(f"{name!r} is gone; another process has moved or deleted it.") from error
        raise
    failpoint("documents.after_move")
    os.fsync(into)
    os.fsync(above)
    return target
