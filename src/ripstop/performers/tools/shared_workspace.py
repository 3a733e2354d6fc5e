"""A workspace that all agents work in themselves, such as a project's folder: what is not for them there.

- The root is the workspace; there are neither folders of agents nor `collab/`. Paths are judged as in `roots.py`.
- What others run, or what the project is run by, is not written: git's folder, ripstop's own, definitions, settings.
  `.cowork` has the project's records: agents read them, and write them with the tools for data only.
- Secrets are not read: git's folder, ripstop's own, and `.env` files. The last are not written either, because they
  are rarely in a history that could bring them back.
- Names are compared as any file system would read them, and folders also by what they are (device and inode).
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from ripstop.runtime.performers import Refused

from .project import PROJECT, plain_name
from .roots import RootedPath, descend, is_name, parts_of

RECORDS = ".cowork"
"""The folder of a project's records."""
READ_ONLY = (*PROJECT, RECORDS)
"""What agents must not write, as names in the workspace itself."""
SECRETS = ".env"
"""How the names of files with secrets begin."""
NOT_LISTED = frozenset({RECORDS, "node_modules", ".venv", "__pycache__"})
"""What is left out of lists and searches, unless the path names it: others made it, or it is long."""
REPOSITORY_HEAD = "HEAD"
"""The file without which a folder is not a git repository, whose configuration can name programs to run."""
_EXAMPLE = "'name' or 'folder/name'"


def is_secret(name: str) -> bool:
    """Whether a file of that name has secrets in it."""
    return plain_name(name).startswith(SECRETS)


class SharedWorkspace(Struct, frozen=True):
    """The one root of agents that share a workspace, with the methods of `Roots`."""

    workspace: Path
    read_only: tuple[str, ...] = ()
    """Absolute paths that agents must not write, besides `READ_ONLY`."""

    @property
    def names(self) -> tuple[str, ...]:
        return ("",)

    def locate(self, path: str, writing: bool = False) -> RootedPath:
        """What a path means. Raises `Refused`, for a path that is not for agents as well."""
        parts = parts_of(path, _EXAMPLE)
        if secret := next(filter(is_secret, parts), ""):
            raise Refused(f"{path!r} is not for agents: files named {secret!r} have secrets in them.", "agent")
        if writing and parts[-1:] == [REPOSITORY_HEAD]:
            raise Refused(f"{path!r} is not for agents to write: it can make a folder a git repository.", "agent")
        if writing:
            self._check_writable(path, tuple(map(plain_name, parts)))
        return self.place("", tuple(parts))

    def place(self, root: str, parts: tuple[str, ...]) -> RootedPath:
        return RootedPath(root, parts, "/".join(parts) or ".")

    @contextmanager
    def folder(self, root: str, parts: tuple[str, ...], create: bool = False) -> Iterator[int]:
        """A descriptor of a folder. Raises `FileNotFoundError` if there is none, and `Refused`."""
        # only what is written creates folders
        with descend(self.workspace, parts, create, self._check_folder if create else None) as folder:
            yield folder

    def is_met(self, name: str) -> bool:
        """Whether a walk through folders stops at this name."""
        return is_name(name) and not is_secret(name) and plain_name(name) not in NOT_LISTED

    def missing(self, place: RootedPath) -> str:
        return f"Failed to read file {place.shown}: No such file or directory. Look with list_files what there is."

    def protected(self) -> list[Path]:
        """Everything that agents must not write, whether it exists or not."""
        return [*(self.workspace / name for name in READ_ONLY), *map(Path, self.read_only)]

    def _check_writable(self, path: str, names: tuple[str, ...]) -> None:
        if names[:1] == (RECORDS,):
            raise Refused(
                f"{path!r} is a record of the project. Records are written with the tools for data (such as "
                "create_requirement or add_feature), not as files.",
                "agent",
            )
        for one in self.protected():
            if self.workspace in one.parents:
                kept = tuple(map(plain_name, one.relative_to(self.workspace).parts))
                if names[: len(kept)] == kept:
                    raise _read_only(path)

    def _check_folder(self, folder: int, name: str) -> None:
        found = os.fstat(folder)
        for one in self.protected():
            try:
                kept = os.stat(one, follow_symlinks=False)
            except OSError:
                continue
            if (kept.st_dev, kept.st_ino) == (found.st_dev, found.st_ino):
                raise _read_only(name)


def _read_only(path: str) -> Refused:
    return Refused(f"{path!r} is not for agents to write: the project is run by it. Write another file.", "agent")
