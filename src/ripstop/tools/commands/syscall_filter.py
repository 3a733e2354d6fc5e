"""The system calls that a command must not make, as a seccomp program (classic BPF).

Everything is allowed but what is listed: a list of what is allowed would break programs with every new libc. What the
kernel has that is younger than this list, and another way of numbering calls (x32, 32 bit), is refused as a whole.

- `EVERYWHERE`: the kernel's own affairs, namespaces, other processes' memory, files that run with their owner's
  rights, unix sockets (a socket file, such as Docker's, is a way out).
- `WITHOUT_NAMESPACES`: what only separate namespaces would confine: the network, signals and limits of other processes,
  shared memory, and changes of permissions, owners and times, which Landlock does not govern.
"""

import errno
import os
import struct
from typing import NamedTuple

X86_64, AARCH64 = "x86_64", "aarch64"
_ARCHITECTURES = {X86_64: 0xC000003E, AARCH64: 0xC00000B7}
_COLUMN = {X86_64: 0, AARCH64: 1}
_X32 = 0x40000000
_YOUNGEST = 469
"""The highest number of a system call that this list knows (Linux 6.17)."""

_LOAD, _JUMP_EQUAL, _JUMP_ABOVE, _JUMP_ANY, _RETURN = 0x20, 0x15, 0x25, 0x45, 0x06
_ALLOW, _ERROR, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16

AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16
_SUID = 0o6000
_CREATE = 0o100 | 0o20000000
"""O_CREAT, and the bit of O_TMPFILE that O_DIRECTORY has not: a file without a name can get one later."""
_NEW_NAMESPACE = 0x7E020000
"""CLONE_NEWUSER, NEWPID, NEWNET, NEWNS, NEWIPC, NEWUTS and NEWCGROUP; NEWTIME needs clone3."""


class ArgumentTest(NamedTuple):
    """About an argument of a call: `any` bit of a value is set in it, it `is` the value, or it is `not`."""

    argument: int
    op: str
    value: int


class DeniedCall(NamedTuple):
    call: str
    tests: tuple[ArgumentTest, ...] = ()
    """The call is refused if all hold."""
    error: int = errno.EPERM


NUMBERS = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bpf": (321, 280),
    "chmod": (90, -1),
    "chown": (92, -1),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "clone": (56, 220),
    "clone3": (435, 435),
    "creat": (85, -1),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "fchown": (93, 55),
    "fchownat": (260, 54),
    "fcntl": (72, 25),
    "file_setattr": (469, 469),
    "finit_module": (313, 273),
    "fremovexattr": (199, 16),
    "fsconfig": (431, 431),
    "fsetxattr": (190, 7),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "futimesat": (261, -1),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioctl": (16, 29),
    "ioperm": (173, -1),
    "iopl": (172, -1),
    "ioprio_set": (251, 30),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "kill": (62, 129),
    "lchown": (94, -1),
    "lookup_dcookie": (212, 18),
    "lremovexattr": (198, 15),
    "lsetxattr": (189, 6),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "migrate_pages": (256, 238),
    "mknod": (133, -1),
    "mknodat": (259, 33),
    "modify_ldt": (154, -1),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "move_pages": (279, 239),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "msgctl": (71, 187),
    "msgget": (68, 186),
    "msgrcv": (70, 188),
    "msgsnd": (69, 189),
    "name_to_handle_at": (303, 264),
    "nfsservctl": (180, 42),
    "open": (2, -1),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "openat": (257, 56),
    "openat2": (437, 437),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424),
    "pivot_root": (155, 41),
    "prlimit64": (302, 261),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "removexattr": (197, 14),
    "removexattrat": (466, 466),
    "request_key": (249, 218),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "semctl": (66, 191),
    "semget": (64, 190),
    "semop": (65, 193),
    "semtimedop": (220, 192),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "setpriority": (141, 140),
    "setsockopt": (54, 208),
    "settimeofday": (164, 170),
    "setxattr": (188, 5),
    "setxattrat": (463, 463),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "shmget": (29, 194),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "tgkill": (234, 131),
    "tkill": (200, 130),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
    "utime": (132, -1),
    "utimensat": (280, 88),
    "utimes": (235, -1),
    "vhangup": (153, 58),
}
"""By name: on x86-64 and on 64-bit ARM; -1 where there is no such call."""


def _all(calls: str, *tests: ArgumentTest, error: int = errno.EPERM) -> tuple[DeniedCall, ...]:
    return tuple(DeniedCall(call, tests, error) for call in calls.split())


