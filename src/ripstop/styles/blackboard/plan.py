"""The plan: a Markdown file in which tasks have ids and statuses. All else in it is free.

- A task is a heading, a list item or a row of a table that begins with an id: letters with a digit somewhere, such as
  `M1-T1`, `CH-3` or `T2`; also `任务1` and `第1章`. A heading with a number alone (`1.1`) is one if it has a status.
- A list item needs a colon after the id, or a status of its own. Below a heading that is a task it needs the latter,
  because what a task depends on is listed there, too.
- Its status is a line `status: X` below it; or at the end of its own line (`… (status: X)`); or a check box; in a table
  the cell below `Status`. Nothing else that says "status:" counts, and nothing within a code fence.
- `update <id> status to <STATUS>` in MAIN's `dev_plan` changes exactly that text. A box is ticked only if the new
  status means that the task is done; for any other one it is clear, and cannot say more.
- A plan can be long or hostile: only so many lines, columns, tasks and updates of a decision are looked at.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import islice, pairwise

from msgspec import Struct

# Tables of Markdown, as far as a plan needs them: which cell of a row is the status.


_RULE = re.compile(r"^\|?[ \t:|-]*-[ \t:|-]*\|?$")
_BORDER = re.compile(r"(?<!\\)\|")
_STATUS = re.compile(r"(?i)^[*_`]*(?:status|state|状态)[*_`]*$")


class Cell(Struct, frozen=True):
    text: str
    start: int
    """Where its text is in the line, without spaces and marks of emphasis around it."""
    end: int


class Table(Struct, frozen=True):
    """Lines that begin with `|`; the second one is a rule, and the first one the head."""

    first: int
    status: int | None
    """The column below `Status`; none if there is no such column."""

    def is_head(self, number: int) -> bool:
        return number < self.first + 2


def cells_of(line: str) -> tuple[Cell, ...]:
    borders = [found.start() for found in _BORDER.finditer(line)]
    if not borders or line[borders[-1] + 1 :].strip():
        borders.append(len(line))
    return tuple(_cell(line, start + 1, end) for start, end in pairwise(borders))


def _cell(line: str, start: int, end: int) -> Cell:
    inside = line[start:end]
    bare = inside.strip(" \t*_`")
    begin = start + (inside.index(bare) if bare else min(1, len(inside)))
    return Cell(inside.strip(), begin, begin + len(bare))


def tables_in(lines: Sequence[str]) -> dict[int, Table]:
    """The table that each line with a row belongs to, by the line's number."""
    found: dict[int, Table] = {}
    number = 0
    while number < len(lines):
        if not lines[number].startswith("|"):
            number += 1
            continue
        end = next((one for one in range(number, len(lines)) if not lines[one].startswith("|")), len(lines))
        if end - number > 1 and _RULE.match(lines[number + 1]):
            heads = [cell.text for cell in cells_of(lines[number])]
            status = next((column for column, head in enumerate(heads) if _STATUS.match(head)), None)
            found.update(dict.fromkeys(range(number, end), Table(number, status)))
        number = end
    return found


