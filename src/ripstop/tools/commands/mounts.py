"""Where a command works: the folders that it writes, and what in them it must not write or see.

- Agents with folders of their own: the agent's folder and `collab`. Agents that share a workspace: the workspace,
  without what the project is run by (`tools/workspace.py`).
- `.git` is read-only, because git needs to read it, and so is every other folder that git takes for a repository (bare
  ones, `--separate-git-dir`); `.ripstop` and `.env` files are hidden. That holds at any depth. A folder of which not
  everything could be looked at is not for commands.
- Everything is looked for below an open folder, without following links, and what is found is held open. The sandbox
  is made of what is held, not of paths, so nothing that is swapped meanwhile can lead out.
- Other hard links of a protected file are protected as it is, under whatever name.
- Where the workspace lacks one of the names that are not for agents, an empty placeholder takes its place while
  a command runs; otherwise the command could make it. A `.git` that a command made deeper down is renamed afterwards,
  and so is the `HEAD` of any other folder that it made a repository.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from ripstop.engine.performers import Refused, TryAgain
from ripstop.security.files import OURS

from ..shared_folder import HOLDING, LISTING, in_words, open_beneath, rename_aside
from ..workspace import SharedWorkspace, is_off_limits, is_repository, is_repository_head, is_secret, plain_name

MOST_LOOKED_AT = 500_000
"""Entries among which protected ones are looked for; a folder with more is not for commands."""
MOST_HELD = 400
"""Protected entries that are held open."""
MOST_SCANS = 20
"""Times that a folder is looked through, if it changes while we look."""
RENAMED = "made-by-a-command"
PLACEHOLDER_FILES = ("ripstop.toml",)


MOST_PASSES = 20
Parts = tuple[str, ...]


class HeldPath(Struct, frozen=True):
    """Something that stays what it is, whatever becomes of its name."""

    path: Path
    """As the command names it."""
    descriptor: int
    is_folder: bool
    identity: tuple[int, int]
    """Device and inode."""


class CommandPlace(Struct, frozen=True, kw_only=True):
    workspace: HeldPath
    folder: HeldPath
    """Where the command begins."""
    root: Path
    """The folder of the agent, or of all agents."""
    writable: tuple[HeldPath, ...]
    read_only: tuple[HeldPath, ...] = ()
    """Of what is writable."""
    hidden: tuple[HeldPath, ...] = ()

    @property
    def known(self) -> frozenset[tuple[int, int]]:
        """What is protected, wherever it is moved: any other was made by the command."""
        return frozenset(one.identity for one in (*self.read_only, *self.hidden))


class CommandFolders(Struct, frozen=True, kw_only=True):
    """Folders that exist, before anything in them is looked at. All are below the workspace, whose path has no link."""

    workspace: Path
    folder: Path
    """Where the command begins."""
    writable: tuple[Path, ...]
    """The folder of the agent, or of all agents, first."""
    shared: SharedWorkspace | None = None

    @property
    def root(self) -> Path:
        return self.writable[0]


@contextmanager
def command_place(folders: CommandFolders, workspace: int) -> Iterator[CommandPlace]:
    """The place of a command, held open. Raises `Refused` and `TryAgain`.

    Args:
        workspace: The open folder; the caller has its lock, and has made the placeholders.
    """
    with ExitStack() as stack:
        held = _Holding(folders.workspace, workspace, stack)
        try:
            writable = tuple(held.folder(path) for path in folders.writable)
            folder = held.folder(folders.folder)
            read_only, hidden = _held_protected(folders, writable, held)
            place = CommandPlace(
                workspace=HeldPath(folders.workspace, workspace, True, _identity(os.fstat(workspace))),
                folder=folder,
                root=folders.root,
                writable=writable,
                read_only=read_only,
                hidden=hidden,
            )
        except OSError as error:
            raise in_words(folders.workspace, error) from error
        yield place


class _Holding:
    """Opens what is below a workspace, and closes it at the end."""

    def __init__(self, workspace: Path, descriptor: int, stack: ExitStack) -> None:
        self._workspace = workspace
        self._descriptor = descriptor
        self._stack = stack

    def path(self, path: Path) -> HeldPath:
        """Raises `OSError`, and `Refused` for a link."""
        descriptor = open_beneath(self._descriptor, path.relative_to(self._workspace).parts, HOLDING)
        self._stack.callback(os.close, descriptor)
        found = os.fstat(descriptor)
        if stat.S_ISLNK(found.st_mode):
            raise _is_link(path)
        return HeldPath(path, descriptor, stat.S_ISDIR(found.st_mode), _identity(found))

    def folder(self, path: Path) -> HeldPath:
        found = self.path(path)
        if not found.is_folder:
            raise Refused(f"{path.name!r} is not a folder.", "agent")
        return found


def _is_link(path: Path) -> Refused:
    return Refused(f"{path.name!r} is a symbolic link, so commands cannot be kept from it. Replace it by a copy.")


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _held_protected(
    folders: CommandFolders, writable: tuple[HeldPath, ...], holding: _Holding
) -> tuple[tuple[HeldPath, ...], tuple[HeldPath, ...]]:
    """What commands must not write, and what they must not see."""
    read_only: dict[Path, HeldPath] = {}
    hidden: dict[Path, HeldPath] = {}

    def hold(path: Path, into: dict[Path, HeldPath]) -> None:
        if path in read_only or path in hidden:
            return
        with suppress(FileNotFoundError):
            into[path] = _unless_link(holding, path)
        if len(read_only) + len(hidden) > MOST_HELD:
            raise Refused(
                f"Commands cannot be run in {str(folders.workspace)!r}: it has more than {MOST_HELD} repositories "
                "and files with secrets, from all of which they would have to be kept."
            )

    for path in folders.shared.protected() if folders.shared else ():
        if {*folders.writable} & {*path.parents} and not _hides(path.name):
            hold(path, read_only)
    for root in writable:
        for path in _settled_scan(root, _protected):
            hold(path, hidden if _hides(path.name) else read_only)
    for into in (hidden, read_only):
        for path in _other_links(into.values(), writable):
            hold(path, into)
    return tuple(read_only.values()), tuple(hidden.values())


def _other_links(protected: Iterable[HeldPath], writable: tuple[HeldPath, ...]) -> Iterator[Path]:
    """Names of these files below the folders, if they have more than one."""
    files = [one for one in protected if not one.is_folder]
    linked = {one.identity for one in files if os.fstat(one.descriptor).st_nlink > 1}
    for root in writable if linked else ():
        yield from _settled_scan(root, partial(_files, identities=linked))


def _unless_link(holding: _Holding, path: Path) -> HeldPath:
    try:
        return holding.path(path)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EXDEV):
            raise _is_link(path) from error
        raise


def _hides(name: str) -> bool:
    return plain_name(name) == OURS or is_secret(name)


# Looking for what is protected


class _Found(NamedTuple):
    above: int
    """The open folder that it is in, until the next one is looked for."""
    parts: Parts
    """Below the folder that was looked through."""
    repository: tuple[int, int] | None = None
    """The folder itself, if this is the HEAD that makes it a repository."""

    @property
    def protected(self) -> Parts:
        """What must not be written: of a repository all, because its settings and hooks name programs to run."""
        return self.parts[:-1] if self.repository else self.parts


class _Changed(Exception):
    """A folder that was just seen is something else now."""


def _settled_scan(root: HeldPath, look: "Callable[[HeldPath], Iterator[_Found]]") -> list[Path]:
    """The paths of what is found below a folder. Raises `Refused` and `TryAgain` if not all of it could be seen."""
    for _ in range(MOST_SCANS):
        try:
            found = {root.path.joinpath(*one.protected) for one in look(root)}
        except _Changed:
            continue
        if root.path in found:
            raise Refused(
                f"Commands cannot be run in {str(root.path)!r}: git would take it for a repository of its own (it has "
                "a HEAD, with refs or a commondir), and they must not write to one. Move these away, or the project."
            )
        return sorted(found)
    raise TryAgain(f"{str(root.path)!r} changes all the time, so commands cannot be kept from what is protected in it.")


def _protected(root: HeldPath) -> Iterator[_Found]:
    """What is not for agents below a folder, without what is inside of it. Raises `Refused`, and `_Changed`."""
    for folder, parts, entries in _folders(root):
        if is_repository(one.name for one in entries):
            whole = _identity(os.fstat(folder))
            heads = (one.name for one in entries if is_repository_head(one.name))
            yield from (_Found(folder, (*parts, name), whole) for name in heads)
        for entry in entries:
            if is_off_limits(entry.name) or (is_secret(entry.name) and entry.is_file(follow_symlinks=False)):
                yield _Found(folder, (*parts, entry.name))


def _files(root: HeldPath, identities: set[tuple[int, int]]) -> Iterator[_Found]:
    """Names of these files below a folder. Raises as `_protected` does."""
    for folder, parts, entries in _folders(root):
        for entry in entries:
            with suppress(FileNotFoundError):
                if entry.is_file(follow_symlinks=False) and _identity(entry.stat(follow_symlinks=False)) in identities:
                    yield _Found(folder, (*parts, entry.name))


def _folders(root: HeldPath) -> "Iterator[tuple[int, Parts, list[os.DirEntry[str]]]]":
    """Every folder of which something may be for agents: open, with its path and what is in it."""
    waiting: list[Parts] = [()]
    looked_at = 0
    while waiting:
        parts = waiting.pop()
        with _looked_into(root, parts) as folder:
            if folder is None:
                continue
            with os.scandir(folder) as found:
                entries = list(found)
            looked_at += len(entries)
            if looked_at > MOST_LOOKED_AT:
                raise _too_many(root.path)
            yield folder, parts, entries
            below = (one for one in entries if not is_off_limits(one.name) and one.is_dir(follow_symlinks=False))
            waiting.extend((*parts, one.name) for one in below)


@contextmanager
def _looked_into(root: HeldPath, parts: Parts) -> Iterator[int | None]:
    """An open folder; nothing if it is gone."""
    try:
        folder = open_beneath(root.descriptor, parts, LISTING)
    except FileNotFoundError:
        yield None
        return
    except PermissionError as error:
        raise Refused(
            f"Commands cannot be run in {str(root.path)!r}: its folder {'/'.join(parts)!r} cannot be read, so they "
            "could not be kept from what is protected in it. Make it readable, or move it away."
        ) from error
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EXDEV, errno.EAGAIN):
            raise _Changed from error
        raise in_words(root.path.joinpath(*parts), error) from error
    try:
        yield folder
    finally:
        os.close(folder)


def _too_many(folder: Path) -> Refused:
    return Refused(
        f"Commands cannot be run in {str(folder)!r}: it has more than {MOST_LOOKED_AT:,} files and folders, and among "
        "more than that they cannot be kept from what is protected. Move away what is not needed there."
    )


def rename_repositories(place: CommandPlace) -> list[str]:
    """Rename what a command made and must not make, such as a repository whose hooks others would run.

    Raises `Refused` and `TryAgain` if not everything could be looked at.
    """
    renamed: list[str] = []
    for _ in range(MOST_PASSES):
        found = len(renamed)
        for root in place.writable:
            renamed += _renamed(place, root)
        if len(renamed) == found:  # a repository can be inside of another one that was renamed
            break
    return renamed


def _renamed(place: CommandPlace, root: HeldPath) -> list[str]:
    renamed: list[str] = []
    for _ in range(MOST_SCANS):
        try:
            for found in _protected(root):
                name = found.parts[-1]
                with suppress(FileNotFoundError):
                    seen = os.stat(name, dir_fd=found.above, follow_symlinks=False)
                    if is_secret(name) or not place.known.isdisjoint({_identity(seen), found.repository}):
                        continue
                    rename_aside(found.above, name, f"{name.lstrip('.')}-{RENAMED}")
                    path = root.path.joinpath(*found.parts)
                    renamed.append(str(path.relative_to(place.root)) if place.root in path.parents else name)
            return renamed
        except _Changed:
            continue
    raise TryAgain(f"{str(root.path)!r} changes all the time, so not all of it could be looked at.")


# The parts of the system that every command can read: programs, libraries, and what they need of `/etc`.


SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_ETC = (
    *("alternatives", "ca-certificates", "crypto-policies", "debian_version", "default/locale", "fonts", "group"),
    *("host.conf", "hosts", "java", "java-17-openjdk", "java-21-openjdk", "ld.so.cache", "ld.so.conf"),
    *("ld.so.conf.d", "lsb-release", "locale.alias", "localtime", "magic", "maven", "mime.types", "nsswitch.conf"),
    *("os-release", "passwd", "perl", "php", "pki/tls/certs", "protocols", "python3", "python3.11", "python3.12"),
    *("python3.13", "services", "ssl/certs", "ssl/openssl.cnf", "terminfo", "timezone"),
)


def readable_etc() -> list[str]:
    """The files and folders of `/etc` that commands can read and that are there."""
    return [path for name in _ETC if os.path.exists(path := f"/etc/{name}")]
