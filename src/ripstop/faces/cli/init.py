"""A person edits a document in an editor: on a private copy, which stays until the text has been recorded."""

import asyncio
import contextlib
import os
import shlex
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

from ripstop.app.machine import FOUND_EDITORS
from ripstop.kernel.errors import UsageError
from ripstop.security.files import PRIVATE_FILE, keep_text, read_plain_file

MAX_ANSWER = 4_000_000
"""Bytes of a file with an answer."""


def find_editor() -> list[str]:
    """The command of the editor that the user has chosen, or of one that is installed.

    Raises `UsageError` that says how to choose one.
    """
    for name in ("VISUAL", "EDITOR"):
        value = os.environ.get(name, "").strip()
        if not value:
            continue
        try:
            words = shlex.split(value)
        except ValueError as error:
            raise UsageError(f"${name} is not a command: {value!r} ({error}).") from None
        if not shutil.which(words[0]):
            raise UsageError(f"${name} names {words[0]!r}, which is not a program here. Set it to your editor.")
        return words
    found = next((editor for editor in FOUND_EDITORS if shutil.which(editor)), None)
    if found is None:
        raise UsageError("There is no editor. Set one, as in `export EDITOR=nano`, or answer with --file FILE.")
    return [found]


class EditedCopy:
    """A copy of a document, which can be edited several times until its text is recorded."""

    def __init__(self, document: str, name: str) -> None:
        """Raises `UsageError` if it cannot be written."""
        self._before = document if document.endswith("\n") or not document else f"{document}\n"
        try:
            self.path = keep_text(self._before, name)
        except OSError as error:
            raise UsageError(f"The copy for the editor cannot be written: {error}") from error
        self.is_recorded = False

    async def edit(self) -> str:
        """Open the editor and return the text. Raises `UsageError` if there is none: the message says why.

        If the caller is cancelled, the editor is asked to end.
        """
        editor = find_editor()
        self._restore()
        with _left_alone():
            try:
                process = await asyncio.create_subprocess_exec(*editor, str(self.path))
            except OSError as error:
                raise UsageError(f"{editor[0]} cannot be started: {error.strerror}.") from error
            try:
                code = await process.wait()
            except asyncio.CancelledError:
                with contextlib.suppress(ProcessLookupError):
                    process.terminate()
                await process.wait()
                raise
        if code:
            ended = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
            raise UsageError(f"{editor[0]} {ended}, so nothing was answered.{self.where()}")
        text = read_text(self.path)
        if text == self._before:
            raise UsageError("The document was not changed, so nothing was answered.")
        if not text.strip():
            raise UsageError("The document is empty now, so nothing was answered.")
        return text

    def where(self) -> str:
        """Where the text is, if there is one that the document did not have."""
        return f" Your text is in {self.path}." if self._is_changed() else ""

    def close(self) -> None:
        """Delete the copy if its text has been recorded, or if there is nothing new in it."""
        if self.is_recorded or not self._is_changed():
            with contextlib.suppress(OSError):  # what an editor has put in its place is not ours to delete
                self.path.unlink()

    def _restore(self) -> None:
        """Put the document back if the editor has emptied or deleted the copy before."""
        if self._is_changed():
            return
        try:
            handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, PRIVATE_FILE)
        except OSError as error:
            raise UsageError(f"{self.path} cannot be written: {error.strerror}.") from error
        with os.fdopen(handle, "wb") as file:
            file.write(self._before.encode())

    def _is_changed(self) -> bool:
        try:
            return self.path.read_bytes() not in (b"", self._before.encode())
        except OSError:
            return False


def read_text(path: Path) -> str:
    """The text of a file that a person has written. Raises `UsageError` that says what is wrong with it."""
    try:
        return read_plain_file(path, MAX_ANSWER).decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text (byte {error.start + 1}); it stays as it is.") from error
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from error


@contextlib.contextmanager
def _left_alone() -> Iterator[None]:
    """While an editor has the terminal, Ctrl-C is meant for it."""
    # not SIG_IGN, which the editor would inherit
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
