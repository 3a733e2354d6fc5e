"""Who works on a board: one run at a time, and one call of it at a time.

- A run holds `lock` from its first call until it closes the board or its process ends. The file has the run's id in it.
- Another run is refused at once, unless the run that holds it is over: then the id in the file is replaced. A process
  that holds the lock for a run whose id is not in the file any more has lost it.
- The same run in another process continues: leases see to it that only one process performs a command, and the one that
  holds the lock may be about to notice that it has lost its lease.
- `mutex` is held for the time of one call. So a call that was thought lost does not write into the middle of another,
  and the id in the file always belongs to the run that holds it.
- Both files are `flock`ed and never deleted: whoever waits for a deleted file would hold a lock of its own.
"""

import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ripstop.performers.file_errors import in_words
from ripstop.runtime.performers import Refused, TryAgain

from .bookkeeping import KEPT
from .folders import opened

LOCK, MUTEX = "lock", "mutex"
LONGEST_WAIT, PAUSE = 20.0, 0.01
"""Seconds until a call gives up waiting for another, and between two looks."""
MAX_ID = 1_000
_OPENING = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class BoardTaken(Refused):
    """Another run works on the board."""

    def __init__(self, root: Path, holder: str) -> None:
        who = f"the run {holder}" if holder else "another run"
        super().__init__(
            f"The board {str(root)!r} is being worked on by {who}; wait until it has ended, or cancel it.", "tool"
        )
        self.holder = holder


class BoardLocks:
    """The locks that runs of this process hold."""

    def __init__(self) -> None:
        self._held: dict[Path, int] = {}
        """Descriptors of the lock files, by the board's folder."""

    @contextmanager
    def working(self, root: Path, run_id: str, over: frozenset[str] = frozenset()) -> Iterator[None]:
        """Work on a board for a run, which then holds its lock.

        Args:
            over: Runs that have ended.

        Raises:
            BoardTaken: Another run holds it.
        """
        with _alone(root):
            self._claim(root, run_id, over)
            yield

    def release(self, root: Path) -> None:
        """Give up the lock of a board; the caller is `working` on it."""
        descriptor = self._held.pop(root)
        os.ftruncate(descriptor, 0)
        fcntl.flock(descriptor, fcntl.LOCK_UN)  # closing would not do if a forked child has it open as well
        os.close(descriptor)

    def _claim(self, root: Path, run_id: str, over: frozenset[str]) -> None:
        with opened(root, KEPT) as ours:
            descriptor = self._held.get(root, -1)
            is_new = descriptor < 0 or not _is_there(descriptor, ours)
            if is_new:
                descriptor = _opened_lock(root, ours, LOCK)
            try:
                is_free = _lock(descriptor) and is_new
                holder = os.pread(descriptor, MAX_ID, 0).decode(errors="replace")
                if holder != run_id:
                    if not is_free and holder not in over:
                        raise BoardTaken(root, holder)
                    os.ftruncate(descriptor, 0)
                    os.pwrite(descriptor, run_id.encode(), 0)
            except BaseException:
                if is_new:
                    os.close(descriptor)
                raise
            if is_new and root in self._held:
                os.close(self._held[root])
            self._held[root] = descriptor


def _opened_lock(root: Path, ours: int, name: str) -> int:
    place = root.joinpath(*KEPT, name)
    try:
        descriptor = os.open(name, _OPENING, 0o600, dir_fd=ours)
    except OSError as error:
        raise in_words(place, error) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise Refused(f"{str(place)!r} is not a regular file, so it cannot be locked. Move it away.")
    return descriptor


def _is_there(descriptor: int, folder: int) -> bool:
    """Whether an open lock file still is the one in the folder: a person may have deleted ours."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(LOCK, dir_fd=folder, follow_symlinks=False))
    except FileNotFoundError:
        return False


@contextmanager
def _alone(root: Path) -> Iterator[None]:
    with opened(root, KEPT) as ours:
        descriptor = _opened_lock(root, ours, MUTEX)
        try:
            end = time.monotonic() + LONGEST_WAIT
            while not _lock(descriptor):
                if time.monotonic() > end:
                    raise TryAgain(f"The board {str(root)!r} is in use by another process all the time.")
                time.sleep(PAUSE)
            try:
                yield
            finally:
                fcntl.flock(descriptor, fcntl.LOCK_UN)
        finally:
            os.close(descriptor)


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
