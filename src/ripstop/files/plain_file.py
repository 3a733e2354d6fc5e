"""Reads a file that a user named: a regular one, and not more of it than is wanted.

A pipe would keep us waiting for ever, and a device has no end. So its type and size are checked first.
Every failure is an `OSError` whose `strerror` is meant for people.
"""

import errno
import os
import stat
from pathlib import Path

_OTHERS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
# a pipe without a writer would block the opening itself
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY


def read_plain_file(path: Path, at_most: int) -> bytes:
    """The bytes of a file. Raises `OSError`, also if there are more than `at_most`."""
    _plain(path, os.stat(path).st_mode)
    handle = os.open(path, _FLAGS)
    try:
        found = os.fstat(handle)
        _plain(path, found.st_mode)  # another one may have taken its place
        if found.st_size > at_most:
            raise OSError(errno.EFBIG, f"it has {found.st_size} bytes; at most {at_most} are read", str(path))
        with os.fdopen(handle, "rb", closefd=False) as file:
            data = file.read(at_most + 1)
    finally:
        os.close(handle)
    if len(data) > at_most:  # some files do not know how long they are
        raise OSError(errno.EFBIG, f"it has more than {at_most} bytes; no more are read", str(path))
    return data


def _plain(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, f"it is {_OTHERS.get(stat.S_IFMT(mode), 'something else')}, not a file", str(path))
