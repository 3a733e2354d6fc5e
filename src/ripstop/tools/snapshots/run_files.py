"""What a run did to files that were there before it: a snapshot before the first change, what it left, the way back.

- The snapshot is taken once for a run, before a tool of it first changes anything in a workspace. A content is kept
  once for all snapshots of a workspace; a file that has not changed since the last one is not read again.
- After each change it is noted what the run left. So what a person changed later is not taken for the run's work.
- Everything is in the user's state folder: neither a command nor a cloned project can put anything there.
- What is bounded is said: `problem` if there is no snapshot, and files without a digest whose content was not kept.
"""

import hashlib
import logging
import os
import secrets
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from ripstop.engine.performers import Refused
from ripstop.security.files import PRIVATE_FILE, make_private_folder, state_folder

from ..shared_folder import (
    LISTING,
    CompleteFile,
    complete_file,
    open_lock,
    opened,
    put,
    read_file,
    remove_files,
    rename_aside,
    try_lock,
    unlock,
    wait_for_lock,
)
from ..workspace import RESERVED
from .contents import ContentFolder, FileContents
from .listing import FileState, Stamps, TooManyFiles, read_state, stamps_below

MOST_BYTES = 1_000_000_000
"""Of all contents of one snapshot."""
MOST_SNAPSHOTS = 20
"""Of a workspace; older ones are removed."""
MOST_IN_FAMILIES = 100
"""Of a workspace, where runs have started others."""
MOST_NOTED = 1000
"""Runs of a workspace of which it is known what they changed."""
MAX_LIST = 200_000_000
"""Bytes of a list of files."""
MOST_NAMED = 5
"""Files that cannot be listed and are named."""
REPLACED = "before-undo"
_DROPPED = f"Its snapshot is no longer kept: a workspace has those of its last {MOST_SNAPSHOTS} runs."
_UNKEPT = "The files were not kept before the run could change them, so they cannot be brought back."
_DAMAGED = "What is kept of its files is damaged."
_SNAPSHOT, _LEFT, _BEGUN = ".snapshot.json", ".left.json", ".begun"
Value = TypeVar("Value")
logger = logging.getLogger(__name__)


class Snapshot(Struct, frozen=True):
    """The files of a workspace before a run first changed it."""

    run_id: str
    roots: tuple[str, ...] = ()
    """Folders that were looked at; empty for the workspace itself."""
    files: dict[str, FileState] = {}
    problem: str = ""
    """Why there is none."""


class LeftFiles(Struct, frozen=True):
    """What a run left of the files that it changed."""

    problem: str = ""
    """Why there is no snapshot, or not of all files."""
    files: dict[str, tuple[FileState, FileState | None]] = {}
    """What each was before the run, and what the run left; nothing if it removed it."""
    made: tuple[str, ...] = ()
    """Files that were not there before."""


class NotedFiles(Struct, frozen=True):
    """What is noted of a run, and what there is now."""

    at: int = 0
    """When its snapshot was taken, in nanoseconds; 0: there is none."""
    problem: str = ""
    files: dict[str, tuple[FileState, FileState | None, FileState | None]] = {}
    """What each was before the run, what the run left, and what is there now."""
    made: frozenset[str] = frozenset()
    unnoted: "tuple[FileChange, ...]" = ()
    """Files that are not as they were, and of which it is not known what the run left."""

    @property
    def is_on_record(self) -> bool:
        return bool(self.at or self.problem)


class BegunChange(NamedTuple):
    """A change that a process of ours is making. Its file is locked: the lock of a process that died is free."""

    name: str
    lock: int


class FileChange(Struct, frozen=True):
    path: str
    """Below the workspace."""
    what: Literal["removed", "changed"]
    can_be_undone: bool
    """Whether its old content is kept."""
    since: bool = False
    """Whether what is there now is not what the run left, as far as that is known: somebody else has changed it."""


class FileChanges(Struct, frozen=True):
    """What a run did to files that were there before it."""

    workspace: str
    problem: str = ""
    """Why nothing is known, or not all."""
    changes: tuple[FileChange, ...] = ()
    is_on_record: bool = False
    """Whether anything is known here: nothing is if the run changed no file, or did so elsewhere."""
    undone: tuple[str, ...] = ()
    """Files that the run removed or changed, and that are again what they were before it."""


