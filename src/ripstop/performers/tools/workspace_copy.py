"""The workspace of a fork begins as a copy of the old run's files.

- A link is copied as a link and never followed, so nothing outside comes in. We hold an open folder while we look
  into it: nothing that is swapped while we walk can lead out.
- All is copied to a temporary name and made durable; then the name is changed. Half a copy is never used.
- Anything but files, folders and links is left out, and so are half-written files, `.ripstop` folders and what
  disappears while we copy.
"""

import os
import shutil
import stat
import tempfile
from pathlib import Path

from ripstop.files.private_files import OURS, make_folder

from .roots import RESERVED

_READING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def copy_workspace(source: Path, target: Path) -> None:
    """Make `target`, which does not exist or is empty, a copy of `source`. Raises `OSError`; then nothing is there."""
    make_folder(target.parent)
    copy = Path(tempfile.mkdtemp(prefix=RESERVED, dir=target.parent))
    try:
        _copy_folders(source, copy)
        copy.chmod(stat.S_IMODE(source.stat().st_mode))
        copy.rename(target)
    except BaseException:
        shutil.rmtree(copy, ignore_errors=True)  # what went wrong with the copy matters more
        raise
    _sync_folder(target.parent)


def _copy_folders(source: Path, copy: Path) -> None:
    for folder, folders, files, descriptor in os.fwalk(source, onerror=_unless_gone):
        here = copy / os.path.relpath(folder, source)
        if folder != os.fspath(source):
            here.mkdir()
        folders[:] = [name for name in folders if not _is_ours(name)]
        for name in (*folders, *files):
            if not name.startswith(RESERVED):
                try:
                    _copy_entry(name, descriptor, here / name)
                except FileNotFoundError:
                    continue  # removed since the folder was listed
        _sync_folder(here)


def _is_ours(name: str) -> bool:
    return name == OURS or name.startswith(RESERVED)


def _copy_entry(name: str, folder: int, target: Path) -> None:
    """Copy a file or a link; folders are walked into later."""
    found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if stat.S_ISLNK(found.st_mode):
        target.symlink_to(os.readlink(name, dir_fd=folder))
    elif stat.S_ISREG(found.st_mode):
        with open(os.open(name, _READING, dir_fd=folder), "rb") as old, target.open("xb") as new:
            shutil.copyfileobj(old, new)
            new.flush()
            os.fchmod(new.fileno(), stat.S_IMODE(found.st_mode))
            os.fsync(new.fileno())


def _unless_gone(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
