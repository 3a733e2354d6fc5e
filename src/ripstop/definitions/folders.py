"""Files of a name anywhere in a folder. A folder that cannot be read is an error, not a folder without files."""

import os
from pathlib import Path

from ripstop.kernel.errors import UsageError

MAX_FOLDERS = 20_000
"""Folders that are looked into."""


def files_named(name: str, folder: Path) -> list[Path]:
    """In order; links are not followed. Raises `UsageError` for a folder that cannot be read, or too many of them."""

    def refuse(error: OSError) -> None:
        raise UsageError(
            f"{error.filename} cannot be read: {error.strerror}. Check a smaller folder, or one you may read."
        )

    found = []
    for looked, (path, _, files) in enumerate(os.walk(folder, onerror=refuse)):
        if looked >= MAX_FOLDERS:
            raise UsageError(f"There are more than {MAX_FOLDERS:,} folders in {folder}. Check a smaller one.")
        if name in files:
            found.append(Path(path) / name)
    return sorted(found)
