"""Named places where a test may kill the process. Public through `ripstop.testing`.

A fail-point does nothing unless the environment names it: `RIPSTOP_FAILPOINT=sqlite.before_commit`
kills the process (SIGKILL, so nothing can clean up) the first time it gets there,
`RIPSTOP_FAILPOINT=sqlite.before_commit:7` the seventh time.
"""

import os
import signal

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
    "loudspeaker.before_send",
    "loudspeaker.after_send",
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
"""Every fail-point there is. `reach` refuses a name that is not here."""

_name, _, _count = os.environ.get("RIPSTOP_FAILPOINT", "").partition(":")
_left = int(_count or 1)

if _name and _name not in FAILPOINTS:
    raise ValueError(f"RIPSTOP_FAILPOINT names {_name!r}; known are {', '.join(FAILPOINTS)}.")


def reach(name: str) -> None:
    """The process is at this place now."""
    if name == _name:
        _count_down()


def _count_down() -> None:
    global _left
    _left -= 1
    if _left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
