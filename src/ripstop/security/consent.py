"""The user's consents: addresses, endpoints, tools, servers, commands and folders that a project or its journal names.

- One file per user, `consents.json`, for everything that can be named; a project cannot write it for the user.
- A consent is for one content in one project, by hash: a changed address or command is another one, and so is the same
  one in another project. A consent to a folder is for one journal.
- A file that cannot be read, or that others could have written, is an error, never a consent and never an empty list.
"""

import fcntl
import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from ripstop.kernel.advice import Advice, NextStep
from ripstop.kernel.errors import UsageError

from .endpoints import parse_origin
from .files import OURS, close_own_folders, make_private_folder, read_plain_file, state_folder

# A file of what the user has agreed to, in the user's own state folder.
#
# It is read only if nobody else can have written it, and written all at once, by one process at a time.


MAX_BYTES = 4_000_000
_OTHERS_CAN_WRITE = 0o022

Kept = TypeVar("Kept", bound=msgspec.Struct)


class UserFile:
    def __init__(self, path: Path, again: NextStep) -> None:
        """`again`: what makes the file again, for one that cannot be used."""
        self.path = path
        self._again = again

    def read(self, kind: type[Kept]) -> Kept | None:
        """What the file holds; `None` if there is none. Raises `UsageError` if it cannot be trusted."""
        try:
            close_own_folders(self.path.parent)
            found = os.stat(self.path)
            if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & _OTHERS_CAN_WRITE:
                raise UsageError(Advice(f"{self.path} can be written by other users; remove it, and ", self._again))
            return msgspec.json.decode(read_plain_file(self.path, MAX_BYTES), type=kind)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise UsageError(f"{self.path} cannot be read: {error.strerror}.") from error
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise UsageError(Advice(f"{self.path} is damaged ({error}). Remove it, and ", self._again)) from error

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Let no other process change it meanwhile. Raises `OSError`."""
        make_private_folder(self.path.parent)
        lock = self._lock()
        try:
            yield
        finally:
            os.close(lock)

    def _lock(self) -> int:
        path = self.path.with_suffix(".lock")
        while True:
            lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX)
                if os.path.lexists(path) and os.path.samestat(os.fstat(lock), os.stat(path)):
                    return lock
            except BaseException:
                os.close(lock)
                raise
            os.close(lock)  # whoever held it has removed it, so the next one does not wait for us

    def write(self, content: msgspec.Struct) -> None:
        """Write all of it; only while it is locked, because the new file has one name. Raises `OSError`."""
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


FILE = "consents.json"
MOST_FOLDERS = 1000
"""Consents to folders: every `run --workspace` adds one. The oldest are forgotten, and asked about again."""


class ConsentsNotWritten(UsageError):
    """Raised where consents cannot be kept: a home that cannot be written to, or none."""


class Consent(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the user agrees to, and where."""

    kind: Literal["address", "endpoint", "webhook", "tools", "server", "command", "folder", "journal"]
    content: str
    """The address, the Python module, the command with its arguments as JSON, the absolute folder of files, for an
    endpoint its origin and the names of the secrets that it gets, for a webhook its URL and the name of its secret, or
    for an MCP server its name and whole table. A journal is named so too, but kept in `security.known_journals`."""
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
        self._file = (
            UserFile(self._folder / FILE, NextStep("trust", "agree again", "agree again: {}")) if self._folder else None
        )

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


# Which origins tools may send requests to, with which secrets, and which of them may be private addresses.
#
# - An origin gets requests if the user named it (`[http] allow`, `RIPSTOP_HTTP_ALLOW`, `--allow`), or has agreed to it
#   in this project.
# - An origin that the user named may also be on a private address. One that was only agreed to may not.
# - A secret goes only to an origin for which the user has agreed to it by name, no matter who named the origin.


def parse_allowed(text: str, where: str) -> str:
    """The origin of an address that the user allows. Raises `UsageError`."""
    address = parse_origin(text.strip(), where)
    if address.path:
        raise UsageError(
            f"{where} names the path {address.path!r}, but an origin is allowed as a whole. Write {address.origin}."
        )
    return address.origin


