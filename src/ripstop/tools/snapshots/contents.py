"""Where the contents of files are kept: by what they are, so that the same content is kept once.

`FileContents` is the port. `ContentFolder` is a folder of this machine; a fleet brings one that all its machines reach.
"""

import hashlib
from pathlib import Path
from typing import Protocol

from ripstop.engine.performers import Refused
from ripstop.security.files import PRIVATE_FILE, make_private_folder

from ..shared_folder import PathMissing, opened, put, read_file, remove_files
from ..workspace import RESERVED

MAX_CONTENT = 50_000_000
"""Bytes of one file that is kept."""


class FileContents(Protocol):
    """Contents by their digest (SHA-256, in hexadecimal digits)."""

    def keep(self, data: bytes) -> str:
        """Keep a content; returns its digest. Raises `Refused` and `TryAgain`."""
        ...

    def has(self, digest: str) -> bool: ...

    def read(self, digest: str) -> bytes:
        """Raises `Refused` if it is not there, or is not what it was."""
        ...

    def drop_others(self, digests: frozenset[str]) -> None:
        """Remove what is none of these."""
        ...


class ContentFolder:
    """`FileContents` as files, in folders by the first two digits."""

    def __init__(self, root: Path) -> None:
        """`root`: a private folder that exists."""
        self._root = root

    def keep(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        if not self.has(digest):
            make_private_folder(self._root / digest[:2])
            with opened(self._root, (digest[:2],)) as above:
                put(above, digest, data, RESERVED, PRIVATE_FILE, sync=False)
        return digest

    def has(self, digest: str) -> bool:
        return (self._root / digest[:2] / digest).is_file()

    def read(self, digest: str) -> bytes:
        try:
            with opened(self._root, (digest[:2],)) as above:
                data = read_file(above, digest, MAX_CONTENT)[0]
        except PathMissing as error:
            raise Refused("Its old content is no longer kept.") from error
        if hashlib.sha256(data).hexdigest() != digest:
            raise Refused("Its old content is damaged.")
        return data

    def drop_others(self, digests: frozenset[str]) -> None:
        for folder in self._root.iterdir():
            with opened(self._root, (folder.name,)) as above:
                remove_files(above, [path.name for path in folder.iterdir() if path.name not in digests])
