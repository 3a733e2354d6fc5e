"""The history of a run from its journal: its records for people and programs, and the reason for each."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import msgspec
from msgspec import Struct

from ripstop.engine.engine import Engine
from ripstop.engine.forking import failed_by_agent
from ripstop.engine.soundness import reading
from ripstop.kernel.effects import AgentReplied, AskAgent, CallTool, Command, RunFinished, StartRun
from ripstop.kernel.events import (
    KERNEL_EVENTS,
    OUTCOMES,
    Answered,
    Asked,
    Ended,
    Event,
    Forked,
    GuardTripped,
    Record,
    TurnRestarted,
    TurnResult,
)
from ripstop.kernel.outbox import child_id
from ripstop.kernel.prompt import Prompt, seal
from ripstop.kernel.resuming import Way, ways_on
from ripstop.kernel.run import Run
from ripstop.kernel.style import Reason, Style, arguments_for
from ripstop.text.translation import Phrase, Told, phrase

OWN_NAMES = {"number": "of", "at": "event_at"}
"""What an event's own field is called where a record has one of the same name."""


class TimelineEntry(Struct, frozen=True):
    """A record, and what belongs to it."""

    record: Record
    run: Run[Any]
    """The run right after this record."""
    before: Run[Any] | None
    """The run right before it."""
    prompt: Prompt | None = None
    """For a command to an agent: what it was sent."""
    genuine: bool | None = None
    """For a reply: whether the prompt shown for it is what was really sent."""
    arguments: Mapping[str, Any] | None = None
    """For a call of a tool whose arguments are those of another record: what it is called with."""


async def timeline(engine: Engine, run_id: str) -> list[TimelineEntry]:
    history = await engine.history(run_id)
    style = engine.style(history[-1][1])
    with reading(run_id):
        return entries(style, history)


async def family_timeline(engine: Engine, run_id: str) -> list[TimelineEntry]:
    """The records of a run and of its descendants, in the order in which they were written."""
    runs = [run_id, *(info.run_id for info in await engine.descendants(run_id))]
    told = [entry for one in runs for entry in await timeline(engine, one)]
    return sorted(told, key=lambda entry: entry.record.at)  # stable: of one time, a parent's come first


def entries(
    style: Style[Any],
    history: Iterable[tuple[Record, Run[Any]]],
    before: Run[Any] | None = None,
    sent: Mapping[int, Prompt] = {},
    with_prompts: bool = True,
) -> list[TimelineEntry]:
    """Records with what belongs to each; `history` has each with the run right after it.

    Args:
        before: The run right before the first of them; `None`: they begin with the run's first record.
        sent: Prompts of commands that were withdrawn before, and are answered only now.
        with_prompts: Whether to render and check prompts, which costs far more than all the rest.
    """
    told: list[TimelineEntry] = []
    prompts = dict(sent)
    for record, run in history:
        prompt, genuine = None, None
        event = record.event if with_prompts else None
        if isinstance(event, Asked) and isinstance(event.command, AskAgent):
            prompt = prompts[record.number] = style.render(run.open[record.number].state, event.command)
        elif isinstance(event, Answered) and isinstance(event.answer, AgentReplied) and event.answer.sent:
            shown = prompts.get(event.to) or _prompt_of_open(style, before, event.to)
            genuine = shown is not None and seal(shown) == event.answer.sent
        told.append(TimelineEntry(record, run, before, prompt, genuine, _arguments(style, record, run)))
        before = run
    return told


def _arguments(style: Style[Any], record: Record, run: Run[Any]) -> Mapping[str, Any] | None:
    event = record.event
    if not isinstance(event, Asked) or not isinstance(event.command, CallTool) or event.command.arguments is not None:
        return None
    opened = run.open.get(record.number)
    return arguments_for(style, opened.state, event.command) if opened else None


def _prompt_of_open(style: Style[Any], run: Run[Any] | None, number: int) -> Prompt | None:
    """What the agent was sent with a command that is still open, from the state in which it was asked."""
    opened = run.open.get(number) if run else None
    if opened is None or not isinstance(opened.command, AskAgent):
        return None
    return style.render(opened.state, opened.command)


async def forked_at(engine: Engine, run_id: str) -> int:
    """The number of the last record that a fork shares with the run it was forked from; 0 if it is not a fork."""
    events = [record.event for record, _ in await engine.history(run_id)]
    return next((event.at for event in reversed(events) if isinstance(event, Forked)), 0)


