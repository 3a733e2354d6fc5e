"""A run: what every style has in common, folded from its journal.

All of it is immutable, so an open command can keep the state it was asked in for the price of a reference.

How it is folded is in `folding`.
"""

import hashlib
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

from .effects import (
    AnswerChild,
    AskAgent,
    AskPerson,
    CallTool,
    Command,
    CutOff,
    Guards,
    Limits,
    Say,
    SetTimer,
    StartRun,
    Usage,
)
from .events import (
    Ended,
    GuardTripped,
    RunSettings,
    Started,
)
from .progress import TurnDigest
from .usage_gaps import Gap
from .work_time import WorkTime, is_deadline

S = TypeVar("S")

GUARD, DOUBT = "ripstop:guard", "ripstop:doubt"
"""Purposes of the kernel's own questions. A style never sees their answers."""
LONGEST_END_LINE = 160
"""Characters."""


class Open(Struct, frozen=True, gc=False):
    """A command that is not answered yet, with the style's state at the moment it was asked."""

    command: Command
    state: Any
    at: int
    ordinal: int = 0
    """For a call of an agent: which one of the run's calls it is, counted from 1."""


class Spent(Struct, frozen=True, gc=False):
    turns: int = 0
    """Of agents; `Style.turns` counts what else is a turn in a style."""
    calls: int = 0
    usage: Usage = Usage()


class Contents(Struct, frozen=True):
    """Content that records name by its hash, decoded once in a process and shared by its runs."""

    definitions: dict[str, Any]
    results: dict[str, Any]


class Run(Struct, Generic[S], frozen=True, gc=False):
    id: str
    started: Started
    definition: str
    """Hash of the definition in force: the first one, or the one that came later."""
    limits: Limits
    began: int
    state: S
    length: int
    settings: RunSettings = RunSettings()
    """As the run was started, and as they were changed since."""
    pinned: str = ""
    """Hash of the definitions that it and its descendants can start."""
    open: dict[int, Open] = {}
    late: dict[int, Command] = {}
    """Commands withdrawn while they were open. Their answers are still recorded, for what they cost."""
    doubts: dict[int, int] = {}
    """Open question to a person → the command in doubt that it is about."""
    spent: Spent = Spent()
    ended: Ended | None = None
    guards: Guards = Guards()
    more_patience: int = 0
    """By how much the guards' patience was raised; a new definition does not take it back."""
    trail: tuple[TurnDigest, ...] = ()
    """What the last turns changed."""
    verdict: GuardTripped | None = None
    """Why a guard stopped the run, as long as it has not been resumed."""
    asks_about_verdict: int = 0
    """The question to a person whether the run may continue in spite of the verdict."""
    gaps: frozenset[Gap] = frozenset()
    """What models did not say about the cost of their replies."""
    work: WorkTime = WorkTime()
    """Counted only if `limits.seconds` limits it."""
    descendants: int = 0
    """Runs that ended below it: its children, and theirs."""
    uncertain: tuple[CutOff, ...] = ()
    """Calls that were cut off at work and may have taken effect; a person is asked when the run is resumed."""
    resumed: int = 0
    """The record with which it continued last; 0: it was never stopped."""
    resuming: bool = False
    """It is to continue when the children that were stopped with it have reported."""
    known_messages: tuple[str, ...] = ()
    payer: str = ""
    """The command (`run/number`) that started it, or resumed it last; it pays for what is spent from then on."""
    paid: Spent = Spent()
    """What had been spent by then."""

    @property
    def is_settled(self) -> bool:
        """Whether it has ended, and so have all its children: what it cost is known.

        Calls that were cut off are still to be reported; only a parent waits for them, because it pays.
        """
        if self.ended is None:
            return False
        if self.started.parent is not None:
            return not self.late
        return not any(type(command) is StartRun for command in self.late.values())


def is_shared(run_id: str, command: StartRun) -> bool:
    """Whether a child is not the run's own: its name does not begin with the run's, so others may wait for it."""
    return bool(command.name) and not command.name.startswith(f"{run_id}.")


def is_transcript(run: Run[Any], command: Say) -> bool:
    """Whether a message is sent by being recorded: no channel has to carry it, and no ancestor shows it."""
    return not command.channel and run.started.surface is None


WAITS_FOR: dict[type, str] = {
    AskAgent: "worker",
    CallTool: "worker",
    Say: "worker",
    AnswerChild: "worker",
    AskPerson: "person",
    SetTimer: "clock",
    StartRun: "run",
}
"""Who has to act on an open command; `waits_for` says it in words, and costs a call."""


def waits_for(command: Command) -> str:
    """Who has to act on an open command: a `worker`, a `person`, the `clock` or a child `run`."""
    return WAITS_FOR[type(command)]


def status(run: Run[Any], listening: bool) -> str:
    """In one word: an outcome, or `working`, `waiting`, `listening`, or `stuck`.

    Not ended, nothing open and not listening is a run that nothing can ever move again.
    """
    if run.ended:
        return run.ended.outcome
    if run.resuming:
        return "waiting"
    waits, idle = False, False
    for number, opened in run.open.items():
        kind = type(opened.command)
        if kind is AskAgent or kind is CallTool or kind is AnswerChild:
            if not run.doubts or number not in run.doubts.values():
                return "working"
        elif kind is AskPerson or kind is StartRun:
            waits = True
        else:
            idle = idle or not is_deadline(opened.command)
    if waits or (idle and not listening):
        return "waiting"
    return "listening" if listening else "stuck"


def end_line(run: Run[Any]) -> str:
    """The first line of why a run has ended, for a list of runs; empty while it has not."""
    lines = run.ended.because.strip().splitlines() if run.ended else ()
    line = lines[0] if lines else ""
    return line if len(line) <= LONGEST_END_LINE else f"{line[: LONGEST_END_LINE - 1]}…"


_encode = msgspec.json.Encoder(order="sorted").encode


def fingerprint(run: Run[Any]) -> str:
    """A hash of where the run is: equal for two runs that are in the same place.

    Times and ids are left out, so that a run that was killed and resumed can be compared with
    one that never was.
    """
    place = (
        run.definition,
        run.state,
        run.length,
        sorted((number, opened.command) for number, opened in run.open.items()),
        run.spent,
        run.ended,
    )
    # numbers as keys, such as those of open tool calls, cannot be sorted by the encoder unless they are texts
    plain = msgspec.to_builtins(place, str_keys=True)
    return hashlib.sha256(_encode(plain)).hexdigest()
