"""The part of a run's timeline that one page shows: turns, records or trouble, never more than a browser can hold.

A page begins at the end of the run. `before=N` shows what came before record N, `at=N` what is around it.
"""

from typing import TYPE_CHECKING, Any

from msgspec import Struct
from starlette.requests import Request

from ripstop.history.narration import in_short, kind_name, sentence
from ripstop.history.outline import Outline, TurnLine
from ripstop.history.timeline import TimelineEntry
from ripstop.kernel.effects import PersonAnswered
from ripstop.kernel.events import Answered, Record
from ripstop.text.translation import Translation

from ..site import query_of

if TYPE_CHECKING:
    from ..site import Site

MOST_TURNS, MOST_RECORDS = 100, 300
"""On one page."""
TURNS, RECORDS, TROUBLE = "turns", "records", "trouble"
SEE = (TURNS, RECORDS, TROUBLE)


class TimelineQuery(Struct, frozen=True):
    """Which part of the timeline an address asks for."""

    see: str = TURNS
    before: int = 0
    at: int = 0
    q: str = ""

    @property
    def is_tail(self) -> bool:
        """Whether it asks for nothing but the end."""
        return not (self.before or self.at or self.q)


class RecordRow(Struct, frozen=True):
    """A record on one line."""

    number: int
    at: int
    kind: str
    """The event's tag."""
    name: str
    """What the event is called."""
    text: str
    by: str
    trouble: bool


class TimelineView(Struct, frozen=True):
    asked: TimelineQuery
    turns: list[TurnLine] = []
    records: list[RecordRow] = []
    found: int = 0
    """How many turns match what is looked for."""
    earlier: int = 0
    """How many turns or records come before the first one that is shown."""
    later: int = 0
    earlier_before: int = 0
    """The `before` of the page with those that come before it."""
    later_before: int = 0
    """The `before` of the page with those that come after it; 0: that is the end of the run."""

    @property
    def is_at_end(self) -> bool:
        return not self.later and not self.asked.q and self.asked.see != TROUBLE


def asked_in(request: Request) -> TimelineQuery:
    given = query_of(request, "see", "before", "at", "q")
    return TimelineQuery(
        see=given["see"] if given["see"] in SEE else TURNS,
        before=number_in(given["before"]),
        at=number_in(given["at"]),
        q=given["q"].strip(),
    )


def number_in(text: str) -> int:
    """A record's number in an address; 0 for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 12 else 0


async def timeline_view(
    site: "Site", run_id: str, outline: Outline, asked: TimelineQuery, translation: Translation
) -> TimelineView:
    if asked.q:
        return _search(outline, asked)
    if asked.see == RECORDS:
        return await _records(site, run_id, outline, asked, translation)
    return _turns(outline, asked)


def _turns(outline: Outline, asked: TimelineQuery) -> TimelineView:
    lines: Any = outline.troubled if asked.see == TROUBLE else outline
    end = len(lines)
    if asked.before:
        end = _first_from(lines, asked.before)
    elif asked.at:
        end = min(end, _first_from(lines, asked.at + 1) + MOST_TURNS // 2)
    start = max(0, end - MOST_TURNS)
    later = len(lines) - end
    return TimelineView(
        asked=asked,
        turns=[*lines[start:end]],
        earlier=start,
        later=later,
        earlier_before=lines[start].first if start else 0,
        later_before=lines[end + MOST_TURNS].first if later > MOST_TURNS else 0,
    )


def _first_from(lines: Any, number: int) -> int:
    """The place of the first line that begins at this record or later."""
    low, high = 0, len(lines)
    while low < high:
        middle = (low + high) // 2
        if lines[middle].first < number:
            low = middle + 1
        else:
            high = middle
    return low


def _search(outline: Outline, asked: TimelineQuery) -> TimelineView:
    wanted = asked.q.casefold()
    found = [line for line in outline if wanted in _text_of(line)]
    return TimelineView(asked=asked, turns=found[-MOST_TURNS:], found=len(found))


def _text_of(line: TurnLine) -> str:
    return "\n".join(
        (line.agent, line.where, line.gist, line.way, line.condition, *line.tools, *map(in_short, line.trouble))
    ).casefold()


async def _records(
    site: "Site", run_id: str, outline: Outline, asked: TimelineQuery, translation: Translation
) -> TimelineView:
    end = outline.records
    if asked.before:
        end = min(end, asked.before - 1)
    elif asked.at:
        end = min(end, asked.at + MOST_RECORDS // 2)
    shown = await site.outlines.window(run_id, before=end + 1, most=MOST_RECORDS, with_prompts=False)
    first = shown[0].record.number if shown else 1
    later = outline.records - end
    return TimelineView(
        asked=asked,
        records=record_rows(outline, shown, translation),
        earlier=first - 1,
        later=later,
        earlier_before=first if first > 1 else 0,
        later_before=end + MOST_RECORDS + 1 if later > MOST_RECORDS else 0,
    )


def record_rows(outline: Outline, entries: list[TimelineEntry], translation: Translation) -> list[RecordRow]:
    return [record_row(outline, entry, translation) for entry in entries]


def record_row(outline: Outline, entry: TimelineEntry, translation: Translation) -> RecordRow:
    record, event = entry.record, entry.record.event
    kind = kind_of(record)
    name, is_bad = kind_name(kind, translation), outline.is_trouble(record)
    text = sentence(outline.style, record, entry.before, entry.run, translation)
    # what the event is called is shown before the text, and need not be in it, too
    text = text.removeprefix(f"{kind} ") if name == kind else text.removeprefix(name).lstrip()
    said = event.answer if isinstance(event, Answered) else event
    by = said.by if isinstance(said, PersonAnswered) else getattr(event, "by", "") or getattr(event, "agent", "")
    return RecordRow(record.number, record.at, kind, name, text, str(by), is_bad)


def kind_of(record: Record) -> str:
    return str(type(record.event).__struct_config__.tag)
