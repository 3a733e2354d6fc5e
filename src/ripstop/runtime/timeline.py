"""A run told from its journal: its records for people and programs, and why each came to be."""

from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Struct

from ripstop.kernel.effects import AgentReplied, AskAgent
from ripstop.kernel.events import FACTS, Answered, Asked, Ended, Forked, GuardTripped, Record, TurnResult, Withdrawn
from ripstop.kernel.prompt import Prompt, seal
from ripstop.kernel.resuming import ways_on
from ripstop.kernel.run import Run

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
    """Where an agent took its turn, in order. A turn that was begun and then taken anew counts once."""
    events = [told.record.event for told in story]
    taken_back = {event.number for event in events if isinstance(event, Withdrawn) and event.turn}
    return [
        engine.style(told.run).picture(told.run).where
        for told in story
        if isinstance(told.record.event, Asked)
        and isinstance(told.record.event.command, AskAgent)
        and told.record.event.command.continues is None
        and told.record.number not in taken_back
    ]


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


def explain(engine: Engine, story: list[TimelineEntry], told: TimelineEntry) -> list[str]:
    """Why a record came to be, in lines for a person."""
    if isinstance(told.record.event, GuardTripped):
        return _evidence(story, told, told.record.event)
    if told is story[-1] and isinstance(told.record.event, Ended):
        return [f"go on     {way}" for way in ways_after_failure(engine, story)]
    return engine.style(told.run).explain(told.before.state, told.record.event) if told.before else []


def ways_after_failure(engine: Engine, story: list[TimelineEntry]) -> list[str]:
    """How a run that failed through its agent can go on, as commands."""
    run = story[-1].run
    asks_again = question_before_failure([told.record for told in story])
    return [f"ripstop fork {run.id}"] if asks_again and not engine.style(run).unforkable else []


def _evidence(story: list[TimelineEntry], told: TimelineEntry, verdict: GuardTripped) -> list[str]:
    lines = [f"guard     {verdict.guard}: limit {verdict.limit:g}, found {verdict.value:g}"]
    did: dict[str, list[str]] = {}
    for number in verdict.evidence:
        event = story[number - 1].record.event
        what = type(event).__name__.lower()
        if isinstance(event, TurnResult):
            what = f"{event.agent} said nothing but a courtesy" if event.courteous else f"{event.agent} did the same"
        did.setdefault(what, []).append(str(number))
    lines += [f"evidence  {what}: record {', '.join(numbers)}" for what, numbers in did.items()]
    if verdict.progress:
        lines.append(f"progress  the last is record {verdict.progress}")
    return lines + [f"go on     {way}" for way in ways_on(told.run.id, verdict)]


def last_word(story: list[TimelineEntry]) -> int:
    """The record that says why the run stands where it stands: a guard's verdict, or the last one."""
    for told in reversed(story if story[-1].run.verdict else []):
        if isinstance(told.record.event, GuardTripped):
            return told.record.number
    return len(story)


def step_of(story: list[TimelineEntry], number: int) -> list[TimelineEntry]:
    """The records of the step that a record belongs to: its fact and all that was decided on it."""
    start = end = number - 1
    while start > 0 and not isinstance(story[start].record.event, FACTS):
        start -= 1
    while end + 1 < len(story) and not isinstance(story[end + 1].record.event, FACTS):
        end += 1
    return story[start : end + 1]
