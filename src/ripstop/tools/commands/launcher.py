"""Starts one command in its sandbox, watches it, and ends everything that it started. A process of its own.

It is run as a file, with nothing but the standard library, and is told what to do by one line of JSON on its standard
input (`runner.py` writes it). Its rules:

- When its standard input closes, or its parent dies, it kills the command with all its descendants, and ends.
- It is the reaper of orphans: a process that calls `setsid` or forks twice becomes its child, and is killed as well.
- It counts processes and memory of all descendants, because limits per process (`setrlimit`) do not bind root, nor a
  crowd of small ones. Shared memory stays while any process has a part of it mapped; so it is counted by how much more
  of it the system has than before.
- What comes of the command is one line of JSON on the descriptor `status`; what it prints goes straight to our output.
"""

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import struct
import sys
import time
from collections.abc import Iterator
from typing import Any, NoReturn

IS_LINUX = sys.platform == "linux"
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP = 1, 4, 22, 24
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 36, 38, 47
SECCOMP_MODE_FILTER, CLEAR_ALL = 2, 4
CAPSET = {"x86_64": 126, "aarch64": 91}
LANDLOCK_RESTRICT = 446

POLL_INTERVAL = 0.02
"""Seconds between two looks at how many tasks the system has."""
COUNT_INTERVAL = 0.5
"""Seconds between two counts of the descendants, which take longer."""
SUSPICIOUS = 100
"""New tasks of the system, after which the descendants are counted at once."""
SUSPICIOUS_BYTES = 1 << 28
"""The same, of shared memory."""
KILL_TIMEOUT = 20.0
"""Seconds for killing what is left; only a process that hangs in the kernel needs more."""

_libc = ctypes.CDLL(None, use_errno=True)
PAGE = os.sysconf("SC_PAGE_SIZE")


class FilterProgram(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]


def check(returned: int, what: str) -> int:
    if returned < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return returned


def prctl(option: int, *values: int) -> int:
    four = [*values, 0, 0, 0, 0][:4]
    return int(_libc.prctl(option, *map(ctypes.c_ulong, four)))


# The sandbox, from the inside


def confine(spec: dict[str, Any]) -> None:
    """Give up everything that the command must not have. Raises `OSError`; then the command must not start."""
    for name, value in spec["rlimits"].items():
        _lower(getattr(resource, name), value)
    if not IS_LINUX or spec["kind"] == "none":
        return
    if spec["kind"] == "landlock":
        drop_capabilities()
        check(prctl(PR_SET_NO_NEW_PRIVS, 1), "no_new_privs")
        restrict_files(spec["ruleset"])
        restrict_syscalls(bytes.fromhex(spec["seccomp"]))


def join(group: str) -> None:
    """Enter a cgroup. Where that is not allowed, what the launcher counts is all that bounds the command."""
    with contextlib.suppress(OSError), open(f"{group}/cgroup.procs", "w", encoding="ascii") as file:
        file.write("0")


def _lower(limit: int, value: int) -> None:
    hard = resource.getrlimit(limit)[1]
    most = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(limit, (most, most))


def drop_capabilities() -> None:
    for capability in range(64):
        prctl(PR_CAPBSET_DROP, capability)  # fails for those that do not exist, and where none is held
    prctl(PR_CAP_AMBIENT, CLEAR_ALL)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    nothing = (ctypes.c_uint32 * 6)()
    number = ctypes.c_long(CAPSET[os.uname().machine])
    check(_libc.syscall(number, header, nothing), "capset")


def restrict_files(ruleset: int) -> None:
    """Put rules in force that the parent has made."""
    check(_libc.syscall(ctypes.c_long(LANDLOCK_RESTRICT), ruleset, ctypes.c_uint32(0)), "Landlock")


