"""Files and folders that only their owner can read: the journal, and everything else in `.ripstop`.

- Permissions are given as a file or folder is created. Set afterwards, they would leave a moment in which others read.
- `.ripstop` is 0700 and has a `.gitignore`, so that prompts and replies are not committed by accident.
- What an earlier version left open to others is closed, if it belongs to us. Nothing is ever opened further.
"""

import errno
import logging
import os
import re
import stat
from collections.abc import Mapping
from itertools import count
from pathlib import Path

from ripstop.kernel.errors import UsageError

# Reads a file that a user named: a regular one, and not more of it than is wanted.
#
# A pipe would keep us waiting for ever, and a device has no end. So its type and size are checked first.
# Every failure is an `OSError` whose `strerror` is meant for people.


_FILE_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
SYMBOLIC_LINK = "it is a symbolic link, and links are not followed; put there what it leads to"
HARD_LINK = "it is a hard link: the same file has another name, perhaps elsewhere; copy it"
# a pipe without a writer would block the opening itself
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY


def read_plain_file(path: Path, at_most: int, one_name: bool = False) -> bytes:
    """The bytes of a file. Raises `OSError`, also if there are more than `at_most`.

    Args:
        one_name: Refuse a symbolic link, and a file with another name elsewhere: both lead out of a folder.
    """
    if one_name and path.is_symlink():
        raise OSError(errno.ELOOP, SYMBOLIC_LINK, str(path))
    _plain(path, os.stat(path).st_mode)
    handle = os.open(path, _FLAGS | os.O_NOFOLLOW if one_name else _FLAGS)
    try:
        found = os.fstat(handle)
        _plain(path, found.st_mode)  # another one may have taken its place
        if one_name and found.st_nlink > 1:
            raise OSError(errno.EMLINK, HARD_LINK, str(path))
        if found.st_size > at_most:
            raise OSError(errno.EFBIG, f"it has {found.st_size} bytes; at most {at_most} are read", str(path))
        with os.fdopen(handle, "rb", closefd=False) as file:
            data = file.read(at_most + 1)
    finally:
        os.close(handle)
    if len(data) > at_most:  # some files do not know how long they are
        raise OSError(errno.EFBIG, f"it has more than {at_most} bytes; no more are read", str(path))
    return data


