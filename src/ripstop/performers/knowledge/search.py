"""Searching knowledge folders. Their indexes are in the user's cache folder, one for each folder.

Without a cache folder that can be written to (no home, a read-only disk) an index lasts as long as the process.
"""

import atexit
import hashlib
import os
import shutil
import tempfile
import threading
from pathlib import Path

from ripstop.files.private_files import PRIVATE_FOLDER
from ripstop.files.user_folders import cache_folder

from .folder import KnowledgeFolder
from .index import KnowledgeIndex, SearchResult

MOST_PASSAGES = 50
INDEXES = "knowledge"


class KnowledgeBases:
    """All knowledge folders that a process searches."""

    def __init__(self, cache: Path | None = None) -> None:
        """`cache`: where the indexes are, if not in the user's own cache folder."""
        self._cache = cache
        self._temporary: Path | None = None
        self._choosing = threading.Lock()

    def search(self, folder: Path, question: str, most: int) -> SearchResult:
        """The passages of a folder that fit a question best, at most `MOST_PASSAGES`.

        Raises `Refused` if the folder cannot be read, and `TryAgain` if its index cannot be used now.
        """
        real = os.path.realpath(folder)
        name = hashlib.sha256(os.fsencode(real)).hexdigest()[:32]
        index = KnowledgeIndex(self._indexes() / f"{name}.db", KnowledgeFolder(Path(real)))
        return index.search(question, min(most, MOST_PASSAGES))

    def _indexes(self) -> Path:
        """The folder of the indexes."""
        with self._choosing:
            if self._temporary is None:
                kept = _kept_indexes(self._cache or cache_folder())
                if kept is not None:
                    return kept
                self._temporary = Path(tempfile.mkdtemp(prefix="ripstop-knowledge-"))
                atexit.register(shutil.rmtree, self._temporary, ignore_errors=True)
            return self._temporary


def _kept_indexes(cache: Path | None) -> Path | None:
    """A folder for indexes that last; `None` if there is none that can be written to."""
    if cache is None:
        return None
    indexes = cache / INDEXES
    try:
        indexes.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    except OSError:  # a read-only disk, or a file in the way
        return None
    return indexes if os.access(indexes, os.W_OK | os.X_OK) else None
