"""A regular file in an open folder: read with a bound, or written so that it is safely on disk. Links are not followed.

A pipe or a device that takes the file's place cannot make us wait: the file is opened first, and checked then.
"""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from ripstop.runtime.performers import Refused

READING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
CREATING = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def opened_file(above: int, name: str) -> Iterator[tuple[int, os.stat_result]]:
    """A descriptor of a regular file. Raises `OSError`, and `Refused` if it is anything else."""
    descriptor = os.open(name, READING, dir_fd=above)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise Refused(f"{name!r} is not a regular file. Move it away.")
        yield descriptor, status
    finally:
        os.close(descriptor)


def read_file(above: int, name: str, most: int) -> tuple[bytes, os.stat_result]:
    """The bytes of a file, and what was known of it before they were read. Raises as `opened_file`."""
    with opened_file(above, name) as (descriptor, status):
        if status.st_size > most:
            raise Refused(f"{name!r} is too large: {status.st_size} bytes, at most {most}.")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(most + 1), status


@contextmanager
def complete_file(
    above: int,
    name: str,
    data: bytes,
    mode: int | None = None,
    when_open: Callable[[], object] = bool,
    sync: bool = True,
) -> Iterator[None]:
    """A complete new file, safely on disk unless `sync` is false, under a name that goes away again.

    Args:
        when_open: Called before anything is written.
    """
    descriptor = os.open(name, CREATING, 0o666, dir_fd=above)
    try:
        with os.fdopen(descriptor, "wb") as file:
            when_open()
            file.write(data)
            file.flush()
            if mode is not None:
                os.fchmod(descriptor, mode)
            if sync:
                os.fsync(descriptor)
        yield
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=above)


def mode_of(above: int, name: str) -> int | None:
    """The permissions of a file; `None` if there is none."""
    try:
        return stat.S_IMODE(os.stat(name, dir_fd=above, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return None