MAX_TASKS, MAX_UPDATES, MAX_LINES = 1000, 100, 20_000
MAX_WIDTH = 2000
"""Characters of a line that are looked at."""
_ID = r"(?=[A-Za-z_.-]{0,40}\d)[A-Za-z][A-Za-z0-9_.-]{0,60}|任务\d{1,4}|第\d{1,4}[章节回]"
_ITEM = re.compile(
    r"^(?P<indent>[ \t]*)(?P<mark>\#{1,6}|[-*+]|\d{1,4}[.)])[ \t]+(?:\[(?P<box>[ xX])\][ \t]*)?[*_`]*"
    rf"(?:(?:[Tt]ask|任务)[ \t]+)?\[?(?:(?P<id>{_ID})|(?P<numbered>\d{{1,3}}(?:\.\d{{1,3}}){{0,4}}))\]?"
    r"(?=[*_`]*(?:[:：\s)(（]|$))[*_`]*(?P<colon>[:：])?[*_`]*[ \t]*(?P<title>.*)$"
)
_CELL_ID = re.compile(rf"[*_`\[]*(?P<id>{_ID})[*_`\]]*$")
_plan_STATUS = re.compile(
    r"^(?P<indent>[ \t]*)(?P<mark>[-*+][ \t]+)?[*_`]*(?:status|状态)[*_`]*[ \t]*[:：][*_`]*[ \t]*[*`]*"
    r"(?P<status>[^(（,，;；|#。.*`]*?)[ \t]*(?=[(（,，;；|#。.*`]|$)",
    re.IGNORECASE,
)
_OWN_STATUS = re.compile(
    r"[(（\[,，;；|—–-][ \t]*(?:status|状态)[ \t]*[:：][ \t]*(?P<status>[\w-]+(?: [\w-]+)?)[ \t]*[)）\]]?[ \t]*$",
    re.IGNORECASE,
)
_UPDATE = re.compile(
    r"(?i)(?P<negated>\b(?:not|never|don't)\s+)?\bupdate\s+[`'\"]?(?P<id>[\w.-]+)[`'\"]?\s+status\s+to\s+"
    r"(?:(?P<quote>[`'\"])(?P<quoted>[^`'\"\n]{1,40})(?P=quote)|(?P<status>[a-z][a-z0-9_-]*|[\w-]+))"
)
_FENCE = re.compile(r"^[ \t]*(```|~~~)")


_LIST = re.compile(r"([ \t]*)(?:[-*+]|\d{1,4}[.)])[ \t]")
HEADING, TEXT = -1, 1 << 30
"""The level of a heading, and of a line that is not an item; the level of an item is its indentation."""


class Place(Struct, frozen=True):
    """Where the text of a status is: the line, counted from 0, and its columns."""

    line: int
    start: int
    end: int
    is_box: bool = False


class PlanTask(Struct, frozen=True):
    id: str
    title: str
    status: str
    """Empty if it has none."""
    place: Place | None
    """Where its status is; none if there is no place for it."""
    words: str
    """All of its lines."""


class Update(Struct, frozen=True):
    task: str
    status: str


def tasks_of(plan: str) -> tuple[PlanTask, ...]:
    """The tasks, each once: where an id occurs again, the one with a status counts."""
    found: dict[str, PlanTask] = {}
    for task in _Plan(plan).tasks():
        known = found.get(task.id.casefold())
        if known is None or (known.place is None and task.place is not None):
            found[task.id.casefold()] = task
        if len(found) == MAX_TASKS:
            break
    return tuple(found.values())


def updates_in(dev_plan: str) -> tuple[Update, ...]:
    """The changes that a decision asks for; anything else that it says about the plan is only recorded."""
    found = (one for one in _UPDATE.finditer(dev_plan) if not one["negated"])
    return tuple(Update(one["id"].rstrip("."), one["quoted"] or one["status"]) for one in islice(found, MAX_UPDATES))


def apply_update(plan: str, update: Update, done: Collection[str]) -> str | None:
    """The plan with the status changed, and nothing else; none if it has no such task, or no place for the status.

    Args:
        done: Statuses that mean that a task is done.
    """
    wanted = update.task.casefold()
    place = next((task.place for task in tasks_of(plan) if task.id.casefold() == wanted), None)
    if place is None:
        return None
    lines = plan.split("\n")
    line, status = lines[place.line], update.status
    if place.is_box:
        is_done = status.upper() in (word.upper() for word in done)
        if not is_done and line[place.start] == " " and status.upper() not in ("TODO", "OPEN"):
            return None  # it is clear already, and the status would be nowhere
        status = "x" if is_done else " "
    elif place.start == place.end and line[place.start - 1] == ":":
        status = f" {status}"
    lines[place.line] = f"{line[: place.start]}{status}{line[place.end :]}"
    return "\n".join(lines)


def words_about(plan: str, task: str) -> str:
    """The lines of every task of the plan that a text names."""
    named = [one.words for one in tasks_of(plan) if re.search(rf"(?<![\w-]){re.escape(one.id)}(?![\w-])", task)]
    return "\n".join(named)