_BUFFER_SIZES = (7, 8, 32, 33)
"""SO_SNDBUF, SO_RCVBUF, SO_SNDBUFFORCE, SO_RCVBUFFORCE: without effect, but no error, which programs would mind."""
EVERYWHERE = (
    *_all("mount umount2 pivot_root chroot unshare setns move_mount open_tree open_tree_attr fsopen fsconfig fsmount"),
    *_all("fspick mount_setattr ptrace process_vm_readv process_vm_writev process_madvise process_mrelease kcmp"),
    *_all("pidfd_getfd kexec_load kexec_file_load init_module finit_module delete_module bpf perf_event_open"),
    *_all("userfaultfd io_uring_setup io_uring_enter io_uring_register keyctl add_key request_key open_by_handle_at"),
    *_all("name_to_handle_at reboot swapon swapoff settimeofday clock_settime adjtimex clock_adjtime sethostname"),
    *_all("setdomainname quotactl quotactl_fd acct syslog iopl ioperm nfsservctl lookup_dcookie fanotify_init"),
    *_all("fanotify_mark vhangup modify_ldt migrate_pages move_pages"),
    *_all("clone", ArgumentTest(0, "any", _NEW_NAMESPACE)),
    # memory that no limit of a process counts
    *_all("memfd_create memfd_secret", error=errno.ENOSYS),
    *_all("shmget"),
    *(DeniedCall("setsockopt", (ArgumentTest(1, "is", 1), ArgumentTest(2, "is", one)), 0) for one in _BUFFER_SIZES),
    # their arguments are behind a pointer; libc has another way where they are not there
    *_all("clone3 openat2 fchmodat2 file_setattr", error=errno.ENOSYS),
    *_all("chmod fchmod creat mknod", ArgumentTest(1, "any", _SUID)),
    *_all("fchmodat mknodat", ArgumentTest(2, "any", _SUID)),
    DeniedCall("open", (ArgumentTest(1, "any", _CREATE), ArgumentTest(2, "any", _SUID))),
    DeniedCall("openat", (ArgumentTest(2, "any", _CREATE), ArgumentTest(3, "any", _SUID))),
    DeniedCall("socketpair", (ArgumentTest(0, "not", AF_UNIX),)),
    # TIOCSTI, TIOCLINUX, FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR
    *(DeniedCall("ioctl", (ArgumentTest(1, "is", request),)) for request in (0x5412, 0x541C, 0x40086602, 0x401C5820)),
)
OWN_NETWORK = (
    DeniedCall(
        "socket",
        (ArgumentTest(0, "not", AF_INET), ArgumentTest(0, "not", AF_INET6), ArgumentTest(0, "not", AF_NETLINK)),
        errno.EACCES,
    ),
    DeniedCall("socket", (ArgumentTest(0, "is", AF_NETLINK), ArgumentTest(2, "not", 0)), errno.EACCES),
)
WITHOUT_NAMESPACES = (
    DeniedCall("socket", (), errno.EACCES),
    *_all("chmod fchmod fchmodat chown fchown lchown fchownat utime utimes utimensat futimesat setxattr"),
    *_all("fsetxattr lsetxattr setxattrat removexattr lremovexattr fremovexattr removexattrat"),
    *_all("prlimit64 sched_setaffinity sched_setscheduler sched_setparam sched_setattr", ArgumentTest(0, "not", 0)),
    *_all("setpriority ioprio_set", ArgumentTest(0, "not", 0)),
    *_all("setpriority ioprio_set", ArgumentTest(1, "not", 0)),
    # who gets a signal when a file is ready: F_SETOWN, F_SETOWN_EX, and the same by ioctl
    *(DeniedCall("fcntl", (ArgumentTest(1, "is", number),)) for number in (8, 15)),
    *(DeniedCall("ioctl", (ArgumentTest(1, "is", request),)) for request in (0x8901, 0x8902)),
    *_all("shmat shmctl semget semop semtimedop semctl msgget msgsnd msgrcv msgctl mq_open mq_unlink"),
)
SIGNALS = _all("kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_send_signal")
"""Where Landlock cannot keep signals inside."""


def machine() -> str:
    """The architecture, if there is a filter for it; else empty."""
    found = os.uname().machine
    return found if found in _ARCHITECTURES else ""


def filter_program(denied: tuple[DeniedCall, ...], architecture: str) -> bytes:
    """The program that refuses these calls."""
    code = [
        _instruction(_LOAD, _ARCHITECTURE),
        _instruction(_JUMP_EQUAL, _ARCHITECTURES[architecture], 1, 0),
        _instruction(_RETURN, _KILL),
        _instruction(_LOAD, _NUMBER),
        _instruction(_JUMP_ABOVE, _X32 - 1, 0, 1),
        _instruction(_RETURN, _ERROR | errno.EPERM),
        _instruction(_JUMP_ABOVE, _YOUNGEST, 0, 1),
        _instruction(_RETURN, _ERROR | errno.ENOSYS),
    ]
    for one in denied:
        number = NUMBERS[one.call][_COLUMN[architecture]]
        if number >= 0:
            code += _refusal(number, one)
    code.append(_instruction(_RETURN, _ALLOW))
    return b"".join(code)


def _refusal(number: int, denied: DeniedCall) -> list[bytes]:
    """Refuse a call if all tests hold; else go on after it."""
    after = 2 * len(denied.tests) + 1
    """Instructions until the end, counted after a jump."""
    code = [_instruction(_LOAD, _NUMBER), _instruction(_JUMP_EQUAL, number, 0, after)]
    for test in denied.tests:
        after -= 2
        code.append(_instruction(_LOAD, _ARGUMENTS + 8 * test.argument))
        jump = _JUMP_ANY if test.op == "any" else _JUMP_EQUAL
        holds, fails = (after, 0) if test.op == "not" else (0, after)
        code.append(_instruction(jump, test.value, holds, fails))
    return [*code, _instruction(_RETURN, _ERROR | denied.error)]


def _instruction(code: int, value: int, holds: int = 0, fails: int = 0) -> bytes:
    return struct.pack("=HBBI", code, holds, fails, value)
