"""Which workflow is meant: a file, a folder, or a name found in `workflows/`."""

import os
from pathlib import Path

from msgspec import Struct

from ripstop.kernel.errors import UsageError

from .problems import nearest, with_stop
from .reader import DefinitionReader, Environment, Readers
from .yaml_tree import read_text

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


def find(readers: Readers, named: str, environment: Environment = PLAIN, beside: Path | None = None) -> Workflow:
    """Read the workflow that `named` means. Raises `UsageError` or `WrongDefinition`."""
    return read(locate(readers, named, beside), environment)


def read(found: Located, environment: Environment) -> Workflow:
    """Read a definition. Raises `WrongDefinition`."""
    name, content = found.reader.read(found.path, environment)
    return Workflow(found.reader.style, name, content, found.path)


def find_all(readers: Readers, named: str, beside: Path | None = None) -> list[Located]:
    """The definitions that `named` means; for a folder that is not a workflow, all in it. Raises `UsageError`."""
    folder = (beside or Path()) / named
    if os.path.isdir(folder) and _recognised(readers, folder) is None:
        found = [Located(reader, path) for reader in readers for path in reader.find_all(folder)]
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
        raise UsageError(f"The folder {named} is not a workflow of any style. {_styles(readers)}")
    if os.path.exists(given):
        read_text(given, str(given))  # says what it is, if it is not a file at all
        raise UsageError(f"The file {named} is not a workflow of any style. {_styles(readers)}")
    hint = _others(readers, named, beside / FOLDER)
    raise UsageError(with_stop(f"There is no workflow {named!r}: no such file or folder; {hint}"))


def locate_child(readers: Readers, named: str, parent: Path, beside: Path | None = None) -> Located:
    """The workflow that the definition `parent` names: beside it, or as one that a person names."""
    try:
        return locate(readers, named, parent if parent.is_dir() else parent.parent)
    except UsageError:
        return locate(readers, named, beside)


def _others(readers: Readers, named: str, folder: Path) -> str:
    """Which workflows there are besides one that was named and is not there."""
    if not folder.is_dir():
        return f"and there is no folder {FOLDER}/ to look it up in"
    have = [path.name for path in sorted(folder.glob("*")) if path.is_dir() and _recognised(readers, path)]
    if near := nearest(named, have):
        return f"did you mean {near!r}?"
    return f"the workflows in {FOLDER}/ are: {', '.join(have)}" if have else f"and {FOLDER}/ has no workflow in it"


def _recognised(readers: Readers, path: Path) -> Located | None:
    for reader in sorted(readers, key=lambda one: one.greedy):
        found = reader.find(path)
        if found is not None:
            return Located(reader, found)
    return None


def _styles(readers: Readers) -> str:
    return " ".join(f"A {reader.style} is {reader.looks_like}." for reader in readers)
