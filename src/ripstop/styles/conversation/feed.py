"""A session as it happens: what each side says, statuses, visible actions, and words while they are written."""

from collections.abc import AsyncIterator
from typing import Any, Literal

from msgspec import Struct

from ripstop.app.application import App
from ripstop.engine.engine import Engine
from ripstop.engine.live import Token
from ripstop.engine.ports import text_in
from ripstop.kernel.effects import PersonAnswered
from ripstop.kernel.events import Answered, Heard, Record
from ripstop.kernel.parts import Timer, Timers
from ripstop.kernel.run import Run
from ripstop.kernel.style import Notice, Style

from .drafts import DecisionDraft
from .folding import DESK_CHANNEL
from .state import SessionState

# The words for the user in replies that a model is still writing.


class DraftWords:
    def __init__(self) -> None:
        self._number = self._attempt = 0
        self._draft = DecisionDraft()
        self._has_words = False
        self.begins = False
        """Whether the last piece has the first words of an answer."""

    def words(self, token: Token) -> str:
        """The words in a piece; empty for a late piece of an attempt that was given up."""
        self.begins = False
        if (token.number, token.attempt) < (self._number, self._attempt):
            return ""
        if (token.number, token.attempt) != (self._number, self._attempt):
            self._number, self._attempt = token.number, token.attempt
            self._draft, self._has_words = DecisionDraft(), False
        words = self._draft.add(token.text)
        self.begins = bool(words) and not self._has_words and self._draft.status == "typing"
        self._has_words = self._has_words or bool(words)
        return words


Side = Literal["user", "bot", "desk"]
SIDES: dict[str, Side] = {"user": "user", "desk": "desk"}


class SpokenLine(Struct, frozen=True):
    """What one side has said."""

    number: int
    side: Side
    by: str
    """Who, if that is known."""
    kind: str
    """What kind of message it is, such as `greeting`; empty for a user's."""
    text: str


class DraftPiece(Struct, frozen=True):
    """Words of a reply that is still being written. A piece with another key begins another draft."""

    key: tuple[int, int]
    text: str


FeedItem = SpokenLine | DraftPiece | Notice
"""A `Notice` is a status, an action, a timer, or that a person has taken the conversation; never a message."""


class SessionNow(Struct, frozen=True, kw_only=True):
    """Where a session is at this moment."""

    name: str
    """What users know the bot as."""
    status: str
    in_pass: bool
    closed: bool
    asks: bool
    """A flow has asked the user something."""
    taken_by: str
    handed_to: str
    """Who is asked while no person has taken it."""
    timers: tuple[Timer, ...]
    length: int
    ended: str
    """How the run ended, and why; empty while it goes on."""


def session_now(engine: Engine, run: Run[SessionState]) -> SessionNow:
    state = run.state
    parts = engine.style(run).view.parts(run)
    return SessionNow(
        name=state.plan.name if state.plan else str(state.definition.config.get("name") or state.definition.name),
        status=state.status,
        in_pass=state.in_pass,
        closed=state.closed,
        asks=bool(state.asking),
        taken_by=state.taken_by,
        handed_to=state.definition.handoff_to,
        timers=tuple(timer for part in parts if isinstance(part, Timers) for timer in part.timers),
        length=run.length,
        ended=f"{run.ended.outcome}: {run.ended.because}" if run.ended else "",
    )


def spoken_before(run: Run[SessionState]) -> list[SpokenLine]:
    """What was said until now, the last lines of it."""
    lines = [line for line in run.state.lines if line.speaker != "result"]
    return [SpokenLine(one.number, SIDES.get(one.speaker, "bot"), one.by, "", one.text) for one in lines]


async def feed(app: App, run_id: str, after: int) -> AsyncIterator[FeedItem | Record]:
    """What happens to a session after a record, until its run ends. Every record comes after what it brought."""
    engine = app.engine
    run = (await engine.look(run_id)).run
    style = engine.style(run)
    draft = DraftWords()
    async for one in app.follow(run_id, after):
        if isinstance(one, Record):
            for item in await _items(engine, style, run_id, one):
                yield item
            yield one
        elif isinstance(one, Token) and (words := draft.words(one)):
            yield DraftPiece((one.number, one.attempt), words)


async def _items(engine: Engine, style: Style[Any], run_id: str, record: Record) -> list[FeedItem]:
    event = record.event
    if isinstance(event, Heard) and event.channel != DESK_CHANNEL:
        return [SpokenLine(record.number, "user", event.by, "", event.text)]
    found: list[FeedItem] = []
    for notice in style.audience.public_events(record):
        if notice.kind != "message":
            found.append(notice)
            continue
        about = (await engine.journal.read(run_id, after=notice.about - 1, most=1))[0] if notice.about else None
        text = text_in(about) if about else str(notice.data.get("text", ""))
        by = _speaker(about) if about else ""
        kind = str(notice.data.get("kind", ""))
        found.append(SpokenLine(record.number, "desk" if kind == DESK_CHANNEL else "bot", by, kind, text))
    return found


def _speaker(record: Record) -> str:
    match record.event:
        case Heard(by=by) | Answered(answer=PersonAnswered(by=by)):
            return by
    return ""
