"""The files below a project's `.cowork/`: read and written as a whole, with bounds.

- The project's folder is the user's choice and may be behind a link. `.cowork` and everything below it is opened by
  descriptors, one from the other, and no link is followed.
- A file is replaced: temporary file in the same folder → fsync → rename → fsync of the folder. So a reader sees the old
  one or the new one. Temporary files that a killed process left are removed by the next one that writes there.
- What is about to be written is logged first, with its hash (`logs/engine.jsonl`). So a file whose hash is not in the
  log was changed by a person.
- The caller holds the project's lock or mutex for everything that writes.
"""

import errno
import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from ripstop.engine.clock import system_time
from ripstop.engine.failpoints import failpoint
from ripstop.engine.performers import Refused
from ripstop.history.timeline import iso
from ripstop.security.files import OURS, make_folder
from ripstop.text.visible_text import without_hidden
from ripstop.tools.shared_folder import (
    APPENDING,
    FolderLocks,
    PathMissing,
    complete_file,
    in_words,
    mode_of,
    opened,
    parts_of,
    put,
    read_file,
    sweep,
)
from ripstop.tools.workspace import RESERVED, plain_name

COWORK = ".cowork"
ARTIFACTS, DATA, SESSION, LOGS, BACKUPS = "artifacts", "data", "session", "logs", "backups"
FOLDERS = (ARTIFACTS, DATA, SESSION, LOGS, BACKUPS)
KEPT = (OURS, "cowork")
"""Where the lock files are, beside `.cowork`."""
LOG = "engine.jsonl"
MAX_FILE = 5_000_000
"""Bytes."""
MAX_LOG = 2_000_000
"""Bytes; of a longer log, the later half is kept."""
NEW_FILE = 0o644


def now() -> str:
    """The time, as files of a project have it."""
    return iso(system_time())


def is_blank(data: bytes) -> bool:
    """Whether a person would see nothing in a file: white space and what is hidden are nothing."""
    return not without_hidden(data.decode(errors="replace")).strip()


def is_of_records(parts: Sequence[str]) -> bool:
    """Whether a path in a project leads to its records, which are no part of the product."""
    return plain_name(parts[0]) == COWORK


def sha_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def project_locks() -> FolderLocks:
    return FolderLocks("project", KEPT)


