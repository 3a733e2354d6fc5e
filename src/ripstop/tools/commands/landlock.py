"""What Landlock lets a command do with files: read the system, write its place, and nothing else.

A right on a folder holds for all below it, and cannot be taken back further down. So a folder with something protected
in it gets the right to be listed only, and its other entries get theirs one by one. Nothing new can then be made in
that folder itself.
"""

import ctypes
import os
from pathlib import Path
from typing import Any

from .mounts import SYSTEM, CommandPlace, is_folder, readable_etc

LOWEST_ABI = 3
"""Before it, files could be cut to nothing anywhere."""
SIGNALS_ABI = 6
_CREATE_RULESET, _ASK_VERSION = 444, 1

_EXECUTE, _WRITE, _READ, _LIST = 1, 2, 4, 8
_TRUNCATE, _IOCTL = 1 << 14, 1 << 15
_ALL = (1 << 15) - 1
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_PROC = ("cpuinfo", "meminfo", "stat", "version", "loadavg", "filesystems", "uptime")
_MAKE_DEVICES = 1 << 6 | 1 << 11 | 1 << 9
"""Devices, and sockets."""
WRITE = _ALL & ~_MAKE_DEVICES
WRITE_FILE = _EXECUTE | _WRITE | _READ | _TRUNCATE
READ = _EXECUTE | _READ | _LIST
READ_FILE = _EXECUTE | _READ


def landlock_abi() -> int:
    """The version of Landlock in this kernel; 0 if there is none."""
    libc = ctypes.CDLL(None, use_errno=True)
    found = libc.syscall(ctypes.c_long(_CREATE_RULESET), None, ctypes.c_size_t(0), ctypes.c_uint32(_ASK_VERSION))
    return max(int(found), 0)


def landlock_rules(place: CommandPlace, home: Path, read: tuple[Path, ...], abi: int) -> dict[str, Any]:
    """The rules, as the launcher wants them. `home`: a folder that only this command has."""
    paths: list[tuple[str, int]] = [
        *((os.path.realpath(path), _readable(Path(path))) for path in (*SYSTEM, *readable_etc(), *map(str, read))),
        *((device, _READ | _WRITE | (_IOCTL if abi >= 5 else 0)) for device in _DEVICES),
        *((f"/proc/{name}", _READ) for name in _PROC),
        (str(home), WRITE),
    ]
    protected = {*place.read_only, *place.hidden}
    for root in place.writable:
        paths += _grants(root, protected, place.hidden)
    return {
        "files": _ALL | (_IOCTL if abi >= 5 else 0),
        "net": 3 if abi >= 4 else 0,
        "scoped": 3 if abi >= SIGNALS_ABI else 0,
        "size": 24 if abi >= 6 else 16 if abi >= 4 else 8,
        "paths": paths,
    }


def _readable(path: Path) -> int:
    return READ if path.is_dir() else READ_FILE


def _grants(folder: Path, protected: set[Path], hidden: tuple[Path, ...]) -> list[tuple[str, int]]:
    if not any(folder in path.parents for path in protected):
        return [(str(folder), WRITE)]
    found = [(str(folder), _LIST)]
    for entry in os.scandir(folder):
        path = Path(entry.path)
        if path in hidden or entry.is_symlink():
            continue
        if path in protected:
            found.append((str(path), READ if is_folder(path) else READ_FILE))
        elif entry.is_dir(follow_symlinks=False):
            found += _grants(path, protected, hidden)
        elif entry.is_file(follow_symlinks=False):
            found.append((str(path), WRITE_FILE))
    return found
