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
    "sqlite.before_begin",
    "sqlite.before_commit",
    "sqlite.after_commit",
    "worker.before_begin",
    "worker.after_begin",
    "worker.before_perform",
    "worker.after_perform",
    "worker.after_tell",
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
