"""Folders opened one from the other, below a root that a user chose. Paths are relative, and no link is followed.

The root itself may be behind a link. Below it, nothing that is swapped while we walk can lead out.
"""

import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from ripstop.engine.performers import Refused, Request, TryAgain, start_thread

from .workspace import MAX_PARTS, MAX_PATH, enter, is_name

# What the system says about a file or folder, in words for people, and whether the trouble may pass.


_PASSING = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EBUSY, errno.ESTALE)
_ADVICE = {
    errno.EACCES: "Allow this user to read and write there.",
    errno.EPERM: "It must be writable, and on a file system that has hard links.",
    errno.EROFS: "Make it writable, or choose another folder.",
    errno.ENOENT: "Put it back, or choose another folder.",
    errno.ENOTDIR: "There is a file where a folder should be; move it away.",
    errno.EISDIR: "There is a folder where a file should be; move it away.",
    errno.ELOOP: "It is a symbolic link, and links are not followed; move it away.",
    errno.ENOSPC: "Make room on the disk.",
    errno.EDQUOT: "Make room on the disk.",
    errno.ENOLCK: "Choose a folder on a file system that knows flock.",
    errno.ENOTSUP: "Choose a folder on a file system that knows flock and hard links.",
}


def in_words(place: Path, error: OSError) -> Refused | TryAgain:
    number = error.errno or 0
    said = f"{str(place)!r} cannot be used: {os.strerror(number)}. {_ADVICE.get(number, '')}".rstrip()
    return TryAgain(said) if number in _PASSING else Refused(said)


class PathMissing(Refused):
    """There is no such folder or file."""


@contextmanager
def opened(root: Path, parts: tuple[str, ...], create: bool = False) -> Iterator[int]:
    """A descriptor of a folder below the root. Raises `PathMissing`, `Refused` and `TryAgain`, never `OSError`."""
    for part in parts:
        if part in ("", ".", "..") or "/" in part or "\0" in part:
            raise Refused(
                f"{'/'.join(parts)[:MAX_PATH]!r} cannot be used as a path: {part[:MAX_PATH]!r} in it is not a name."
            )
    place = root.joinpath(*parts)
    try:
        current = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise PathMissing(f"There is no folder {str(root)!r}. Put it back, or choose another.") from error
    except OSError as error:
        raise in_words(root, error) from error
    try:
        for part in parts:
            try:
                deeper = enter(current, part, create)
            except FileNotFoundError as error:
                raise PathMissing(f"There is no folder {str(place)!r}. Put it back, or choose another.") from error
            except Refused as refusal:
                raise Refused(f"{str(place)!r} cannot be used: {refusal} Move away what is there.") from refusal
            os.close(current)
            current = deeper
        yield current
    except OSError as error:
        raise in_words(place, error) from error
    finally:
        os.close(current)


