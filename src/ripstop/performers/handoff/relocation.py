"""The folder of a run's document, as its settings name it (`performers.relocation` says where it is now)."""

from functools import lru_cache
from pathlib import Path

from ripstop.runtime.performers import Refused, Request

from .folder import Folder


def folder_of(request: Request) -> Folder:
    if not request.settings.folder:
        raise Refused("The run has no folder of documents, so its document cannot be written.", "definition")
    return _folder(request.settings.folder)


@lru_cache(maxsize=64)
def _folder(path: str) -> Folder:
    return Folder(Path(path))
