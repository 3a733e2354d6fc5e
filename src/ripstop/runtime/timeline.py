"""The history of a run from its journal: its records for people and programs, and the reason for each."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Struct

from ripstop.kernel.effects import AgentReplied, AskAgent, Command, RunFinished, StartRun
from ripstop.kernel.events import (
    Answered,
    Asked,
    Ended,
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
from ripstop.kernel.style import Reason

from .engine import Engine
from .forking import question_before_failure
from .soundness import reading

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


async def timeline(engine: Engine, run_id: str) -> list[TimelineEntry]:
    history = await engine.history(run_id)
    with reading(run_id):
        return _told(engine, history)


async def family_timeline(engine: Engine, run_id: str) -> list[TimelineEntry]:
    """The records of a run and of its descendants, in the order in which they were written."""
    runs = [run_id, *(info.run_id for info in await engine.descendants(run_id))]
    told = [entry for one in runs for entry in await timeline(engine, one)]
    return sorted(told, key=lambda entry: entry.record.at)  # stable: of one time, a parent's come first


def _told(engine: Engine, history: list[tuple[Record, Run[Any]]]) -> list[TimelineEntry]:
    told: list[TimelineEntry] = []
    prompts: dict[int, Prompt] = {}
    before: Run[Any] | None = None
    for record, run in history:
        prompt, genuine = None, None
        event = record.event
        if isinstance(event, Asked) and isinstance(event.command, AskAgent):
            style = engine.style(run)
            prompt = prompts[record.number] = style.render(run.open[record.number].state, event.command)
        elif isinstance(event, Answered) and isinstance(event.answer, AgentReplied) and event.answer.sent:
            sent = prompts.get(event.to)
            genuine = sent is not None and seal(sent) == event.answer.sent
        told.append(TimelineEntry(record, run, before, prompt, genuine))
        before = run
    return told


async def forked_at(engine: Engine, run_id: str) -> int:
    """The number of the last record that a fork shares with the run it was forked from; 0 if it is not a fork."""
    events = [record.event for record, _ in await engine.history(run_id)]
    return next((event.at for event in reversed(events) if isinstance(event, Forked)), 0)


def path(engine: Engine, story: list[TimelineEntry]) -> list[str]:
    """Where an agent or a workflow took its turn, in order. A turn that was begun and then restarted counts once."""
    events = [told.record.event for told in story]
    restarted = {event.number for event in events if isinstance(event, TurnRestarted)}
    return [
        engine.style(told.run).picture(told.run).where
        for told in story
        if isinstance(told.record.event, Asked)
        and _begins_turn(told.record.event.command)
        and told.record.number not in restarted
    ]


def _begins_turn(command: Command) -> bool:
    return isinstance(command, StartRun) or (isinstance(command, AskAgent) and command.continues is None)


def plain(told: TimelineEntry) -> dict[str, Any]:
    """A record as one JSON object: number, time, type, and the event's own fields (see `OWN_NAMES`)."""
    fields = msgspec.to_builtins(told.record.event)
    if told.prompt is not None:
        fields["command"]["prompt"] = told.prompt.text
        if len(told.prompt.messages) > 1:
            fields["command"]["messages"] = msgspec.to_builtins(told.prompt.messages)
    if told.genuine is not None:
        fields["prompt_is_genuine"] = told.genuine
    kind = fields.pop("type")
    own = {OWN_NAMES.get(name, name): value for name, value in fields.items()}
    return {"number": told.record.number, "at": iso(told.record.at), "type": kind, **own}


def iso(at: int) -> str:
    """Microseconds as an ISO time in UTC."""
    return datetime.fromtimestamp(at / 1_000_000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class GuardEvidence(Struct, frozen=True):
    """What a guard found, and in which records."""

    text: str
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


def explain(engine: Engine, story: list[TimelineEntry], told: TimelineEntry) -> Why:
    event = told.record.event
    if isinstance(event, GuardTripped):
        return Why(event, tuple(_evidence(story, event)), ways=tuple(ways_on(event)))
    if told is story[-1] and isinstance(event, Ended):
        return Why(ways=tuple(ways_after_end(engine, story)))
    if told.before is None:
        return Why()
    if isinstance(event, Asked) and isinstance(event.command, StartRun):
        return Why(child=ChildEnd(child_id(told.run.id, told.record.number, event.command)))
    if isinstance(event, Answered) and isinstance(event.answer, RunFinished):
        ended = event.answer
        return Why(child=ChildEnd(ended.run, ended.outcome, ended.because))
    return Why(reasons=engine.style(told.run).explain(told.before.state, event).reasons)


RESTARTED = ("restart", "failed")
"""Outcomes after which a style can have an earlier place to begin at."""


def ways_after_end(engine: Engine, story: list[TimelineEntry]) -> list[Way]:
    """How a run that ended without a verdict can continue: it was parked, or failed through its agent."""
    run = story[-1].run
    style = engine.style(run)
    parked = run.ended is not None and run.verdict is None and style.resumable(run.state)
    restart = style.restart_at(run.state) if run.ended is not None and run.ended.outcome in RESTARTED else ""
    if restart:
        return [Way("restart", stage=restart), *([Way("resume")] if parked else [])]
    asks_again = question_before_failure([told.record for told in story]) and not style.unforkable
    resume = Way("resume", accept_edits=parked and style.has_foreign_edits(run.state))
    return [*([resume] if parked else []), *([Way("fork")] if asks_again else [])]


def _evidence(story: list[TimelineEntry], verdict: GuardTripped) -> Iterator[GuardEvidence]:
    did: dict[str, list[int]] = {}
    for number in verdict.evidence:
        event = story[number - 1].record.event
        what = type(event).__name__.lower()
        if isinstance(event, TurnResult):
            what = f"{event.agent} said nothing but a courtesy" if event.courteous else f"{event.agent} did the same"
        did.setdefault(what, []).append(number)
    return (GuardEvidence(what, tuple(numbers)) for what, numbers in did.items())


def last_word(story: list[TimelineEntry]) -> int:
    """The record that says why the run is where it is: a guard's verdict, or the last one."""
    for told in reversed(story if story[-1].run.verdict else []):
        if isinstance(told.record.event, GuardTripped):
            return told.record.number
    return len(story)


def step_of(story: list[TimelineEntry], number: int) -> list[TimelineEntry]:
    """The records of the step that a record belongs to: its fact and all that was decided on it."""
    start = end = number - 1
    while start > 0 and not story[start].record.event.is_fact:
        start -= 1
    while end + 1 < len(story) and not story[end + 1].record.event.is_fact:
        end += 1
    return story[start : end + 1]
