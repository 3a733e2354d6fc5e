"""A folder that runs, people and editors share: opened, read, written and locked, with no link followed below its root.

- Folders are opened one from the other, below a root that a user chose; the root itself may be behind a link. Nothing
  that is swapped while we walk can lead out.
- A file is opened first and checked then, so a pipe or a device in its place cannot make us wait. It is read with a
  bound.
- A file is written under a temporary name, made durable, and only then gets its own: by a rename, which replaces what
  is there, or by a link, which fails if something is. So a reader sees the old file or the new one. `sweep` removes
  the temporary files of processes that were killed.
- A lock is `flock` on a file: the kernel frees it when its holder dies, however it dies. Lock files are never deleted:
  a process that waits for a deleted one would hold a lock of its own. The one exception is a lock whose takers check
  with `is_there` that it is still the file of that name.
"""

import ctypes
import errno
import fcntl
import os
import secrets
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from ripstop.engine.performers import Refused, Request, TryAgain, start_thread
from ripstop.security.files import NEW_FILE, PRIVATE_FILE

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


# What is below an open folder, whatever is swapped there meanwhile


HOLDING = getattr(os, "O_PATH", os.O_RDONLY) | os.O_NOFOLLOW | os.O_CLOEXEC
"""Hold what has a name, without opening it for anything; of a link, the link itself."""
LISTING = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""Open a folder, and no link to one."""
_OPENAT2 = 437
"""The same on every machine."""
_STAYS_BENEATH = 0x08 | 0x04 | 0x02
"""`RESOLVE_BENEATH`, `RESOLVE_NO_SYMLINKS`, `RESOLVE_NO_MAGICLINKS`."""
_RETRIED = 100
_UNKNOWN = (errno.ENOSYS, errno.EPERM, errno.E2BIG)
"""What kernels and containers without `openat2` say."""


class _OpenHow(ctypes.Structure):
    _fields_ = [("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64)]


def open_beneath(folder: int, parts: tuple[str, ...], flags: int = HOLDING) -> int:
    """A descriptor of something below an open folder; no link on the way is followed. Raises `OSError`.

    With the kernel's own call (`openat2`) where there is one, otherwise step by step.
    """
    if not parts:
        return os.open(".", flags, dir_fd=folder)
    if sys.platform == "linux":
        how = _OpenHow(flags, 0, _STAYS_BENEATH)
        path = "/".join(parts).encode(errors="surrogateescape")
        for _ in range(_RETRIED):  # the kernel gives up, rather than guess, while others rename folders
            found = int(_libc.syscall(ctypes.c_long(_OPENAT2), folder, path, ctypes.byref(how), ctypes.sizeof(how)))
            if found >= 0:
                return found
            if ctypes.get_errno() != errno.EAGAIN:
                break
        if ctypes.get_errno() not in _UNKNOWN:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "/".join(parts))
    return _open_in_steps(folder, parts, flags)


def _open_in_steps(folder: int, parts: tuple[str, ...], flags: int) -> int:
    current = folder
    try:
        for part in parts[:-1]:
            deeper = os.open(part, HOLDING | os.O_DIRECTORY, dir_fd=current)
            if current != folder:
                os.close(current)
            current = deeper
        return os.open(parts[-1], flags | os.O_NOFOLLOW, dir_fd=current)
    finally:
        if current != folder:
            os.close(current)


_libc = ctypes.CDLL(None, use_errno=True)


# Locks


def open_lock(path: str | Path, mode: int, above: int | None = None) -> int:
    """A descriptor of a lock file, which is made if there is none. Raises `OSError`.

    Args:
        mode: The permissions of a new one.
        above: The open folder that `path` is in; `None`: a path as usual.
    """
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, mode, dir_fd=above)


def try_lock(descriptor: int, shared: bool = False) -> bool:
    """Take a lock if it is free. Raises `OSError` where there are no locks."""
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def wait_for_lock(descriptor: int) -> None:
    """Take a lock when it is free, however long that takes. Raises `OSError` where there are no locks."""
    fcntl.flock(descriptor, fcntl.LOCK_EX)


def unlock(descriptor: int) -> None:
    """Give up a lock. Closing the file would not do if a forked child has it open as well."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)


# Who works in a folder, such as a board: one run at a time, and one call of it at a time.
#
# - A run holds `lock` from its first call until it releases the folder or its process ends. The file has the run's
#   id in it.
# - Another run is refused at once, unless the run that holds it is over: then the id in the file is replaced. A process
#   that holds the lock for a run whose id is not in the file any more has lost it. Without an id in the file the folder
#   is free, because the run has released it in another process.
# - The same run in another process continues: leases see to it that only one process performs a command, and the one
#   that holds the lock may be about to notice that it has lost its lease.
# - `mutex` is held for the time of one call. So a call that was thought lost does not write into the middle of another,
#   and the id in the file always belongs to the run that holds it.


Result = TypeVar("Result")

LOCK, MUTEX = "lock", "mutex"
LONGEST_WAIT, RETRY_INTERVAL = 20.0, 0.01
"""Seconds until a call gives up waiting for another, and between two looks."""
MAX_ID = 1_000