class EndpointConsents:
    """What the user has named and agreed to. Consents are read at every look, so that a new one counts at once."""

    def __init__(
        self, allowed: Iterable[str] = (), project: Path | None = None, consents: Consents | None = None
    ) -> None:
        self._allowed = frozenset(parse_allowed(one, "An address under [http] allow") for one in allowed)
        self._project = str((project or Path.cwd()).resolve())
        self._consents = consents or Consents()

    def allow_private(self, origin: str) -> bool:
        """Whether an origin may be on a private address."""
        return origin in self._allowed

    def missing(self, origin: str, secrets: Iterable[str] = ()) -> Consent | None:
        """What the user would have to agree to before an origin gets a request with these secrets.

        Raises `UsageError` if the consents cannot be trusted.
        """
        wanted = frozenset(secrets)
        if origin in self._allowed and not wanted:
            return None
        agreed, known = False, set[str]()
        for consent in self._consents.all():
            of, *names = consent.content.split(" ")
            if consent.kind == "endpoint" and consent.project == self._project and of == origin:
                agreed = True
                known.update(names)
        if (agreed or origin in self._allowed) and wanted <= known:
            return None
        return Consent("endpoint", " ".join((origin, *sorted(wanted | known))), self._project)


# Which folders runs of a journal can write to: those that are theirs, and those that the user has named.
#
# A journal records where a run puts its files, and it can come from somebody else. So a recorded folder is used only if
#
# - it is the run's own, `.ripstop/workspaces/RUN`, in the current folder or next to the journal, with no link on the
#   way;
# - it is the folder of hand-off documents that the command works in, or its `workspace`; or
# - the user has named it for this journal on this machine (`run --workspace`, `resume --workspace`, or by saying yes).
#   That is one of the user's consents (`security.consent`). Where they cannot be written, or the folder's name is not
#   UTF-8, it is remembered as long as the process lives.


WORKSPACES, OF_DOCUMENTS = "workspaces", "workspace"


_OF_CHILD = re.compile(r"[^./][^/]*-[0-9]+")
"""The folder, below its parent's workspace, of a run that keeps a project of its own. No other name is covered there: a
journal could call `.git` or `workflows` a workspace."""


class TrustedFolders:
    def __init__(self, journal: Path, here: Path, consents: Consents) -> None:
        """`here`: the current folder."""
        self._journal = journal
        self._projects = [here, *([journal.parent.parent] if journal.parent.name == OURS else [])]
        self._consents = consents
        self._named: set[Path] = set()

    def cover(self, folder: Path) -> bool:
        """Whether runs of this journal can put files there."""
        if self._is_own(folder):
            return True
        meant = folder.resolve()
        if any(self._was_named(one) for one in (meant, *_collection(meant))):
            return True
        if meant != folder:
            return False
        if folder.name == OF_DOCUMENTS and self._was_named(folder.parent):
            return True  # where the roles of a folder of documents work
        return bool(_OF_CHILD.fullmatch(folder.name)) and self.cover(folder.parent)

    def cover_documents(self, folder: Path) -> bool:
        """Whether runs of this journal can keep hand-off documents there."""
        return folder.resolve() in self._projects or self._was_named(folder.resolve())

    def _is_own(self, folder: Path) -> bool:
        for project in self._projects:
            own = folder.parent == project / OURS / WORKSPACES or folder == project / OF_DOCUMENTS
            if own and folder.name not in ("", ".", "..") and folder.resolve() == folder:
                return True
        return False

    def _was_named(self, folder: Path) -> bool:
        if folder in self._named:
            return True
        consent = self._consent(folder)
        return consent is not None and self._consents.cover(consent)

    def _consent(self, folder: Path) -> Consent | None:
        """The consent to use a folder; `None` if its name or the journal's cannot be written down."""
        project = self._journal.parent.parent if self._journal.parent.name == OURS else self._journal.parent
        consent = Consent("folder", str(folder), str(project), str(self._journal))
        try:
            f"{consent.content}{consent.journal}".encode()
        except UnicodeEncodeError:
            return None
        return consent

    def remember(self, folder: Path) -> None:
        """The user has named a folder for runs of this journal."""
        meant = folder.resolve()
        if self._is_own(meant):
            return
        for one in _collection(meant):  # one consent for all runs of a project whose journal is elsewhere
            meant = one
        known = self._was_named(meant)
        self._named.add(meant)
        consent = self._consent(meant)
        if consent is None or known:
            return
        try:
            self._consents.remember([consent])
        except ConsentsNotWritten:
            return  # the run works all the same; `resume` asks again


def _collection(folder: Path) -> list[Path]:
    """The folder of all workspaces of a project, if this is one of them."""
    above = folder.parent
    return [above] if above.name == WORKSPACES and above.parent.name == OURS else []


def trusted_folders(journal: Path) -> TrustedFolders:
    """The folders that the runs of a journal can use, seen from the current folder; the same for a whole process.

    Asking it raises `UsageError` if the user's consents cannot be trusted.
    """
    return _trusted(journal.resolve(), Path.cwd().resolve(), state_folder())


@lru_cache(maxsize=64)
def _trusted(journal: Path, here: Path, state: Path | None) -> TrustedFolders:
    return TrustedFolders(journal, here, Consents(state))
