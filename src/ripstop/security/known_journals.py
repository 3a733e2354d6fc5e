"""The journals that the user has made or agreed to, by their ids, in the user's own state folder.

- One small file for each, so that processes that work on different journals do not wait for one another.
- It has where the journal lies and how far it had come when it was last seen: a journal that lies elsewhere was moved
  or copied, and one that is behind was restored from a backup.
- It also has which file the journal was, and what was in it when the last process that worked on it ended: anything
  else may be a stranger's. A lock on a file beside it tells which process is the last.
- An id is a name that a stranger's journal can choose. What cannot be one of ours is not looked for; and no journal can
  have the id of a consent.
- Where nothing can be written, a journal is known as long as the process lives.
"""

import fcntl
import hashlib
import logging
import os
import re
import secrets
from collections.abc import Callable
from pathlib import Path

import msgspec

from ripstop.kernel.advice import NextStep
from ripstop.kernel.errors import UsageError

from .consent import UserFile
from .files import OURS, PRIVATE_FILE, make_private_folder, state_folder

FOLDER = "journals"
AGAIN = NextStep("trust", "agree again", "agree again: {}")
_ID = re.compile(r"r?[0-9a-f]{32}")
_CONSENT = re.compile(r"agreed-[0-9a-f]{32}")

log = logging.getLogger("ripstop.trust")

_in_this_process: dict[tuple[Path | None, str], "KnownJournal"] = {}
"""What could not be written, by the state folder and the id."""


class KnownJournal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    path: str
    """Absolute, without links."""
    position: int = 0
    """How far it had come: the position of its last step …"""
    digest: str = ""
    """… the hash of that step …"""
    workers: int = 0
    """… and the highest number of a worker."""
    file: tuple[int, int] | None = None
    """Which file it was, by device and inode; `None` for a consent, and in what an earlier version noted."""
    heads: str = ""
    """One hash over all of its runs, noted by the last process to end its work on it; empty while there is one, and
    after a crash: then there can be more in it than was seen."""

    @property
    def is_consent(self) -> bool:
        """Whether it is what the user has agreed to, and not yet a journal that was worked on."""
        return _CONSENT.fullmatch(self.id) is not None

    @property
    def project(self) -> str:
        """The folder of the project that it belongs to."""
        above = Path(self.path).parent
        return str(above.parent if above.name == OURS else above)


def new_id() -> str:
    return secrets.token_hex(16)


def agreement_id(*parts: str | int) -> str:
    """The id under which the user's consent to a journal is kept until the journal is worked on."""
    return f"agreed-{hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:32]}"


def _use(file: UserFile) -> Path:
    return file.path.with_suffix(".use")


class JournalUse:
    """That a process works on a journal: a shared lock on a file beside the note, which ends with the process at the
    latest. Nothing here waits, because who holds the lock can be another task of this thread."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock: int | None = None

    def begin(self) -> bool:
        """False while another use is ended by the one who was the last: to be tried again."""
        try:
            if self._path is None:
                raise OSError("the user has no home")
            if self._lock is None:
                make_private_folder(self._path.parent)
                self._lock = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE_FILE)
            fcntl.flock(self._lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            log.info("Nobody is told that a process works on the journal: %s", error.strerror or error)
            self.end()
        return True

    def is_last(self) -> bool:
        """Whether no other process works on the journal. If so, none begins before this use of it ends."""
        if self._lock is None:
            return False
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def end(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)


class KnownJournals:
    def __init__(self, folder: Path | None = None) -> None:
        """`folder`: where the files are, if not in the user's own state folder."""
        above = folder or state_folder()
        self._folder = above / FOLDER if above else None

    def get(self, id: str) -> KnownJournal | None:
        """What is known of a journal. Raises `UsageError` if the file cannot be trusted."""
        return self._read(id) if _ID.fullmatch(id) else None

    def consent(self, id: str) -> KnownJournal | None:
        """The consent of this id, unless it was used or taken back. Raises `UsageError` as `get`."""
        return self._read(id) if _CONSENT.fullmatch(id) else None

    def _read(self, id: str) -> KnownJournal | None:
        file = self._file(id)
        found = file.read(KnownJournal) if file else None
        if found is None:
            return _in_this_process.get((self._folder, id))
        return found if found.id == id else None

    def keep(self, journal: KnownJournal, is_newer: Callable[[KnownJournal], bool] = lambda _: True) -> None:
        """Know a journal from now on. Where that cannot be written, this process does.

        Args:
            is_newer: Whether it takes the place of what is known of it; looked at while nobody else changes that.
        """
        file = self._file(journal.id)
        try:
            if file is None:
                raise OSError("the user has no home")
            with file.locked():
                known = self._read(journal.id)
                if known is None or is_newer(known):
                    file.write(journal)
        except OSError as error:
            if (self._folder, journal.id) not in _in_this_process:
                log.info("The journal %s cannot be remembered: %s", journal.path, error.strerror or error)
            _in_this_process[self._folder, journal.id] = journal
        else:
            _in_this_process.pop((self._folder, journal.id), None)

    def is_kept(self, id: str) -> bool:
        """Whether a journal or consent that this process knows is known to others, too."""
        return (self._folder, id) not in _in_this_process

    def use(self, id: str) -> JournalUse:
        """What tells others that this process works on a journal, once it has begun."""
        file = self._file(id)
        return JournalUse(_use(file) if file else None)

    def forget(self, id: str) -> None:
        """Do not know a journal any more. Raises `UsageError` if it cannot be written."""
        _in_this_process.pop((self._folder, id), None)
        file = self._file(id)
        if file is None:
            return
        lock = file.path.with_suffix(".lock")
        if not os.path.lexists(file.path) and not os.path.lexists(lock):
            return  # a file system that is read-only says so also of what is not there
        try:
            with file.locked():
                file.path.unlink(missing_ok=True)
                _use(file).unlink(missing_ok=True)
                lock.unlink(missing_ok=True)
        except OSError as error:
            raise UsageError(f"{file.path} cannot be removed: {error.strerror}.") from error

    def all(self) -> list[KnownJournal]:
        """Every journal that is known, by its path."""
        names = [path.stem for path in self._folder.glob("*.json")] if self._folder else []
        found = (self.get(name) or self.consent(name) for name in names)
        return sorted((one for one in found if one), key=lambda one: (one.path, one.id))

    def _file(self, id: str) -> UserFile | None:
        return UserFile(self._folder / f"{id}.json", AGAIN) if self._folder else None