def restrict_syscalls(code: bytes) -> None:
    program = FilterProgram(len(code) // 8, code)
    returned = _libc.prctl(PR_SET_SECCOMP, ctypes.c_ulong(SECCOMP_MODE_FILTER), ctypes.byref(program), 0, 0)
    check(returned, "seccomp")


# The command


def start(spec: dict[str, Any], failed: int) -> NoReturn:
    """Become the command; what keeps it from starting is written to `failed`."""
    try:
        os.setsid()
        if IS_LINUX:
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        for number in (signal.SIGTERM, signal.SIGPIPE, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(1, 2)
        argv = list(spec["argv"])
        if spec["kind"] == "bubblewrap":
            code = os.memfd_create("filter", 0)
            os.write(code, bytes.fromhex(spec["seccomp"]))
            os.lseek(code, 0, os.SEEK_SET)
            argv = [str(code) if word == "@SECCOMP" else word for word in argv]
        else:
            os.fchdir(spec["folder"])
        if spec["group"]:
            join(spec["group"])
        confine(spec)
        os.execve(spec["program"], argv, spec["environment"])  # noqa: S606  # there is no shell
    except BaseException as error:  # noqa: BLE001  # all of it is told to the parent
        os.write(failed, f"{type(error).__name__}: {error}"[:2000].encode())
    os._exit(127)


# Its descendants


class Descendants:
    """Every process below this one, as /proc shows them."""

    def __init__(self) -> None:
        self.pids: list[int] = []
        self.threads = 0
        self.pages = 0
        self.own_pages = 0
        """Without those of files and of shared memory."""
        self.descriptors = 0
        if not IS_LINUX:
            return
        children: dict[int, list[int]] = {}
        sizes: dict[int, tuple[int, int]] = {}
        for name in os.listdir("/proc"):
            if not name.isdigit():
                continue
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue  # it has ended
            children.setdefault(int(fields[1]), []).append(int(name))
            sizes[int(name)] = int(fields[17]), int(fields[21])
        waiting = list(children.get(os.getpid(), ()))
        while waiting:
            pid = waiting.pop()
            self.pids.append(pid)
            self.threads += sizes[pid][0]
            self.pages += sizes[pid][1]
            self.own_pages += own_pages_of(pid)
            self.descriptors += descriptors_of(pid)
            waiting += children.get(pid, ())


def descriptors_of(pid: int) -> int:
    """The files, pipes and sockets that a process has open; of one that hides them, all that it has room for.

    The kernel keeps what is written into them and not read yet, and no process is charged for that.
    """
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        pass
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            return int(file.read().partition(b"FDSize:")[2].split()[0])
    except (OSError, ValueError, IndexError):
        return 0  # it has ended


def own_pages_of(pid: int) -> int:
    """The pages in memory that are neither of a file nor shared."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            _, resident, shared, *_ = map(int, file.read().split())
    except (OSError, ValueError):
        return 0  # it has ended
    return max(0, resident - shared)


def has_shared_memory(pid: int) -> bool:
    """Whether a process has mapped memory that has no file and can be shared; so it is of one that hides that."""
    try:
        with open(f"/proc/{pid}/maps", "rb") as file:
            return any(line.rstrip().endswith(b"/dev/zero (deleted)") for line in file)
    except FileNotFoundError:
        return False  # it has ended
    except OSError:
        return True


def shared_memory_of_system() -> int:
    """Bytes, of files in memory as well; 0 where it is not known."""
    try:
        with open("/proc/meminfo", "rb") as file:
            return int(file.read().partition(b"Shmem:")[2].split()[0]) << 10
    except (OSError, ValueError, IndexError):
        return 0


def tasks_of_system() -> int:
    """All processes and threads; 0 where it is not known."""
    try:
        with open("/proc/loadavg", "rb") as file:
            return int(file.read().split()[3].partition(b"/")[2])
    except (OSError, ValueError, IndexError):
        return 0


def reap() -> bool:
    """Collect what has ended: whether any child is left."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def kill_all(group: int) -> int:
    """Kill every descendant; returns how many are left, which is 0 unless the kernel holds one."""
    deadline = time.monotonic() + KILL_TIMEOUT
    while time.monotonic() < deadline:
        _signal(-group, signal.SIGKILL)
        # stopped first: those that fork faster than they are killed must not win
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in Descendants().pids:
                _signal(pid, number)
        if not reap():
            return 0
        time.sleep(0.001)
    return len(Descendants().pids)


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


# Watching


EVENT = struct.Struct("iIII")
"""What inotify says of an event, before the name."""
REPLACING = 0x040 | 0x080 | 0x100 | 0x200
"""Moved away, moved here, created, deleted."""
OVERFLOW = 0x4000


class WatchedNames:
    """What happens to names that the command must not touch (`protection.py`)."""

    def __init__(self, watch: dict[str, Any] | None) -> None:
        self.descriptors = [watch["descriptor"]] if watch else []
        self.names: dict[str, str] = watch["names"] if watch else {}
        self.seen: dict[str, int] | None = {} if watch else None

    def look(self) -> bool:
        """Count what happened since the last look: whether a name was replaced, or nobody can say."""
        replaced = False
        for descriptor in self.descriptors:
            while data := _available(descriptor):
                for event in _events(data):
                    replaced |= self._note(*event)
        return replaced

    def _note(self, number: int, mask: int, name: str) -> bool:
        path = self.names.get(f"{number}/{name}")
        if mask & OVERFLOW:
            self.seen = None
        elif path and self.seen is not None:
            self.seen[path] = self.seen.get(path, 0) + 1
        return bool(mask & OVERFLOW or (path and mask & REPLACING))


def _available(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except BlockingIOError:
        return b""


def _events(data: bytes) -> Iterator[tuple[int, int, str]]:
    while data:
        number, mask, _, length = EVENT.unpack_from(data)
        name = data[EVENT.size : EVENT.size + length].rstrip(b"\0")
        yield number, mask, os.fsdecode(name)
        data = data[EVENT.size + length :]


class WatchedCommand:
    """One command from its start to its end."""

    def __init__(self, spec: dict[str, Any], child: int, wake: int) -> None:
        self.spec = spec
        self.child = child
        self.wake = wake
        self.code: int | None = None
        self.stopped = ""
        self.counted_at = 0.0
        self.tasks = tasks_of_system()
        self.shared_before = self.shared = shared_memory_of_system()
        self.names = WatchedNames(spec.get("watch"))

    def run(self) -> None:
        deadline = time.monotonic() + self.spec["seconds"]
        ended = [os.pidfd_open(self.child)] if hasattr(os, "pidfd_open") else []
        while not self.stopped:
            pid, status = os.waitpid(self.child, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
                return
            ready, _, _ = select.select([0, self.wake, *ended, *self.names.descriptors], [], [], POLL_INTERVAL)
            if self.wake in ready or (0 in ready and not os.read(0, 1)):
                self.stopped = "cancelled"
            elif time.monotonic() > deadline:
                self.stopped = "time"
            elif self.names.look():
                self.stopped = "replaced"
            else:
                self._count()

    def _count(self) -> None:
        tasks, shared, now = tasks_of_system(), shared_memory_of_system(), time.monotonic()
        is_suspicious = tasks - self.tasks >= SUSPICIOUS or shared - self.shared >= SUSPICIOUS_BYTES
        if not is_suspicious and now - self.counted_at < COUNT_INTERVAL:
            return
        found = Descendants()
        self.counted_at, self.tasks, self.shared = now, tasks, shared
        if len(found.pids) > self.spec["processes"] or found.threads > self.spec["threads"]:
            self.stopped = "processes"
        elif found.pages * PAGE > self.spec["memory"] or self._is_too_much_shared(found):
            self.stopped = "memory"
        elif found.descriptors > self.spec["descriptors"]:
            self.stopped = "descriptors"

    def _is_too_much_shared(self, found: Descendants) -> bool:
        """Whether memory of their own and new shared memory are too much, and some of that can be theirs."""
        if found.own_pages * PAGE + self.shared - self.shared_before <= self.spec["memory"]:
            return False
        return any(map(has_shared_memory, found.pids))


def main() -> None:
    line = bytearray()
    while not line.endswith(b"\n"):
        piece = os.read(0, 1 << 16)
        if not piece:
            return
        line += piece
    spec = json.loads(line)
    wake, waking = os.pipe()
    os.set_blocking(waking, False)
    # a signal only wakes the loop, so that the loop can end everything in order
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: os.write(waking, b"x"))
    if IS_LINUX:
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        prctl(PR_SET_CHILD_SUBREAPER, 1)
    if os.getppid() != spec["parent"]:
        return
    for descriptor in spec["kept"]:  # from the command; bubblewrap closes those that it gets
        os.set_inheritable(descriptor, False)
    began = time.monotonic()
    reading, failed = os.pipe()
    child = os.fork()
    if child == 0:
        start(spec, failed)
    os.close(failed)
    if IS_LINUX:
        prctl(PR_SET_DUMPABLE, 0)
    for output in (1, 2):  # only what the command starts keeps the pipe open
        os.dup2(os.open(os.devnull, os.O_WRONLY), output)
    watch = WatchedCommand(spec, child, wake)
    watch.run()
    seconds = time.monotonic() - began
    left = kill_all(child)
    watch.names.look()
    problem = os.read(reading, 4096).decode(errors="replace")
    told = {"code": watch.code, "stopped": watch.stopped, "seconds": seconds, "left": left, "problem": problem}
    seen = {"seen": watch.names.seen}
    with contextlib.suppress(BrokenPipeError):  # the parent has died
        os.write(spec["status"], json.dumps({**told, **seen}).encode() + b"\n")


if __name__ == "__main__":
    main()
