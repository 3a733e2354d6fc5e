"""Which workflow is meant: a file, a folder, or a name found in `workflows/`."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from ripstop.kernel.errors import UsageError

from .problems import Position, Problem, WrongDefinition, nearest, with_stop
from .reader import DefinitionReader, Environment, LazyReaders, Readers
from .yaml_tree import MAX_BYTES, read_text

# Definitions in folders: files that are searched for, and paths that have to stay inside.
#
# A folder that cannot be read is an error, not a folder without files.


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
    """Raise `WrongDefinition` for a symbolic or hard link, which could put any file of the user into a prompt."""
    try:
        found = os.lstat(path)
    except (OSError, ValueError):
        return  # whoever reads it says why it cannot be read
    if stat.S_ISLNK(found.st_mode):
        text, hint = f"{path.name!r} is a symbolic link, and links are not followed here", "put there what it leads to"
    elif stat.S_ISREG(found.st_mode) and found.st_nlink > 1:
        text, hint = f"{path.name!r} is a hard link: the same file has another name, perhaps elsewhere", "copy it"
    else:
        return
    raise WrongDefinition([Problem(Position(str(path)), text, hint)])


def read_inside(folder: Path, path: str, at_most: int = MAX_BYTES) -> str:
    """The text of a file that a definition names or that is part of it, with no link on the way from its folder to it.

    All that is read beside the file which a user named is read with this. Raises `WrongDefinition`.
    """
    if not inside(path):
        raise WrongDefinition([Problem(Position(path), "it is not a path in this folder", "put the file there")])
    file = folder
    for part in path.split("/"):
        file /= part
        refuse_link(file)
    return read_text(file, str(file), at_most, one_name=True)


FOLDER = "workflows"
PLAIN = Environment()


class Workflow(Struct, frozen=True):
    """A definition as it is pinned: its style, its name, and its content in one canonical form."""

    style: str
    name: str
    content: bytes
    path: Path


class Located(Struct, frozen=True):
    """Where a definition is, and what reads it."""

    reader: DefinitionReader
    path: Path
    is_named: bool
    """Whether the user named this very path, which may then be a link; a folder's own file may not be one."""


def find(readers: Readers, named: str, environment: Environment = PLAIN, beside: Path | None = None) -> Workflow:
    """Read the workflow that `named` means. Raises `UsageError` or `WrongDefinition`."""
    return read(locate(readers, named, beside), environment)


def read(found: Located, environment: Environment) -> Workflow:
    """Read a definition. Raises `WrongDefinition`."""
    refuse_unnamed_link(found)
    name, content = found.reader.read(found.path, environment)
    return Workflow(found.reader.style, name, content, found.path)


def refuse_unnamed_link(found: Located) -> None:
    """Raise `WrongDefinition` for a definition that is a link and that was found in a folder."""
    if not found.is_named:
        refuse_link(found.path)


def find_all(readers: Readers, named: str, beside: Path | None = None) -> list[Located]:
    """The definitions that `named` means; for a folder that is not a workflow, all in it. Raises `UsageError`."""
    folder = (beside or Path()) / named
    if os.path.isdir(folder) and _recognised(readers, folder) is None:
        found = [_located(reader, path, folder) for reader in readers for path in reader.find_all(folder)]
        if found:
            return sorted(found, key=lambda one: one.path)
    return [locate(readers, named, beside)]


def locate(readers: Readers, named: str, beside: Path | None = None) -> Located:
    """The definition that `named` means, without reading it. Raises `UsageError`, or `WrongDefinition` for a device."""
    beside = beside or Path()
    given = beside / named
    found = _recognised(readers, given) or _recognised(readers, beside / FOLDER / named)
    if found:
        return found
    if os.path.isdir(given):
        try:
            os.listdir(given / ".")  # what may not be looked into has no files for `lexists`
        except OSError as error:
            raise UsageError(f"The folder {named} cannot be read: {error.strerror}. Change its permissions.") from error
        raise UsageError(f"The folder {named} is not a workflow of any style. {_styles(readers)}")
    if os.path.exists(given):
        read_text(given, str(given))  # says what it is, if it is not a file at all
        raise UsageError(f"The file {named} is not a workflow of any style. {_styles(readers)}")
    hint = _others(readers, named, beside / FOLDER)
    raise UsageError(with_stop(f"There is no workflow {named!r}: no such file or folder; {hint}"))


def locate_child(readers: Readers, named: str, parent: Path, beside: Path | None = None) -> Located:
    """The workflow that the definition `parent` names: beside it, or as one that a person names; behind no link."""
    base = parent if parent.is_dir() else parent.parent
    try:
        found = locate(readers, named, base)
    except UsageError:
        base = beside or Path()
        found = locate(readers, named, base)
    above = found.path.parents
    for part in (*reversed(above[: above.index(base)] if base in above else ()), found.path):
        refuse_link(part)
    return found


def _others(readers: Readers, named: str, folder: Path) -> str:
    """Which workflows there are besides one that was named and is not there."""
    if not folder.is_dir():
        return f"and there is no folder {FOLDER}/ to look it up in"
    have = [path.name for path in sorted(folder.glob("*")) if path.is_dir() and _recognised(readers, path)]
    if near := nearest(named, have):
        return f"did you mean {near!r}?"
    return f"the workflows in {FOLDER}/ are: {', '.join(have)}" if have else f"and {FOLDER}/ has no workflow in it"


def _recognised(readers: Readers, path: Path) -> Located | None:
    if isinstance(readers, LazyReaders):
        own = readers.for_names(lambda name: path.name == name or os.path.lexists(path / name))
        if own and (found := own.find(path)) is not None:
            return _located(own, found, path)
    for reader in sorted(readers, key=lambda one: one.greedy):
        found = reader.find(path)
        if found is not None:
            return _located(reader, found, path)
    return None


def _located(reader: DefinitionReader, found: Path, named: Path) -> Located:
    return Located(reader, found, is_named=found == named or os.path.isdir(found))


def _styles(readers: Readers) -> str:
    return " ".join(f"A {reader.style} is {reader.looks_like}." for reader in readers)
