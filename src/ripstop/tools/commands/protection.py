"""Keeps protected names protected under bubblewrap while others replace them, and puts them back afterwards.

Bubblewrap protects a file by a mount on it. If an editor saves the file under a temporary name and renames it, or git
checks out another version, the mount is gone with the old file, and the new one can be written.

- The launcher watches the names (inotify). When one is replaced, it ends the command at once.
- A name that was replaced once, and not touched since, was saved by a person: the command had no part in it.
- Anything else could be the command's work. The old one, which is held open, is put back; the new one is kept
  beside it.
"""

import ctypes
import os
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..shared_folder import LISTING, move, open_beneath, put, rename_aside
from ..workspace import RESERVED, is_off_limits
from .mounts import CommandPlace, HeldPath

REPLACED = "replaced-while-a-command-ran"
MAX_KEPT = 64 * 1024 * 1024
"""Bytes of a file that is put back."""
MAX_IN_MEMORY = 16 * 1024 * 1024
"""Bytes of protected files that are read before a command."""
Contents = Mapping[Path, bytes]
EVENTS = 0x002 | 0x004 | 0x008 | 0x040 | 0x080 | 0x100 | 0x200
"""Written, changed, closed after writing, moved away, moved here, created, deleted."""
_ONLY_FOLDERS = 0x01000000

Seen = Mapping[str, int] | None
"""How often something happened to a name, by its path; `None`: nobody has watched."""


@contextmanager
def watching(place: CommandPlace) -> Iterator[dict[str, Any] | None]:
    """A watch on all that is protected, as the launcher wants it; nothing where there is none. Raises `OSError`.

    Its `names` are paths, by the number of the watch, a slash, and the name.
    """
    descriptor = int(_libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)) if sys.platform == "linux" else -1
    if descriptor < 0:
        yield None
        return
    try:
        names: dict[str, str] = {}
        for held in (*place.read_only, *place.hidden):
            with _above(place, held.path) as folder:
                number = _add(descriptor, folder)
                names[f"{number}/{held.path.name}"] = str(held.path)
        yield {"descriptor": descriptor, "names": names}
    finally:
        os.close(descriptor)


def _add(watch: int, folder: int) -> int:
    number = int(_libc.inotify_add_watch(watch, f"/proc/self/fd/{folder}".encode(), EVENTS | _ONLY_FOLDERS))
    if number < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return number


_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def _above(place: CommandPlace, path: Path) -> Iterator[int]:
    """The folder that a path is in. Raises `OSError`."""
    parts = path.relative_to(place.workspace.path).parts
    folder = open_beneath(place.workspace.descriptor, parts[:-1], LISTING)
    try:
        yield folder
    finally:
        os.close(folder)


def contents_of(place: CommandPlace) -> Contents:
    """What the protected files hold before a command runs, as far as they are small.

    When another process replaces a name, the mount over it goes a moment before the name is another's. A command that
    opens it in between writes the old file, so what that holds afterwards cannot be relied on.
    """
    found: dict[Path, bytes] = {}
    left = MAX_IN_MEMORY
    for held in (*place.read_only, *place.hidden):
        if not held.is_folder and (size := os.stat(held.descriptor).st_size) <= left:
            with open(f"/proc/self/fd/{held.descriptor}", "rb") as file:
                found[held.path] = file.read(left)
            left -= size
    return found


def put_back(place: CommandPlace, seen: Seen, before: Contents) -> list[str]:
    """Put back what a command could have replaced; returns what there is to tell of it. Raises `OSError`.

    Args:
        before: What `contents_of` found before the command ran.
    """
    notes = []
    for held in (*place.read_only, *place.hidden):
        try:
            with _above(place, held.path) as folder:
                if note := _put_back(place, held, folder, seen, before):
                    notes.append(note)
        except (FileNotFoundError, NotADirectoryError):
            continue  # its folder was moved, and it with it
    return notes


def _put_back(place: CommandPlace, held: HeldPath, folder: int, seen: Seen, before: Contents) -> str:
    name = held.path.name
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        found = None
    if found and (found.st_dev, found.st_ino) == held.identity:
        return ""
    if seen is not None and _is_saved(held, found, seen.get(str(held.path), 0)):
        return ""
    said = f"{name!r} was replaced while the command ran, and the command could have written it"
    if found:
        other = rename_aside(folder, name, f"{name.lstrip('.') if is_off_limits(name) else name}.{REPLACED}")
        said += f"; what was there is now {other!r}"
    return f"{said}; {'the old one is back' if _restore(place, held, folder, before) else 'the old one is gone'}."


def _is_saved(held: HeldPath, found: os.stat_result | None, events: int) -> bool:
    """Whether a name was replaced by somebody else, and nothing happened to it since."""
    return events == 0 or (events == 1 and not held.is_folder and (found is None or stat.S_ISREG(found.st_mode)))


def _restore(place: CommandPlace, held: HeldPath, folder: int, before: Contents) -> bool:
    name, through = held.path.name, f"/proc/self/fd/{held.descriptor}"
    if not held.is_folder:
        with open(through, "rb") as file:
            data = before[held.path] if held.path in before else file.read(MAX_KEPT + 1)
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
        if len(data) > MAX_KEPT:
            return False
        put(folder, name, data, RESERVED, mode)
        return True
    now = Path(os.readlink(through))
    if place.workspace.path not in now.parents:
        return False
    try:
        with _above(place, now) as where:
            moved = os.stat(now.name, dir_fd=where, follow_symlinks=False)
            if (moved.st_dev, moved.st_ino) != held.identity:
                return False
            move(where, now.name, folder, name)
    except FileNotFoundError:
        return False
    return True
