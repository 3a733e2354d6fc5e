"""A folder of documents and messages on disk. It knows names and texts, not what a text says.

    .workflows/*.md               documents           .workflows/set-aside/       what could not be read, and why
    .inbox/<agent>/*.md           messages            .inbox/<agent>/processed/   and set-aside/
    .workflows/.ripstop/          folder-id, locks/<key>.lock, seen/<key>.json

- Other processes and people's editors work here at the same time. A name is only ever taken exclusively: what is
  there is never overwritten, except by `replace`.
- A file appears complete or not at all: hidden file in the same folder → fsync → link (if it must be new) or rename →
  fsync of the folder. Hidden files that a killed process has left are removed when they are an hour old; no lock could
  tell sooner, for many may be writing.
- Links are not followed, and only regular files are read. The folder itself must exist, and may be behind a link.
- Nothing here waits for anybody but the disk. What goes wrong is `Refused`, or `TryAgain` if it may pass.
"""

import hashlib
import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from ripstop.kernel.errors import UsageError
from ripstop.performers.tools.roots import Roots
from ripstop.runtime.failpoints import reach
from ripstop.runtime.ports import Refused, TryAgain

from .exchange import replace_if
from .locks import in_words
from .names import MAX_NAME, MAX_SIZE, checked, cut, decoded, encoded, is_plain, numbered, printable, safe

WORKFLOWS, INBOX, OURS = ".workflows", ".inbox", ".ripstop"
SET_ASIDE, PROCESSED = _NOBODY = ("set-aside", "processed")
"""Folders beside messages, so no agent may be called like that."""
LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
"""Of a folder's id: none that is mistaken for another."""

_UNFINISHED = ".unfinished-"
"""How the names of our hidden files begin. Not as those of the file tools, which delete theirs under another lock."""
_OLD, _PAUSE, _LOOKS = 3600.0, 0.01, 5
_READING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CREATING = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Found(Struct, frozen=True):
    """A file that was looked at: it has a text or a problem. `mtime` is in microseconds since 1970."""

    name: str
    text: str | None
    problem: str
    mtime: int


class Missing(Refused):
    """There is no such folder or file."""