class CoworkFolder:
    def __init__(self, project: Path) -> None:
        self.project = project

    def exists(self) -> bool:
        """Raises `Refused` if there is a link or a file in its place."""
        try:
            with self._folder(()):
                return True
        except PathMissing:
            return False

    def prepare(self) -> None:
        """Make the folders, and that of the locks. Raises `Refused` and `TryAgain`, never `OSError`."""
        self.prepare_locks()
        for name in FOLDERS:
            with self._folder((name,), create=True):
                pass

    def prepare_locks(self) -> None:
        try:
            make_folder(self.project)
            make_folder(self.project / OURS)
        except OSError as error:
            raise in_words(self.project / OURS, error) from error
        with opened(self.project, KEPT, create=True):
            pass

    # Files

    def read(self, path: str) -> bytes | None:
        """The bytes of a file; `None` if there is none. Raises `Refused` for anything but a regular file."""
        *folders, name = parts_of(path)
        try:
            with self._folder(tuple(folders)) as above:
                try:
                    data, _ = read_file(above, name, MAX_FILE)
                except FileNotFoundError:
                    return None
                except OSError as error:
                    raise in_words(Path(COWORK, path), error) from error
                except Refused as refusal:
                    raise Refused(f"{COWORK}/{path} cannot be read: {refusal}") from refusal
        except PathMissing:
            return None
        if len(data) > MAX_FILE:
            raise Refused(f"{COWORK}/{path} is too large: at most {MAX_FILE:,} bytes are read.")
        return data

    def text(self, path: str) -> str:
        """The text of a file. Raises `Refused` if there is none, or it is not UTF-8."""
        data = self.read(path)
        if data is None:
            raise missing_file(path)
        return as_text(path, data)

    def sha(self, path: str) -> str:
        """The hash of a file; empty if there is none."""
        data = self.read(path)
        return "" if data is None else sha_of(data)

    def write(self, path: str, data: bytes, stage: str = "", what: str = "write") -> str:
        """Write a file as a whole; it keeps its permissions. Returns its hash. One that is the same stays as it is."""
        sha = sha_of(data)
        if len(data) > MAX_FILE:
            raise Refused(f"{COWORK}/{path} would have {len(data):,} bytes; at most {MAX_FILE:,} are possible.")
        if self.read(path) == data:
            return sha
        self.log(stage, what, path, sha)
        *folders, name = parts_of(path)
        with self._folder(tuple(folders), create=True) as above:
            sweep(above, RESERVED)
            mode = mode_of(above, name)
            with complete_file(above, data, RESERVED, NEW_FILE if mode is None else mode) as new:
                failpoint("cowork.before_rename")
                new.replace(above, name)
                failpoint("cowork.after_rename")
        return sha

    def remove(self, path: str, stage: str = "") -> None:
        """Remove a file, if it is there."""
        *folders, name = parts_of(path)
        with suppress(PathMissing), self._folder(tuple(folders)) as above:
            if mode_of(above, name) is None:
                return
            self.log(stage, "remove", path, "")
            failpoint("cowork.before_remove")
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=above)
            os.fsync(above)
            failpoint("cowork.after_remove")

    def names(self, folder: str) -> list[str]:
        """What is in a folder below `.cowork`; nothing if it is not there."""
        try:
            with self._folder(parts_of(folder)) as found:
                return sorted(name for name in os.listdir(found) if not name.startswith(RESERVED))
        except PathMissing:
            return []

    @contextmanager
    def _folder(self, parts: tuple[str, ...], create: bool = False) -> Iterator[int]:
        with opened(self.project, (COWORK, *parts), create) as folder:
            yield folder

    # The log

    def log(self, stage: str, what: str, path: str = "", sha: str = "") -> None:
        """Add a line on what the engine does; what is not known is left out.

        It need not survive a power failure: only a warning depends on it.
        """
        line = {"at": now(), "stage": stage, "what": what, "path": path, "sha256": sha}
        data = msgspec.json.encode({name: value for name, value in line.items() if value}) + b"\n"
        with self._folder((LOGS,), create=True) as above:
            failpoint("cowork.before_log")
            self._shorten_log(above)
            descriptor = os.open(LOG, APPENDING, NEW_FILE, dir_fd=above)
            try:
                size = os.fstat(descriptor).st_size
                if size and os.pread(descriptor, 1, size - 1) != b"\n":  # torn by a kill
                    data = b"\n" + data
                os.write(descriptor, data)
            finally:
                os.close(descriptor)
            failpoint("cowork.after_log")

    def _shorten_log(self, above: int) -> None:
        try:
            if os.stat(LOG, dir_fd=above, follow_symlinks=False).st_size <= MAX_LOG:
                return
            data, _ = read_file(above, LOG, MAX_FILE)
        except FileNotFoundError:
            return
        put(above, LOG, data[data.find(b"\n", len(data) // 2) + 1 :], RESERVED, NEW_FILE)

    def logged_hashes(self) -> dict[str, set[str]]:
        """The hashes that the engine has written, by path."""
        found: dict[str, set[str]] = {}
        for line in (self.read(f"{LOGS}/{LOG}") or b"").splitlines():
            with suppress(msgspec.DecodeError, msgspec.ValidationError, RecursionError):
                one = msgspec.json.decode(line, type=_LogLine)
                found.setdefault(one.path, set()).add(one.sha256)
        return found


class _LogLine(msgspec.Struct):
    path: str = ""
    sha256: str = ""


def missing_file(path: str) -> Refused:
    return Refused(f"Failed to read file {COWORK}/{path}: {os.strerror(errno.ENOENT)}")


def as_text(path: str, data: bytes) -> str:
    """Raises `Refused` for bytes that are not UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Refused(f"{COWORK}/{path} is not UTF-8 text: byte {error.start} is wrong. Save it as UTF-8.") from error


def as_data(path: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise Refused(f"Character {error.start} of {COWORK}/{path} cannot be written as UTF-8.") from error


def as_json(value: Any) -> bytes:
    """A value as people can read it."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"
