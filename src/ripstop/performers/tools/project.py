"""What belongs to a project, so that no agent's folder may be or hold it: its definitions, settings, journal, history.

With `--workspace .` an agent that is called like a folder of the project would have that folder as its own. So a folder
is refused if it is one of the things below, or has one of them in it. Files are compared by what they are (device and
inode), not by name: upper and lower case, links and other spellings make no difference.

A folder that has a definition (`workflow.yaml`) in it, or one level below, is also not for an agent. A definition that
the agent wrote itself looks the same. So this is checked when a run starts and, where the workspace is a project, when
a process first opens the folder; never for the shared folder.
"""

import os
import stat
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from ripstop.files.private_files import OURS
from ripstop.runtime.performers import Refused

PROJECT = ("ripstop.toml", "workflows", "roles", ".workflows", ".inbox", ".git", OURS)
"""What a project can have beside its other files, in the current folder or in the workspace."""
_MARKS = ("ripstop.toml", ".workflows", ".inbox", ".git")
"""Names by which a folder is recognised as a project."""
SHARED = "collab"
"""The folder that all agents share."""
_NOT_FOR_AGENTS = frozenset({".git", "git~1", OURS})
"""Names that no path of an agent can have in it, anywhere: writing there would change what others run."""

_DEFINITION = "workflow.yaml"
MOST_LOOKED_AT = 10_000
"""Entries of an agent's folder among which a definition is looked for."""

Identity = tuple[int, int]


def plain_name(name: str) -> str:
    """A name as any file system would read it: without case, invisible letters and dots or spaces at its end."""
    shown = "".join(letter for letter in unicodedata.normalize("NFKC", name) if unicodedata.category(letter) != "Cf")
    return shown.casefold().rstrip(" .")


def is_off_limits(name: str) -> bool:
    """Whether a name means git's folder or ours."""
    return plain_name(name) in _NOT_FOR_AGENTS


class Project:
    """The things that agents must not reach, seen from a workspace."""

    def __init__(self, workspace: Path, here: Path, *more: Path) -> None:
        """`here`: the current folder. `more`: other files of the project, such as the definition and the journal."""
        self._paths = [here, *more, *(here / name for name in PROJECT)]
        is_project = workspace.resolve() == here.resolve() or any((workspace / name).exists() for name in _MARKS)
        self._names = frozenset(PROJECT if is_project else ())
        self._paths += [workspace / name for name in self._names]
        self._unchecked = is_project
        """Whether a folder is still to be searched for definitions."""

    def check(self, folder: int, name: str) -> None:
        """Raise `Refused` if an open folder is, or holds, part of the project."""
        found = os.fstat(folder)
        self._refuse_if_held((found.st_dev, found.st_ino), name)
        if self._unchecked and name != SHARED:
            _refuse_definition(folder, name)
            self._unchecked = False

    def check_path(self, folder: Path, name: str) -> None:
        """As `check`, for a folder that need not exist."""
        try:
            found = os.stat(folder)
        except OSError:
            return  # what is not there holds nothing
        self._refuse_if_held((found.st_dev, found.st_ino), name)
        if name != SHARED and stat.S_ISDIR(found.st_mode):
            _refuse_definition(folder, name)

    def check_name(self, name: str) -> None:
        """Raise `Refused` if a folder of that name in the workspace is, or would be, part of the project."""
        if name.casefold() in self._names:
            raise _part_of_project(name, name)

    def _refuse_if_held(self, identity: Identity, name: str) -> None:
        for path in self._paths:
            if identity in _with_parents(path):
                raise _part_of_project(name, path.name or str(path))


def _part_of_project(folder: str, part: str) -> Refused:
    return Refused(
        f"The folder {folder!r} of the workspace is part of this project: {part} is, or is in, that folder. "
        "Choose another --workspace, or give the agent another name.",
        "definition",
    )


def _refuse_definition(folder: int | Path, name: str) -> None:
    """Raise `Refused` if a folder, open or not, holds a definition."""
    with os.scandir(folder) as entries:
        for entry in islice(entries, MOST_LOOKED_AT):
            if entry.name.casefold() == _DEFINITION:
                raise _part_of_project(name, entry.name)
            if entry.is_dir(follow_symlinks=False) and _is_there(folder, f"{entry.name}/{_DEFINITION}"):
                raise _part_of_project(name, f"{entry.name}/{_DEFINITION}")


def _is_there(folder: int | Path, path: str) -> bool:
    try:
        if isinstance(folder, int):
            os.stat(path, dir_fd=folder, follow_symlinks=False)
        else:
            os.lstat(folder / path)
    except OSError:
        return False
    return True


def _with_parents(path: Path) -> Iterator[Identity]:
    """What a file is, and every folder that it is in; nothing if there is no such file."""
    resolved = path.resolve()
    if not os.path.lexists(resolved):
        return
    for one in (resolved, *resolved.parents):
        try:
            found = os.stat(one)
        except OSError:
            continue
        yield found.st_dev, found.st_ino


def check_agents(project: Project, workspace: Path, agents: Iterable[str]) -> None:
    """Raise `Refused` if the folder of an agent would be part of the project."""
    for agent in agents:
        project.check_name(agent)
        project.check_path(workspace / agent, agent)