def path(engine: Engine, entries: list[TimelineEntry]) -> list[str]:
    """Where an agent or a workflow took its turn, in order. A turn that was begun and then restarted counts once."""
    events = [told.record.event for told in entries]
    restarted = {event.number for event in events if isinstance(event, TurnRestarted)}
    return [
        engine.style(told.run).view.picture(told.run).where
        for told in entries
        if isinstance(told.record.event, Asked)
        and _begins_turn(told.record.event.command)
        and told.record.number not in restarted
    ]


def _begins_turn(command: Command) -> bool:
    return isinstance(command, StartRun) or (isinstance(command, AskAgent) and command.continues is None)


def record_as_json(entry: TimelineEntry) -> dict[str, Any]:
    """A record as one JSON object: number, time, type, and the event's own fields (see `OWN_NAMES`)."""
    fields = msgspec.to_builtins(entry.record.event)
    if entry.prompt is not None:
        fields["command"]["prompt"] = entry.prompt.text
        if len(entry.prompt.messages) > 1:
            fields["command"]["messages"] = msgspec.to_builtins(entry.prompt.messages)
    if entry.arguments is not None:
        fields["command"]["arguments"] = dict(entry.arguments)
    if entry.genuine is not None:
        fields["prompt_is_genuine"] = entry.genuine
    kind = fields.pop("type")
    own = {OWN_NAMES.get(name, name): value for name, value in fields.items()}
    return {"number": entry.record.number, "at": iso(entry.record.at), "type": kind, **own}