class DifferingFile(Struct, frozen=True):
    """A file that is not what it was before a run."""

    path: str
    """Below the workspace."""
    was_there: bool
    is_there: bool
    before: bytes | None
    """Its old content; none if it was not there, or is not known."""
    now: bytes | None
    """Its content; none if it is not there, or not known: it is too large, or a link."""


class SinceSnapshot(Struct, frozen=True):
    """What differs from the snapshot of a run, whoever has changed it."""

    problem: str = ""
    """Why that is not known."""
    files: tuple[DifferingFile, ...] = ()


class RunFiles:
    """The files of one run in one workspace."""

    def __init__(self, workspace: Path, run_id: str, began: int, folder: Path | None = None, unkept: str = "") -> None:
        """Args:
        began: The time of the run's first record: an id can be used again in another journal.
        folder: Where snapshots are kept; left out: in the user's state folder.
        unkept: Why no snapshot was taken before a call, by the journal: there may have been no place to note it.
        """
        is_path = "\0" not in str(workspace)  # a journal of somebody else can name anything
        self.workspace = Path(os.path.realpath(workspace)) if is_path else workspace
        self._run_id = run_id
        self._key = hashlib.sha256(f"{run_id}\n{began}".encode(errors="surrogatepass")).hexdigest()[:24]
        state = (folder or state_folder()) if is_path else None
        place = hashlib.sha256(str(self.workspace).encode(errors="surrogatepass")).hexdigest()[:24]
        self._folder = state / "snapshots" / place if state else None
        self._unkept = unkept and f"{_UNKEPT} {unkept}"
        self._last: Snapshot | None = None
        """The snapshot as it was last read; it only ever gets more folders."""

    def begin(self, roots: Iterable[str]) -> BegunChange | None:
        """A tool is about to change files: take a snapshot of these folders, unless the run has one.

        Returns what `note` needs to know; nothing if there is no place for snapshots. Raises `Refused`, `TryAgain` and
        `OSError`.
        """
        with self._locked(create=True) as folder:
            if folder is None:
                return None
            known = self._last or self._snapshot(folder)
            missing = tuple(root for root in roots if known is None or root not in known.roots)
            if missing and not (known and known.problem) and not (known is None and self._left(folder).problem):
                self._take(folder, known or Snapshot(self._run_id), missing)
                self._drop_old(folder)
            name = f"{self._key}.{secrets.token_hex(8)}{_BEGUN}"
            lock = open_lock(name, PRIVATE_FILE, folder)
            wait_for_lock(lock)
            return BegunChange(name, lock)

    def _take(self, folder: int, known: Snapshot, roots: tuple[str, ...]) -> None:
        """Take a snapshot of folders that are not in it yet."""
        unseen: list[str] = []
        taken = self._taken(folder, roots, unseen)
        snapshot = Snapshot(self._run_id, (*known.roots, *roots), {**known.files, **taken.files}, taken.problem)
        _write(folder, self._key + _SNAPSHOT, snapshot)
        self._last = snapshot
        if problem := taken.problem or _not_seen(unseen):
            _write(folder, self._key + _LEFT, msgspec.structs.replace(self._left(folder), problem=problem))

    def stamps(self, roots: Iterable[str]) -> Stamps | None:
        """What there is now; nothing if it is too much."""
        with self._workspace() as workspace:
            try:
                return stamps_below(workspace, roots) if workspace is not None else {}
            except TooManyFiles:
                return None

    def note(self, begun: BegunChange, paths: Iterable[str]) -> None:
        """Note what a change that was begun has left at these paths."""
        try:
            with self._locked() as folder, self._workspace() as workspace:
                if folder is None or workspace is None:
                    return
                snapshot = self._last or self._snapshot(folder) or Snapshot(self._run_id, problem=_DROPPED)
                found = {path: _state(workspace, path) for path in paths}
                now = {path: (snapshot.files[path], one) for path, one in found.items() if path in snapshot.files}
                made = [path for path, one in found.items() if one and path not in snapshot.files]
                made = [] if snapshot.problem else made  # or nobody knows
                if found:
                    left = self._left(folder)
                    made = list(dict.fromkeys((*left.made, *made)))
                    _write(folder, self._key + _LEFT, LeftFiles(left.problem, {**left.files, **now}, tuple(made)))
                remove_files(folder, [begun.name])
        finally:
            unlock(begun.lock)
            os.close(begun.lock)

    def changes(self) -> FileChanges:
        """What the run did to files that were there before it, by what is there now.

        If a process died during a change, it is not known what that left. Then all that is not as it was is listed.
        """
        noted = self.noted()
        found = []
        for path, (before, now, current) in noted.files.items():
            if not before.is_like(current) and not before.is_like(now):
                found.append(self.change(path, before, current, is_same(now, current)))
        found = sorted((*found, *noted.unnoted), key=lambda one: one.path)
        return FileChanges(str(self.workspace), noted.problem, tuple(found), noted.is_on_record)

    def noted(self) -> NotedFiles:
        """What is noted of the run, and what is there now."""
        with ExitStack() as stack:
            folder = stack.enter_context(self._locked())
            workspace = stack.enter_context(self._workspace()) if folder is not None else None
            if folder is None:
                return NotedFiles(problem=self._unkept)
            at, left = self._taken_at(folder), self._left(folder)
            problem = left.problem or self._unkept
            if workspace is None:
                gone = f"{self.workspace} is not there, or cannot be opened, so what became of its files is not known."
                return NotedFiles(at, gone if at else problem)
            files = {path: (before, now, _state(workspace, path)) for path, (before, now) in left.files.items()}
            unnoted = self._unnoted(folder, workspace, left) if self._has_died(folder) else []
            return NotedFiles(at, problem, files, frozenset(left.made), tuple(unnoted))

    def _taken_at(self, folder: int) -> int:
        try:
            return os.stat(self._key + _SNAPSHOT, dir_fd=folder).st_mtime_ns
        except FileNotFoundError:
            return 0

    def since_snapshot(self, most: int) -> SinceSnapshot:
        """Every file that is not as it was. Contents of more than `most` bytes are not read. Raises `OSError`."""
        with ExitStack() as stack:
            folder = stack.enter_context(self._locked())
            snapshot = self._snapshot(folder) if folder is not None else None
            workspace = stack.enter_context(self._workspace()) if snapshot else None
            if snapshot is None or workspace is None:
                return SinceSnapshot(self._unkept or "No snapshot was taken.")
            if snapshot.problem:
                return SinceSnapshot(snapshot.problem)
            try:
                stamps = stamps_below(workspace, snapshot.roots)
            except TooManyFiles as error:
                return SinceSnapshot(str(error))
            paths = {path for path, state in snapshot.files.items() if stamps.get(path) != state.stamp}
            paths |= stamps.keys() - snapshot.files.keys()
            compared = (self._compared(workspace, path, snapshot.files.get(path), most) for path in sorted(paths))
            return SinceSnapshot("", tuple(one for one in compared if one))

    def _compared(self, workspace: int, path: str, before: FileState | None, most: int) -> DifferingFile | None:
        """What became of a file; nothing if it is what it was."""
        found = read_state(workspace, path)
        state, data = found or (None, None)
        if state is not None and data is not None:
            state = msgspec.structs.replace(state, digest=hashlib.sha256(data).hexdigest())
        if (before is None and state is None) or (before is not None and before.is_like(state)):
            return None
        old: bytes | None = None
        if before is not None and before.digest and before.stamp[0] <= most:
            with suppress(Refused):
                old = self._contents().read(before.digest)
        now = data if data is not None and len(data) <= most else None
        return DifferingFile(path, before is not None, state is not None, old, now)

    def _has_died(self, folder: int) -> bool:
        """Whether a process died between `begin` and `note`."""
        for name in os.listdir(folder):
            if name.startswith(self._key) and name.endswith(_BEGUN):
                lock = open_lock(name, PRIVATE_FILE, folder)
                try:
                    if try_lock(lock):
                        return True
                finally:
                    os.close(lock)
        return False

    def _unnoted(self, folder: int, workspace: int, left: LeftFiles) -> list[FileChange]:
        """Every file that is not as it was, and of which it is not known what the run left."""
        snapshot = self._snapshot(folder)
        if snapshot is None:
            return []
        stamps = stamps_below(workspace, snapshot.roots)
        found = []
        for path, before in snapshot.files.items():
            if path not in left.files and stamps.get(path) != before.stamp:
                current = _state(workspace, path)
                if not before.is_like(current):
                    found.append(self.change(path, before, current, is_left_by_run=False))
        return found

    def change(self, path: str, before: FileState, now: FileState | None, is_left_by_run: bool) -> FileChange:
        is_kept = bool(before.link) or (bool(before.digest) and self._contents().has(before.digest))
        return FileChange(path, "removed" if now is None else "changed", is_kept, not is_left_by_run)

    def _left(self, folder: int) -> LeftFiles:
        try:
            return _read(folder, self._key + _LEFT, LeftFiles) or LeftFiles()
        except msgspec.DecodeError:
            return LeftFiles(_DAMAGED)

    def undo(self, paths: Iterable[str]) -> dict[str, str]:
        """Bring files back as they were; returns the names under which what was there is kept, by path.

        Raises `Refused` for one that cannot be brought back, and `OSError`.
        """
        kept: dict[str, str] = {}
        with self._locked() as folder:
            if folder is None:
                raise Refused("No snapshot was taken.")
            snapshot = self._snapshot(folder) or Snapshot(self._run_id, problem=self._left(folder).problem)
            for path in paths:
                if snapshot.problem and path not in snapshot.files:
                    raise Refused(f"{path!r} cannot be brought back. {snapshot.problem}")
                if path not in snapshot.files:
                    raise Refused(f"{path!r} was not there before the run, so it cannot be brought back.")
                if other := self._undo(path, snapshot.files[path]):
                    kept[path] = other
        return kept

    def _undo(self, path: str, before: FileState) -> str:
        data = b"" if before.link else self._contents().read(before.digest)
        *above, name = path.split("/")
        self._clear_way(above)
        # all of it is there before anything is moved: a full disk takes nothing away
        with opened(self.workspace, tuple(above), create=True) as folder, _as_it_was(folder, data, before) as new:
            other = ""
            with suppress(FileNotFoundError):
                other = rename_aside(folder, name, f"{name}.{REPLACED}")
            if not new.create(folder, name):
                raise Refused(f"{path!r} was made again at this moment. Try again.")
        return other

    def _clear_way(self, above: list[str]) -> None:
        """Move away what is now where a folder was."""
        for depth, part in enumerate(above):
            with opened(self.workspace, tuple(above[:depth])) as folder:
                try:
                    found = os.stat(part, dir_fd=folder, follow_symlinks=False)
                except FileNotFoundError:
                    return
                if not stat.S_ISDIR(found.st_mode):
                    rename_aside(folder, part, f"{part}.{REPLACED}")

    # The snapshot

    def _taken(self, folder: int, roots: tuple[str, ...], unseen: list[str]) -> Snapshot:
        with self._workspace() as workspace:
            if workspace is None:
                return Snapshot(self._run_id, roots)
            try:
                stamps = stamps_below(workspace, roots, unseen)
            except TooManyFiles as error:
                return Snapshot(self._run_id, roots, {}, f"No snapshot was taken. {error}")
            known = self._known(folder)
            contents, room = self._contents(create=True), MOST_BYTES
            files: dict[str, FileState] = {}
            for path, stamp in stamps.items():
                earlier = known.get(path)
                if earlier and earlier.stamp == stamp and contents.has(earlier.digest):
                    files[path] = earlier
                elif found := read_state(workspace, path):
                    state, data = found
                    if data is not None and len(data) <= room:
                        state = msgspec.structs.replace(state, digest=contents.keep(data))
                    files[path] = state
                else:
                    continue
                room -= files[path].stamp[0] if files[path].digest else 0
            return Snapshot(self._run_id, roots, files)

    def _known(self, folder: int) -> dict[str, FileState]:
        """The files of the last snapshot of this workspace."""
        latest = _by_age(folder)[-1:]
        found = _of_others(folder, latest[0]) if latest else None
        return found.files if found else {}

    def _drop_old(self, folder: int) -> None:
        old = self._old(folder)
        if not old:
            return
        for name in old:  # what those runs changed is still known, and that it cannot be brought back
            noted = name.removesuffix(_SNAPSHOT) + _LEFT
            with suppress(msgspec.DecodeError):
                left = _read(folder, noted, LeftFiles) or LeftFiles()
                _write(folder, noted, msgspec.structs.replace(left, problem=left.problem or _DROPPED))
        remove_files(folder, [*old, *_by_age(folder, _LEFT)[:-MOST_NOTED]])
        snapshots = [_of_others(folder, name) for name in _by_age(folder)]
        used = {state.digest for one in snapshots if one for state in one.files.values()}
        self._contents().drop_others(frozenset(used))

    def _old(self, folder: int) -> list[str]:
        """Snapshots that are not kept. Those of one family count as one, up to a bound."""
        names = _by_age(folder)
        if len(names) <= MOST_SNAPSHOTS:
            return []
        found = {name: _of_others(folder, name) for name in names[-MOST_IN_FAMILIES:]}
        families = [one.run_id.partition(".")[0] if one else "" for one in reversed(found.values())]
        kept = list(dict.fromkeys(families))[:MOST_SNAPSHOTS]
        return [
            *names[:-MOST_IN_FAMILIES],
            *(name for name, one in zip(reversed(found), families, strict=True) if one not in kept),
        ]

    def _snapshot(self, folder: int) -> Snapshot | None:
        try:
            self._last = _read(folder, self._key + _SNAPSHOT, Snapshot)
        except msgspec.DecodeError:
            self._last = Snapshot(self._run_id, problem=_DAMAGED)
        return self._last

    def _contents(self, create: bool = False) -> FileContents:
        assert self._folder is not None
        if create:
            make_private_folder(self._folder / "contents")
        return ContentFolder(self._folder / "contents")

    @contextmanager
    def _workspace(self) -> Iterator[int | None]:
        """The open workspace; nothing if there is none, or it cannot be looked at."""
        try:
            descriptor = os.open(self.workspace, LISTING)
        except OSError:
            yield None
            return
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    @contextmanager
    def _locked(self, create: bool = False) -> Iterator[int | None]:
        """The open folder of snapshots, which no other process uses meanwhile; nothing if there is none."""
        if self._folder is None or not (create or self._folder.is_dir()):
            yield None
            return
        make_private_folder(self._folder)
        with opened(self._folder, ()) as folder:
            lock = open_lock("lock", PRIVATE_FILE, folder)
            try:
                wait_for_lock(lock)
                try:
                    yield folder
                finally:
                    unlock(lock)
            finally:
                os.close(lock)


