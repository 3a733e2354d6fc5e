"""The same place by bubblewrap: namespaces of its own, and a file system that has nothing else in it."""

import os
from pathlib import Path

from .place import CommandPlace, is_folder
from .system_files import SYSTEM, readable_etc

HOME = "/tmp/home"  # noqa: S108  # in the sandbox, where /tmp is empty
TMP_BYTES = 1 << 30
SECCOMP = "@SECCOMP"
"""Stands for the descriptor with the filter; the launcher puts it in."""


def bubblewrap_arguments(bwrap: str, place: CommandPlace, read: tuple[Path, ...]) -> list[str]:
    """What to start before the command's own words."""
    arguments = [bwrap, "--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]
    arguments += ["--unshare-cgroup-try", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    arguments += ["--hostname", "sandbox", "--seccomp", SECCOMP]
    for path in SYSTEM:
        if os.path.islink(path):
            arguments += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            arguments += ["--ro-bind", path, path]
    for path in readable_etc():
        arguments += ["--ro-bind-try", path, path]
    # read-only, because files of /proc/sys belong to root, and root in this namespace is the root that started us
    arguments += ["--proc", "/proc", "--remount-ro", "/proc"]
    # what is written to memory is bounded: /dev is a file system in memory as well
    size = ["--size", str(TMP_BYTES), "--tmpfs"]
    arguments += ["--dev", "/dev", *size, "/dev/shm", "--remount-ro", "/dev"]  # noqa: S108
    arguments += [*size, "/tmp", "--dir", HOME]  # noqa: S108
    for folder in map(str, read):
        arguments += ["--ro-bind-try", folder, folder]
    for folder in map(str, place.writable):
        arguments += ["--bind", folder, folder]
    for kept in map(str, place.read_only):
        arguments += ["--ro-bind", kept, kept]
    for hidden in place.hidden:
        if is_folder(hidden):
            arguments += ["--tmpfs", str(hidden), "--remount-ro", str(hidden)]
        else:
            arguments += ["--ro-bind", "/dev/null", str(hidden)]
    return [*arguments, "--remount-ro", "/", "--chdir", str(place.folder), "--"]