def _plain(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise OSError(
            errno.EINVAL, f"it is {_FILE_KINDS.get(stat.S_IFMT(mode), 'something else')}, not a file", str(path)
        )


OURS = ".ripstop"
"""The folder of the journal and of all workspaces."""
PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700
NEW_FILE, NEW_FOLDER = 0o644, 0o755
"""What the umask is taken from, for all that is not private: nobody else ever writes it."""
_GROUP_AND_OTHERS = 0o077
_OTHERS_WRITE = 0o022
log = logging.getLogger("ripstop.files")


def make_folder(path: Path) -> None:
    """Create a folder and those above it; a `.ripstop` among them is private. Raises `OSError`."""
    missing = [folder for folder in (path, *path.parents) if not os.path.isdir(folder)]
    for folder in reversed(missing):
        private = folder.name == OURS
        try:
            os.mkdir(folder, PRIVATE_FOLDER if private else NEW_FOLDER)
        except FileExistsError:
            if not os.path.isdir(folder):
                raise
            continue  # another process was first, and does the rest
        if private:
            create_file(folder / ".gitignore", b"*\n")
    if path.name == OURS:
        close_to_others(path)


def make_private_folder(path: Path) -> None:
    """Create a folder of the user's state or caches, and those above it, for him alone. Raises `OSError`."""
    for folder in reversed([one for one in (path, *path.parents) if not os.path.isdir(one)]):
        try:
            os.mkdir(folder, PRIVATE_FOLDER)
        except FileExistsError:
            if not os.path.isdir(folder):
                raise
    close_own_folders(path)


def close_own_folders(path: Path) -> None:
    """Close a folder of the user's state or caches, and those above it that are ours, if others can write there."""
    above = [path, *path.parents]
    ours = next((number for number, one in enumerate(above) if one.name == NAME), -1)
    for folder in above[: ours + 1]:
        if os.path.isdir(folder) and os.stat(folder).st_mode & _OTHERS_WRITE:
            close_to_others(folder)
            log.warning("Other users could write to %s. It is closed to them now; look at what is in it.", folder)


def link_on_the_way(path: Path) -> Path | None:
    """The first part of a path that is a symbolic link. A project can ship one, and so lead us elsewhere."""
    return next((part for part in (*reversed(path.parents), path) if part.is_symlink()), None)


def without_links(path: Path, option: str) -> Path:
    """A path that the user has not chosen. Raises `UsageError` if a link on the way leads elsewhere."""
    try:
        link = link_on_the_way(path)
    except OSError as error:
        raise UsageError(
            f"{path} cannot be looked at: {error.strerror}. Change its permissions, or use {option}."
        ) from error
    if link:
        raise UsageError(
            f"{link} is a symbolic link to {os.readlink(link)}, and ripstop writes nothing behind a link that a "
            f"project can ship. If that place is meant, name it: {option}. Otherwise remove the link."
        )
    return path


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
        if mode & _GROUP_AND_OTHERS and not stat.S_ISLNK(found.st_mode) and found.st_uid == os.geteuid():
            os.chmod(path, mode & ~_GROUP_AND_OTHERS)
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno not in (errno.EROFS, errno.EPERM, errno.EACCES):
            raise  # on a read-only file system it stays as it is, and can still be read


# Texts of a person that could not be recorded, or not yet: in `.ripstop/kept`, for their owner alone.
#
# Nothing that a person wrote is lost because somebody else was quicker, an editor failed or the process was killed.


KEPT = Path(OURS) / "kept"
LONGEST_NAME = 80
_ODD = re.compile(r"[^\w.-]+")


def keep_text(text: str, name: str) -> Path:
    """Write a text to a new private file, named after what it is about. Raises `OSError`."""
    link = link_on_the_way(KEPT)
    if link:  # a project can ship one
        raise OSError(f"{link} is a symbolic link, and nothing is written behind it")
    make_folder(KEPT)
    plain = _ODD.sub("-", name).strip(".-")[-LONGEST_NAME:] or "text"
    for number in count(1):
        path = KEPT / (f"{plain}.md" if number == 1 else f"{plain}-{number}.md")
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE)
        except FileExistsError:
            continue
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode("utf-8", "replace"))
            file.flush()
            os.fsync(file.fileno())
        return path
    raise AssertionError("there is always a next number")


# Where the user's own files are: settings for every project, the consents that ripstop remembers, and caches.
#
# The folders follow the XDG base directory rules; a relative path in those variables is ignored, as they demand. It
# would otherwise be a folder inside whatever project the user works in.


NAME = "ripstop"


def config_folder(environment: Mapping[str, str] | None = None) -> Path | None:
    """The folder of the user's settings; `None` if the user has no home."""
    return _folder("XDG_CONFIG_HOME", ".config", os.environ if environment is None else environment)


def state_folder(environment: Mapping[str, str] | None = None) -> Path | None:
    """The folder of what ripstop remembers about the user's choices; `None` if the user has no home."""
    return _folder("XDG_STATE_HOME", ".local/state", os.environ if environment is None else environment)


def cache_folder(environment: Mapping[str, str] | None = None) -> Path | None:
    """The folder of what can be deleted at any time and is made again; `None` if the user has no home."""
    return _folder("XDG_CACHE_HOME", ".cache", os.environ if environment is None else environment)


def _folder(variable: str, below_home: str, environment: Mapping[str, str]) -> Path | None:
    chosen, home = environment.get(variable, ""), environment.get("HOME", "")
    if os.path.isabs(chosen):
        return Path(chosen) / NAME
    return Path(home) / below_home / NAME if os.path.isabs(home) else None
