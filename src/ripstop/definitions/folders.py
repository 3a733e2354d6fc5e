"""Definitions in folders: files that are searched for, and paths that have to stay inside.

A folder that cannot be read is an error, not a folder without files.
"""

import os
from collections.abc import Callable
from pathlib import Path

from ripstop.kernel.errors import UsageError

from .problems import Position, Problem, WrongDefinition
from .yaml_tree import MAX_BYTES, read_text

MAX_FOLDERS = 20_000
"""Folders that are looked into."""
WORKFLOW_FILES = ("workflow.yaml", "pipeline.yaml", "bot.yaml", "bot.yml", "bot.json")
"""Files whose folder is the workflow, and has its name; whatever else the folder looks like."""


def files_named(name: str, folder: Path) -> list[Path]:
    """Files of a name anywhere in a folder, in order. Raises `UsageError`."""
    return files_where(lambda path: path.name == name, folder)


def files_where(wanted: Callable[[Path], bool], folder: Path) -> list[Path]:
    """In order; links are not followed. Raises `UsageError` for a folder that cannot be read, or too many of them."""

    def refuse(error: OSError) -> None:
        raise UsageError(
            f"{error.filename} cannot be read: {error.strerror}. Check a smaller folder, or one you may read."
        )

    found = []
    for looked, (path, _, files) in enumerate(os.walk(folder, onerror=refuse)):
        if looked >= MAX_FOLDERS:
            raise UsageError(f"There are more than {MAX_FOLDERS:,} folders in {folder}. Check a smaller one.")
        found += [Path(path) / name for name in files if wanted(Path(path) / name)]
    return sorted(found)


def inside(path: str) -> bool:
    """Whether a path that is written in a definition stays in the folder it is relative to."""
    parts = path.split("/")
    return bool(path.strip()) and "\\" not in path and path.isprintable() and not {"", ".", ".."} & set(parts)


def refuse_link(path: Path) -> None:
    """Raise `WrongDefinition` for a symbolic link, which could put any file of the user into a prompt."""
    if os.path.islink(path):
        text = f"{path.name!r} is a symbolic link, and links are not followed here"
        raise WrongDefinition([Problem(Position(str(path)), text, "put there what it leads to")])


def read_inside(folder: Path, path: str, at_most: int = MAX_BYTES) -> str:
    """The text of a file below a folder, with no link on the way to it. Raises `WrongDefinition`."""
    if not inside(path):
        raise WrongDefinition([Problem(Position(path), "it is not a path in this folder", "put the file there")])
    file = folder
    for part in path.split("/"):
        file /= part
        refuse_link(file)
    return read_text(file, str(file), at_most)
