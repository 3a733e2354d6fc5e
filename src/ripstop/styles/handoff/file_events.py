"""Tells when something changes in folders.

- The system reports changes through `watchfiles`: inotify on Linux, FSEvents on macOS. A thread waits for reports; the
  loop sleeps until there are some, and until the next sweep.
- Watched are the folders that are wanted, the folders directly in them (an agent's inbox), and above each wanted one
  the nearest folder that exists, because the wanted one may be made, removed and made again.
- A watch belongs to a folder, not to its name, and a watcher cannot be given another folder. So a new one is made
  whenever a folder comes or goes. Reports that the old one had not passed on are lost with it, therefore the next set
  is empty: look at everything.
- Reports alone are never enough: some file systems report nothing, and a system can drop reports when there are too
  many. So the empty set also comes every `sweep` seconds.
- Hidden files are not reported. Where the system reports nothing, there is only the sweep, every two seconds.
"""

import asyncio
import logging
import os
import threading
from collections.abc import AsyncGenerator
from pathlib import Path

from watchfiles import Change
from watchfiles._rust_notify import RustNotify, WatchfilesRustInternalError

from ripstop.engine.performers import start_thread

log = logging.getLogger("ripstop.documents")

SETTLE = 0.05
"""Seconds without a change after which changes are reported together: one save in an editor is several. The watcher
also looks for reports this often."""
LONGEST_SETTLE = 0.4
"""Seconds after which changes are reported, even if there are more all the time."""
MOST_ATTEMPTS = 100
"""To watch folders that come and go while we do."""
BLIND_SWEEP = 2.0
"""Seconds between two sweeps where nothing is reported."""


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
            await reports.close()
    except (OSError, WatchfilesRustInternalError) as error:
        log.warning("Changes of documents are noticed only every %g s: %s.", BLIND_SWEEP, error)
    while True:
        yield set()
        await asyncio.sleep(min(sweep, BLIND_SWEEP))


class _Reports:
    """A watcher, and the thread that waits for it. Raises `OSError` or `WatchfilesRustInternalError`."""

    def __init__(self, wanted: list[Path], sweep: float) -> None:
        self._wanted = wanted
        self._sweep = sweep
        self._loop = asyncio.get_running_loop()
        self._swept = self._loop.time()
        self._stopping = threading.Event()
        self._waiting: asyncio.Future[set[tuple[int, str]] | str] | None = None
        self._watched: dict[str, Path] = {}
        """The folders by the names that reports may use for them: the given one, and (macOS) the one without links."""
        self._watcher = self._watch()

    async def close(self) -> None:
        self._stopping.set()
        if self._waiting is not None:
            await asyncio.wait([self._waiting])
        self._watcher.close()

    async def next(self) -> set[Path]:
        """What has changed since the last call; wait for it."""
        while True:
            left = self._swept + self._sweep - self._loop.time()
            self._waiting = start_thread(
                self._watcher.watch,
                debounce_ms=round(LONGEST_SETTLE * 1000),
                step_ms=round(SETTLE * 1000),
                timeout_ms=max(1, round(left * 1000)),
                stop_event=self._stopping,
            )
            await asyncio.wait([self._waiting])  # leaves it alone if we are cancelled: `close` waits for it
            told = self._waiting.result()
            reports = told if isinstance(told, set) else set()
            if self._watch_again(reports) or self._loop.time() >= self._swept + self._sweep:
                self._swept = self._loop.time()
                return set()
            changed = {path for _, reported in reports if (path := self._named(reported))}
            if changed:
                return changed

    def _named(self, reported: str) -> Path | None:
        """The path to report for a change; `None` if it is of no interest."""
        folder, name = os.path.split(reported)
        parent = self._watched.get(folder)
        if parent is None or name.startswith(".") or not {parent, parent.parent} & {*self._wanted}:
            return None
        return parent / name

    # Watching

    def _watch_again(self, reports: set[tuple[int, str]]) -> bool:
        """Make a new watcher if folders have come or gone; return whether that was so."""
        names = {path for change, path in reports if change != Change.modified}
        # one that was removed and made again has the same name, but it is another folder
        replaced = not names.isdisjoint(self._watched)
        differ = any(os.path.isdir(path) for path in names) and self._folders() != {*self._watched.values()}
        if not replaced and not differ:
            return False
        old, self._watcher = self._watcher, self._watch()
        old.close()
        return True

    def _watch(self) -> RustNotify:
        """A watcher of what there is now: made again if a folder has come or gone meanwhile."""
        for _ in range(MOST_ATTEMPTS):
            folders = self._folders()
            try:
                watcher = RustNotify([str(path) for path in folders], False, False, 0, False, False)
            except FileNotFoundError:
                continue
            if self._folders() == folders:
                real = {os.path.realpath(path): path for path in folders}
                self._watched = real | {str(path): path for path in folders}
                return watcher
            watcher.close()
        raise OSError("folders come and go all the time")

    def _folders(self) -> set[Path]:
        found: set[Path] = set()
        for path in self._wanted:
            found.add(next(above for above in path.parents if above.is_dir()))
            if path.is_dir():
                found |= {path, *_folders_in(path)}
        return found


def _folders_in(folder: Path) -> list[Path]:
    """The visible folders directly in a folder. Links lead elsewhere, and are not followed."""
    try:
        with os.scandir(folder) as entries:
            return [
                folder / one.name
                for one in entries
                if one.is_dir(follow_symlinks=False) and not one.name.startswith(".")
            ]
    except (FileNotFoundError, NotADirectoryError):
        return []
