"""The plan: a Markdown file in which tasks have ids and statuses. All else in it is free.

- A task is a heading, a list item or a row of a table that begins with an id: letters with a digit somewhere, such as
  `M1-T1`, `CH-3` or `T2`; also `任务1` and `第1章`. A heading with a number alone (`1.1`) is one if it has a status.
- A list item needs a colon after the id, or a status of its own. Below a heading that is a task it needs the latter,
  because what a task depends on is listed there, too.
- Its status is a line `status: X` below it; or at the end of its own line (`… (status: X)`); or a check box; in a table
  the cell below `Status`. Nothing else that says "status:" counts, and nothing within a code fence.
- A status is the whole text in its place, except for a date and marks after it: `DONE (not verified)` is not `DONE`.
- `update <id> status to <STATUS>` in MAIN's `dev_plan` changes exactly that text, with what stands behind it; several
  ids can be named. What speaks of such an update in other words changes nothing, and is found, too. A box is
  ticked only if the new status means that the task is done; for any other one it is clear, and cannot say more.
- A plan can be long or hostile: only so many lines, columns, tasks and updates of a decision are looked at.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from ripstop.text.markdown import blocks, cells_of, heading_of, item_of

_RULE = re.compile(r"^\|?[ \t:|-]*-[ \t:|-]*\|?$")
_STATUS_COLUMN = re.compile(r"(?i)^[*_`]*(?:status|state|状态)[*_`]*$")
MAX_TASKS, MAX_UPDATES, MAX_LINES = 1000, 100, 20_000
MAX_AGAIN = 100
"""Other places of one id that are looked at."""
MAX_WIDTH = 2000
"""Characters of a line that are looked at."""
_ID = r"(?=[A-Za-z_.-]{0,40}\d)[A-Za-z][A-Za-z0-9_.-]{0,60}|任务\d{1,4}|第\d{1,4}[章节回]"
_ITEM = re.compile(
    r"^(?P<indent>[ \t]*)(?P<mark>\#{1,6}|[-*+]|\d{1,4}[.)])[ \t]+(?:\[(?P<box>[ xX])\][ \t]*)?[*_`]*"
    rf"(?:(?:[Tt]ask|任务)[ \t]+)?\[?(?:(?P<id>{_ID})|(?P<numbered>\d{{1,3}}(?:\.\d{{1,3}}){{0,4}}))\]?"
    r"(?=[*_`]*(?:[:：\s)(（]|$))[*_`]*(?P<colon>[:：])?[*_`]*[ \t]*(?P<title>.*)$"
)
_CELL_ID = re.compile(rf"[*_`\[]*(?P<id>{_ID})[*_`\]]*$")
_STATUS_LINE = re.compile(
    r"^(?P<indent>[ \t]*)(?P<mark>[-*+][ \t]+)?[*_`]*(?:status|状态)[*_`]*[ \t]*[:：][*_`]*[ \t]*[*`]*"
    r"(?P<status>[^(（,，;；|#。.*`]*?)[ \t]*(?=[(（,，;；|#。.*`]|$)[*`]*(?P<more>.*?)[ \t]*$",
    re.IGNORECASE,
)
_OWN_STATUS = re.compile(
    r"[(（\[,，;；|—–-][ \t]*(?:status|状态)[ \t]*[:：][ \t]*(?P<status>[\w-]+(?: [\w-]+)?)"
    r"(?P<more>[ \t]*(?:[(（][^)）\]]{0,200}[)）]|[,，;；|—–][^)）\]]{0,200}))?[ \t]*[)）\]]?[ \t]*$",
    re.IGNORECASE,
)
_DATE = re.compile(
    r"(?<![^\W_])\d{4}(?:[-/.]\d{1,2}[-/.]\d{1,2}|年\d{1,2}月\d{1,2}日)(?:[ T]\d{1,2}:\d{2}(?::\d{2})?Z?)?$"
)
_LONGEST_DATE = 30
_NAMED = r"[`'\"*]{0,3}[\w.-]+[`'\"*]{0,3}"
_UPDATE = re.compile(
    r"(?i)(?P<negated>\b(?:not|never|don't)\s+)?\bupdate\s+(?:(?:the\s+)?tasks?\s+)?"
    rf"(?P<ids>{_NAMED}(?:(?:\s*[,，、]\s*(?:and\s+)?|\s+(?:and|&)\s+){_NAMED}){{0,19}})\s+status(?:es)?\s+to\s+"
    r"(?:(?P<quote>\*{1,3}|[`'\"])(?P<quoted>[^`'\"*\n]{1,40})(?P=quote)|(?P<status>in[ \t]progress\b|"
    r"(?-i:[A-Z][A-Z0-9_-]*(?:[ \t](?!(?:AND|BUT|OR|THEN|UPDATE)\b)[A-Z][A-Z0-9_-]+\b){1,2})|[a-z][a-z0-9_-]*|[\w-]+))"
)
"""Without quotes, a status of several words is recognised if all of them are in capitals; `in progress` always."""
_MENTION = re.compile(r"(?i)\bupdate\b(?:(?!\bupdate\b)[^\n;；。]){0,100}?\bstatus(?:es)?\b")
_BEFORE_ID, _AFTER_ID = r"(?<![A-Za-z0-9_.-])", r"(?![A-Za-z0-9_-]|\.[A-Za-z0-9])"
TICKED = "DONE"
"""The status of a task whose box is ticked."""
HEADING, TEXT = -1, 1 << 30
"""The level of a heading, and of a line that is not an item; the level of an item is its indentation."""


class Place(Struct, frozen=True):
    """Where the text of a status is: the line, counted from 0, and its columns."""

    line: int
    start: int
    end: int
    is_box: bool = False
    more: tuple[int, int] = (0, 0)
    """What stands behind it, and belongs to it."""


class PlanTask(Struct, frozen=True):
    id: str
    title: str
    status: str
    """Empty if it has none."""
    place: Place | None
    """Where its status is; none if there is no place for it."""
    words: str
    """All of its lines."""
    others: tuple[tuple[str, Place], ...] = ()
    """Where the plan has the id again with a status: that, and its place."""


class Update(Struct, frozen=True):
    task: str
    status: str


class Table(Struct, frozen=True):
    """Lines that begin with `|`; the second one is a rule, and the first one the head."""

    first: int
    status: int | None
    """The column below `Status`; none if there is no such column."""

    def is_head(self, number: int) -> bool:
        return number < self.first + 2


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
            status = next((column for column, head in enumerate(heads) if _STATUS_COLUMN.match(head)), None)
            found.update(dict.fromkeys(range(number, end), Table(number, status)))
        number = end
    return found


def tasks_of(plan: str) -> tuple[PlanTask, ...]:
    """The tasks, each once. Where an id occurs again, the first one with a status counts, and keeps that of the others:
    it may be the same task in a table, or a second one, which nobody may overlook.
    """
    found: dict[str, PlanTask] = {}
    for task in _Plan(plan).tasks():
        name = task.id.casefold()
        known = found.get(name)
        if known is None or (known.place is None and task.place is not None):
            found[name] = task
        elif task.place is not None and known.place != task.place and len(known.others) < MAX_AGAIN:
            found[name] = replace(known, others=(*known.others, (task.status, task.place)))
        if len(found) == MAX_TASKS:
            break
    return tuple(found.values())


def updates_in(dev_plan: str) -> tuple[Update, ...]:
    """The changes that a decision asks for; anything else that it says about the plan is only recorded."""
    found = (
        Update(task.strip("`'\"*").rstrip("."), one["quoted"] or one["status"])
        for one in _UPDATE.finditer(dev_plan)
        if not one["negated"]
        for task in re.findall(_NAMED, one["ids"])
        if task.casefold() != "and"
    )
    return tuple(islice(found, MAX_UPDATES))


def unread_updates(dev_plan: str) -> tuple[str, ...]:
    """Where a decision speaks of an update of a status in words that are not carried out."""
    read = {one.end("negated") if one["negated"] else one.start() for one in _UPDATE.finditer(dev_plan)}
    unread = (one[0] for one in _MENTION.finditer(dev_plan) if one.start() not in read)
    return tuple(islice(unread, MAX_UPDATES))


def apply_update(
    plan: str, update: Update, done: Collection[str], tasks: Sequence[PlanTask] | None = None
) -> str | None:
    """The plan with the status changed, wherever it has the task, and nothing else; none if it has no such task, or no
    place for the status.

    Args:
        done: Statuses that mean that a task is done.
        tasks: Those of the plan, if they are known; otherwise it is read.
    """
    wanted = update.task.casefold()
    found = tasks_of(plan) if tasks is None else tasks
    task = next((one for one in found if one.id.casefold() == wanted), None)
    if task is None or task.place is None:
        return None
    lines = plan.split("\n")
    places = [task.place, *(place for _, place in task.others)]
    changed = [_change_status(lines, place, update.status, done) for place in places]
    return "\n".join(lines) if any(changed) else None


def _change_status(lines: list[str], place: Place, status: str, done: Collection[str]) -> bool:
    """Change the text of one status; false if it is a box, and the status would be nowhere."""
    line = lines[place.line]
    if place.is_box:
        is_done = status.upper() in (word.upper() for word in done)
        if not is_done and line[place.start] == " " and status.upper() not in ("TODO", "OPEN"):
            return False  # it is clear already
        status = "x" if is_done else " "
    elif place.start == place.end and line[place.start - 1] == ":":
        status = f" {status}"
    more, end = place.more if place.more[1] else (place.end, place.end)
    lines[place.line] = f"{line[: place.start]}{status}{line[place.end : more]}{line[end:]}"
    return True


def apply_updates(
    plan: str, updates: Sequence[Update], done: Collection[str], tasks: Sequence[PlanTask] | None = None
) -> tuple[str, tuple[Update, ...]]:
    """The plan with all statuses changed for which it has a place, and the updates for which it has none."""
    unplaced = []
    for update in updates:
        updated = apply_update(plan, update, done, tasks)
        if updated is None:
            unplaced.append(update)
        else:
            plan, tasks = updated, None  # the places behind it may have moved
    return plan, tuple(unplaced)


def words_about(tasks: Sequence[PlanTask], text: str) -> str:
    """The lines of every task that a text names."""
    return "\n".join(one.words for one in tasks_named(tasks, text))


def tasks_named(tasks: Sequence[PlanTask], text: str) -> tuple[PlanTask, ...]:
    """The tasks whose ids are in a text; `T1` is not in `T10`, `M1-T1` or `T1.5`, but in `完成T1。`."""
    return tuple(one for one in tasks if re.search(rf"(?i){_BEFORE_ID}{re.escape(one.id)}{_AFTER_ID}", text))


def task_of_heading(line: str) -> str:
    """The id of a task that a heading begins with; empty if it has none."""
    found = _ITEM.match(line)
    return found["id"] or "" if found and found["mark"].startswith("#") else ""


def is_in_state(task: PlanTask, statuses: Collection[str], done: Collection[str]) -> bool:
    """Whether the status of a task is one of these, wherever the plan has it. A ticked box has one of those that mean
    that it is done.
    """
    wanted = {one.casefold() for one in statuses}
    ticked = not wanted.isdisjoint(one.casefold() for one in done)

    def is_wanted(status: str, place: Place | None) -> bool:
        return status == TICKED and ticked if place is not None and place.is_box else status.casefold() in wanted

    return is_wanted(task.status, task.place) and all(is_wanted(*one) for one in task.others)


def status_of(task: PlanTask) -> str:
    """Its status, in words; with those of other places if they differ."""
    differing = dict.fromkeys((task.status, *(status for status, _ in task.others)))
    return " and ".join(differing) if len(differing) > 1 else task.status


class _Plan:
    def __init__(self, text: str) -> None:
        self._lines = [line.rstrip("\r")[:MAX_WIDTH] for line in text.split("\n", MAX_LINES)[:MAX_LINES]]
        # a task is one at any indentation, so an example is one, too
        for block in blocks(self._lines, any_indent=True):
            self._lines[block.start : block.end] = [""] * (block.end - block.start)
        self._tables = tables_in(self._lines)
        self._levels = [_level(line) for line in self._lines]
        self._statuses = {
            number: found
            for number, one in enumerate(self._lines)
            if (":" in one or "：" in one) and (found := _STATUS_LINE.match(one))  # found faster than the pattern fails
        }

    def tasks(self) -> Iterator[PlanTask]:
        in_task = False
        """Below a heading that is a task."""
        for number, line in enumerate(self._lines):
            if line.startswith("|"):
                if (table := self._tables.get(number)) and (row := self._row(table, number, in_task)):
                    yield row
                continue
            level = self._levels[number]
            if level == HEADING:
                in_task = False
            found = _ITEM.match(line) if level != TEXT else None
            if found is None:
                continue
            task = self._item(found, number, in_task)
            if task:
                in_task = in_task or level == HEADING
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
                item = _ITEM.match(self._lines[number]) if self._levels[number] != TEXT else None
                if item and not item["numbered"] and self._item(item, number, in_task=True):
                    return None
        found_there = self._statuses[where]
        return Place(where, *found_there.span("status"), more=_more(found_there))

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
        text = self._lines[place.line][place.start : place.more[1] or place.end]
        if place.is_box:
            return "TODO" if text == " " else TICKED
        return _bare(re.sub(r"^[^\w]+", "", text))


def _bare(text: str) -> str:
    """A status without what may stand behind it: a date, and marks. With anything else it is another status."""
    bare = _without_marks(text)
    while found := _DATE.search(bare[-_LONGEST_DATE:]):
        bare = _without_marks(bare[: -len(found[0])])
    return bare if bare and not re.search(r"[(（\[]", bare) else re.sub(r"[*`]", "", text).strip()


def _without_marks(text: str) -> str:
    end = len(text)
    while end and not text[end - 1].isalnum():
        end -= 1
    return text[:end]


def _level(line: str) -> int:
    if "#" in line and heading_of(line):
        return HEADING
    item = item_of(line)
    return item.indent if item else TEXT


def _more(found: "re.Match[str]") -> tuple[int, int]:
    return found.span("more") if found["more"] else (0, 0)


def _own_place(found: "re.Match[str]", number: int) -> Place | None:
    own = _OWN_STATUS.search(found.string, found.start("title")) if found["title"] else None
    if own:
        return Place(number, *own.span("status"), more=_more(own))
    return Place(number, *found.span("box"), is_box=True) if found["box"] else None