class Folder:
    def __init__(self, root: Path) -> None:
        self.root = root
        # only to open folders one from the other; the agent for whom it could find paths is nobody
        self._roots = Roots(root, WORKFLOWS)
        self._swept: set[tuple[str, ...]] = set()

    # Bookkeeping

    @property
    def id(self) -> str:
        """Five letters, the same for everybody; whoever comes first draws them."""
        drawn = "".join(secrets.choice(LETTERS) for _ in range(5))
        with self._opened(WORKFLOWS, OURS, create=True) as above:
            if _look(above, "folder-id") is None:
                _create(above, iter(["folder-id"]), drawn.encode())
            letters = (_look(above, "folder-id") or b"").decode(errors="replace").strip()
        if len(letters) != len(drawn) or not set(letters) <= set(LETTERS):
            raise Refused(
                f"folder-id in {str(self.root / WORKFLOWS / OURS)!r} is damaged. Delete it to have a new one."
            )
        return letters

    def lock(self, key: str) -> Path:
        """The file to lock for a document."""
        with self._opened(WORKFLOWS, OURS, "locks", create=True):
            return self.root / WORKFLOWS / OURS / "locks" / f"{key}.lock"

    def note(self, key: str) -> bytes:
        """What was noted about a document; empty if nothing was."""
        with self._opened(WORKFLOWS, OURS, "seen", create=True) as above:
            return _look(above, f"{key}.json") or b""

    def take_note(self, key: str, data: bytes) -> None:
        with self._opened(WORKFLOWS, OURS, "seen", create=True) as above:
            _replace(above, f"{key}.json", data)

    # Documents

    def documents(self) -> list[Found]:
        """Every document, in no order."""
        return self._all(WORKFLOWS)

    def read(self, name: str) -> str | None:
        """The text of a document, nothing if there is no file. `Refused` if there is one without a text."""
        with self._opened(WORKFLOWS, create=True) as above:
            data = _look(above, checked(name))
            return None if data is None else decoded(name, data)

    def create(self, kind: str, at: str, text: str | Callable[[str], str]) -> str:
        """A new document `workflow_<kind>_<at>.md`; if there is one of that name, with a number behind.

        A text that depends on the name is asked for with the name, without its `.md`.
        """
        if not re.fullmatch(r"[0-9]{8}_[0-9]{6}", at):
            raise UsageError(f"A document's name needs a time like 20260131_235959, not {at!r}.")
        names = numbered(f"workflow_{safe(kind)}_{at}", ".md")
        with self._opened(WORKFLOWS, create=True) as above:
            if isinstance(text, str):
                return _create(above, names, encoded(text))
            return next(name for name in names if _create(above, iter([name]), encoded(text(name.removesuffix(".md")))))

    def replace(self, name: str, text: str, over: str | None = None) -> bool:
        """Write a document; with `over`, only if what stands there has this sha (empty: if nothing stands there).

        Returns whether it was written. An editor that saves at the same moment is noticed; see `exchange`.
        """
        data = encoded(text)
        with self._opened(WORKFLOWS, create=True) as above:
            if over == "":
                return bool(_create(above, iter([checked(name)]), data))
            return _replace(above, checked(name), data, over)

    def keep_beside(self, name: str, text: str, tag: str) -> str:
        """Keep a refused text as `<name>.refused-<tag>`. One that is kept already is not kept twice."""
        data = encoded(text)
        names = numbered(f"{cut(checked(name), MAX_NAME - 90)}.refused-{cut(safe(tag), 80)}", "")
        with self._opened(WORKFLOWS, create=True) as above:
            return next(kept for kept in names if _create(above, iter([kept]), data) or _look(above, kept) == data)

    def set_aside(self, name: str, reason: str) -> Path:
        """Move a file that cannot be used into `set-aside/`, and say why in `<file>.reason.txt`. Raises `Missing`."""
        return self._move(checked(name), SET_ASIDE, reason, WORKFLOWS)

    def remove(self, name: str, sha: str) -> bool:
        """Delete a document if its text still has this sha. Returns whether it was deleted."""
        with self._opened(WORKFLOWS) as above:
            if still := _sha(above, checked(name)) == sha:
                reach("documents.before_remove")
                os.unlink(name, dir_fd=above)
                reach("documents.after_remove")
                os.fsync(above)
            return still

    # Messages

    def agents(self) -> list[str]:
        """Who has an inbox."""
        try:
            with self._opened(INBOX) as above, os.scandir(above) as entries:
                folders = [one.name for one in entries if one.is_dir(follow_symlinks=False)]
            return [name for name in folders if is_plain(name) and name not in _NOBODY]
        except Missing:
            return []

    def messages(self, agent: str) -> list[Found]:
        """Every message that nobody has handled, in no order."""
        return self._all(INBOX, checked(agent, _NOBODY))

    def send(self, agent: str, stem: str, text: str) -> str:
        """A new message `<stem>.md`; if there is one of that name, with a number behind."""
        data = encoded(text)
        with self._opened(INBOX, checked(agent, _NOBODY), create=True) as above:
            return _create(above, numbered(safe(stem), ".md"), data)

    def processed(self, agent: str, name: str) -> Path:
        """Move a handled message to `processed/`. Raises `Missing`: somebody else has moved it."""
        return self._move(checked(name), PROCESSED, "", INBOX, checked(agent, _NOBODY))

    def set_message_aside(self, agent: str, name: str, reason: str) -> Path:
        return self._move(checked(name), SET_ASIDE, reason, INBOX, checked(agent, _NOBODY))

    # Folders

    @contextmanager
    def _opened(self, *parts: str, create: bool = False) -> Iterator[int]:
        """A descriptor of a folder of ours. What the system says about it is put into words for people."""
        place = self.root.joinpath(*parts)
        with ExitStack() as stack:
            try:
                create = create and self.root.is_dir()  # the root is the user's: never made by us
                above = stack.enter_context(self._roots.folder(parts[0], parts[1:], create))
            except FileNotFoundError as error:
                raise Missing(f"There is no folder {str(place)!r}. Put it back, or choose another.") from error
            except Refused as refusal:
                raise Refused(f"{str(place)!r} cannot be used: {refusal} Move away what stands there.") from refusal
            except OSError as error:
                raise in_words(place, error) from error
            try:
                if create and parts not in self._swept:
                    self._swept.add(parts)
                    _sweep(above)
                yield above
            except OSError as error:
                raise in_words(place, error) from error

    def _all(self, *parts: str) -> list[Found]:
        try:
            with self._opened(*parts) as above:
                with os.scandir(above) as entries:
                    files = [one.name for one in entries if one.is_file(follow_symlinks=False)]
                texts = [name for name in files if name.endswith(".md") and not name.startswith(".")]
                names = [name for name in texts if is_plain(name)]
                odd = [
                    Found(printable(name), None, "its name cannot be used: rename it", 0)
                    for name in {*texts} - {*names}
                ]
                found = [_found(above, name) for name in names]
                if None in found:  # an editor that saves may take a file away for a moment
                    time.sleep(_PAUSE)
                    found = [one or _found(above, name) for one, name in zip(found, names, strict=True)]
                return odd + [one for one in found if one]
        except Missing:
            if self.root.is_dir():
                return []  # nobody has written anything yet
            raise

    def _move(self, name: str, into: str, reason: str, *parts: str) -> Path:
        with self._opened(*parts) as above, self._opened(*parts, into, create=True) as target:
            moved = _move(above, name, target)
            if reason:
                _create(target, numbered(moved, ".reason.txt"), encoded(f"{reason}\n"))
            return self.root.joinpath(*parts, into, moved)


