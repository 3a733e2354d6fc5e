"""A file of what the user has agreed to, in the user's own state folder.

It is read only if nobody else can have written it, and written all at once, by one process at a time.
"""

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec

from ripstop.files.plain_file import read_plain_file
from ripstop.kernel.errors import UsageError

MAX_BYTES = 4_000_000
_OTHERS_CAN_WRITE = 0o022

Kept = TypeVar("Kept", bound=msgspec.Struct)


class UserFile:
    def __init__(self, path: Path, again: str) -> None:
        """`again`: the command that makes the file again, for one that cannot be used."""
        self.path = path
        self._again = again

    def read(self, kind: type[Kept]) -> Kept | None:
        """What the file holds; `None` if there is none. Raises `UsageError` if it cannot be trusted."""
        try:
            found = os.stat(self.path)
            if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & _OTHERS_CAN_WRITE:
                raise UsageError(
                    f"{self.path} can be written by other users; remove it, and agree again: {self._again}"
                )
            return msgspec.json.decode(read_plain_file(self.path, MAX_BYTES), type=kind)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise UsageError(f"{self.path} cannot be read: {error.strerror}.") from error
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise UsageError(f"{self.path} is damaged ({error}). Remove it, and agree again: {self._again}") from error

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Let no other process change it meanwhile. Raises `OSError`."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(self.path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def write(self, content: msgspec.Struct) -> None:
        """Write all of it; only while it is locked. Raises `OSError`."""
        data = msgspec.json.format(msgspec.json.encode(content), indent=1)
        new = self.path.with_name(f"{self.path.name}.new")
        handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(handle)
        os.replace(new, self.path)
        above = os.open(self.path.parent, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(above)
        finally:
            os.close(above)
