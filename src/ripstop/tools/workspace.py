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
import shutil
import stat
import tempfile
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from msgspec import Struct

from ripstop.engine.performers import Refused
from ripstop.security.files import NEW_FOLDER, OURS, make_folder

# What belongs to a project, so that no agent's folder may be or hold it: its definitions, settings, journal, history.
#
# With `--workspace .` an agent that is called like a folder of the project would have that folder as its own. So a
# folder is refused if it is one of the things below, or has one of them in it. Files are compared by what they are
# (device and inode), not by name: upper and lower case, links and other spellings make no difference.
#
# A folder that has a definition (`workflow.yaml`) in it, or one level below, is also not for an agent. A definition
# that the agent wrote itself looks the same. So this is checked when a run starts and, where the workspace is a
# project, when a process first opens the folder; never for the shared folder.


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
    if name.isascii():  # most names, and much faster
        return name.casefold().rstrip(" .")
    shown = "".join(letter for letter in unicodedata.normalize("NFKC", name) if unicodedata.category(letter) != "Cf")
    return shown.casefold().rstrip(" .")


def is_off_limits(name: str) -> bool:
    """Whether a name means git's folder or ours."""
    return plain_name(name) in _NOT_FOR_AGENTS


# Folders that git takes for a repository without being called `.git`: what runs there is named by their settings.
#
# Git asks for `HEAD`, and for `objects` and `refs` beside it. A file `commondir` says that both are elsewhere, and the
# user's variable GIT_OBJECT_DIRECTORY that the objects are. So it never asks for less than what is looked for here. The
# contents of these files are not looked at, because they can change later.


_HEAD = "HEAD"
_BESIDE_HEAD = ("refs", "commondir")


def is_repository(names: Iterable[str]) -> bool:
    """Whether git could take a folder with entries of these names for a repository."""
    plain = {plain_name(name) for name in names}
    return _HEAD.casefold() in plain and not plain.isdisjoint(_BESIDE_HEAD)


def is_repository_head(name: str) -> bool:
    """Whether a name means the file without which a folder is not a repository."""
    return plain_name(name) == _HEAD.casefold()


def refuse_repository(folder: int, name: str) -> None:
    """Raise `Refused` for what an agent would write in an open folder that is a repository, or would be one then."""
    there = (one for one in (_HEAD, *_BESIDE_HEAD) if _is_there(folder, one))
    if is_repository((*there, name)):
        raise Refused(f"{name!r} is not for agents to write there: git takes that folder for a repository.", "agent")


def _refuse_head(path: str, parts: list[str]) -> None:
    if any(map(is_repository_head, parts[-1:])):
        raise Refused(f"{path!r} is not for agents to write: it can make a folder a git repository.", "agent")


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
        if writing:
            _refuse_head(path, parts)
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
            if create:
                refuse_repository(current, part)
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
            os.mkdir(name, NEW_FOLDER, dir_fd=above)
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


# A workspace that all agents work in themselves, such as a project's folder: what is not for them there.
#
# - The root is the workspace; there are neither folders of agents nor `collab/`. Paths are judged as above.
# - What others run, or what the project is run by, is not written: git's folder, ripstop's own, definitions, settings.
#   `.cowork` has the project's records: agents read them, and write them with the tools for data only.
# - Secrets are not read: git's folder, ripstop's own, and `.env` files. The last are not written either, because they
#   are rarely in a history that could bring them back.
# - Names are compared as any file system would read them, and folders also by what they are (device and inode).


RECORDS = ".cowork"
"""The folder of a project's records."""
READ_ONLY = (*PROJECT, RECORDS)
"""What agents must not write, as names in the workspace itself."""
SECRETS = ".env"
"""How the names of files with secrets begin."""
NOT_LISTED = frozenset({RECORDS, "node_modules", ".venv", "__pycache__"})
"""What is left out of lists and searches, unless the path names it: others made it, or it is long."""
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
        if writing:
            _refuse_head(path, parts)
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


# The workspace of a fork begins as a copy of the old run's files.
#
# - A link is copied as a link and never followed, so nothing outside comes in. We hold an open folder while we look
#   into it: nothing that is swapped while we walk can lead out.
# - All is copied to a temporary name and made durable; then the name is changed. Half a copy is never used.
# - Anything but files, folders and links is left out, and so are half-written files, `.ripstop` folders and what
#   disappears while we copy.


_READING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def copy_workspace(source: Path, target: Path) -> None:
    """Make `target`, which does not exist or is empty, a copy of `source`. Raises `OSError`; then nothing is there."""
    make_folder(target.parent)
    copy = Path(tempfile.mkdtemp(prefix=RESERVED, dir=target.parent))
    try:
        _copy_folders(source, copy)
        copy.chmod(stat.S_IMODE(source.stat().st_mode))
        copy.rename(target)
    except BaseException:
        shutil.rmtree(copy, ignore_errors=True)  # what went wrong with the copy matters more
        raise
    _sync_folder(target.parent)


def _copy_folders(source: Path, copy: Path) -> None:
    for folder, folders, files, descriptor in os.fwalk(source, onerror=_unless_gone):
        here = copy / os.path.relpath(folder, source)
        if folder != os.fspath(source):
            here.mkdir(NEW_FOLDER)
        folders[:] = [name for name in folders if not _is_ours(name)]
        for name in (*folders, *files):
            if not name.startswith(RESERVED):
                try:
                    _copy_entry(name, descriptor, here / name)
                except FileNotFoundError:
                    continue  # removed since the folder was listed
        _sync_folder(here)


def _is_ours(name: str) -> bool:
    return name == OURS or name.startswith(RESERVED)


def _copy_entry(name: str, folder: int, target: Path) -> None:
    """Copy a file or a link; folders are walked into later."""
    found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if stat.S_ISLNK(found.st_mode):
        target.symlink_to(os.readlink(name, dir_fd=folder))
    elif stat.S_ISREG(found.st_mode):
        with open(os.open(name, _READING, dir_fd=folder), "rb") as old, target.open("xb") as new:
            shutil.copyfileobj(old, new)
            new.flush()
            os.fchmod(new.fileno(), stat.S_IMODE(found.st_mode))
            os.fsync(new.fileno())


def _unless_gone(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
