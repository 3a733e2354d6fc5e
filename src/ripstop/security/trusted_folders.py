"""Which folders runs of a journal can write to: those that are theirs, and those that the user has named.

A journal records where a run puts its files, and it can come from somebody else. So a recorded folder is used only if

- it is the run's own, `.ripstop/workspaces/RUN`, in the current folder or next to the journal, with no link on the way;
- it is the folder of hand-off documents that the command works in, or its `workspace`; or
- the user has named it for this journal on this machine (`run --workspace`, `resume --workspace`, or by saying yes).
  That is one of the user's consents (`security.consent`). Where they cannot be written, or the folder's name is not
  UTF-8, it is remembered as long as the process lives.
"""

from functools import lru_cache
from pathlib import Path

from ripstop.files.private_files import OURS
from ripstop.files.user_folders import state_folder

from .consent import Consent, Consents, ConsentsNotWritten

WORKSPACES, OF_DOCUMENTS = "workspaces", "workspace"


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
        return any(self._was_named(one) for one in (meant, *_collection(meant)))

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
