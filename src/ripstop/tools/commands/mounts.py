"""Where a command works: the folders that it writes, and what in them it must not write or see.

- Agents with folders of their own: the agent's folder and `collab`. Agents that share a workspace: the workspace,
  without what the project is run by (`shared_workspace.py`).
- `.git` is read-only, because git needs to read it; `.ripstop` and `.env` files are hidden. That holds at any depth, as
  far as `MOST_LOOKED_AT` entries go.
- Where the workspace lacks one of the names that are not for agents, an empty placeholder takes its place while
  commands run; otherwise a command could make it. A `.git` that a command made deeper down is renamed afterwards.
"""

import os
import stat
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from ripstop.engine.performers import Refused
from ripstop.security.files import OURS

from ..workspace import SharedWorkspace, is_off_limits, is_secret, plain_name

MOST_LOOKED_AT = 200_000
"""Entries among which protected ones are looked for."""
RENAMED = "made-by-a-command"
_FILES = ("ripstop.toml",)


MOST_PASSES = 20
REPOSITORY_HEAD = "head"
BARE_REPOSITORY = {REPOSITORY_HEAD, "objects", "refs"}
"""What makes any folder a git repository, in small letters. Without its HEAD it is none."""


class CommandPlace(Struct, frozen=True, kw_only=True):
    folder: Path
    """Where the command begins."""
    root: Path
    """The folder of the agent, or of all agents."""
    writable: tuple[Path, ...]
    read_only: tuple[Path, ...] = ()
    """Of what is writable."""
    hidden: tuple[Path, ...] = ()
    known: frozenset[int] = frozenset()
    """The inodes of what is protected, wherever it is moved: any other was made by the command."""


class CommandFolders(Struct, frozen=True, kw_only=True):
    """Folders that exist, before anything in them is looked at."""

    folder: Path
    """Where the command begins."""
    writable: tuple[Path, ...]
    """The folder of the agent, or of all agents, first."""
    shared: SharedWorkspace | None = None

    @property
    def root(self) -> Path:
        return self.writable[0]


def command_place(folders: CommandFolders) -> CommandPlace:
    """The place of a command; `release` it after the command. Raises `Refused`."""
    shared, writable = folders.shared, folders.writable
    if shared:
        _make_placeholders(shared)
    named = shared.protected() if shared else []
    read_only = [path for path in named if os.path.lexists(path) and set(writable) & {*path.parents}]
    hidden: list[Path] = []
    for path in (one for root in writable for one in _protected(root)):
        if plain_name(path.name) == OURS or is_secret(path.name):
            hidden.append(path)
        else:
            read_only.append(path)
    kept = [path for path in dict.fromkeys(read_only) if path not in hidden]
    for path in (*kept, *hidden):
        if path.is_symlink():
            release(folders)
            raise Refused(
                f"{path.name!r} is a symbolic link, so commands cannot be kept from it. Replace it by a copy."
            )
    return CommandPlace(
        folder=folders.folder,
        root=folders.root,
        writable=writable,
        read_only=tuple(kept),
        hidden=tuple(hidden),
        known=frozenset(path.lstat().st_ino for path in (*kept, *hidden)),
    )


def rename_repositories(place: CommandPlace) -> list[str]:
    """Rename what a command made and must not make, such as a repository whose hooks others would run."""
    renamed: list[str] = []
    for _ in range(MOST_PASSES):
        found = len(renamed)
        for path in [one for root in place.writable for one in _protected(root)]:
            with suppress(OSError):
                if is_secret(path.name) or path.lstat().st_ino in place.known:
                    continue
                path.rename(_free_name(path))
                renamed.append(str(path.relative_to(place.root)) if place.root in path.parents else path.name)
        if len(renamed) == found:  # a repository can be inside of another one that was renamed
            break
    return renamed


def _free_name(path: Path) -> Path:
    name = f"{path.name.lstrip('.')}-{RENAMED}"
    return next(one for number in range(1, 10_000) if not os.path.lexists(one := path.with_name(f"{name}-{number}")))


# Placeholders: several commands of this process can run in one workspace, and the last removes them

_lock = threading.Lock()
_commands: dict[Path, int] = {}
_placeholders: dict[Path, list[Path]] = {}


def _make_placeholders(shared: SharedWorkspace) -> None:
    with _lock:
        _commands[shared.workspace] = _commands.get(shared.workspace, 0) + 1
        made = _placeholders.setdefault(shared.workspace, [])
        for path in shared.protected():
            if path.parent != shared.workspace or os.path.lexists(path):
                continue
            with suppress(FileExistsError):  # another process was first
                if path.name in _FILES:
                    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
                else:
                    path.mkdir()
                made.append(path)


def release(folders: CommandFolders) -> None:
    """A command has ended: remove what was made for it, if no other one needs it. Only what is empty is removed."""
    if not folders.shared:
        return
    workspace = folders.shared.workspace
    with _lock:
        _commands[workspace] -= 1
        if _commands[workspace]:
            return
        del _commands[workspace]
        for path in _placeholders.pop(workspace):
            with suppress(OSError):
                if path.name not in _FILES:
                    path.rmdir()
                elif path.lstat().st_size == 0:
                    path.unlink()


def _protected(root: Path) -> Iterator[Path]:
    """What is not for agents below a folder, without what is inside of it."""
    waiting, looked_at = [root], 0
    while waiting:
        folder = waiting.pop()
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        looked_at += len(entries)
        if looked_at > MOST_LOOKED_AT:
            return
        if {one.name.casefold() for one in entries} >= BARE_REPOSITORY:
            yield from (Path(one.path) for one in entries if one.name.casefold() == REPOSITORY_HEAD)
        for entry in entries:
            if is_off_limits(entry.name) or (is_secret(entry.name) and entry.is_file(follow_symlinks=False)):
                yield Path(entry.path)
            elif entry.is_dir(follow_symlinks=False):
                waiting.append(Path(entry.path))


def is_folder(path: Path) -> bool:
    """Whether it is a folder, and not a link to one."""
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except OSError:
        return False


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