def _state(workspace: int, path: str) -> FileState | None:
    """What is there now, with the digest of its content."""
    found = read_state(workspace, path)
    if found is None:
        return None
    state, data = found
    return state if data is None else msgspec.structs.replace(state, digest=hashlib.sha256(data).hexdigest())


def is_same(one: FileState | None, other: FileState | None) -> bool:
    return other is None if one is None else one.is_like(other)


def _by_age(folder: int, suffix: str = _SNAPSHOT) -> list[str]:
    names = [name for name in os.listdir(folder) if name.endswith(suffix)]
    return sorted(names, key=lambda name: os.stat(name, dir_fd=folder).st_mtime_ns)


def _write(folder: int, name: str, value: object) -> None:
    put(folder, name, msgspec.json.encode(value), RESERVED, PRIVATE_FILE)


def _read(folder: int, name: str, kind: type[Value]) -> Value | None:
    """What a file says; nothing if there is none. Raises `msgspec.DecodeError` if it is damaged."""
    try:
        return msgspec.json.decode(read_file(folder, name, MAX_LIST)[0], type=kind)
    except FileNotFoundError:
        return None


def _of_others(folder: int, name: str) -> Snapshot | None:
    """Any run's snapshot; nothing if it is damaged."""
    try:
        return _read(folder, name, Snapshot)
    except msgspec.DecodeError as error:
        logger.warning("Cannot read the snapshot %s: %s", name, error)
        return None


@contextmanager
def _as_it_was(folder: int, data: bytes, before: FileState) -> Iterator[CompleteFile]:
    """The old file or link, under a temporary name."""
    if not before.link:
        with complete_file(folder, data, RESERVED, before.mode) as new:
            yield new
        return
    name = f"{RESERVED}{secrets.token_hex(8)}"
    os.symlink(before.link, name, dir_fd=folder)
    try:
        yield CompleteFile(folder, name)
    finally:
        os.unlink(name, dir_fd=folder)


def _not_seen(unseen: Sequence[str]) -> str:
    if not unseen:
        return ""
    shown = ", ".join(repr(path) for path in unseen[:MOST_NAMED])
    more = f" and {len(unseen) - MOST_NAMED} more" if len(unseen) > MOST_NAMED else ""
    return f"What became of these is not known, since they cannot be listed: {shown}{more}."