def iso(at: int) -> str:
    """Microseconds as an ISO time in UTC."""
    return datetime.fromtimestamp(at / 1_000_000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class GuardEvidence(Struct, frozen=True):
    """What a guard found, and in which records."""

    text: Told
    numbers: tuple[int, ...]


class ChildEnd(Struct, frozen=True):
    run: str
    outcome: str = ""
    """How it ended; empty for one that was only just started."""
    because: str = ""


class Why(Struct, frozen=True):
    """Why a record came to be, as data that a face puts into words."""

    verdict: GuardTripped | None = None
    evidence: tuple[GuardEvidence, ...] = ()
    reasons: tuple[Reason, ...] = ()
    ways: tuple[Way, ...] = ()
    """How the run can continue after it."""
    child: ChildEnd | None = None
    """The child that it started, or whose end it is."""


def explain(engine: Engine, entries: list[TimelineEntry], told: TimelineEntry) -> Why:
    """Why a record came to be, where the whole story is at hand; `explain_step` needs only a step of it."""

    def event_at(number: int) -> Event:
        return entries[number - 1].record.event

    is_end = told is entries[-1] and isinstance(told.record.event, Ended)
    return _explain(engine, told, event_at, _last_fact(entries) if is_end else None)


async def explain_step(engine: Engine, step: Sequence[TimelineEntry]) -> list[Why]:
    """Why each record of a step came to be. Other records that tell why are read from the journal, by number."""
    run_id, last = step[-1].run.id, step[-1].record
    info = await engine.journal.run(run_id)
    is_end = isinstance(last.event, Ended) and info is not None and info.length == last.number
    fact = step[0].record.event
    numbers = {n for told in step if isinstance(told.record.event, GuardTripped) for n in told.record.event.evidence}
    if is_end and isinstance(fact, Answered):
        numbers.add(fact.to)
    events = await _events(engine, run_id, numbers)
    with reading(run_id):
        return [
            _explain(engine, told, events.__getitem__, fact if is_end and told is step[-1] else None) for told in step
        ]


async def _events(engine: Engine, run_id: str, numbers: Collection[int]) -> dict[int, Event]:
    """The events of some records. Those that are near one another are read together."""
    events: dict[int, Event] = {}
    wanted = sorted(numbers)
    while wanted:
        near = next((at for at, (one, other) in enumerate(pairwise(wanted), 1) if other - one > READ_GAP), len(wanted))
        group, wanted = set(wanted[:near]), wanted[near:]
        found = await engine.journal.read(run_id, after=min(group) - 1, before=max(group) + 1)
        events |= {record.number: record.event for record in found if record.number in group}
    return events


def _explain(
    engine: Engine, told: TimelineEntry, event_at: Callable[[int], Event], last_fact: Event | None = None
) -> Why:
    """Why a record came to be.

    Args:
        last_fact: For the end of a run that nothing has followed: the fact that led to it.
    """
    event = told.record.event
    if isinstance(event, GuardTripped):
        return Why(event, tuple(_evidence(event, event_at)), ways=tuple(ways_on(event)))
    if last_fact is not None:
        return Why(ways=tuple(_ways_after_end(engine, told.run, failed_by_agent(event, last_fact, event_at))))
    if told.before is None:
        return Why()
    if isinstance(event, Asked) and isinstance(event.command, StartRun):
        return Why(child=ChildEnd(child_id(told.run.id, told.record.number, event.command)))
    if isinstance(event, Answered) and isinstance(event.answer, RunFinished):
        ended = event.answer
        return Why(child=ChildEnd(ended.run, ended.outcome, ended.because))
    return Why(reasons=engine.style(told.run).view.explain(told.before.state, event).reasons)


READ_GAP = 500
"""Records between two that are read one by one rather than with all between them."""
RESTARTED = ("restart", "failed")
"""Outcomes after which a style can have an earlier place to begin at."""


def ways_after_end(engine: Engine, entries: list[TimelineEntry]) -> list[Way]:
    """How a run that ended without a verdict can continue: it was parked, or failed through its agent."""
    asks_again = failed_by_agent(
        entries[-1].record.event, _last_fact(entries), lambda number: entries[number - 1].record.event
    )
    return _ways_after_end(engine, entries[-1].run, asks_again)


def _ways_after_end(engine: Engine, run: Run[Any], asks_again: bool) -> list[Way]:
    style = engine.style(run)
    ending = style.ending(run.state)
    parked = run.ended is not None and run.verdict is None and ending.is_resumable
    restart = ending.restart_at if run.ended is not None and run.ended.outcome in RESTARTED else ""
    if restart:
        return [Way("restart", stage=restart), *([Way("resume")] if parked else [])]
    resume = Way("resume", accept_edits=parked and ending.has_foreign_edits)
    return [*([resume] if parked else []), *([Way("fork")] if asks_again and not style.unforkable else [])]


def _last_fact(entries: list[TimelineEntry]) -> Event:
    return next(told.record.event for told in reversed(entries) if told.record.event.is_fact)


def _evidence(verdict: GuardTripped, event_at: Callable[[int], Event]) -> Iterator[GuardEvidence]:
    did: dict[Told, list[int]] = {}
    for number in verdict.evidence:
        event = event_at(number)
        what = Phrase(type(event).__name__.lower())
        if isinstance(event, TurnResult):
            pattern = "{agent} said nothing but a courtesy" if event.courteous else "{agent} did the same"
            what = phrase(pattern, agent=event.agent)
        did.setdefault(what, []).append(number)
    return (GuardEvidence(what, tuple(numbers)) for what, numbers in did.items())


def last_word(entries: list[TimelineEntry]) -> int:
    """The record that says why the run is where it is: a guard's verdict, or the last one."""
    for told in reversed(entries if entries[-1].run.verdict else []):
        if isinstance(told.record.event, GuardTripped):
            return told.record.number
    return len(entries)


def grounds(engine: Engine, entries: list[TimelineEntry]) -> TimelineEntry | None:
    """The last record with checks, on which the end of a run rests; none if it rests on none, or has not ended."""
    ended = entries[-1].run.ended
    if ended is None or ended.outcome not in (OUTCOMES[0], "failed"):
        return None
    return next((told for told in reversed(entries) if _has_checks(engine, told)), None)


def _has_checks(engine: Engine, told: TimelineEntry) -> bool:
    if told.before is None or isinstance(told.record.event, KERNEL_EVENTS):
        return False
    reasons = engine.style(told.run).view.explain(told.before.state, told.record.event).reasons
    return any(one.is_check for one in reasons)


def step_of(entries: list[TimelineEntry], number: int) -> list[TimelineEntry]:
    """The records of the step that a record belongs to: its fact and all that was decided on it."""
    start = end = number - 1
    while start > 0 and not entries[start].record.event.is_fact:
        start -= 1
    while end + 1 < len(entries) and not entries[end + 1].record.event.is_fact:
        end += 1
    return entries[start : end + 1]