def parts_of(path: str) -> tuple[str, ...]:
    """The names in a relative path. Raises `Refused`."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    is_wrong = ".." in parts or not all(map(is_name, parts)) or path.startswith("/")
    if not parts or is_wrong or len(parts) > MAX_PARTS or len(path) > MAX_PATH:
        raise Refused(f"{path[:MAX_PATH]!r} cannot be used as a path; give one that stays below its folder.")
    return tuple(parts)


# Who works in a folder, such as a board: one run at a time, and one call of it at a time.
#
# - A run holds `lock` from its first call until it releases the folder or its process ends. The file has the run's
#   id in it.
# - Another run is refused at once, unless the run that holds it is over: then the id in the file is replaced. A process
#   that holds the lock for a run whose id is not in the file any more has lost it. Without an id in the file the folder
#   is free, because the run has released it in another process.
# - The same run in another process continues: leases see to it that only one process performs a command, and the one that
#   holds the lock may be about to notice that it has lost its lease.
# - `mutex` is held for the time of one call. So a call that was thought lost does not write into the middle of another,
#   and the id in the file always belongs to the run that holds it.
# - Both files are `flock`ed and never deleted: whoever waits for a deleted file would hold a lock of its own.


Result = TypeVar("Result")

LOCK, MUTEX = "lock", "mutex"
LONGEST_WAIT, PAUSE = 20.0, 0.01
"""Seconds until a call gives up waiting for another, and between two looks."""
MAX_ID = 1_000
_OPENING = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class FolderTaken(Refused):
    """Another run works in the folder."""

    def __init__(self, what: str, root: Path, holder: str) -> None:
        who = f"the run {holder}" if holder else "another run"
        super().__init__(
            f"The {what} {str(root)!r} is being worked on by {who}; wait until it has ended, or cancel it.", "tool"
        )
        self.holder = holder


class FolderLocks:
    """The locks that runs of this process hold."""

    def __init__(self, what: str, kept: tuple[str, ...]) -> None:
        """Args:
        what: What a folder is, in messages: `board`.
        kept: The folder below it that has the lock files. It must exist.
        """
        self._what = what
        self._kept = kept
        self._held: dict[Path, int] = {}
        """Descriptors of the lock files, by the folder."""

    @contextmanager
    def working(self, root: Path, run_id: str, over: frozenset[str] = frozenset()) -> Iterator[None]:
        """Work in a folder for a run, which then holds its lock.

        Args:
            over: Runs that have ended.

        Raises:
            FolderTaken: Another run holds it.
        """
        with self.alone(root):
            self._claim(root, run_id, over)
            yield

    def release(self, root: Path) -> None:
        """Give up the lock of a folder; the caller is `working` in it."""
        descriptor = self._held.pop(root)
        os.ftruncate(descriptor, 0)
        fcntl.flock(descriptor, fcntl.LOCK_UN)  # closing would not do if a forked child has it open as well
        os.close(descriptor)

    @contextmanager
    def alone(self, root: Path) -> Iterator[None]:
        """Have the folder for the time of one call, for whatever run. Raises `TryAgain` if others always have it."""
        with opened(root, self._kept) as ours:
            descriptor = self._opened_lock(root, ours, MUTEX)
            try:
                end = time.monotonic() + LONGEST_WAIT
                while not _lock(descriptor):
                    if time.monotonic() > end:
                        raise TryAgain(f"The {self._what} {str(root)!r} is in use by another process all the time.")
                    time.sleep(PAUSE)
                try:
                    yield
                finally:
                    fcntl.flock(descriptor, fcntl.LOCK_UN)
            finally:
                os.close(descriptor)

    def _claim(self, root: Path, run_id: str, over: frozenset[str]) -> None:
        with opened(root, self._kept) as ours:
            descriptor = self._held.get(root, -1)
            is_new = descriptor < 0 or not _is_there(descriptor, ours)
            if is_new:
                descriptor = self._opened_lock(root, ours, LOCK)
            try:
                is_free = _lock(descriptor) and is_new
                holder = os.pread(descriptor, MAX_ID, 0).decode(errors="replace")
                if holder != run_id:
                    if holder and not is_free and holder not in over:
                        raise FolderTaken(self._what, root, holder)
                    os.ftruncate(descriptor, 0)
                    os.pwrite(descriptor, run_id.encode(), 0)
            except BaseException:
                if is_new:
                    os.close(descriptor)
                raise
            if is_new and root in self._held:
                os.close(self._held[root])
            self._held[root] = descriptor

    def _opened_lock(self, root: Path, ours: int, name: str) -> int:
        place = root.joinpath(*self._kept, name)
        try:
            descriptor = os.open(name, _OPENING, 0o600, dir_fd=ours)
        except OSError as error:
            raise in_words(place, error) from error
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise Refused(f"{str(place)!r} is not a regular file, so it cannot be locked. Move it away.")
        return descriptor


async def work_in_turn(request: Request, work: Callable[[frozenset[str]], Result]) -> Result:
    """Call `work` in a thread: the disk, or another process that has the folder, can keep us waiting.

    Args:
        work: Takes the runs that have ended; raises `FolderTaken` for one that holds the folder.

    A run that holds the folder gives way if it is over.
    """
    over: frozenset[str] = frozenset()
    while True:
        try:
            done: Result = await start_thread(work, over=over)
            return done
        except FolderTaken as taken:
            if taken.holder in over or not await request.is_over(taken.holder):
                raise
            over |= {taken.holder}


def _is_there(descriptor: int, folder: int) -> bool:
    """Whether an open lock file still is the one in the folder: a person may have deleted ours."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(LOCK, dir_fd=folder, follow_symlinks=False))
    except FileNotFoundError:
        return False


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


# A regular file in an open folder: read with a bound, or written so that it is safely on disk. Links are not followed.
#
# A pipe or a device that takes the file's place cannot make us wait: the file is opened first, and checked then.


READING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
CREATING = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def opened_file(above: int, name: str) -> Iterator[tuple[int, os.stat_result]]:
    """A descriptor of a regular file. Raises `OSError`, and `Refused` if it is anything else."""
    descriptor = os.open(name, READING, dir_fd=above)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise Refused(f"{name!r} is not a regular file. Move it away.")
        yield descriptor, status
    finally:
        os.close(descriptor)


def read_file(above: int, name: str, most: int) -> tuple[bytes, os.stat_result]:
    """The bytes of a file, and what was known of it before they were read. Raises as `opened_file`."""
    with opened_file(above, name) as (descriptor, status):
        if status.st_size > most:
            raise Refused(f"{name!r} is too large: {status.st_size} bytes, at most {most}.")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(most + 1), status


@contextmanager
def complete_file(
    above: int,
    name: str,
    data: bytes,
    mode: int | None = None,
    when_open: Callable[[], object] = bool,
    sync: bool = True,
) -> Iterator[None]:
    """A complete new file, safely on disk unless `sync` is false, under a name that goes away again.

    Args:
        when_open: Called before anything is written.
    """
    descriptor = os.open(name, CREATING, 0o666, dir_fd=above)
    try:
        with os.fdopen(descriptor, "wb") as file:
            when_open()
            file.write(data)
            file.flush()
            if mode is not None:
                os.fchmod(descriptor, mode)
            if sync:
                os.fsync(descriptor)
        yield
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=above)


def mode_of(above: int, name: str) -> int | None:
    """The permissions of a file; `None` if there is none."""
    try:
        return stat.S_IMODE(os.stat(name, dir_fd=above, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return None
