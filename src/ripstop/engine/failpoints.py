"""Named places where a test may kill the process. Public through `ripstop.testing`.

A fail-point does nothing unless the environment names it: `RIPSTOP_FAILPOINT=sqlite.before_commit`
kills the process (SIGKILL, so nothing can clean up) the first time it gets there,
`RIPSTOP_FAILPOINT=sqlite.before_commit:7` the seventh time.
"""

import os
import signal
from collections.abc import Callable, Iterable

FAILPOINTS = (
    "engine.before_append",
    "engine.after_append",
    "files.before_rename",
    "files.after_rename",
    "liveness.before_create",
    "liveness.before_lock",
    "liveness.before_unlink",
    "liveness.after_unlink",
    "liveness.before_bury",
    "messages.before_send",
    "messages.after_send",
    "sqlite.before_begin",
    "sqlite.before_commit",
    "sqlite.after_commit",
    "sqlite.before_migration",
    "sqlite.in_migration",
    "sqlite.after_migration",
    "worker.before_enrol",
    "worker.after_enrol",
    "worker.before_claim",
    "worker.after_claim",
    "worker.before_probe",
    "worker.after_probe",
    "worker.before_doubt",
    "worker.before_begin",
    "worker.after_begin",
    "worker.before_perform",
    "worker.after_perform",
    "worker.before_retry",
    "worker.after_retry",
    "worker.before_park",
    "worker.after_park",
    "worker.after_tell",
    "worker.before_leave",
    "worker.after_leave",
)
"""The fail-points of a journal and those who work on it. A style lists its own in its plug-in."""

_AREAS = frozenset(name.partition(".")[0] for name in FAILPOINTS)
"""Only these are known here, so a name of another area is checked where the plug-ins are known."""

_name, _, _count = os.environ.get("RIPSTOP_FAILPOINT", "").partition(":")
_left = int(_count or 1)


def check_armed(of_styles: Iterable[str] = ()) -> None:
    """Raise `ValueError` if the environment names a fail-point that does not exist."""
    known = (*FAILPOINTS, *of_styles)
    if _name and _name not in known:
        raise ValueError(f"RIPSTOP_FAILPOINT names {_name!r}; known are {', '.join(known)}.")


if _name.partition(".")[0] in _AREAS:
    check_armed()


def _reach(name: str) -> None:
    global _left
    if name == _name:
        _left -= 1
        if _left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


failpoint: Callable[[str], object] = _reach if _name else bool
"""The process is at this place now. With none armed it is a built-in that does nothing: every step passes five."""
