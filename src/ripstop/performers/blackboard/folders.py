"""The folders of a board, and the paths that may be used in them."""

import re

from ripstop.performers.folders import parts_of
from ripstop.performers.tools.roots import MAX_PATH, is_name
from ripstop.runtime.performers import Refused

MEMORY, REPORTS = "memory", "reports"
_REPORT = re.compile(r"report_[^/]+\.md")


def check_memory_path(path: str) -> None:
    """Raise `Refused` unless it names a file in `memory/`, as the board lists it."""
    parts = parts_of(path)
    if len(parts) < 2 or parts[0] != MEMORY or "/".join(parts) != path:
        raise Refused(f"{path!r} is not a file in {MEMORY}/, so it cannot be the plan or the history.", "definition")


def check_report_path(path: str) -> None:
    """Raise `Refused` unless it is `reports/report_<name>.md`."""
    if not is_report_path(path):
        raise Refused(f"{path!r} cannot be a report; a report is {REPORTS}/report_<name>.md.", "definition")


def is_report_path(path: str) -> bool:
    folder, _, name = path.partition("/")
    return folder == REPORTS and len(path) <= MAX_PATH and is_name(name) and bool(_REPORT.fullmatch(name))
