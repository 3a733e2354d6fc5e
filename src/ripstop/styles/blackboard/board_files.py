"""A board as a run uses it: open it, check it after an agent's turn, write to it between turns.

- A run knows the board by a digest of all its files. What differs from it was changed by somebody else.
- Nothing is written to a board that differs: the differences are handed back, and count as known from then on. The only
  exception are files of a killed attempt at the same command, which may be old or new (`bookkeeping.Pending`). If the
  board was edited after such an attempt, what it had written is taken back first, so no entry is in the history twice.
- Files are written in the order reports, plan, history: an entry in the history is about what is there already.
- An editor can save at any moment. Each file is compared once more right before it is replaced.
- The caller holds the board's locks.
"""

import re
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from msgspec.structs import replace

from ripstop.engine.failpoints import failpoint
from ripstop.engine.performers import Refused, TryAgain
from ripstop.tools.shared_folder import PathMissing, opened

from ..key_lines import key_lines, lines_of, shown_lines
from .bookkeeping import INDEX, KEPT, Bookkeeping, Pending
from .calls import ChangedFile, CheckedBoard, HistoryTail, OpenBoard, OpenedBoard, WriteBoard, WrittenBoard
from .contents import (
    Files,
    as_data,
    as_text,
    changes,
    check_memory_path,
    check_report_path,
    digest_of,
    is_report_path,
    read,
    scan,
    sha_of,
)
from .definition import REPORTS

HEADER = "# Project History\n"
MAX_DIGITS = 9
"""Of the number of an iteration; longer ones are not counted."""
ATTEMPTS, RETRY_INTERVAL = 10, 0.05
"""How often we look at a board that changes while we do, and the seconds in between."""
MAX_DIFFERENCES = 60_000
"""Characters of all differences together."""
_ENTRY = re.compile(r"^## ", re.MULTILINE)
_LOST = ChangedFile(
    "/".join((*KEPT, INDEX)),
    "changed",
    "(it is not known any more what the board was like, so any of its files may have changed)",
)

Result = TypeVar("Result")


# The history


def history_tail(text: str, pattern: str, tail: int) -> HistoryTail:
    """The end of the history, how many entries come before it, and the highest iteration in all of it."""
    try:
        numbers = [found[1] for found in re.finditer(pattern, text, re.MULTILINE)]
    except (re.error, IndexError) as error:
        raise Refused(f"{pattern!r} cannot be used to find iterations: {error}.", "ours") from error
    known = [int(number) for number in numbers if number and number.isdecimal() and len(number) <= MAX_DIGITS]
    start = max(0, len(text) - max(0, tail))
    if start:
        entry = _ENTRY.search(text, start)
        start = entry.start() if entry else start
    left_out = sum(found.start() < start for found in _ENTRY.finditer(text))
    return HistoryTail(text[start:], left_out, max(known, default=0))


def appended(before: bytes | None, entry: str) -> bytes:
    """The history with an entry behind it."""
    old = HEADER.encode() if before is None else before
    if not entry:
        return old
    return old + (b"" if not old or old.endswith(b"\n") else b"\n") + entry.encode()


# The board


class DefinitionEdited(Exception):
    """A person has edited the definition: read it again, then call with `accepted`."""

    def __init__(self, digest: str) -> None:
        super().__init__(digest)
        self.digest = digest


class _ChangedMeanwhile(Exception):
    """A file is not what it was a moment ago."""


