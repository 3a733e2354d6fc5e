"""Named places where a test may kill the process. Public through `ripstop.testing`.

A fail-point does nothing unless the environment names it: `RIPSTOP_FAILPOINT=sqlite.before_commit`
kills the process (SIGKILL, so nothing can clean up) the first time it gets there,
`RIPSTOP_FAILPOINT=sqlite.before_commit:7` the seventh time.
"""

import os
import signal
from collections.abc import Callable

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
"""The fail-points of a journal and those who work on it."""

DOCUMENT_FAILPOINTS = (
    "documents.before_write",
    "documents.before_link",
    "documents.after_link",
    "documents.before_rename",
    "documents.after_exchange",
    "documents.after_rename",
    "documents.before_move",
    "documents.after_move",
    "documents.before_remove",
    "documents.after_remove",
    "documents.after_keep",
    "documents.after_note",
)
"""Those of a folder of documents, which only a process that works in one gets to."""

BOARD_FAILPOINTS = (
    "board.before_pending",
    "board.after_pending",
    "board.between_files",
    "board.before_rename",
    "board.after_rename",
    "board.after_write",
)
"""Those of a blackboard, which only a process that writes to one gets to."""

COWORK_FAILPOINTS = (
    "cowork.before_rename",
    "cowork.after_rename",
    "cowork.before_remove",
    "cowork.after_remove",
    "cowork.before_log",
    "cowork.after_log",
)
"""Those of a delivery project, which only a process that writes to one gets to."""

_KNOWN = FAILPOINTS + DOCUMENT_FAILPOINTS + BOARD_FAILPOINTS + COWORK_FAILPOINTS

_name, _, _count = os.environ.get("RIPSTOP_FAILPOINT", "").partition(":")
_left = int(_count or 1)

if _name and _name not in _KNOWN:
    raise ValueError(f"RIPSTOP_FAILPOINT names {_name!r}; known are {', '.join(_KNOWN)}.")


def _reach(name: str) -> None:
    global _left
    if name == _name:
        _left -= 1
        if _left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


failpoint: Callable[[str], object] = _reach if _name else bool
"""The process is at this place now. With none armed it is a built-in that does nothing: every step passes five."""
