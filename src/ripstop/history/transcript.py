"""A conversation as those see it who operate it: what was said, and what happened in between, in order.

Only of styles that tell others of their runs (`Style.notices`); what is silent to users is marked as such.
"""

from typing import Any, Literal

from msgspec import Struct

from ripstop.engine.engine import Engine
from ripstop.engine.ports import text_in
from ripstop.kernel.effects import PersonAnswered, SetTimer
from ripstop.kernel.events import Answered, Asked, Heard, Record, Withdrawn
from ripstop.kernel.run import Run
from ripstop.kernel.style import Notice, Style

MOST_RECORDS = 600
"""Records of one page of a conversation."""
DESK = "desk"
"""The channel on which people at the desk speak."""


class SpokenMessage(Struct, frozen=True):
    number: int
    at: int
    side: Literal["user", "bot", "desk"]
    by: str
    text: str
    kind: str = ""
    """What kind of message the run says it is, such as `greeting`."""


class TalkEvent(Struct, frozen=True):
    """Something that happened between messages: a status, an action, a timer, or that a person took it."""

    number: int
    at: int
    kind: str
    data: dict[str, Any]
    silent: bool = False


class TalkPage(Struct, frozen=True):
    entries: tuple[SpokenMessage | TalkEvent, ...]
    before: int
    """The number of the first record of the page; what is before it is on an earlier one. 1: nothing is."""


async def talk_page(engine: Engine, run: Run[Any], before: int | None = None, after: int = 0) -> TalkPage:
    """The last messages and events of a conversation, or those before or after a record."""
    end = min(before or run.length + 1, run.length + 1)
    start = max(after, end - 1 - MOST_RECORDS)
    records = await engine.journal.read(run.id, after=start, before=end)
    style = engine.style(run)
    texts = {record.number: record for record in records}
    entries: list[SpokenMessage | TalkEvent] = []
    for record in records:
        entries += await _entries(engine, run.id, style, record, texts)
    return TalkPage(tuple(entries), start + 1)


async def _entries(
    engine: Engine, run_id: str, style: Style[Any], record: Record, texts: dict[int, Record]
) -> list[SpokenMessage | TalkEvent]:
    event, number, at = record.event, record.number, record.at
    if isinstance(event, Heard) and event.channel != DESK:
        return [SpokenMessage(number, at, "user", event.by, event.text)]
    found: list[SpokenMessage | TalkEvent] = []
    for notice in style.audience.public_events(record):
        if notice.kind == "message":
            found.append(await _message(engine, run_id, record, notice, texts))
        else:
            found.append(TalkEvent(number, at, notice.kind, notice.data))
    found += [
        TalkEvent(number, at, notice.kind, notice.data, silent=True)
        for notice in style.audience.operator_events(record)
    ]
    if isinstance(event, Withdrawn) and (name := await _timer_name(engine, run_id, style, event.number)):
        found.append(TalkEvent(number, at, "timer_cancelled", {"name": name, "because": event.because}))
    return found


async def _message(
    engine: Engine, run_id: str, record: Record, notice: Notice, texts: dict[int, Record]
) -> SpokenMessage:
    about = texts.get(notice.about)
    if about is None and notice.about:
        about = (await engine.journal.read(run_id, after=notice.about - 1, most=1))[0]
    kind = str(notice.data.get("kind", ""))
    text = text_in(about) if about else str(notice.data.get("text", ""))
    by = _speaker(about) if about else ""
    return SpokenMessage(record.number, record.at, "desk" if kind == DESK else "bot", by, text, kind)


def _speaker(record: Record) -> str:
    match record.event:
        case Heard(by=by) | Answered(answer=PersonAnswered(by=by)):
            return by
    return ""


async def _timer_name(engine: Engine, run_id: str, style: Style[Any], number: int) -> str:
    """The name of the timer that a withdrawn command was; empty for another command, or one of the style's own."""
    found = await engine.journal.read(run_id, after=number - 1, most=1)
    command = found[0].event.command if found and isinstance(found[0].event, Asked) else None
    is_public = isinstance(command, SetTimer) and bool(style.audience.public_events(found[0]))
    return command.name if isinstance(command, SetTimer) and is_public else ""
