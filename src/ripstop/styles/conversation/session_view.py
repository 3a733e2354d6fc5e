"""A session as faces show it: what was said and done since a record, its status, its timers, its cost."""

from typing import Any

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from ripstop.engine.engine import Engine, View
from ripstop.engine.ports import text_in
from ripstop.history.timeline import iso
from ripstop.kernel.effects import AgentReplied, AskAgent, RunFinished, Usage
from ripstop.kernel.events import Answered, Asked, Event, Heard, Record
from ripstop.kernel.parts import Timers
from ripstop.kernel.run import Run
from ripstop.kernel.style import Style

from .events import SUPERSEDED, ActionFailed, IterationDecided, PassBegan, StatusChanged
from .folding import DESK_CHANNEL

MOST_RECORDS = 2_000
"""Records that a view is made of at most; the newest."""
LOOK_BACK = 500
"""Records in which the beginning of a pass is looked for."""
UNASKED = ("timer", "desk")
"""Kinds of messages that do not answer the pass they are in."""
USER = "user"
"""The kind of a message that the user has sent."""


class SaidMessage(Struct, frozen=True):
    kind: str
    text: str
    id: str = ""
    """`run/record`; the same in the stream of events."""
    answers: tuple[str, ...] = ()
    """The ids of the user's messages that it answers."""
    sent_as: str | UnsetType = UNSET
    """Of a message of the user: the id that its sender gave it."""


class ShownAction(Struct, frozen=True, omit_defaults=True):
    type: str
    target: str
    visible: bool
    failed: bool = False


class ShownTimer(Struct, frozen=True):
    name: str
    due: str


class SessionUsage(Struct, frozen=True):
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    money: float = 0.0


class SessionView(Struct, frozen=True, kw_only=True):
    run: str
    session: str
    status: str
    messages: tuple[SaidMessage, ...] = ()
    actions: tuple[ShownAction, ...] = ()
    timers: tuple[ShownTimer, ...] = ()
    usage: SessionUsage = SessionUsage()
    waits_for_person: bool = False
    """A person has the conversation, or is asked about something in it."""
    closed: bool = False
    because: str | UnsetType = UNSET
    """Why the last pass was broken off, if it was."""
    before: int = 0
    """Records before the first that messages, actions and usage are from."""
    records: int = 0
    """The length of the run: what happens later has a higher number."""

    @property
    def answers(self) -> tuple[SaidMessage, ...]:
        """The messages to the user."""
        return tuple(one for one in self.messages if one.kind != USER)

    def for_users(self) -> "SessionView":
        """As users may see it: silent actions, and what went wrong, are for those who operate the bot."""
        return replace(self, actions=tuple(one for one in self.actions if one.visible), because=UNSET)


async def view_of(engine: Engine, view: View, after: int = 0) -> SessionView:
    run, style = view.run, engine.style(view.run)
    before = max(after, run.length - MOST_RECORDS)
    records = await engine.journal.read(run.id, after=before)
    state = run.state
    return SessionView(
        run=run.id,
        session=state.chat.session,
        status=state.status,
        messages=tuple([one async for one in _messages(engine, style, run, records)]),
        actions=_actions(records),
        timers=tuple(
            ShownTimer(timer.name, iso(timer.due))
            for part in style.view.parts(run)
            if isinstance(part, Timers)
            for timer in part.timers
        ),
        usage=_usage(records),
        waits_for_person=view.status == "waiting",
        closed=state.closed,
        because=_cause(records) if state.status == "cancelled" else UNSET,
        before=before,
        records=run.length,
    )


async def _messages(engine: Engine, style: Style[Any], run: Run[Any], records: list[Record]) -> Any:
    by_number = {one.number: one for one in records}
    answered = AnsweredMessages(engine, run.id)
    for record in records:
        id = f"{run.id}/{record.number}"
        answered.see(record)
        if (words := said_by_user(record)) is not None:
            yield SaidMessage(USER, words, id, sent_as=_sent_as(record) or UNSET)
        for notice in style.audience.public_events(record):
            if notice.kind != "message":
                continue
            text = notice.data.get("text", "")
            if notice.about:
                found = by_number.get(notice.about)
                if found is None:
                    found = (await engine.journal.read(run.id, after=notice.about - 1, most=1))[0]
                text = text_in(found)
            kind = str(notice.data.get("kind", ""))
            yield SaidMessage(kind, text, id, await answered.by(record, kind))


class AnsweredMessages:
    """Which messages of the user the bot answers, followed from record to record."""

    def __init__(self, engine: Engine, run_id: str) -> None:
        self._engine = engine
        self._run_id = run_id
        self._heard: tuple[int, ...] | None = None
        """`None`: the beginning of the pass was before the first record that was seen."""

    def see(self, record: Record) -> None:
        if isinstance(record.event, PassBegan):
            self._heard = record.event.heard

    async def by(self, record: Record, kind: str) -> tuple[str, ...]:
        """What a message of this kind answers, in the record that was seen last."""
        if kind in UNASKED:
            return ()
        if self._heard is None:
            await self._look_back(record.number)
        return tuple(f"{self._run_id}/{number}" for number in self._heard or ())

    async def _look_back(self, number: int) -> None:
        self._heard = ()
        first = max(0, number - 1 - LOOK_BACK)
        for record in await self._engine.journal.read(self._run_id, after=first, before=number):
            self.see(record)


def _sent_as(record: Record) -> str:
    return record.event.id if isinstance(record.event, Heard) else ""


def said_by_user(record: Record) -> str | None:
    """What the user has said in a record; `None` if it is not a message of the user's."""
    event = record.event
    return event.text if isinstance(event, Heard) and event.channel != DESK_CHANNEL else None


def _actions(records: list[Record]) -> tuple[ShownAction, ...]:
    found: list[ShownAction] = []
    for record in records:
        match record.event:
            case IterationDecided(action=action, target=target, visible=visible) if target:
                found.append(ShownAction(action, target, visible))
            case ActionFailed(target=target) if found and found[-1].target == target:
                found[-1] = replace(found[-1], failed=True)
    return tuple(found)


def _cause(records: list[Record]) -> str | UnsetType:
    """Why the last pass was broken off."""
    return next(filter(None, (why_broken_off(one.event) for one in reversed(records))), UNSET)


def why_broken_off(event: Event) -> str:
    """Why an event breaks a pass off; empty if it does not."""
    match event:
        case StatusChanged(status="cancelled", because=because) if because != SUPERSEDED:
            return because
    return ""


def _usage(records: list[Record]) -> SessionUsage:
    usage, calls = Usage(), 0
    for record in records:
        event = record.event
        if isinstance(event, Asked) and isinstance(event.command, AskAgent):
            calls += 1
        elif isinstance(event, Answered):
            answer = event.answer
            if isinstance(answer, AgentReplied | RunFinished):
                usage = usage.plus(answer.usage)
            if isinstance(answer, RunFinished):
                calls += answer.calls
    return SessionUsage(calls, usage.input_tokens, usage.output_tokens, usage.money)