class _Plan:
    def __init__(self, text: str) -> None:
        self._lines = [line.rstrip("\r")[:MAX_WIDTH] for line in text.split("\n", MAX_LINES)[:MAX_LINES]]
        self._hide_fences()
        self._tables = tables_in(self._lines)
        self._levels = [_level(line) for line in self._lines]
        self._statuses = {number: found for number, one in enumerate(self._lines) if (found := _plan_STATUS.match(one))}

    def _hide_fences(self) -> None:
        fence = ""
        for number, line in enumerate(self._lines):
            found = _FENCE.match(line)
            if fence or found:
                self._lines[number] = ""
            if found and (not fence or fence == found[1]):
                fence = "" if fence else found[1]

    def tasks(self) -> Iterator[PlanTask]:
        in_task = False
        """Below a heading that is a task."""
        for number, line in enumerate(self._lines):
            if line.startswith("|"):
                if (table := self._tables.get(number)) and (row := self._row(table, number, in_task)):
                    yield row
                continue
            is_heading = line.startswith("#")
            found = _ITEM.match(line)
            if is_heading:
                in_task = False
            if found is None:
                continue
            task = self._item(found, number, in_task)
            if task:
                in_task = in_task or is_heading
                yield task

    def _item(self, found: "re.Match[str]", number: int, in_task: bool) -> PlanTask | None:
        is_heading, own = found["mark"].startswith("#"), _own_place(found, number)
        end = self._end(number, found)
        place = own or self._status_below(found, range(number + 1, end))
        if place is None and (found["numbered"] or (not is_heading and (in_task or not found["colon"]))):
            return None
        if found["numbered"] and not is_heading:
            return None
        words = "\n".join(self._lines[number:end])
        title = _OWN_STATUS.sub("", found["title"]).strip(" \t*_`-–—|,;，；")
        return PlanTask(found["id"] or found["numbered"], title, self._text(place), place, words)

    def _end(self, number: int, found: "re.Match[str]") -> int:
        """The line after the last one that belongs to an item."""
        level = HEADING if found["mark"].startswith("#") else self._levels[number]
        levels = self._levels
        return next((later for later in range(number + 1, len(levels)) if levels[later] <= level), len(levels))

    def _status_below(self, found: "re.Match[str]", block: range) -> Place | None:
        """The first line `status: X` of an item; of a heading only if no task in a list comes before it."""
        where = next((number for number in block if number in self._statuses), None)
        if where is None:
            return None
        if found["mark"].startswith("#"):
            for number in range(block.start, where):
                item = _ITEM.match(self._lines[number])
                if item and not item["numbered"] and self._item(item, number, in_task=True):
                    return None
        return Place(where, *self._statuses[where].span("status"))

    def _row(self, table: Table, number: int, in_task: bool) -> PlanTask | None:
        cells = cells_of(self._lines[number])
        found = _CELL_ID.match(cells[0].text) if cells else None
        if found is None or table.is_head(number):
            return None
        place = None
        if table.status is not None and table.status < len(cells):
            cell = cells[table.status]
            place = Place(number, cell.start, cell.end)
        if place is None and in_task:
            return None
        title = next((cell.text for column, cell in enumerate(cells[1:], 1) if column != table.status), "")
        return PlanTask(found["id"], title.strip("*_` "), self._text(place), place, self._lines[number])

    def _text(self, place: Place | None) -> str:
        if place is None:
            return ""
        text = self._lines[place.line][place.start : place.end]
        if place.is_box:
            return "TODO" if text == " " else "DONE"
        return re.sub(r"^[^\w]+", "", text).strip()


def _level(line: str) -> int:
    if line.startswith("#"):
        return HEADING
    found = _LIST.match(line)
    return len(found[1].expandtabs(4)) if found else TEXT


def _own_place(found: "re.Match[str]", number: int) -> Place | None:
    own = _OWN_STATUS.search(found.string, found.start("title")) if found["title"] else None
    if own:
        return Place(number, *own.span("status"))
    return Place(number, *found.span("box"), is_box=True) if found["box"] else None
