"""Which sandbox this machine has for commands: bubblewrap, else Landlock with seccomp, else none.

Bubblewrap is asked by running it, because a kernel or a container can forbid what it needs.
"""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Literal

from msgspec import Struct

from .allow_list import PATH
from .landlock import LOWEST_ABI, landlock_abi
from .mounts import SYSTEM, CommandPlace, readable_etc
from .syscall_filter import machine

# The same place by bubblewrap: namespaces of its own, and a file system that has nothing else in it.


HOME = "/tmp/home"  # noqa: S108  # in the sandbox, where /tmp is empty
TMP_BYTES = 1 << 30
SECCOMP = "@SECCOMP"
"""Stands for the descriptor with the filter; the launcher puts it in."""


def bubblewrap_arguments(bwrap: str, place: CommandPlace, read: tuple[Path, ...]) -> list[str]:
    """What to start before the command's own words.

    Bubblewrap gets the descriptors of what is held: it mounts them, checks that it mounted those, and closes them.
    """
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
    for writable in place.writable:
        arguments += ["--bind-fd", str(writable.descriptor), str(writable.path)]
    for kept in place.read_only:
        arguments += ["--ro-bind-fd", str(kept.descriptor), str(kept.path)]
    for hidden in place.hidden:
        if hidden.is_folder:
            arguments += ["--tmpfs", str(hidden.path), "--remount-ro", str(hidden.path)]
        else:
            arguments += ["--ro-bind", "/dev/null", str(hidden.path)]
    return [*arguments, "--remount-ro", "/", "--chdir", str(place.folder.path), "--"]


SandboxKind = Literal["bubblewrap", "landlock", "none"]
_TIMEOUT = 10.0
_TRIAL = (
    *("--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--die-with-parent"),
    *("--new-session", "--cap-drop", "ALL", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--", "true"),
)


class Sandboxes(Struct, frozen=True, kw_only=True):
    """What was found."""

    bwrap: str = ""
    """The file of bubblewrap, if it works."""
    bwrap_version: str = ""
    bwrap_problem: str = ""
    """Why bubblewrap cannot be used."""
    landlock: int = 0
    """The version of Landlock; 0: none."""
    seccomp: bool = False
    user_namespaces: bool = False

    @property
    def kind(self) -> SandboxKind:
        """The one that is used."""
        if self.bwrap and self.seccomp:
            return "bubblewrap"
        return "landlock" if self.has_landlock else "none"

    @property
    def has_landlock(self) -> bool:
        return self.seccomp and self.landlock >= LOWEST_ABI


@cache
def find_sandboxes() -> Sandboxes:
    """Look once in a process."""
    if sys.platform != "linux":
        return Sandboxes(bwrap_problem="it exists for Linux only")
    bwrap = shutil.which("bwrap", path=":".join(PATH)) or ""
    problem = _problem_of(bwrap) if bwrap else "it is not installed"
    namespaces = not problem or not _problem(
        [sys.executable, "-I", "-c", "import ctypes,sys; sys.exit(ctypes.CDLL(None).unshare(0x10000000) and 1)"]
    )
    return Sandboxes(
        bwrap="" if problem else bwrap,
        bwrap_version=_said([bwrap, "--version"]).split()[-1] if bwrap and not problem else "",
        bwrap_problem=problem,
        landlock=landlock_abi(),
        seccomp=bool(machine()) and _has_seccomp(),
        user_namespaces=namespaces,
    )


def _problem_of(bwrap: str) -> str:
    """Why bubblewrap cannot be used; empty if it can."""
    problem = _problem([bwrap, *_TRIAL])
    # mounting by path is open to races: CVE-2024-42472
    if not problem and "--ro-bind-fd" not in _said([bwrap, "--help"]):
        return "it is too old: it has no --bind-fd, which every distribution added for CVE-2024-42472"
    return problem


def _has_seccomp() -> bool:
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        return any(line.startswith("Seccomp:") for line in file)


def _problem(command: list[str]) -> str:
    """Why a command did not end well; empty if it did."""
    try:
        done = subprocess.run(  # noqa: S603  # words of our own
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIMEOUT, check=False, env={}
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"it cannot be run: {error}"
    said = " ".join(done.stderr.decode(errors="replace").split())[:200]
    return "" if done.returncode == 0 else said or f"it ended with {done.returncode}"


def _said(command: list[str]) -> str:
    done = subprocess.run(  # noqa: S603
        command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIMEOUT, check=False, env={}
    )
    return done.stdout.decode(errors="replace").strip() or "?"
