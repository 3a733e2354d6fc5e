"""A folder of documents and messages on disk. It knows names and texts, not what a text says.

    .workflows/*.md               documents           .workflows/set-aside/       what could not be read, and why
    .inbox/<agent>/*.md           messages            .inbox/<agent>/processed/   and set-aside/
    .workflows/.ripstop/          folder-id, locks/<key>.lock, seen/<key>.json, replacing/<key>

- Other processes and people's editors work here at the same time. A name is only ever taken exclusively: what is
  there is never overwritten, except by `replace`.
- A file appears complete or not at all: hidden file in the same folder → fsync → link (if it must be new) or rename →
  fsync of the folder. Hidden files that a killed process has left are removed when they are an hour old; no lock could
  tell sooner, for many may be writing.
- A document is replaced by an exchange with a complete file in `replacing/`, under the document's lock. What a killed
  process has left there may be an edit that was saved at that moment, so it is never removed unseen (`rescue`).
- Links are not followed, and only regular files are read. The folder itself must exist, and may be behind a link.
- Nothing here waits for anybody but the disk. What goes wrong is `Refused`, or `TryAgain` if it may pass.
"""

import os
import re
import secrets
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from ripstop.engine.failpoints import failpoint
from ripstop.engine.performers import Refused
from ripstop.kernel.errors import UsageError
from ripstop.tools.shared_folder import in_words
from ripstop.tools.workspace import Roots

from . import files
from .files import MAX_NAME, FoundFile, Missing, checked, cut, decoded, encoded, is_plain, numbered, printable, safe

WORKFLOWS, INBOX, OURS, REPLACING = ".workflows", ".inbox", ".ripstop", "replacing"
SET_ASIDE, PROCESSED = _NOBODY = ("set-aside", "processed")
"""Folders beside messages, so no agent may be called like that."""
LETTERS, ID_LENGTH = "abcdefghjkmnpqrstuvwxyz23456789", 5
"""Of a folder's id: none that is mistaken for another."""
_ID = "folder-id"


def drawn_id() -> str:
    return "".join(secrets.choice(LETTERS) for _ in range(ID_LENGTH))


