"""Which folders runs of a journal can write to: those that are theirs, and those that the user has named.

A journal records where a run puts its files, and it can come from somebody else. So a recorded folder is used only if

- it is the run's own, `.ripstop/workspaces/RUN`, in the current folder or beside the journal, with no link on the way;
- it is the folder of hand-off documents that the command works in, or its `workspace`; or
- the user has named it for this journal on this machine (`run --workspace`, `resume --workspace`, or by saying yes).
  That is remembered in the user's own state folder, where a project cannot write for the user. Without a home it is
  remembered as long as the process lives.
"""

import hashlib
import json
import os
from functools import lru_cache
from pathlib import Path

from ripstop.files.private_files import OURS, PRIVATE_FOLDER, create_file
from ripstop.files.user_folders import state_folder

WORKSPACES, OF_DOCUMENTS = "workspaces", "workspace"


class TrustedFolders:
    def __init__(self, journal: Path, here: Path, state: Path | None) -> None:
        """`here`: the current folder. `state`: where consents are remembered; `None` for nowhere."""
        self._journal = str(journal)
        self._projects = [here, *([journal.parent.parent] if journal.parent.name == OURS else [])]
        self._consents = state / "folders" if state else None
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
        return folder in self._named or (self._consents is not None and self._mark(self._consents, folder).is_file())

    def _mark(self, consents: Path, folder: Path) -> Path:
        return consents / hashlib.sha256(f"{self._journal}\0{folder}".encode(errors="surrogateescape")).hexdigest()

    def remember(self, folder: Path) -> None:
        """The user has named a folder for runs of this journal."""
        meant = folder.resolve()
        if self._is_own(meant):
            return
        for one in _collection(meant):  # one mark for all runs of a project whose journal is elsewhere
            meant = one
        self._named.add(meant)
        if self._consents is None:
            return
        said = json.dumps({"journal": self._journal, "folder": str(meant)}).encode()
        try:
            os.makedirs(self._consents, PRIVATE_FOLDER, exist_ok=True)
            create_file(self._mark(self._consents, meant), said)
        except OSError:
            return  # a home that cannot be written to: `resume` asks again


def _collection(folder: Path) -> list[Path]:
    """The folder of all workspaces of a project, if this is one of them."""
    above = folder.parent
    return [above] if above.name == WORKSPACES and above.parent.name == OURS else []


def trusted_folders(journal: Path) -> TrustedFolders:
    """The folders that the runs of a journal can use, seen from the current folder; the same for a whole process."""
    return _trusted(journal.resolve(), Path.cwd().resolve(), state_folder())


@lru_cache(maxsize=64)
def _trusted(journal: Path, here: Path, state: Path | None) -> TrustedFolders:
    return TrustedFolders(journal, here, state)
