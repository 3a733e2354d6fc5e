"""A cgroup for each command, where the user may make one: it counts all memory, also what the kernel needs for it.

Buffers of sockets and pipes belong to no process, so the launcher cannot count them. It bounds how many there can be;
a cgroup (version 2) bounds the bytes.

- A group is made beside our own, in a group that is delegated to us: one that we may write, and whose groups can have a
  limit of memory. To root only what systemd marks as delegated is: root may write every group, and they are systemd's.
- Nothing is written to a group that we have not made, and no process is moved but the command.
"""

import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from msgspec import Struct

OWN, MOUNTS = Path("/proc/self/cgroup"), Path("/proc/self/mountinfo")
NAME = "ripstop-command"
DELEGATED = ("trusted.delegate", "user.delegate")
REMOVAL_SECONDS = 2.0
"""A group can be removed once the kernel has forgotten its last process."""


class Delegation(Struct, frozen=True):
    """Where groups can be made."""

    folder: Path | None = None
    problem: str = ""
    """Why they cannot."""


@cache
def find_delegation() -> Delegation:
    """Look once in a process."""
    return delegation_of(OWN, MOUNTS, is_root=os.geteuid() == 0)


def delegation_of(own: Path, mounts: Path, is_root: bool) -> Delegation:
    """The nearest group above our own in which we may make others whose memory is limited."""
    try:
        group = _own_group(own.read_text(), mounts.read_text())
    except OSError:
        group = None
    if group is None:
        return Delegation(problem="this system has no cgroups of version 2")
    place, top = group
    above = [one for one in (place, *place.parents) if one == top or top in one.parents]
    limited = [one for one in above if "memory" in _words(one / "cgroup.subtree_control")]
    if not limited:
        return Delegation(problem="no cgroup above this process limits memory")
    for one in limited:
        may_write = os.access(one, os.W_OK | os.X_OK) and os.access(one / "cgroup.procs", os.W_OK)
        if may_write and (not is_root or _is_marked(one)):
            return Delegation(one)
    return Delegation(problem="no cgroup is delegated to this user")


@contextmanager
def command_group(delegation: Delegation, memory: int, tasks: int) -> Iterator[Path | None]:
    """A group for one command; nothing where none can be made.

    Args:
        memory: Bytes, of all its processes and of what the kernel keeps for them.
        tasks: Its processes and threads.
    """
    group = delegation.folder / f"{NAME}-{os.getpid()}-{secrets.token_hex(4)}" if delegation.folder else None
    try:
        if group:
            group.mkdir()
    except OSError:
        group = None
    try:
        if group and _set(group, "memory.max", memory):
            for name, value in (("memory.swap.max", 0), ("memory.oom.group", 1), ("pids.max", tasks)):
                _set(group, name, value)  # not every kernel has them
            yield group
        else:
            yield None
    finally:
        if group:
            _remove(group)


def is_out_of_memory(group: Path) -> bool:
    """Whether the kernel has ended the command because of its memory."""
    counts = dict(line.split() for line in _text(group / "memory.events").splitlines() if len(line.split()) == 2)
    return any(counts.get(name, "0") != "0" for name in ("oom_kill", "oom_group_kill"))


def _own_group(own: str, mounts: str) -> tuple[Path, Path] | None:
    """The folder of the group that this process is in, and that of the topmost group that is seen here."""
    name = next((line[3:] for line in own.splitlines() if line.startswith("0::")), None)
    for line in mounts.splitlines():
        fields, _, kind = line.partition(" - ")
        if name is None or ".." in name.split("/") or kind.split()[:1] != ["cgroup2"]:
            continue
        root, top = fields.split()[3:5]
        below = os.path.relpath(name, root)
        return (Path(top, below), Path(top)) if not below.startswith("..") else None
    return None


def _is_marked(group: Path) -> bool:
    for name in DELEGATED:
        with suppress(OSError, AttributeError):
            if os.getxattr(group, name) == b"1":
                return True
    return False


def _set(group: Path, name: str, value: int) -> bool:
    try:
        (group / name).write_text(str(value))
    except OSError:
        return False
    return True


def _remove(group: Path) -> None:
    deadline = time.monotonic() + REMOVAL_SECONDS
    while time.monotonic() < deadline:
        try:
            return group.rmdir()
        except FileNotFoundError:
            return None
        except OSError:
            time.sleep(0.01)
    return None


def _words(path: Path) -> list[str]:
    return _text(path).split()


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