class Folder:
    def __init__(self, root: Path) -> None:
        self.root = root
        # only to open folders one from the other; the agent for whom it could find paths is nobody
        self._roots = Roots(root, WORKFLOWS)
        self._swept: set[tuple[str, ...]] = set()

    # Bookkeeping

    @property
    def id(self) -> str:
        """Five letters, the same for every process; the first one draws them."""
        return self.identify(drawn_id())

    def identify(self, drawn: str) -> str:
        """Give the folder this id, unless it has one; returns the one that it has."""
        with self._opened(WORKFLOWS, OURS, create=True) as above:
            if files.look(above, _ID) is None:
                files.create(above, iter([_ID]), drawn.encode())
            return self._checked_id(files.look(above, _ID) or b"")

    def known_id(self) -> str:
        """The folder's id; empty if it has none. Nothing is created."""
        try:
            with self._opened(WORKFLOWS, OURS) as above:
                data = files.look(above, _ID)
        except Missing:
            return ""
        return "" if data is None else self._checked_id(data)

    def _checked_id(self, data: bytes) -> str:
        letters = data.decode(errors="replace").strip()
        if len(letters) != ID_LENGTH or not set(letters) <= set(LETTERS):
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
            return files.look(above, f"{key}.json") or b""

    def take_note(self, key: str, data: bytes) -> None:
        with self._opened(WORKFLOWS, OURS, "seen", create=True) as above:
            files.put(above, f"{key}.json", data)

    def notes(self) -> dict[str, bytes]:
        """What was noted about every document, by key."""
        with self._opened(WORKFLOWS, OURS, "seen", create=True) as above:
            names = [name for name in os.listdir(above) if name.endswith(".json") and not name.startswith(".")]
            return {name.removesuffix(".json"): files.look(above, name) or b"" for name in names}

    # Documents

    def is_there(self) -> bool:
        """Whether there is a folder for documents."""
        return (self.root / WORKFLOWS).is_dir()

    def documents(self, names: Collection[str] | None = None) -> list[FoundFile]:
        """Every document, or those with these names, in no order."""
        return self._all(WORKFLOWS, names=names)

    def read(self, name: str) -> str | None:
        """The text of a document, nothing if there is no file. `Refused` if there is one without a text."""
        return self.look(name)[0]

    def look(self, name: str) -> tuple[str | None, str]:
        """The text of a document, and a stamp of its file that no other save of the same text has."""
        with self._opened(WORKFLOWS, create=True) as above:
            looked = files.look_closely(above, checked(name))
            if looked is None:
                return None, ""
            data, status = looked
            return decoded(name, data), f"{status.st_ino}.{status.st_ctime_ns}"

    def create(self, kind: str, at: str, text: str | Callable[[str], str]) -> str:
        """A new document `workflow_<kind>_<at>.md`; if there is one of that name, with a number behind.

        A text that depends on the name is asked for with the name, without its `.md`.
        """
        if not re.fullmatch(r"[0-9]{8}_[0-9]{6}", at):
            raise UsageError(f"A document's name needs a time like 20260131_235959, not {at!r}.")
        names = numbered(f"workflow_{safe(kind)}_{at}", ".md")
        with self._opened(WORKFLOWS, create=True) as above:
            if isinstance(text, str):
                return files.create(above, names, encoded(text))
            return next(
                name for name in names if files.create(above, iter([name]), encoded(text(name.removesuffix(".md"))))
            )

    def replace(self, name: str, text: str, over: str | None = None, key: str = "") -> bool:
        """Write a document; with `over`, only if the present file has this sha (empty: if there is none).

        Returns whether it was written. An editor that saves at the same moment is noticed; see `exchange`. `key`: of
        the document, whose lock the caller holds.
        """
        data = encoded(text)
        with self._opened(WORKFLOWS, create=True) as above:
            if over is None:
                files.put(above, checked(name), data)
                return True
            if over == "":
                return bool(files.create(above, iter([checked(name)]), data))
            with self._opened(WORKFLOWS, OURS, REPLACING, create=True) as beside:
                return files.put_in_place_of(above, checked(name), data, over, beside, key)

    def keep_beside(self, name: str, text: str, tag: str) -> str:
        """Keep a refused text as `<name>.refused-<tag>`. One that is kept already is not kept twice."""
        data, names = encoded(text), files.refused(name, tag)
        with self._opened(WORKFLOWS, create=True) as above:
            return next(
                kept for kept in names if files.create(above, iter([kept]), data) or files.look(above, kept) == data
            )

    def refused(self) -> dict[str, list[str]]:
        """The names of the refused texts that are kept, by their document."""
        found: dict[str, list[str]] = {}
        try:
            with self._opened(WORKFLOWS) as above:
                for name in os.listdir(above):
                    document, mark, _ = name.partition(f".md{files.REFUSED}")
                    if mark and not name.startswith("."):
                        found.setdefault(f"{document}.md", []).append(name)
        except Missing:
            return {}
        return {document: sorted(names) for document, names in found.items()}

    def old_refused(self, before: float) -> list[str]:
        """The names of the refused texts that were written before a time, in seconds since 1970."""
        names = [name for names in self.refused().values() for name in names]
        with suppress(Missing), self._opened(WORKFLOWS) as above:
            return sorted(name for name in names if files.is_older(above, name, before))
        return []

    def forget_refused(self, names: Collection[str]) -> None:
        """Delete refused texts."""
        with self._opened(WORKFLOWS) as above:
            for name in names:
                with suppress(FileNotFoundError):
                    os.unlink(checked(name), dir_fd=above)

    def set_aside(self, name: str, reason: str) -> Path:
        """Move a file that cannot be used into `set-aside/`, and say why in `<file>.reason.txt`. Raises `Missing`."""
        return self._move(checked(name), SET_ASIDE, reason, WORKFLOWS)

    def remove(self, name: str, sha: str) -> bool:
        """Delete a document if its text still has this sha. Returns whether it was deleted."""
        with self._opened(WORKFLOWS) as above:
            if still := files.sha(above, checked(name)) == sha:
                failpoint("documents.before_remove")
                os.unlink(name, dir_fd=above)
                failpoint("documents.after_remove")
                os.fsync(above)
            return still

    # Replacing that was cut short

    def replacing(self) -> list[str]:
        """Keys of the documents that are being replaced, or were when a process was killed."""
        try:
            with self._opened(WORKFLOWS, OURS, REPLACING) as above:
                return [name for name in os.listdir(above) if not name.startswith(".")]
        except Missing:
            return []

    def rescue(self, key: str, name: str, ours: Collection[str]) -> str:
        """If replacing the document `name` was cut short, clear up; the caller holds its lock.

        What has none of our shas is an edit, and is kept next to the document; returns where.
        """
        with self._opened(WORKFLOWS, OURS, REPLACING, create=True) as beside:
            found = files.sha_of_any(beside, key)
            if found and found not in ours:
                with self._opened(WORKFLOWS, create=True) as above:
                    return files.move(beside, key, above, files.refused(name, "interrupted"))
            if found:
                os.unlink(key, dir_fd=beside)
            return ""

    # Messages

    def agents(self) -> list[str]:
        """Who has an inbox."""
        try:
            with self._opened(INBOX) as above, os.scandir(above) as entries:
                folders = [one.name for one in entries if one.is_dir(follow_symlinks=False)]
            return [name for name in folders if is_plain(name) and name not in _NOBODY]
        except Missing:
            return []

    def messages(self, agent: str) -> list[FoundFile]:
        """Every message that is not handled yet, in no order."""
        return self._all(INBOX, checked(agent, _NOBODY))

    def has_message(self, agent: str, name: str) -> bool:
        """Whether there is a message that is not handled yet."""
        with self._opened(INBOX, checked(agent, _NOBODY)) as above:
            return files.is_there(above, checked(name))

    def send(self, agent: str, stem: str, text: str) -> bool:
        """A new message `<stem>.md`, unless that was sent before, even if it is handled or set aside by now.

        Returns whether it was sent. Only one may try at a time: the caller holds a lock.
        """
        data, name, agent = encoded(text), f"{safe(stem)}.md", checked(agent, _NOBODY)
        for handled in _NOBODY:
            with suppress(Missing), self._opened(INBOX, agent, handled) as above:
                if files.is_there(above, name):
                    return False
        with self._opened(INBOX, agent, create=True) as above:
            return bool(files.create(above, iter([name]), data))

    def processed(self, agent: str, name: str) -> Path:
        """Move a handled message to `processed/`. Raises `Missing` if another process has moved it."""
        return self._move(checked(name), PROCESSED, "", INBOX, checked(agent, _NOBODY))

    def set_message_aside(self, agent: str, name: str, reason: str) -> Path:
        return self._move(checked(name), SET_ASIDE, reason, INBOX, checked(agent, _NOBODY))

    # Folders

    @contextmanager
    def _opened(self, *parts: str, create: bool = False) -> Iterator[int]:
        """A descriptor of one of ripstop's folders. System errors become `Refused` with a message for people."""
        place = self.root.joinpath(*parts)
        with ExitStack() as stack:
            try:
                create = create and self.root.is_dir()  # the root is the user's: never made by us
                above = stack.enter_context(self._roots.folder(parts[0], parts[1:], create))
            except FileNotFoundError as error:
                raise Missing(f"There is no folder {str(place)!r}. Put it back, or choose another.") from error
            except Refused as refusal:
                raise Refused(f"{str(place)!r} cannot be used: {refusal} Move away what is there.") from refusal
            except OSError as error:
                raise in_words(place, error) from error
            try:
                if create and parts not in self._swept:
                    self._swept.add(parts)
                    files.sweep(above)
                yield above
            except OSError as error:
                raise in_words(place, error) from error

    def _all(self, *parts: str, names: Collection[str] | None = None) -> list[FoundFile]:
        wanted = names
        try:
            with self._opened(*parts) as above:
                with os.scandir(above) as entries:
                    there = [
                        one.name
                        for one in entries
                        if (wanted is None or printable(one.name) in wanted or one.name in wanted)
                        and one.is_file(follow_symlinks=False)
                    ]
                texts = [name for name in there if name.endswith(".md") and not name.startswith(".")]
                names = [name for name in texts if is_plain(name)]
                odd = [
                    FoundFile(printable(name), None, "its name cannot be used: rename it", 0)
                    for name in {*texts} - {*names}
                ]
                found = [files.found(above, name) for name in names]
                if None in found:  # an editor that saves may take a file away for a moment
                    time.sleep(files.RETRY_INTERVAL)
                    found = [one or files.found(above, name) for one, name in zip(found, names, strict=True)]
                return odd + [one for one in found if one]
        except Missing:
            if self.root.is_dir():
                return []  # nothing was written yet
            raise

    def _move(self, name: str, into: str, reason: str, *parts: str) -> Path:
        with self._opened(*parts) as above, self._opened(*parts, into, create=True) as target:
            end = ".md" if name.endswith(".md") else ""
            moved = files.move(above, name, target, numbered(cut(name.removesuffix(end), MAX_NAME), end))
            if reason:
                files.create(target, numbered(moved, ".reason.txt"), encoded(f"{reason}\n"))
            return self.root.joinpath(*parts, into, moved)
