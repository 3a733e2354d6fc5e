"""Which workflow is meant: a file, a folder, or a name found in `workflows/`."""

import os
from pathlib import Path
from typing import Any

import msgspec

from ripstop.definitions.graph.reader import FILE, read_graph
from ripstop.kernel.errors import DefinitionError, UsageError
from ripstop.styles.graph.definition import Graph
from ripstop.styles.handoff.policy import Policy

from .problems import did_you_mean, with_stop

FOLDER = "workflows"


class Workflow(msgspec.Struct, frozen=True):
    """A definition as it is pinned: its style, its name, and its content in one canonical form."""

    style: str
    name: str
    content: bytes
    path: Path


def find(named: str, goal: str = "", beside: Path | None = None, any_name: bool = False) -> Workflow:
    """Read the workflow that `named` means. Raises `UsageError` or `WrongDefinition`.

    With `any_name`, the workflow's name need not be its folder's.
    """
    path = _path(named, beside or Path())
    graph = read_graph(path, goal, any_name)
    return Workflow("graph", graph.name, msgspec.json.encode(graph, order="deterministic"), path)


def find_all(named: str, beside: Path | None = None) -> list[Path]:
    """The files that `named` means; for a folder that is no workflow, all workflows in it. Raises `UsageError`."""
    folder = (beside or Path()) / named
    if os.path.isdir(folder) and not os.path.exists(folder / FILE):
        found = sorted(folder.rglob(FILE))
        if found:
            return found
    return [_path(named, beside or Path())]


_DEFINITIONS: dict[str, type] = {"graph": Graph, "handoff": Policy}


def load(style: str, content: bytes) -> Any:
    """The definition type of a style from its pinned content. Raises `DefinitionError`."""
    try:
        return msgspec.json.decode(content, type=_DEFINITIONS[style])
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise DefinitionError(f"The pinned definition of a {style} workflow cannot be read: {error}.") from error


def _path(named: str, beside: Path) -> Path:
    given = beside / named
    if _is_no_folder(given):
        return given
    for folder in (given, beside / FOLDER / named):
        if os.path.exists(folder / FILE):
            return folder / FILE
    if os.path.isdir(given):
        raise UsageError(f"The folder {named} has no {FILE}.")
    have = sorted(p.parent.name for p in (beside / FOLDER).glob(f"*/{FILE}"))
    hint = did_you_mean(named, have) if have else f"and there is no folder {FOLDER}/ to look it up in"
    raise UsageError(with_stop(f"There is no workflow {named!r}: no such file or folder; {hint}"))


def _is_no_folder(path: Path) -> bool:
    """Something stands there. If it is a pipe, say, whoever reads it will tell. Never raises, unlike `Path.is_file`."""
    return os.path.exists(path) and not os.path.isdir(path)
