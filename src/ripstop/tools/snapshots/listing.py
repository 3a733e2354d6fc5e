"""The files of a workspace, as far as they can be a user's own work, looked at without following links.

Left out is what agents cannot write (git's folder, ours, files with secrets, a project's records), and what others
make again (`node_modules` and the like).
"""

import errno
import os
import stat
from collections.abc import Iterable, Iterator

from msgspec import Struct

from ripstop.engine.performers import Refused

from ..shared_folder import LISTING, READING, open_beneath
from ..workspace import NOT_LISTED, RESERVED, is_off_limits, is_secret, plain_name
from .contents import MAX_CONTENT

MOST_FILES = 100_000
"""Files that are looked at; a larger workspace has no snapshot."""

Stamp = tuple[int, int, int, int]
"""Size, time of the last write, time of the last change, inode: equal if nothing has happened to a file."""
Stamps = dict[str, Stamp]
"""By the path below the workspace."""


class TooManyFiles(Refused):
    """There are more files than are looked at."""


class FileState(Struct, frozen=True, array_like=True):
    """What a file was at some time."""

    stamp: Stamp
    mode: int
    digest: str = ""
    """Of its content; empty if that was not kept."""
    link: str = ""
    """Of a symbolic link: where it leads."""

    def is_like(self, other: "FileState | None") -> bool:
        """Whether both have the same content and permissions, as far as that is known."""
        if other is None or (self.mode, self.link) != (other.mode, other.link):
            return False
        if self.link:
            return True
        return self.digest == other.digest if self.digest and other.digest else self.stamp == other.stamp


def stamps_below(workspace: int, roots: Iterable[str], unseen: list[str] | None = None) -> Stamps:
    """Every file below some folders of an open workspace. Raises `TooManyFiles` and `OSError`.

    Args:
        unseen: Gets what could be a user's own work and cannot be listed.
    """
    found: Stamps = {}
    not_listed: list[str] = [] if unseen is None else unseen
    for root in roots:
        for path, entry in _walk(workspace, root, not_listed):
            found[path] = stamp_of(entry)
            if len(found) > MOST_FILES:
                raise TooManyFiles(f"The workspace has more than {MOST_FILES:,} files.")
    return found


def stamp_of(found: os.stat_result) -> Stamp:
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def _walk(workspace: int, root: str, unseen: list[str]) -> Iterator[tuple[str, os.stat_result]]:
    waiting = [tuple(filter(None, root.split("/")))]
    while waiting:
        parts = waiting.pop()
        try:
            folder = open_beneath(workspace, parts, LISTING)
        except OSError as error:
            if error.errno not in _NO_FOLDER_ANY_MORE:
                unseen.append("/".join(parts))
            continue
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if _is_left_out(entry.name):
                        continue
                    if not is_utf8(entry.name):
                        unseen.append("/".join((*parts, entry.name)))
                    elif entry.is_dir(follow_symlinks=False):
                        waiting.append((*parts, entry.name))
                    elif entry.is_file(follow_symlinks=False) or entry.is_symlink():
                        try:
                            yield "/".join((*parts, entry.name)), entry.stat(follow_symlinks=False)
                        except FileNotFoundError:
                            continue
        finally:
            os.close(folder)


_NO_FOLDER_ANY_MORE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


def is_utf8(name: str) -> bool:
    """Whether a name can be written down: one in another encoding has surrogates in it."""
    return name.isascii() or not any("\ud800" <= character <= "\udfff" for character in name)


def _is_left_out(name: str) -> bool:
    return is_off_limits(name) or is_secret(name) or name.startswith(RESERVED) or plain_name(name) in NOT_LISTED


def read_state(workspace: int, path: str) -> tuple[FileState, bytes | None] | None:
    """What a file is now, and its content unless it is too large or cannot be read; nothing if there is none."""
    parts = tuple(path.split("/"))
    try:
        above = open_beneath(workspace, parts[:-1], LISTING)
    except OSError:
        return None
    try:
        found = os.stat(parts[-1], dir_fd=above, follow_symlinks=False)
        if stat.S_ISLNK(found.st_mode):
            return FileState(stamp_of(found), 0, link=os.readlink(parts[-1], dir_fd=above)), None
        if not stat.S_ISREG(found.st_mode):
            return None
        try:
            descriptor = os.open(parts[-1], READING, dir_fd=above)
        except PermissionError:
            return FileState(stamp_of(found), stat.S_IMODE(found.st_mode)), None
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            data = file.read(MAX_CONTENT + 1) if found.st_size <= MAX_CONTENT else None
    except OSError:
        return None
    finally:
        os.close(above)
    state = FileState(stamp_of(found), stat.S_IMODE(found.st_mode))
    return state, None if data is None or len(data) > MAX_CONTENT else data