class BoardFiles:
    def __init__(self, root: Path, plan: str, history: str) -> None:
        check_memory_path(plan)
        check_memory_path(history)
        if plan == history:
            raise Refused(f"{plan!r} cannot be the plan and the history.", "definition")
        self.root = root
        self._plan = plan
        self._history = history
        self._book = Bookkeeping(root, history)

    def prepare(self) -> None:
        """Make the folder of our notes, where the locks are."""
        self._book.prepare()

    def open(self, call: OpenBoard) -> OpenedBoard:
        """The board as it is, which the run knows from now on."""
        for path in call.reports:
            check_report_path(path)
        return self._settled(lambda: self._open(call))

    def check(self, digest: str, own: str) -> CheckedBoard:
        """What was changed since the digest, without evidence; `own`: the report of the agent, empty for none."""
        if own:
            check_report_path(own)
        return self._settled(lambda: self._check(digest, own))

    def write(self, key: str, wanted: WriteBoard, accepted: str) -> WrittenBoard:
        """Write, or hand back what was edited.

        Args:
            key: Of the command: the same for every attempt at it.
            accepted: The digest of a board whose definition was read again.

        Raises:
            DefinitionEdited: One of the definition's files was edited.
        """
        for path in wanted.reports:
            check_report_path(path)
        return self._settled(lambda: self._write(key, wanted, accepted))

    # Opening and checking

    def _open(self, call: OpenBoard) -> OpenedBoard:
        self._existing_plan(scan(self.root))
        with opened(self.root, (REPORTS,), create=True):
            pass
        if read(self.root, self._history) is None:
            self._book.replace(self._history, HEADER.encode())
        now = scan(self.root)
        plan = self._text(self._existing_plan(now), now)
        end = self._history_tail(now, call.iteration_pattern, call.tail)
        found = {path: self._blocker_lines(path, call.blocker_prefix, now) for path in call.reports if path in now}
        blocking = {path: lines for path, lines in found.items() if lines}
        self._take(now, None)
        return OpenedBoard(digest_of(now), plan, end.history, end.left_out, end.iteration, blocking)

    def _check(self, digest: str, own: str) -> CheckedBoard:
        now = scan(self.root)
        known = self._known(digest, now)
        if known is None:
            return CheckedBoard(changed=(_LOST,))
        found = changes(known, now)
        changed = [one for one in found if one.path != own]
        is_written = own in now and now[own] != known.get(own)
        report = self._text(own, now) if is_written else None
        if found and not changed:
            self._take(now, known)
        return CheckedBoard(self._with_differences(changed, known), report, None if changed else digest_of(now))

    # Writing

    def _write(self, key: str, wanted: WriteBoard, accepted: str) -> WrittenBoard:
        now, pending = scan(self.root), self._pending(key)
        known = _before(pending, now)
        if digest_of(known) != wanted.digest:
            return self._edited(pending, wanted, accepted)
        todo = self._todo(wanted, now, pending)
        if todo and not pending.key:
            files = {path: (now.get(path, ""), sha_of(data)) for path, data in todo.items()}
            length = len(read(self.root, self._history) or b"")
            self._book.announce(Pending(key, files, length))
        for number, (path, data) in enumerate(todo.items()):
            if number:
                failpoint("board.between_files")
            self._check_unchanged(path, now)
            self._book.replace(path, data)
        after = {**now, **{path: sha_of(data) for path, data in todo.items()}}
        if after != known:
            self._take(after, known)
            failpoint("board.after_write")
        return WrittenBoard(digest=digest_of(after))

    def _pending(self, key: str) -> Pending:
        """What a killed attempt noted; nothing if the note names a file that we never write, so it is not ours."""
        pending = self._book.pending(key)
        wrote = all(path in (self._plan, self._history) or is_report_path(path) for path in pending.files)
        return pending if wrote else Pending()

    def _todo(self, wanted: WriteBoard, now: Files, pending: Pending) -> dict[str, bytes]:
        """The files that are to be written still, in order."""
        texts = dict(wanted.reports)
        if wanted.plan_text is not None:
            texts[self._plan] = wanted.plan_text
        data = {path: as_data(path, text) for path, text in texts.items()}
        is_appended = self._history in pending.files and now.get(self._history) == pending.files[self._history][1]
        if wanted.append and not is_appended:
            as_data(self._history, wanted.append)
            old = self._bytes(self._history, now) if self._history in now else None
            whole = appended(old, wanted.append)
            data[self._history] = as_data(self._history, as_text(self._history, whole))
        return {path: one for path, one in data.items() if sha_of(one) != now.get(path)}

    def _edited(self, pending: Pending, wanted: WriteBoard, accepted: str) -> WrittenBoard:
        self._take_back(pending, wanted.append)
        now = scan(self.root)
        known = self._known(wanted.digest, now)
        found = [] if known is None else changes(known, _before(pending, now))
        paths = {one.path for one in found}
        self._existing_plan(now)
        definition_edited = known is None or any(path.startswith(wanted.definition_files) for path in paths)
        if definition_edited and digest_of(now) != accepted:
            raise DefinitionEdited(digest_of(now))
        edited = (_LOST,) if known is None else self._with_differences(found, known)
        plan = self._text(self._plan, now) if known is None or self._plan in paths else None
        end: HistoryTail | None = None
        if known is None or self._history in paths:
            end = self._history_tail(now, wanted.iteration_pattern, wanted.tail)
        self._take(now, known)
        return WrittenBoard(edited, digest_of(now), plan, end)

    def _take_back(self, pending: Pending, entry: str) -> None:
        """Undo what a killed attempt has written, where nobody has edited it since."""
        for path, (old, new) in pending.files.items():
            data = read(self.root, path)
            if data is None:
                continue
            if path == self._history and old:
                before, after = data[: pending.history_bytes], data[pending.history_bytes :]
                ours = appended(before, entry)[len(before) :]
                if sha_of(before) == old and after.startswith(ours):
                    self._book.replace(path, before + after[len(ours) :])
            elif sha_of(data) == new and not old:
                self._book.remove(path)
            elif sha_of(data) == new and (kept := self._book.kept(old)) is not None:
                self._book.replace(path, kept)

    # Parts

    def _settled(self, work: Callable[[], Result]) -> Result:
        for _ in range(ATTEMPTS):
            try:
                return work()
            except _ChangedMeanwhile:
                time.sleep(RETRY_INTERVAL)
        raise TryAgain(f"The board {str(self.root)!r} is being edited all the time.")

    def _known(self, digest: str, now: Files) -> Files | None:
        return now if digest_of(now) == digest else self._book.known_by(digest)

    def _existing_plan(self, now: Files) -> str:
        if self._plan not in now:
            raise PathMissing(f"There is no plan {str(self.root / self._plan)!r}. Put it back, or name another.")
        return self._plan

    def _history_tail(self, now: Files, pattern: str, tail: int) -> HistoryTail:
        text = self._text(self._history, now) if self._history in now else ""
        return history_tail(text, pattern, tail)

    def _blocker_lines(self, path: str, prefix: str, now: Files) -> str:
        try:
            lines = shown_lines(lines_of(self._text(path, now)))
        except Refused:  # it is no text, so no run has written it
            return ""
        return "\n".join(one.text for one in key_lines(lines, prefix))

    def _bytes(self, path: str, now: Files) -> bytes:
        data = read(self.root, path)
        if data is None or sha_of(data) != now[path]:
            raise _ChangedMeanwhile
        return data

    def _text(self, path: str, now: Files) -> str:
        return as_text(path, self._bytes(path, now))

    def _check_unchanged(self, path: str, now: Files) -> None:
        data = read(self.root, path)
        if (sha_of(data) if data is not None else "") != now.get(path, ""):
            raise _ChangedMeanwhile

    def _with_differences(self, found: list[ChangedFile], known: Files) -> tuple[ChangedFile, ...]:
        listed, left = list[ChangedFile](), MAX_DIFFERENCES
        for one in found:
            difference = ""
            if left > 0:
                with suppress(Refused):  # too large to be read as text, so there is no difference to show
                    data = None if one.what == "deleted" else read(self.root, one.path)
                    difference = self._book.difference(one, known.get(one.path, ""), data)
            left -= len(difference)
            listed.append(replace(one, diff=difference))
        return tuple(listed)

    def _take(self, now: Files, known: Files | None) -> None:
        """Take the files as known: keep copies of those that are not kept yet."""
        for path in now:
            if known is None or known.get(path) != now[path]:
                with suppress(Refused):  # too large to be kept
                    data = read(self.root, path)
                    if data is not None:
                        self._book.keep(path, data)
        self._book.take(now, known)


def _before(pending: Pending, now: Files) -> dict[str, str]:
    """The files as they were before the killed attempt, apart from those that somebody has edited since."""
    files = dict(now)
    for path, (old, new) in pending.files.items():
        if now.get(path, "") in (old, new):
            if old:
                files[path] = old
            else:
                files.pop(path, None)
    return files
