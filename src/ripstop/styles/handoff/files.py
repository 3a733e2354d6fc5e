"""One file in an open folder: how it is read, made, replaced and moved. The rules are `folder`'s."""

import asyncio
import ctypes
import errno
import hashlib
import os
import threading
import time
import unicodedata
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from ripstop.engine.failpoints import failpoint
from ripstop.engine.performers import Refused, TryAgain
from ripstop.tools.shared_folder import (
    CREATING,
    CompleteFile,
    complete_file,
    in_words,
    mode_of,
    open_lock,
    read_file,
    try_lock,
    unlock,
    wait_for_lock,
)
from ripstop.tools.workspace import is_name

# Replacing a file only if it still is what it was, which `rename` cannot do: it does not look at what it overwrites.
#
# The two files change places (`renameat2` with `RENAME_EXCHANGE`), and only then is the old one checked. If it is
# not what was expected, an editor saved at that moment, and they change back. A process that is killed between the
# two leaves that edit where the new file was: the next process finds it there (`Folder.rescue`). Where the system or
# the file system cannot exchange, there is a plain rename right after a last check, with a window of microseconds.


_EXCHANGE = 2
_CANNOT = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)

Place = tuple[int, str]
"""The descriptor of a folder, and a name in it."""


def replace_if(new: Place, old: Place, over: str, sha_of: Callable[[int, str], str]) -> bool:
    """Put the file `new` in the place of `old`, if the file there has the sha `over`. Returns whether it did.

    The file under the name `new` is of no use afterwards. `sha_of` must return something for every file.
    """
    ours = sha_of(*new)
    if sha_of(*old) != over:
        return False
    try:
        if not _exchange(new, old):
            os.rename(new[1], old[1], src_dir_fd=new[0], dst_dir_fd=old[0])
            return True
        failpoint("documents.after_exchange")
        if sha_of(*new) == over:
            return True
        _exchange(new, old)
        if sha_of(*new) != ours:
            _exchange(new, old)  # an editor saved again, over what we had put back: its text is the latest
    except FileNotFoundError:
        pass  # it was deleted or renamed at this moment
    return False


