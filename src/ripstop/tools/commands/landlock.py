"""What Landlock lets a command do with files: read the system, write its place, and nothing else.

A right on a folder holds for all below it, and cannot be taken back further down. So a folder with something protected
in it gets the right to be listed only, and its other entries get theirs one by one. Nothing new can then be made in
that folder itself.
"""

import ctypes
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ripstop.engine.performers import TryAgain

from ..shared_folder import HOLDING
from .mounts import SYSTEM, CommandPlace, readable_etc

LOWEST_ABI = 3
"""Before it, files could be cut to nothing anywhere."""
SIGNALS_ABI = 6
_CREATE_RULESET, _ADD_RULE = 444, 445
_ASK_VERSION, _PATH_BENEATH = 1, 1
_libc = ctypes.CDLL(None, use_errno=True)

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
    found = _libc.syscall(ctypes.c_long(_CREATE_RULESET), None, ctypes.c_size_t(0), ctypes.c_uint32(_ASK_VERSION))
    return max(int(found), 0)


class _RulesetAttributes(ctypes.Structure):
    _fields_ = [("files", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64)]


class _PathRule(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32)]


class Ruleset:
    """Rules that are made here, and put in force by the launcher. Each is about what was opened, not about a path."""

    def __init__(self, abi: int) -> None:
        """Raises `OSError`."""
        attributes = _RulesetAttributes(
            _ALL | (_IOCTL if abi >= 5 else 0), 3 if abi >= 4 else 0, 3 if abi >= SIGNALS_ABI else 0
        )
        size = 24 if abi >= 6 else 16 if abi >= 4 else 8
        self.descriptor = _call(_CREATE_RULESET, ctypes.byref(attributes), ctypes.c_size_t(size), ctypes.c_uint32(0))

    def allow(self, opened: int, allowed: int) -> None:
        """Allow a file, or a folder with all below it."""
        rule = _PathRule(allowed, opened)
        _call(_ADD_RULE, self.descriptor, _PATH_BENEATH, ctypes.byref(rule), ctypes.c_uint32(0))

    def allow_path(self, path: str, allowed: int) -> None:
        """Allow a path of the system, or one that only we write. Does nothing if it is not there."""
        try:
            opened = os.open(path, HOLDING)
        except OSError:
            return
        try:
            self.allow(opened, allowed)
        finally:
            os.close(opened)


def _call(number: int, *arguments: Any) -> int:
    found = int(_libc.syscall(ctypes.c_long(number), *arguments))
    if found < 0:
        raise OSError(ctypes.get_errno(), f"Landlock: {os.strerror(ctypes.get_errno())}")
    return found


@contextmanager
def landlock_rules(place: CommandPlace, home: Path, read: tuple[Path, ...], abi: int) -> Iterator[int]:
    """A descriptor of the rules. `home`: a folder that only this command has. Raises `OSError` and `TryAgain`."""
    rules = Ruleset(abi)
    try:
        for path in (*SYSTEM, *readable_etc(), *map(str, read)):
            rules.allow_path(os.path.realpath(path), READ if os.path.isdir(path) else READ_FILE)
        for device in _DEVICES:
            rules.allow_path(device, _READ | _WRITE | (_IOCTL if abi >= 5 else 0))
        for name in _PROC:
            rules.allow_path(f"/proc/{name}", _READ)
        rules.allow_path(str(home), WRITE)
        grants = _Grants(rules, place)
        for root in place.writable:
            grants.allow(root.descriptor, root.path)
        yield rules.descriptor
    finally:
        os.close(rules.descriptor)


class _Grants:
    """What a command can do below the folders that it writes."""

    def __init__(self, rules: Ruleset, place: CommandPlace) -> None:
        self._rules = rules
        self._read_only = {one.path for one in place.read_only}
        self._hidden = {one.path for one in place.hidden}
        self._above = {above for path in (*self._read_only, *self._hidden) for above in path.parents}
        self._known = place.known

    def allow(self, folder: int, path: Path, is_read_only: bool = False) -> None:
        if path not in self._above:
            self._rules.allow(folder, READ if is_read_only else WRITE)
            return
        self._rules.allow(folder, _LIST)
        listed = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        try:
            names = os.listdir(listed)
        finally:
            os.close(listed)
        for name in names:
            try:
                opened = os.open(name, HOLDING, dir_fd=folder)
            except FileNotFoundError:
                continue
            try:
                self._allow_entry(opened, path / name, is_read_only)
            finally:
                os.close(opened)

    def _allow_entry(self, opened: int, path: Path, is_read_only: bool) -> None:
        found = os.fstat(opened)
        is_folder = stat.S_ISDIR(found.st_mode)
        if path in self._hidden or not (is_folder or stat.S_ISREG(found.st_mode)):
            return
        is_kept = path in self._read_only
        if (found.st_dev, found.st_ino) in self._known and not is_kept:  # moved here since it was looked for
            raise TryAgain(f"{str(path)!r} was moved while a command was prepared.")
        is_read_only = is_read_only or is_kept
        if is_folder:
            self.allow(opened, path, is_read_only)
        else:
            self._rules.allow(opened, READ_FILE if is_read_only else WRITE_FILE)
