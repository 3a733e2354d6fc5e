"""The plan: a Markdown file in which tasks have ids and statuses. All else in it is free.

- A task is a heading, a list item or a row of a table that begins with an id: letters, then a digit somewhere, such as
  `M1-T1`, `CH-3` or `T2`.
- Its status is in a line `status: X` below it, before the next task or heading; or in its own line: `status: X`, the
  last cell of the row, or a ticked box.
- `update <id> status to <STATUS>` in MAIN's `dev_plan` changes exactly that word.
"""

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

MAX_TASKS = 1000
_TASK = re.compile(
    r"^[ \t]*(?:(?P<heading>\#{1,6})[ \t]+|[-*+][ \t]+|\d{1,4}[.)][ \t]+|(?P<row>\|)[ \t]*)"
    r"(?:\[(?P<box>[ xX])\][ \t]*)?[*_`]*"
    r"(?P<id>(?=[A-Za-z_.-]{0,40}\d)[A-Za-z][A-Za-z0-9_.-]{0,60}?)(?=[*_`]*(?:[:：\s|)(]|$))[*_`]*[:：]?[ \t]*"
    r"(?P<title>.*)$"
)
_STATUS = re.compile(r"(?i)(?P<before>(?:\bstatus\b|状态)[*_`]*[ \t]*[:：][ \t]*[*_`]*)(?P<status>[\w-]+)")
_UPDATE = re.compile(r"(?i)\bupdate\s+[`'\"]?(?P<id>[\w.-]+)[`'\"]?\s+status\s+to\s+[`'\"]?(?P<status>[\w-]+)")
_CELL = re.compile(r"(?P<before>.*\|[ \t]*)(?P<status>[^|\s][^|]*?)(?P<after>[ \t]*\|?[ \t]*)$")


class PlanTask(Struct, frozen=True):
    id: str
    title: str
    status: str
    line: int
    """Where the task is, counted from 1 …"""
    status_line: int = 0
    """… and its status; 0 if it has none."""
    words: str = ""
    """All of its lines."""


class Update(Struct, frozen=True):
    task: str
    status: str


def tasks_of(plan: str) -> tuple[PlanTask, ...]:
    found = []
    lines = plan.split("\n")
    for task in _blocks(lines):
        found.append(task)
        if len(found) == MAX_TASKS:
            break
    return tuple(found)


def updates_in(dev_plan: str) -> tuple[Update, ...]:
    """The changes that a decision asks for; anything else that it says about the plan is only recorded."""
    return tuple(Update(found["id"].rstrip("."), found["status"]) for found in _UPDATE.finditer(dev_plan))


def apply_update(plan: str, update: Update) -> str | None:
    """The plan with the status changed, and nothing else; none if it has no such task, or the task no status."""
    lines = plan.split("\n")
    for task in _blocks(lines):
        if task.id.casefold() != update.task.casefold() or not task.status_line:
            continue
        index = task.status_line - 1
        lines[index] = _with_status(lines[index], update.status)
        return "\n".join(lines)
    return None


def words_about(plan: str, task: str) -> str:
    """The lines of every task of the plan that a text names."""
    named = [one.words for one in tasks_of(plan) if re.search(rf"(?<![\w-]){re.escape(one.id)}(?![\w-])", task)]
    return "\n".join(named)


def _blocks(lines: Sequence[str]) -> Iterator[PlanTask]:
    starts = [(number, found) for number, line in enumerate(lines, 1) if (found := _TASK.match(line[:2000]))]
    for place, (number, found) in enumerate(starts):
        end = starts[place + 1][0] if place + 1 < len(starts) else len(lines) + 1
        block = range(number, _until_heading(lines, number, end))
        where = _status_line(lines, block, found)
        status = _status_in(lines[where - 1], found) if where else ""
        title = _STATUS.sub("", found["title"]).strip(" *_`-–—|()（）,;，；")
        yield PlanTask(found["id"], title, status, number, where, "\n".join(lines[one - 1] for one in block))


def _until_heading(lines: Sequence[str], start: int, end: int) -> int:
    return next((number for number in range(start + 1, end) if lines[number - 1].startswith("#")), end)


def _status_line(lines: Sequence[str], block: range, found: re.Match[str]) -> int:
    for number in block:
        if _STATUS.search(lines[number - 1]):
            return number
    return block[0] if found["row"] or found["box"] else 0


def _status_in(line: str, found: re.Match[str]) -> str:
    said = _STATUS.search(line)
    if said:
        return said["status"]
    if found["box"]:
        return "DONE" if found["box"] in "xX" else "TODO"
    cell = _CELL.match(line)
    return cell["status"].strip() if cell else ""


def _with_status(line: str, status: str) -> str:
    said = _STATUS.search(line)
    if said:
        return f"{line[: said.start('status')]}{status}{line[said.end('status') :]}"
    task = _TASK.match(line[:2000])
    if task and task["box"]:
        mark = " " if status.upper() in ("TODO", "OPEN") else "x"
        return f"{line[: task.start('box')]}{mark}{line[task.end('box') :]}"
    cell = _CELL.match(line)
    return f"{cell['before']}{status}{cell['after']}" if cell else line
