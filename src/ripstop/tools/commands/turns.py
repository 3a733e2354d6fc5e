"""One command in a workspace at a time, across processes; and the placeholders that are there meanwhile.

- The lock is a file in `.ripstop` of the workspace, which no command sees. The launcher of the command has it open as
  well: if ripstop is killed, the lock is free once the command has ended.
- Lock and folder are removed at the end, so that a workspace is left as it was. Another process can therefore lock a
  file that was just removed; so whoever has locked one checks that it still has its name, and otherwise begins again.
- The file lists the placeholders. Those of a process that was killed are removed by the next command.
- A placeholder is removed only if it is empty.
"""

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from ripstop.engine.performers import Refused, TryAgain
from ripstop.security.files import OURS, PRIVATE_FILE, PRIVATE_FOLDER

from ..shared_folder import LISTING, in_words, is_there, open_lock, try_lock, unlock
from ..workspace import SharedWorkspace, enter
from .mounts import PLACEHOLDER_FILES, CommandFolders

LOCK = "command.lock"
LONGEST_WAIT = 1800.0
"""Seconds until a command gives up waiting for those before it."""
RETRY_INTERVAL = 0.02
MAX_LIST = 10_000
"""Bytes of the list of placeholders."""


class CommandTurn:
    """The right to run a command in a workspace."""

    def __init__(self, workspace: int, lock: int) -> None:
        """`workspace`, `lock`: open, and closed by `end`."""
        self.workspace = workspace
        self.lock = lock

    def make_placeholders(self, shared: SharedWorkspace | None) -> None:
        """Raises `OSError`."""
        self._remove_placeholders()  # of a process that was killed
        if shared is None:
            return
        names = [path.name for path in shared.protected() if path.parent == shared.workspace and path.name != OURS]
        missing = [name for name in names if not _exists(self.workspace, name)]
        # listed first: a process that is killed in between has listed too many, and only what is empty is removed
        os.pwrite(self.lock, json.dumps(missing).encode(), 0)
        for name in missing:
            with suppress(FileExistsError):
                if name in PLACEHOLDER_FILES:
                    os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644, dir_fd=self.workspace))
                else:
                    os.mkdir(name, dir_fd=self.workspace)

    def end(self) -> None:
        """Remove what was made for the command, and let the next one begin."""
        try:
            self._remove_placeholders()
            with suppress(OSError):  # another process has put something there, or taken it away
                ours = enter(self.workspace, OURS)
                try:
                    os.unlink(LOCK, dir_fd=ours)
                finally:
                    os.close(ours)
                os.rmdir(OURS, dir_fd=self.workspace)
        finally:
            unlock(self.lock)
            os.close(self.lock)
            os.close(self.workspace)

    def _remove_placeholders(self) -> None:
        try:
            names = json.loads(os.pread(self.lock, MAX_LIST, 0) or b"[]")
        except ValueError:
            names = []
        for name in names if isinstance(names, list) else ():
            if isinstance(name, str) and "/" not in name:
                with suppress(OSError):  # gone, or not empty: then it is not ours any more
                    if name not in PLACEHOLDER_FILES:
                        os.rmdir(name, dir_fd=self.workspace)
                    elif os.stat(name, dir_fd=self.workspace, follow_symlinks=False).st_size == 0:
                        os.unlink(name, dir_fd=self.workspace)
        os.ftruncate(self.lock, 0)


@asynccontextmanager
async def command_turn(folders: CommandFolders) -> AsyncIterator[CommandTurn]:
    """Wait until no other command runs in the workspace. Raises `Refused`, and `TryAgain` if that takes too long."""
    deadline = time.monotonic() + LONGEST_WAIT
    try:
        while (turn := _try_turn(folders.workspace)) is None:
            if time.monotonic() > deadline:
                raise TryAgain(f"Other commands have been running in {str(folders.workspace)!r} all the time.")
            await asyncio.sleep(RETRY_INTERVAL)
    except OSError as error:
        raise in_words(folders.workspace, error) from error
    try:
        turn.make_placeholders(folders.shared)
        yield turn
    finally:
        turn.end()


def _try_turn(path: Path) -> CommandTurn | None:
    workspace = os.open(path, LISTING)
    try:
        lock = _try_lock(workspace)
    except BaseException:
        os.close(workspace)
        raise
    if lock is None:
        os.close(workspace)
        return None
    return CommandTurn(workspace, lock)


def _try_lock(workspace: int) -> int | None:
    while True:
        with suppress(FileExistsError):
            os.mkdir(OURS, PRIVATE_FOLDER, dir_fd=workspace)
        try:
            ours = enter(workspace, OURS)
        except FileNotFoundError:
            continue  # the command before has just ended
        except Refused as refusal:
            raise Refused(f"Commands cannot be kept from {OURS!r}: {refusal} Replace it by a folder.") from refusal
        try:
            lock = open_lock(LOCK, PRIVATE_FILE, ours)
            try:
                if not try_lock(lock):
                    os.close(lock)
                    return None
                if is_there(lock, ours, LOCK):
                    return lock
            except BaseException:
                os.close(lock)
                raise
            os.close(lock)
        except FileNotFoundError:
            continue
        finally:
            os.close(ours)


def _exists(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