def _exchange(one: Place, other: Place) -> bool:
    """Let two files change places. False where that cannot be done."""
    function = _renameat2()
    if function is None:
        return False
    if function(one[0], os.fsencode(one[1]), other[0], os.fsencode(other[1]), _EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _CANNOT:
        return False
    raise OSError(number, os.strerror(number), other[1])


@cache
def _renameat2() -> Any:
    found = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if found is not None:
        found.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    return found


# A lock that processes share, and the tasks of one process too.
#
# - Each holder opens the file for itself, so two tasks of one process exclude each other like two processes.
# - Each waiter has its own thread. The pool of `asyncio.to_thread` has few threads: if all of them
#   waited for a lock, its holder would find none left to do its work in, and leaving the program would wait for them.
# - A task that gives up waiting leaves its thread behind. Whichever of the two comes second closes the file, so no lock
#   is kept for nobody.


Result = TypeVar("Result")


@asynccontextmanager
async def locked(path: Path) -> AsyncIterator[None]:
    """Hold the lock `path`, a file in a folder that exists. Raises `Refused` or `TryAgain` if it cannot be used."""
    descriptor = _open(path)
    if not _lock_at_once(path, descriptor):
        await _Waiting(path, descriptor).wait()
    try:
        yield
    finally:
        unlock(descriptor)
        os.close(descriptor)


async def do_locked(path: Path, work: Callable[[], Result]) -> Result:
    """Do something in a thread while holding a lock, which is kept until the work has ended, cancelled or not."""
    async with locked(path):
        working = asyncio.ensure_future(asyncio.to_thread(work))
        try:
            return await asyncio.shield(working)
        except asyncio.CancelledError:
            await asyncio.wait([working])  # a thread cannot be stopped, and must not continue without the lock
            if not working.cancelled():
                working.exception()  # the caller has gone, so the error is not reported
            raise


def _open(path: Path) -> int:
    try:
        return open_lock(path, 0o666)
    except OSError as error:
        raise in_words(path, error) from error


def _lock_at_once(path: Path, descriptor: int) -> bool:
    try:
        return try_lock(descriptor)
    except OSError as error:
        os.close(descriptor)
        raise in_words(path, error) from error


class _Waiting:
    """One task that waits, and the thread that does it for the task."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._over = asyncio.Event()
        self._turn = threading.Lock()
        self._ended = False
        self._abandoned = False
        self._error: OSError | None = None

    async def wait(self) -> None:
        """Return with the lock, or raise and leave nothing open."""
        # a daemon: a lock that is never freed must not keep the program from ending
        threading.Thread(target=self._in_thread, name=f"waits for {self._path.name}", daemon=True).start()
        try:
            await self._over.wait()
        except BaseException:
            with self._turn:
                self._abandoned = True
                if self._ended:
                    os.close(self._descriptor)
            raise
        if self._error is not None:
            os.close(self._descriptor)
            raise in_words(self._path, self._error) from self._error

    def _in_thread(self) -> None:
        try:
            wait_for_lock(self._descriptor)
        except OSError as error:
            self._error = error
        with self._turn:
            self._ended = True
            if self._abandoned:
                os.close(self._descriptor)
                return
        with suppress(RuntimeError):  # the loop has been closed, and with it goes the task
            self._loop.call_soon_threadsafe(self._over.set)


# Names and texts as they can be stored on disk, in any language.


MAX_SIZE = 1_000_000
"""Bytes of one text."""
MAX_NAME = 220
"""Bytes of a name to which we may still add something; a file system takes 255."""


def is_plain(name: str) -> bool:
    return bool(name.strip()) and not name.startswith(".") and "/" not in name and is_name(name)


def checked(name: str, reserved: tuple[str, ...] = ()) -> str:
    if not is_plain(name) or name in reserved:
        ours = f", and not one of {', '.join(reserved)}" if reserved else ""
        raise Refused(f"{name!r} cannot be used: give a name without folders that is not hidden{ours}.")
    return name


def printable(name: str) -> str:
    """A name of any kind, as it can be shown."""
    return name.encode(errors="backslashreplace").decode().encode("unicode_escape").decode("ascii")


def safe(word: str) -> str:
    """A word of any language as a part of a file name. Marks (M) belong to the letters before them."""
    letters = unicodedata.normalize("NFC", word)[:60]
    fitting = (x if x.isalnum() or x == "-" or unicodedata.category(x)[0] == "M" else "_" for x in letters)
    return cut("".join(fitting), 180) or "untitled"


def cut(name: str, most: int) -> str:
    """Cut to a number of bytes, between two characters."""
    return name.encode()[:most].decode(errors="ignore")


def numbered(start: str, end: str) -> Iterator[str]:
    yield start + end
    yield from (f"{start}_{number}{end}" for number in count(2))


def decoded(name: str, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Refused(f"{name!r} is not UTF-8 text: byte {error.start} is wrong. Save it as UTF-8.") from error


def encoded(text: str) -> bytes:
    """A text as the bytes of a file. Raises `Refused` if it cannot be encoded."""
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise Refused(f"Character {error.start} of the text cannot be written as UTF-8.") from error
    if len(data) > MAX_SIZE:
        raise Refused(f"The text is too long for a document: {len(data)} bytes, at most {MAX_SIZE}.")
    return data


_UNFINISHED = ".unfinished-"
"""How the names of our hidden files begin. Not as those of the file tools, which delete theirs under another lock."""
_OLD, _LOOKS = 3600.0, 5
REFUSED = ".refused-"
RETRY_INTERVAL = 0.01
"""Seconds until we look again."""


class FoundFile(Struct, frozen=True):
    """A file that was read: it has a text or a problem. `mtime` is in microseconds since 1970."""

    name: str
    text: str | None
    problem: str
    mtime: int


class Missing(Refused):
    """There is no such folder or file."""


def found(above: int, name: str) -> FoundFile | None:
    """Nothing if it has gone in the meantime."""
    text, problem, mtime = None, "", 0
    try:
        mtime = os.stat(name, dir_fd=above, follow_symlinks=False).st_mtime_ns // 1000
        data = look(above, name)
        text = None if data is None else decoded(name, data)
    except FileNotFoundError:
        return None
    except OSError as error:
        problem = str(in_words(Path(name), error))
    except (Refused, TryAgain) as trouble:
        problem = str(trouble)
    return FoundFile(name, text, problem, mtime) if text is not None or problem else None


def is_there(above: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=above, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def is_older(above: int, name: str, before: float) -> bool:
    try:
        return os.stat(name, dir_fd=above, follow_symlinks=False).st_mtime < before
    except FileNotFoundError:
        return False


def look(above: int, name: str) -> bytes | None:
    looked = look_closely(above, name)
    return None if looked is None else looked[0]


def look_closely(above: int, name: str) -> tuple[bytes, os.stat_result] | None:
    """All of a file as it was at one moment: if it is written or replaced meanwhile, we look again."""
    for _ in range(_LOOKS):
        try:
            data, status = read_file(above, name, MAX_SIZE)
        except FileNotFoundError:
            return None
        with suppress(FileNotFoundError):
            now = os.stat(name, dir_fd=above, follow_symlinks=False)
            if os.path.samestat(now, status) and (now.st_size, now.st_mtime_ns) == (len(data), status.st_mtime_ns):
                return data, now
        time.sleep(RETRY_INTERVAL)
    raise TryAgain(f"{name!r} is being written all the time and cannot be read.")


def sha(above: int, name: str) -> str:
    """The hash of the file; empty if there is none."""
    data = look(above, name)
    return "" if data is None else hashlib.sha256(data).hexdigest()


def sha_of_any(above: int, name: str) -> str:
    """Like `sha`, but returns a text that is not a hash if the file cannot be read."""
    try:
        return sha(above, name)
    except (Refused, TryAgain, OSError):
        return "unreadable"


def _unfinished(
    above: int, data: bytes, mode: int | None = None, into: int | None = None
) -> AbstractContextManager[CompleteFile]:
    """A complete file, safely on disk, under a hidden name that goes away again; `into`: where it is to go."""
    return complete_file(above, data, _UNFINISHED, mode, into, when_open=lambda: failpoint("documents.before_write"))


def sweep(above: int) -> None:
    """Remove what killed processes have left. The time is the file system's own: when the folder last changed."""
    now = os.fstat(above).st_mtime
    for name in os.listdir(above):
        if name.startswith(_UNFINISHED):
            with suppress(FileNotFoundError):
                if now - os.stat(name, dir_fd=above, follow_symlinks=False).st_mtime > _OLD:
                    os.unlink(name, dir_fd=above)


def create(above: int, names: Iterator[str], data: bytes) -> str:
    """Put a new file under the first name that is free; returns it, or nothing if none was."""
    with _unfinished(above, data) as new:
        for name in names:
            failpoint("documents.before_link")
            if new.create(above, name):
                failpoint("documents.after_link")
                return name
    return ""


def put(above: int, name: str, data: bytes) -> None:
    with _unfinished(above, data, mode_of(above, name)) as new:
        failpoint("documents.before_rename")
        new.replace(above, name)
        failpoint("documents.after_rename")


def put_in_place_of(above: int, name: str, data: bytes, over: str, beside: int, key: str) -> bool:
    """The new file has a separate name, which only complete files get. After an error it stays: see `rescue`."""
    with _unfinished(beside, data, mode_of(above, name), into=above) as new:
        failpoint("documents.before_rename")
        new.replace(beside, key)
        done = replace_if((beside, key), (above, name), over, sha_of_any)
        failpoint("documents.after_rename")
        with suppress(FileNotFoundError):  # where there is no exchange, it was renamed
            os.unlink(key, dir_fd=beside)
    return done


def refused(name: str, tag: str) -> Iterator[str]:
    """Names under which a refused text may be kept beside its document."""
    return numbered(f"{cut(checked(name), MAX_NAME - 90)}{REFUSED}{cut(safe(tag), 80)}", "")


def move(above: int, name: str, into: int, names: Iterator[str]) -> str:
    """Move a file under a name that is free there. An empty file takes the name first, for a rename overwrites."""
    for target in names:
        with suppress(FileExistsError):
            os.close(os.open(target, CREATING, 0o666, dir_fd=into))
            break
    failpoint("documents.before_move")
    try:
        os.rename(name, target, src_dir_fd=above, dst_dir_fd=into)
    except OSError as error:
        os.unlink(target, dir_fd=into)
        if isinstance(error, FileNotFoundError):
            raise Missing(f"{name!r} is gone; another process has moved or deleted it.") from error
        raise
    failpoint("documents.after_move")
    os.fsync(into)
    os.fsync(above)
    return target
