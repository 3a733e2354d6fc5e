"""The user's consents: addresses, endpoints, tools, servers, commands and folders that a project or its journal names.

- One file per user, `consents.json`, for everything that can be named; a project cannot write it for the user.
- A consent is for one content in one project, by hash: a changed address or command is another one, and so is the same
  one in another project. A consent to a folder is for one journal.
- A file that cannot be read, or that others could have written, is an error, never a consent and never an empty list.
"""

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import msgspec

from ripstop.files.user_folders import state_folder
from ripstop.kernel.errors import UsageError

from .user_file import UserFile

FILE = "consents.json"
MOST_FOLDERS = 1000
"""Consents to folders: every `run --workspace` adds one. The oldest are forgotten, and asked about again."""


class ConsentsNotWritten(UsageError):
    """Raised where consents cannot be kept: a home that cannot be written to, or none."""


class Consent(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the user agrees to, and where."""

    kind: Literal["address", "endpoint", "webhook", "tools", "server", "command", "folder"]
    content: str
    """The address, the Python module, the command with its arguments as JSON, the absolute folder of files, for an
    endpoint its origin and the names of the secrets that it gets, for a webhook its URL and the name of its secret, or
    for an MCP server its name and whole table."""
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
        self._file = UserFile(self._folder / FILE, "ripstop trust") if self._folder else None

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
        if self._file is None:
            raise ConsentsNotWritten("Consents are remembered in the user's home, but HOME is not set.")
        try:
            with self._file.locked():
                known = dict.fromkeys(self.all())
                yield known
                self._file.write(_File(consents=tuple(_Kept(one, one.digest) for one in known)))
        except OSError as error:
            raise ConsentsNotWritten(f"Consents cannot be written to {self._folder}: {error.strerror}.") from error

    def _read(self) -> tuple[_Kept, ...]:
        found = self._file.read(_File) if self._file else None
        return found.consents if found else ()
