"""Whether a worker of this machine is alive, by a lock that the kernel releases when it dies.

Each worker holds a lock on a small file next to the journal, which is never a link: a project can ship
one. A worker that was killed cannot hold a lock, so its commands are free at once, not only when its
lease has expired. For workers on other machines, which a lock does not cover, the lease decides.
"""

import fcntl
import glob
import os
from pathlib import Path

from ripstop.engine.failpoints import failpoint
from ripstop.kernel.errors import JournalError
from ripstop.security.files import PRIVATE_FILE


class Liveness:
    def __init__(self, journal: Path) -> None:
        self._journal = journal
        self._mine: dict[int, int] = {}
        self._known_dead: set[int] = set()

    def _file(self, worker_id: int) -> Path:
        return self._journal.with_name(f"{self._journal.name}-worker-{worker_id}")

    def enter(self, worker_id: int) -> None:
        while True:
            failpoint("liveness.before_create")
            handle = self._made(self._file(worker_id))
            failpoint("liveness.before_lock")
            fcntl.flock(handle, fcntl.LOCK_EX)  # others hold it for no longer than they look
            if os.fstat(handle).st_nlink:
                break
            os.close(handle)  # who looked before it was locked took us for dead, and has removed the file
        self._mine[worker_id] = handle

    def _made(self, path: Path) -> int:
        try:
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, PRIVATE_FILE)
        except OSError as error:
            raise JournalError(
                f"{path}, the lock of a worker, cannot be made: {error.strerror}. If there is a link or a folder of "
                "this name, remove it: ripstop makes neither."
            ) from error

    def leave(self, worker_id: int) -> None:
        handle = self._mine.pop(worker_id, None)
        if handle is not None:
            failpoint("liveness.before_unlink")
            self._file(worker_id).unlink(missing_ok=True)
            failpoint("liveness.after_unlink")
            os.close(handle)

    def abandon(self, worker_id: int) -> None:
        """Leave as a killed process does: the file stays, unlocked, so that others see at once that it is dead."""
        handle = self._mine.pop(worker_id, None)
        if handle is not None:
            os.close(handle)

    def marks(self) -> set[int]:
        """The workers that have a file, living or dead."""
        start = f"{self._journal.name}-worker-"
        found = self._journal.parent.glob(f"{glob.escape(start)}*")
        names = (path.name.removeprefix(start) for path in found if path.is_symlink() or not path.is_dir())
        return {int(name) for name in names if name.isdecimal()}

    def gone(self, worker_id: int) -> bool:
        """Whether it is surely dead: its file is there and the lock on it is free."""
        if worker_id in self._mine:
            return False
        try:
            handle = os.open(self._file(worker_id), os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        finally:
            os.close(handle)
        return True

    def has_died(self) -> bool:
        """Whether a worker was killed since this was asked before. Each is told once, though its file may stay."""
        before, self._known_dead = self._known_dead, {worker for worker in self.marks() if self.gone(worker)}
        return not self._known_dead <= before

    def bury(self, worker_id: int) -> None:
        failpoint("liveness.before_bury")
        self._file(worker_id).unlink(missing_ok=True)

    def close(self) -> None:
        """What has not left is in the journal's list of workers still."""
        for worker_id in list(self._mine):
            self.abandon(worker_id)
