"""Tells when something changes in folders, at no cost while nothing does.

- On Linux the kernel reports changes (inotify); the loop wakes up when there is a report, and for nothing else but
  the sweep. There is no thread and no polling.
- Watched are the folders that are wanted, the folders directly in them (an agent's inbox), and above each wanted one
  the nearest folder that exists, for the wanted one may be made, removed and made again.
- A watch belongs to a folder, not to its name. So whenever folders come or go, all watches are laid again: one that is
  there already is only confirmed, and what no name leads to any more is taken away. What already lies in a folder
  that is new to us is reported too: it may have been written before we could watch.
- Nobody may rely on reports alone: some file systems report nothing, and the kernel drops reports when there are too
  many. So an empty set, "look at everything", comes every `sweep` seconds, and at once if reports were dropped.
- Hidden files are nobody's business. Where there is no inotify, there is only the sweep, every two seconds.
"""

import asyncio
import errno
import logging
import os
import struct
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

log = logging.getLogger("ripstop.documents")

SETTLE = 0.05
"""Seconds in which changes are put together: one save in an editor is several."""
BLIND_SWEEP = 2.0
"""Seconds between two sweeps where nothing is reported."""

_CLOSE_WRITE, _MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x8, 0x40, 0x80, 0x100, 0x200
_OVERFLOW, _IGNORED, _ONLY_FOLDERS, _ADD_TO_MASK, _IS_FOLDER = 0x4000, 0x8000, 0x0100_0000, 0x2000_0000, 0x4000_0000
_NAMES = _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _ONLY_FOLDERS
_EVERYTHING = _NAMES | _CLOSE_WRITE
_HEAD = struct.Struct("iIII")
"""Of a report: watch, what happened, a number that joins the two halves of a rename, length of the name."""


async def changes(paths: list[Path], sweep: float = 30.0) -> AsyncGenerator[set[Path], None]:
    """The (absolute) paths that have changed in these folders, each time some have. An empty set: look at everything.

    The first set is empty and comes at once, when all is watched: so nothing falls between a first look and the watch.
    """
    try:
        reports = _Reports([path.absolute() for path in paths], sweep)
        try:
            yield set()
            while True:
                yield await reports.next()
        finally:
            reports.close()
    except OSError as error:
        log.warning("Changes of documents are noticed only every %g s: %s.", BLIND_SWEEP, error.strerror)
    while True:
        yield set()
        await asyncio.sleep(min(sweep, BLIND_SWEEP))


class _Reports:
    """An inotify descriptor in the loop. Raises `OSError` where there is none to be had."""

    def __init__(self, wanted: list[Path], sweep: float) -> None:
        self._wanted = wanted
        self._sweep = sweep
        self._libc = _libc()
        self._watched: dict[int, Path] = {}
        self._changed: set[Path] = set()
        self._look_at_everything = False
        self._failure: OSError | None = None
        self._some = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._swept = self._loop.time()
        self._descriptor = self._called(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        try:
            self._lay()
            self._loop.add_reader(self._descriptor, self._on_reports)
        except BaseException:
            os.close(self._descriptor)
            raise

    def close(self) -> None:
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)

    async def next(self) -> set[Path]:
        """What has changed since the last call; wait for it. Raises `OSError` if we cannot watch any longer."""
        try:
            async with asyncio.timeout_at(self._swept + self._sweep):
                await self._some.wait()
                await asyncio.sleep(SETTLE)
        except TimeoutError:
            self._look_at_everything = True
        if self._failure:
            raise self._failure
        if self._look_at_everything:
            self._swept = self._loop.time()
            self._changed = set()
        changed, self._changed, self._look_at_everything = self._changed, set(), False
        self._some.clear()
        return changed

    def _on_reports(self) -> None:
        try:
            self._read()
        except OSError as error:
            self._failure = error
            self._loop.remove_reader(self._descriptor)
        if self._changed or self._look_at_everything or self._failure:
            self._some.set()

    def _read(self) -> None:
        data = os.read(self._descriptor, 65536)
        place, folders_differ = 0, False
        while place < len(data):
            watch, what, _, length = _HEAD.unpack_from(data, place)
            name = os.fsdecode(data[place + _HEAD.size : place + _HEAD.size + length].rstrip(b"\0"))
            place += _HEAD.size + length
            folders_differ |= bool(what & (_IS_FOLDER | _IGNORED | _OVERFLOW))
            self._look_at_everything |= bool(what & _OVERFLOW)
            folder = self._watched.get(watch)
            if folder and name:
                self._note(folder / name)
        if folders_differ:
            before = set(self._watched)
            self._lay()
            for watch in self._watched.keys() - before:
                self._note_content(self._watched[watch])

    def _note(self, path: Path) -> None:
        inside = any(above in self._wanted for above in (path.parent, path.parent.parent))
        if path in self._wanted or (inside and not path.name.startswith(".")):
            self._changed.add(path)

    def _note_content(self, folder: Path) -> None:
        self._note(folder)
        for name in _names(folder, folders=False):
            self._note(folder / name)

    # Watches

    def _lay(self) -> None:
        """Watch what there is now. Again and again, until nothing has appeared while we did so."""
        while True:
            found: dict[int, Path] = {}
            for path in self._wanted:
                next(above for above in path.parents if self._watch(above, _NAMES, found))
                if self._watch(path, _EVERYTHING, found):
                    for name in _names(path, folders=True):
                        self._watch(path / name, _EVERYTHING, found)
            same = found.keys() == self._watched.keys()
            for watch in self._watched.keys() - found.keys():
                self._libc.inotify_rm_watch(self._descriptor, watch)  # fails if its folder has gone, which is as well
            self._watched = found
            if same:
                return

    def _watch(self, folder: Path, mask: int, found: dict[int, Path]) -> bool:
        """False if there is no such folder."""
        watch = self._libc.inotify_add_watch(self._descriptor, os.fsencode(folder), mask | _ADD_TO_MASK)
        if watch == -1 and _error().errno in (errno.ENOENT, errno.ENOTDIR):
            return False
        found[self._called(watch)] = folder
        return True

    def _called(self, result: int) -> int:
        if result == -1:
            raise _error()
        return result


def _names(folder: Path, folders: bool) -> list[str]:
    """Of the folders, or of all else, in a folder; links lead elsewhere and are no folders."""
    try:
        with os.scandir(folder) as entries:
            return [
                one.name
                for one in entries
                if one.is_dir(follow_symlinks=False) is folders and not one.name.startswith(".")
            ]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _libc() -> Any:
    if sys.platform != "linux":
        raise OSError(errno.ENOSYS, "this system does not report them")
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    library.inotify_add_watch.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_uint32)
    return library


def _error() -> OSError:
    import ctypes

    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