class FolderTaken(Refused):
    """Another run works in the folder."""

    def __init__(self, what: str, root: Path, worker_id: str) -> None:
        who = f"the run {worker_id}" if worker_id else "another run"
        super().__init__(
            f"The {what} {str(root)!r} is being worked on by {who}; wait until it has ended, or cancel it.", "tool"
        )
        self.worker_id = worker_id


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
        unlock(descriptor)
        os.close(descriptor)

    @contextmanager
    def alone(self, root: Path) -> Iterator[None]:
        """Have the folder for the time of one call, for whatever run. Raises `TryAgain` if others always have it."""
        with opened(root, self._kept) as ours:
            descriptor = self._opened_lock(root, ours, MUTEX)
            try:
                end = time.monotonic() + LONGEST_WAIT
                while not try_lock(descriptor):
                    if time.monotonic() > end:
                        raise TryAgain(f"The {self._what} {str(root)!r} is in use by another process all the time.")
                    time.sleep(RETRY_INTERVAL)
                try:
                    yield
                finally:
                    unlock(descriptor)
            finally:
                os.close(descriptor)

    def _claim(self, root: Path, run_id: str, over: frozenset[str]) -> None:
        with opened(root, self._kept) as ours:
            descriptor = self._held.get(root, -1)
            is_new = descriptor < 0 or not is_there(descriptor, ours, LOCK)
            if is_new:
                descriptor = self._opened_lock(root, ours, LOCK)
            try:
                is_free = try_lock(descriptor) and is_new
                worker_id = os.pread(descriptor, MAX_ID, 0).decode(errors="replace")
                if worker_id != run_id:
                    if worker_id and not is_free and worker_id not in over:
                        raise FolderTaken(self._what, root, worker_id)
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
            descriptor = open_lock(name, PRIVATE_FILE, ours)
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
            if taken.worker_id in over or not await request.is_over(taken.worker_id):
                raise
            over |= {taken.worker_id}


def is_there(descriptor: int, folder: int, name: str) -> bool:
    """Whether an open lock file still is the one of that name in the folder: another may have deleted it."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(name, dir_fd=folder, follow_symlinks=False))
    except FileNotFoundError:
        return False


# Files in an open folder


READING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
CREATING = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
APPENDING = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


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


class CompleteFile:
    """A new file that is written, and has a temporary name."""

    def __init__(self, above: int, name: str) -> None:
        self._above = above
        self._name = name

    def replace(self, above: int, name: str) -> None:
        """Give it a name, and replace the file that has it. A link there is replaced, not followed."""
        os.rename(self._name, name, src_dir_fd=self._above, dst_dir_fd=above)

    def create(self, above: int, name: str) -> bool:
        """Give it a name that is free; returns whether it was."""
        try:
            os.link(self._name, name, src_dir_fd=self._above, dst_dir_fd=above, follow_symlinks=False)
        except FileExistsError:
            return False
        return True


@contextmanager
def complete_file(
    above: int,
    data: bytes,
    prefix: str,
    mode: int | None = None,
    into: int | None = None,
    sync: bool = True,
    when_open: Callable[[], object] = bool,
) -> Iterator[CompleteFile]:
    """A new file with this data. Its temporary name goes away again, and then its folder is made durable.

    Args:
        prefix: How temporary names begin in that folder.
        mode: Its permissions; `None`: those of any new file.
        into: The folder where it gets its name, if that is another one.
        sync: Whether file and folder are made durable.
        when_open: Called before anything is written.
    """
    name = prefix + secrets.token_hex(8)
    descriptor = os.open(name, CREATING, NEW_FILE, dir_fd=above)
    try:
        with os.fdopen(descriptor, "wb") as file:
            when_open()
            file.write(data)
            file.flush()
            if mode is not None:
                os.fchmod(descriptor, mode)
            if sync:
                os.fsync(descriptor)
        yield CompleteFile(above, name)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=above)
    if sync:
        os.fsync(above if into is None else into)


def put(above: int, name: str, data: bytes, prefix: str, mode: int | None = None, sync: bool = True) -> None:
    """Write a file as a whole, and replace the one that is there."""
    with complete_file(above, data, prefix, mode, sync=sync) as new:
        new.replace(above, name)


def sweep(above: int, prefix: str) -> None:
    """Remove the temporary files of processes that were killed; the caller has the lock that their writers need."""
    remove_files(above, [name for name in os.listdir(above) if name.startswith(prefix)])


def remove_files(above: int, names: Iterable[str]) -> None:
    """Remove files that may be gone already. A folder is not ours, and stays."""
    for name in names:
        with suppress(FileNotFoundError, IsADirectoryError, PermissionError):  # Macs say the last of a folder
            os.unlink(name, dir_fd=above)


def rename_aside(above: int, name: str, wanted: str) -> str:
    """Give something in an open folder another name, `wanted-1` or with the next number that is free; returns it."""
    taken = set(os.listdir(above))
    other = next(one for number in range(1, len(taken) + 2) if (one := f"{wanted}-{number}") not in taken)
    move(above, name, above, other)
    return other


def move(above: int, name: str, into: int, other: str) -> None:
    """Move something from one open folder to another. A link there is replaced, not followed."""
    os.rename(name, other, src_dir_fd=above, dst_dir_fd=into)


def mode_of(above: int, name: str) -> int | None:
    """The permissions of a file; `None` if there is none."""
    try:
        return stat.S_IMODE(os.stat(name, dir_fd=above, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return None