# One file in an open folder


def _found(above: int, name: str) -> Found | None:
    """Nothing if it has gone in the meantime."""
    text, problem, mtime = None, "", 0
    try:
        mtime = os.stat(name, dir_fd=above, follow_symlinks=False).st_mtime_ns // 1000
        data = _look(above, name)
        text = None if data is None else decoded(name, data)
    except FileNotFoundError:
        return None
    except OSError as error:
        problem = str(in_words(Path(name), error))
    except (Refused, TryAgain) as trouble:
        problem = str(trouble)
    return Found(name, text, problem, mtime) if text is not None or problem else None


def _look(above: int, name: str) -> bytes | None:
    """All of a file as it was at one moment: if it is written or replaced meanwhile, we look again."""
    for _ in range(_LOOKS):
        try:
            descriptor = os.open(name, _READING, dir_fd=above)
        except FileNotFoundError:
            return None
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise Refused(f"{name!r} is no ordinary file. Move it away.")
            if status.st_size > MAX_SIZE:
                raise Refused(f"{name!r} is too large: {status.st_size} bytes, at most {MAX_SIZE}.")
            data = file.read(MAX_SIZE + 1)
        with suppress(FileNotFoundError):
            now = os.stat(name, dir_fd=above, follow_symlinks=False)
            if os.path.samestat(now, status) and (now.st_size, now.st_mtime_ns) == (len(data), status.st_mtime_ns):
                return data
        time.sleep(_PAUSE)
    raise TryAgain(f"{name!r} is being written all the time and cannot be read.")


def _sha(above: int, name: str) -> str:
    """Of what stands there; empty if nothing does."""
    data = _look(above, name)
    return "" if data is None else hashlib.sha256(data).hexdigest()


@contextmanager
def _unfinished(above: int, data: bytes, mode: int | None = None) -> Iterator[str]:
    """A complete file, safely on disk, under a hidden name that goes away again."""
    name = _UNFINISHED + secrets.token_hex(8)
    descriptor = os.open(name, _CREATING, 0o666, dir_fd=above)
    try:
        with os.fdopen(descriptor, "wb") as file:
            reach("documents.before_write")
            file.write(data)
            file.flush()
            if mode is not None:
                os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        yield name
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=above)
    os.fsync(above)


def _sweep(above: int) -> None:
    """Remove what killed processes have left. The time is the file system's own: when the folder last changed."""
    now = os.fstat(above).st_mtime
    for name in os.listdir(above):
        if name.startswith(_UNFINISHED):
            with suppress(FileNotFoundError):
                if now - os.stat(name, dir_fd=above, follow_symlinks=False).st_mtime > _OLD:
                    os.unlink(name, dir_fd=above)


def _create(above: int, names: Iterator[str], data: bytes) -> str:
    """Put a new file under the first name that is free; returns it, or nothing if none was."""
    with _unfinished(above, data) as unfinished:
        for name in names:
            reach("documents.before_link")
            try:
                os.link(unfinished, name, src_dir_fd=above, dst_dir_fd=above, follow_symlinks=False)
            except FileExistsError:
                continue
            reach("documents.after_link")
            return name
    return ""


def _replace(above: int, name: str, data: bytes, over: str | None = None) -> bool:
    try:
        mode = stat.S_IMODE(os.stat(name, dir_fd=above, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        mode = None
    with _unfinished(above, data, mode) as unfinished:
        reach("documents.before_rename")
        if over is None:
            os.rename(unfinished, name, src_dir_fd=above, dst_dir_fd=above)
        elif not replace_if(above, unfinished, name, over, lambda file: _sha(above, file)):
            return False
        reach("documents.after_rename")
    return True


def _move(above: int, name: str, into: int) -> str:
    """Move a file under a name that is free there. An empty file takes the name first, for a rename overwrites."""
    end = ".md" if name.endswith(".md") else ""
    for target in numbered(cut(name.removesuffix(end), MAX_NAME), end):
        with suppress(FileExistsError):
            os.close(os.open(target, _CREATING, 0o666, dir_fd=into))
            break
    reach("documents.before_move")
    try:
        os.rename(name, target, src_dir_fd=above, dst_dir_fd=into)
    except OSError as error:
        os.unlink(target, dir_fd=into)
        if isinstance(error, FileNotFoundError):
            raise Missing(f"There is no {name!r} any more; somebody else has moved or deleted it.") from error
        raise
    reach("documents.after_move")
    os.fsync(into)
    os.fsync(above)
    return target
