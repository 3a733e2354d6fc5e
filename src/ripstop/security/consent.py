"""The user's consents: addresses, endpoints, tools, commands and folders that a project or its journal names.

- One file per user, `consents.json`, for everything that can be named; a project cannot write it for the user.
- A consent is for one content in one project, by hash: a changed address or command is another one, and so is the same
  one in another project. A consent to a folder is for one journal.
- A file that cannot be read, or that others could have written, is an error, never a consent and never an empty list.
"""

import fcntl
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import msgspec

from ripstop.files.plain_file import read_plain_file
from ripstop.files.user_folders import state_folder
from ripstop.kernel.errors import UsageError

FILE = "consents.json"
LOCK = "consents.lock"
MAX_BYTES = 4_000_000
MOST_FOLDERS = 1000
"""Consents to folders: every `run --workspace` adds one. The oldest are forgotten, and asked about again."""
_OTHERS_CAN_WRITE = 0o022


class ConsentsNotWritten(UsageError):
    """Raised where consents cannot be kept: a home that cannot be written to, or none."""


class Consent(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the user agrees to, and where."""

    kind: Literal["address", "endpoint", "tools", "command", "folder"]
    content: str
    """The address, the Python module, the command with its arguments as JSON, the absolute folder of files, or for an
    endpoint its origin and the names of the secrets that it gets."""
    project: str
    """The project's folder, absolute."""
    journal: str = ""
    """For a folder: the journal whose runs can write there."""

    @property
    def digest(self) -> str:
        parts = [self.kind, self.content, self.project, *([self.journal] if self.journal else [])]
        return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()


class _Kept(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    named: Consent
    digest: str


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: Literal[1] = 1
    consents: tuple[_Kept, ...] = ()


class Consents:
    """The consents of one user."""

    def __init__(self, folder: Path | None = None) -> None:
        """`folder`: where the file is, if not in the user's own state folder."""
        self._folder = folder or state_folder()

    def all(self) -> tuple[Consent, ...]:
        """Every consent, in the order in which they were given. Raises `UsageError` if the file cannot be trusted."""
        return tuple(consent.named for consent in self._read() if consent.digest == consent.named.digest)

    @property
    def can_be_kept(self) -> bool:
        """Whether there is a place for them: without a home there is none."""
        return self._folder is not None

    def cover(self, named: Consent) -> bool:
        """Whether the user has agreed to exactly this."""
        return any(kept.named == named and kept.digest == named.digest for kept in self._read())

    def remember(self, items: Iterable[Consent]) -> None:
        """Remember that the user agrees. Raises `ConsentsNotWritten`, or `UsageError` if the file cannot be trusted."""
        with self._changing() as known:
            known.update(dict.fromkeys(items))
            folders = [one for one in known if one.kind == "folder"]
            for oldest in folders[:-MOST_FOLDERS]:
                del known[oldest]

    def revoke(self, items: Iterable[Consent]) -> None:
        """Forget that the user has agreed."""
        with self._changing() as known:
            for one in items:
                known.pop(one, None)

    @contextmanager
    def _changing(self) -> Iterator[dict[Consent, None]]:
        """Lets the consents be changed while no other process changes them, and writes them all at once."""
        if self._folder is None:
            raise ConsentsNotWritten("Consents are remembered in the user's home, but HOME is not set.")
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(self._folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX)
                known = dict.fromkeys(self.all())
                yield known
                self._write(self._folder, known)
            finally:
                os.close(lock)
        except OSError as error:
            raise ConsentsNotWritten(f"Consents cannot be written to {self._folder}: {error.strerror}.") from error

    def _read(self) -> tuple[_Kept, ...]:
        if self._folder is None:
            return ()
        path = self._folder / FILE
        try:
            found = os.stat(path)
            if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & _OTHERS_CAN_WRITE:
                raise UsageError(f"{path} can be written by other users; remove it, and agree again: ripstop trust")
            return msgspec.json.decode(read_plain_file(path, MAX_BYTES), type=_File).consents
        except (FileNotFoundError, NotADirectoryError):
            return ()
        except OSError as error:
            raise UsageError(f"{path} cannot be read: {error.strerror}.") from error
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise UsageError(f"{path} is damaged ({error}). Remove it, and agree again: ripstop trust") from error

    @staticmethod
    def _write(folder: Path, known: Iterable[Consent]) -> None:
        data = msgspec.json.format(
            msgspec.json.encode(_File(consents=tuple(_Kept(one, one.digest) for one in known))), indent=1
        )
        new = folder / f"{FILE}.new"
        handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(handle)
        os.replace(new, folder / FILE)
        above = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(above)
        finally:
            os.close(above)
