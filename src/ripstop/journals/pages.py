"""Pages of lists, the same for every store: how large they can be, what a cursor is, and which rows a filter wants."""

from ripstop.engine.ports import MAX_PAGE, DeskQuery, Question, RunInfo, RunQuery
from ripstop.kernel.errors import UsageError
from ripstop.kernel.questions import kind_of


def page_size(size: int) -> int:
    if not 1 <= size <= MAX_PAGE:
        raise UsageError(f"A page has 1 to {MAX_PAGE} rows, not {size}.")
    return size


def number_cursor(cursor: str) -> int:
    """The number that a cursor holds; 0 at the beginning."""
    if cursor and not (cursor.isascii() and cursor.isdigit() and len(cursor) < 19):
        raise UsageError(f"{cursor[:40]!r} is not a cursor that this journal gave.")
    return int(cursor or 0)


def place_cursor(cursor: str) -> tuple[int, int, int]:
    """The three numbers that a place on the desk is known by: forks share a question's record and its number."""
    if not cursor:
        return 0, 0, 0
    parts = [number_cursor(part) for part in cursor.split(".", 3) if part]
    if len(parts) != 3:
        raise UsageError(f"{cursor[:40]!r} is not a cursor that this journal gave.")
    return parts[0], parts[1], parts[2]


def is_wanted_run(query: RunQuery, info: RunInfo) -> bool:
    """Whether a run passes every filter; where a page begins is another matter."""
    return (
        (not query.statuses or info.status in query.statuses)
        and (not query.styles or info.style in query.styles)
        and (query.text in info.run_id or query.text in info.gist)
        and (query.parent is None or (info.parent or "") == query.parent)
        and query.root in ("", info.root)
        and info.updated >= query.since
    )


def is_wanted_question(query: DeskQuery, question: Question) -> bool:
    """Whether a question passes the filters that need the question itself."""
    ask = question.command
    return (
        (query.to is None or ask.to in ("", query.to))
        and query.purpose in ("", ask.purpose)
        and query.kind in ("", kind_of(ask))
    )
