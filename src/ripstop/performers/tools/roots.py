"""Where an agent's files are: its own folder and the shared one, and no way out of them.

- `collab/…` is the shared folder `<workspace>/collab`. Every other path is in the agent's own folder
  `<workspace>/<agent>`, with or without `<agent>/` in front. `workspaces/<any name>/` before either is dropped:
  agents write it when they assume that the current folder is above them.
- A path is judged by its parts: `..`, absolute paths, `~`, drive letters, backslashes, control characters and
  over-long parts are refused; `a..b.txt` is a name like any other.
- Folders are opened one by one, each from the one before (`openat`), and a symbolic link is never followed, so
  nothing that is swapped while we walk can lead out. Only the workspace itself may be, or be behind, a link.
"""

import errno
import os
import re
import stat
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from ripstop.files.private_files import make_folder
from ripstop.runtime.performers import Refused

from .project import SHARED, Project, is_off_limits

ABOVE = "workspaces"
RESERVED = ".ripstop-"
"""How the names of our own temporary files begin."""
MAX_PART = 255
"""Bytes of one name."""
MAX_PARTS = 32
MAX_PATH = 1000
"""Characters."""

_DRIVE = re.compile(r"[A-Za-z]:")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class RootedPath(Struct, frozen=True):
    """A checked path: which root, and the names below it."""

    root: str
    parts: tuple[str, ...]
    shown: str
    """As the agent may name it."""


class Roots:
    """The two folders of an agent."""

    def __init__(self, workspace: Path, agent: str, project: Project | None = None) -> None:
        """`project`: what must not be reached, whatever the folders are called."""
        problem = _wrong_part(agent) or ("a slash" if "/" in agent else "")
        if problem or agent in ("", ".", ".."):
            raise Refused(f"The agent {agent!r} can have no folder of its own: its name has {problem or 'no letters'}.")
        self._workspace = workspace
        self._agent = agent
        self._project = project

    @property
    def names(self) -> tuple[str, ...]:
        """Of the roots, the agent's own first."""
        return tuple(dict.fromkeys((self._agent, SHARED)))

    def locate(self, path: str, writing: bool = False) -> RootedPath:
        """What a path means. Raises `Refused`."""
        parts = parts_of(path)
        if parts[:1] == [ABOVE] and parts[2:3] and parts[2] in self.names:
            parts = parts[2:]
        if parts[:1] == [SHARED]:
            return self.place(SHARED, tuple(parts[1:]))
        return self.place(self._agent, tuple(parts[1:] if parts[:1] == [self._agent] else parts))

    def place(self, root: str, parts: tuple[str, ...]) -> RootedPath:
        below = "/".join(parts)
        if root == SHARED:
            return RootedPath(root, parts, f"{SHARED}/{below}")
        mistakable = not parts or parts[0] in (self._agent, SHARED, ABOVE)
        return RootedPath(root, parts, f"{self._agent}/{below}" if mistakable else below)

    @contextmanager
    def folder(self, root: str, parts: tuple[str, ...], create: bool = False) -> Iterator[int]:
        """A descriptor of a folder below a root. Raises `FileNotFoundError` if there is none, and `Refused`."""
        check = self._project.check if self._project else None
        with descend(self._workspace, (root, *parts), create, check) as folder:
            yield folder

    def is_met(self, name: str) -> bool:
        """Whether a walk through folders stops at this name."""
        return is_name(name)

    def missing(self, place: RootedPath) -> str:
        return f"There is no {place.shown!r}. Look with list_files what there is."


Check = Callable[[int, str], None]
"""Raises `Refused` for an open folder, the first below a workspace, and its name."""


@contextmanager
def descend(workspace: Path, parts: tuple[str, ...], create: bool, check: Check | None) -> Iterator[int]:
    """Open a folder of a workspace, one by one from the workspace on."""
    if create:
        make_folder(workspace)
    # here a link may be followed: the user has chosen the workspace
    current = os.open(workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for depth, part in enumerate(parts):
            deeper = enter(current, part, create)
            os.close(current)
            current = deeper
            if check and depth == 0:
                check(current, part)
        yield current
    finally:
        os.close(current)


def enter(above: int, name: str, create: bool = False) -> int:
    """Open a folder from the one above it."""
    if create:
        try:
            os.mkdir(name, 0o777, dir_fd=above)
            os.fsync(above)
        except FileExistsError:
            pass
    try:
        return os.open(name, _FOLDER, dir_fd=above)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):  # Linux says the second of a link, too
            raise Refused(f"{name!r} in the path is {_what_is(above, name)}, not a folder.", "agent") from error
        raise


def _what_is(above: int, name: str) -> str:
    """For messages only: nothing is decided by it."""
    try:
        mode = os.stat(name, dir_fd=above, follow_symlinks=False).st_mode
    except OSError:
        return "something else"
    return "a symbolic link, and links are not followed" if stat.S_ISLNK(mode) else "a file"


def parts_of(path: str, example: str = f"'name' or '{SHARED}/name'") -> list[str]:
    """The names in a path, or `Refused` with what is wrong with it and an example of what is right."""
    if not path.strip():
        raise Refused(f"The path is empty. Use {example}.", "agent")
    if len(path) > MAX_PATH:
        raise Refused(f"The path {path[:40]!r}… is too long: {len(path)} characters, at most {MAX_PATH}.", "agent")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    wrong = next(filter(None, map(_wrong_part, parts)), "")
    if path.startswith("/"):
        wrong = "a slash at its beginning; paths are relative"
    elif ".." in parts:
        wrong = "'..' in it, which leads out of your folders"
    elif parts and (parts[0] == "~" or _DRIVE.match(parts[0])):
        wrong = f"{parts[0][:2]!r} at its beginning; paths are relative"
    elif len(parts) > MAX_PARTS:
        wrong = f"{len(parts)} names; at most {MAX_PARTS} are allowed"
    if wrong:
        raise Refused(f"The path {path!r} has {wrong}. Use {example}.", "agent")
    return parts


def is_name(name: str) -> bool:
    """Whether an agent could name it."""
    return not _wrong_part(name)


def _wrong_part(part: str) -> str:
    if any(unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp") for letter in part):
        return "a control character"
    if "\\" in part:
        return "a backslash; put / between folders"
    if len(part.encode()) > MAX_PART:
        return f"a name of more than {MAX_PART} bytes"
    if is_off_limits(part):
        return f"{part!r} in it, which is not for agents"
    if part.startswith(RESERVED):
        return f"a name that begins with {RESERVED!r}, which is ours"
    return ""
