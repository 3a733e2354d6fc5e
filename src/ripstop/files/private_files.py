"""Files and folders that only their owner can read: the journal, and everything else in `.ripstop`.

- Permissions are given as a file or folder is created. Set afterwards, they would leave a moment in which others read.
- `.ripstop` is 0700 and has a `.gitignore`, so that prompts and replies are not committed by accident.
- What an earlier version left open to others is closed, if it belongs to us. Nothing is ever opened further.
"""

import errno
import os
import stat
from pathlib import Path

OURS = ".ripstop"
"""The folder of the journal and of all workspaces."""
PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700
_OTHERS = 0o077


def make_folder(path: Path) -> None:
    """Create a folder and those above it; a `.ripstop` among them is private. Raises `OSError`."""
    missing = [folder for folder in (path, *path.parents) if not os.path.isdir(folder)]
    for folder in reversed(missing):
        private = folder.name == OURS
        try:
            os.mkdir(folder, PRIVATE_FOLDER if private else 0o777)
        except FileExistsError:
            if not os.path.isdir(folder):
                raise
            continue  # another process was first, and does the rest
        if private:
            create_file(folder / ".gitignore", b"*\n")
    if path.name == OURS:
        close_to_others(path)


def link_on_the_way(path: Path) -> Path | None:
    """The first part of a path that is a symbolic link. A project can ship one, and so lead us elsewhere."""
    return next((part for part in (*reversed(path.parents), path) if part.is_symlink()), None)


def create_file(path: Path, content: bytes = b"") -> None:
    """Create a private file, unless there is one already. Raises `OSError`."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE)
    except FileExistsError:
        return
    try:
        os.write(handle, content)
    finally:
        os.close(handle)


def close_to_others(path: Path) -> None:
    """Deny other users access to a file or folder. A link, or what belongs to another user, stays as it is."""
    try:
        found = os.lstat(path)
        mode = stat.S_IMODE(found.st_mode)
        # by its name, not by a descriptor: closing one would drop SQLite's locks on the file in this process
        if mode & _OTHERS and not stat.S_ISLNK(found.st_mode) and found.st_uid == os.geteuid():
            os.chmod(path, mode & ~_OTHERS)
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno not in (errno.EROFS, errno.EPERM, errno.EACCES):
            raise  # on a read-only file system it stays as it is, and can still be read
