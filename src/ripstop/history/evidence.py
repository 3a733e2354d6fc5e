"""What the kernel's own questions rest on: the call that is in doubt, and what a guard found."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from ripstop.engine.engine import Engine
from ripstop.kernel.effects import AskAgent, CallTool, Command, StartRun
from ripstop.kernel.events import Doubted, Record
from ripstop.kernel.restoring import key_of, mark_of
from ripstop.kernel.resuming import Way, raisable_by, ways_on
from ripstop.kernel.run import Run
from ripstop.kernel.style import arguments_for
from ripstop.text.translation import Told

from .desk import records_at
from .narration import told

NEAR = 50
"""Records before a question among which the doubt is that it is about; it is part of the same step."""
MAX_ROUNDS = 50
"""Rounds of a cycle that are shown, the last ones."""


class TurnShown(Struct, frozen=True):
    """A record that a verdict rests on."""

    number: int
    at: int
    text: Told


class DoubtedCall(Struct, frozen=True, kw_only=True):
    """A call that may or may not have taken effect."""

    number: int
    key: str
    """Its idempotency key."""
    command: Command
    what: str
    """The tool, agent or workflow that was called; empty for a message."""
    arguments: dict[str, Any] | None = None
    """Of a tool."""
    asked: int
    """When, in microseconds."""
    doubted: Record | None = None
    """The record with the doubt."""
    evidence: str = ""


class VerdictShown(Struct, frozen=True, kw_only=True):
    """What a guard found, with the records that it rests on."""

    guard: str
    text: str
    limit: float
    value: float
    rounds: tuple[tuple[TurnShown, ...], ...] = ()
    """Of a cycle, a row for each time round; else one row for each record."""
    left_out: int = 0
    """Rounds that came before those."""
    progress: TurnShown | None = None
    """The last record with progress."""
    raises: str = ""
    """What can be raised; empty: nothing."""
    amount: float = 0
    """By how much it is best raised; 0: it need not be."""
    ways: tuple[Way, ...] = ()


async def doubted_call(engine: Engine, run: Run[Any], number: int) -> DoubtedCall | None:
    """The call that an open question is about; `None` if it is not one about a doubt."""
    to = run.doubts.get(number, 0)
    opened = run.open.get(to)
    if opened is None:
        return None
    command = opened.command
    before = await engine.journal.read(run.id, after=max(0, number - NEAR), before=number)
    doubts = [record for record in before if isinstance(record.event, Doubted) and record.event.to == to]
    doubt = doubts[-1].event if doubts else None
    return DoubtedCall(
        number=to,
        key=key_of(run.id, to, mark_of(run, to)),
        command=command,
        what=_what(command),
        arguments=arguments_for(engine.style(run), opened.state, command) if isinstance(command, CallTool) else None,
        asked=opened.at,
        doubted=doubts[-1] if doubts else None,
        evidence=doubt.evidence if isinstance(doubt, Doubted) else "",
    )


def _what(command: Command) -> str:
    match command:
        case CallTool(tool=name) | AskAgent(agent=name) | StartRun(workflow=name):
            return name
    return ""


async def verdict_shown(engine: Engine, run: Run[Any]) -> VerdictShown | None:
    """The verdict that a run is stopped by; `None` if it is not."""
    verdict = run.verdict
    if verdict is None:
        return None
    records = await records_at(engine, run.id, {*verdict.evidence, verdict.progress})
    turns = [_turn(engine, run, records[number]) for number in verdict.evidence if number in records]
    rounds = _rounds(turns, verdict.value)
    ways = ways_on(verdict)
    raises = raisable_by(verdict)
    return VerdictShown(
        guard=verdict.guard,
        text=verdict.text,
        limit=verdict.limit,
        value=verdict.value,
        rounds=tuple(rounds[-MAX_ROUNDS:]),
        left_out=max(0, len(rounds) - MAX_ROUNDS),
        progress=_turn(engine, run, records[verdict.progress]) if verdict.progress in records else None,
        raises=raises,
        amount=next((one.raises[raises] for one in ways if raises in one.raises), 0),
        ways=tuple(ways),
    )


def _turn(engine: Engine, run: Run[Any], record: Record) -> TurnShown:
    return TurnShown(record.number, record.at, told(engine.style(run), record, None, run))


def _rounds(turns: Sequence[TurnShown], count: float) -> list[tuple[TurnShown, ...]]:
    """The turns of a cycle, a row for each time round: a cycle was gone round `count` times by the same agents."""
    times = int(count)
    if times < 1 or len(turns) % times:
        return [(turn,) for turn in turns]
    length = len(turns) // times
    return [tuple(turns[at : at + length]) for at in range(0, len(turns), length)] if length else []
