"""Lists of a journal: runs, questions, documents and steps, page by page.

Every page is found by an index or by walking along a key, so it costs the same however long the list is; a filter costs
at most one pass over the list of runs. Nothing is handed out that is not of its type: SQLite lets anything be in any
column.
"""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from ripstop.engine.ports import DeskQuery, Moved, Page, Question, RunInfo, RunQuery, Tombstone
from ripstop.kernel.codec import Codec
from ripstop.kernel.effects import AskPerson
from ripstop.kernel.events import Asked, Record

from ..pages import is_wanted_question, is_wanted_run, number_cursor, page_size, place_cursor
from .file import BoundedConnection
from .schema import is_count, is_time
from .sql import queries

ALL_ROWS = -1
BEHIND_EVERY_KEY = 2.0**63
"""More than the highest key that SQLite has: a crafted journal could hide a run behind any whole number."""
MOST_SCANNED = 5000
"""Questions that are looked through for one page; if a filter leaves most of them out, the page is short."""
Expect = Callable[[bool, str], None]
INFO = RunInfo.__struct_fields__


class SqliteLists:
    def __init__(self, db: BoundedConnection, codec: Codec, expect: Expect) -> None:
        self._db = db
        self._codec = codec
        self._expect = expect
        self._sql = queries()

    def runs(self, query: RunQuery) -> Page[RunInfo]:
        size = page_size(query.size)
        found: list[tuple[int, RunInfo]] = []
        for row in self._rows(query, size + 1):
            info = self._info(row)
            if not _is_family(query) or is_wanted_run(query, info):
                found.append((row[0], info))
            if len(found) > size:
                break
        page = found[:size]
        return Page([info for _, info in page], str(page[-1][0]) if len(found) > size else "")

    def _rows(self, query: RunQuery, size: int) -> Iterator[tuple[Any, ...]]:
        """The rows that pass every filter; or all of one family, which are few."""
        before = number_cursor(query.cursor) or BEHIND_EVERY_KEY
        if query.parent:
            return self._db.rows(self._sql["children"], {"before": before, "parent": query.parent})
        if query.root:
            return self._db.rows(self._sql["family"], {"before": before, "root": query.root})
        return self._all("runs", query, {"before": before, "size": size})

    def _all(self, name: str, query: RunQuery, given: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
        """The rows of a query over all runs, with the filters that are wanted: each costs something for every row."""
        wanted = _filters(query)
        filters = " ".join(self._sql[f"filter_{filter_}"] for filter_ in wanted)
        return self._db.rows(self._sql[name].replace("/* filters */", filters), {**given, **wanted})

    def run(self, run_id: str) -> RunInfo | None:
        row = next(self._db.rows(self._sql["run"], (run_id,)), None)
        return self._info(row) if row else None

    def forks(self, run_id: str) -> list[RunInfo]:
        return [self._info(row) for row in self._db.rows(self._sql["forks"], (run_id,))]

    def counts(self, query: RunQuery) -> dict[str, int]:
        if not _is_family(query):
            return dict(self._all("counts", query, {"before": BEHIND_EVERY_KEY}))
        found: dict[str, int] = {}
        for info in map(self._info, self._rows(query, ALL_ROWS)):
            if is_wanted_run(query, info):
                found[info.status] = found.get(info.status, 0) + 1
        return found

    def _info(self, row: tuple[Any, ...]) -> RunInfo:
        told = dict(zip(INFO, row[1:], strict=True))
        told["set_aside"] = told["set_aside"] or ""
        if told["set_aside"]:
            told["status"] = "set_aside"
        try:
            return msgspec.convert(told, RunInfo)
        except msgspec.ValidationError:
            self._expect(False, "a row in the list of runs")
            raise

    def desk(self, query: DeskQuery) -> Page[Question]:
        size, after = page_size(query.size), place_cursor(query.cursor)
        name = "desk_of" if query.root else "desk"
        given = {"record": after[0], "number": after[1], "run": after[2], "root": query.root, "size": MOST_SCANNED}
        found: list[Question] = []
        place, scanned = after, 0
        for row in self._db.rows(self._sql[name], given):
            question = self._question(row)
            if is_wanted_question(query, question):
                if len(found) == size:
                    return Page(found, _cursor(place))
                found.append(question)
            place, scanned = row[:3], scanned + 1
        return Page(found, _cursor(place) if scanned == MOST_SCANNED else "")

    def _question(self, row: tuple[Any, ...]) -> Question:
        record, number, key, run_id, style, first, at, body = row
        typed = isinstance(run_id, str) and isinstance(style, str) and isinstance(body, (str, bytes))
        numbers = is_count(record) and is_count(key) and is_count(number) and is_count(first) and is_time(at)
        self._expect(typed and numbers, "a question on the desk")
        asked = self._codec.load_one(body, number - first)
        self._expect(isinstance(asked, Asked) and isinstance(asked.command, AskPerson), "a question on the desk")
        assert isinstance(asked, Asked) and isinstance(asked.command, AskPerson)
        return Question(run_id=run_id, number=number, at=at, command=asked.command, style=style)

    def desk_count(self) -> int:
        return int(next(self._db.rows(self._sql["desk_count"]))[0])

    def documents(self, collection: str, cursor: str, size: int) -> Page[tuple[str, bytes]]:
        size = page_size(size)
        found = []
        for key, body in self._db.rows(self._sql["documents"], (collection, cursor, size + 1)):
            self._expect(isinstance(key, str) and isinstance(body, bytes), "a document")
            found.append((key, body))
        return Page(found[:size], found[size - 1][0] if len(found) > size else "")

    def since(self, cursor: str, most: int) -> list[Moved]:
        found = []
        for position, run_id, first, at, body in self._db.rows(
            self._sql["since"], (number_cursor(cursor), page_size(most))
        ):
            typed = isinstance(run_id, str) and isinstance(body, (str, bytes)) and is_count(first) and is_time(at)
            self._expect(typed, "a record")
            records = [Record(number, at, event) for number, event in enumerate(self._codec.load_step(body), first)]
            found.append(Moved(cursor=str(position), run_id=run_id, records=records))
        return found

    def tombstones(self, only: str = "") -> list[Tombstone]:
        """Of all runs that were forgotten, or of one."""
        rows = self._db.rows(self._sql["tombstone"], (only,)) if only else self._db.rows(self._sql["tombstones"])
        found = []
        for run_id, at, status, length in rows:
            typed = isinstance(run_id, str) and isinstance(status, str) and is_time(at) and is_count(length)
            self._expect(typed, "a tombstone")
            found.append(Tombstone(run_id=run_id, at=at, status=status, length=length))
        return found


def _cursor(place: tuple[Any, ...]) -> str:
    return ".".join(map(str, place))


def _is_family(query: RunQuery) -> bool:
    return bool(query.parent or query.root)


def _filters(query: RunQuery) -> dict[str, Any]:
    """The filters that are wanted, with their values; those first that leave most out."""
    encode = msgspec.json.encode
    values = {
        "since": query.since or None,
        "text": query.text or None,
        "parentless": 1 if query.parent == "" else None,
        "styles": encode(query.styles).decode() if query.styles else None,
        "statuses": encode(query.statuses).decode() if query.statuses else None,
    }
    return {name: value for name, value in values.items() if value is not None}
