"""A run: what every style has in common, folded from its journal.

All of it is immutable, so an open command can keep the state it was asked in for the price of a reference.

How it is folded is in `folding`.
"""

import hashlib
from collections.abc import Collection, Mapping
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import msgspec
from msgspec import NODEFAULT, Struct
from msgspec.structs import FieldInfo

from .effects import (
    AgentReplied,
    AnswerChild,
    AskAgent,
    AskPerson,
    CallTool,
    Command,
    CutOff,
    Guards,
    Limits,
    RunFinished,
    Say,
    SetTimer,
    StartRun,
    Usage,
)
from .events import Answered, Ended, GuardTripped, RunSettings, Started
from .progress import TurnDigest

# What a reply does not say about its cost, so that people know how far a limit can be relied on.
#
# Each gap is said once for every run and model.


USAGE, PRICE, OTHER, FILTERED = "usage", "price", "other", "filtered"

Gap = tuple[str, str]
"""(what is missing, the model); for `OTHER` it is the model that replied."""


def gaps(limits: Limits, reply: AgentReplied) -> tuple[Gap, ...]:
    """A usage that cannot be true, a cost in money that is not known although money is limited, a reply of another
    model, and one that was filtered."""
    usage = reply.usage
    found: tuple[Gap, ...] = ()
    if (usage.unreported_input or usage.unreported_output) and usage.is_short:
        found = ((USAGE, reply.model),)
    if limits.money is not None and usage.counted_tokens and not usage.counted_money:
        found = (*found, (PRICE, reply.model))
    if reply.says:
        found = (*found, (OTHER, reply.says))
    if reply.filtered:
        found = (*found, (FILTERED, reply.model))
    return found


def about(gap: Gap, reply: AgentReplied) -> str:
    what, model = gap
    if what == PRICE:
        return f"{model!r} costs no money as far as its settings say, so the money limit does not count its calls."
    if what == OTHER:
        return f"The server of {reply.model!r} says that another model replied: {model!r}."
    if what == FILTERED:
        return f"The server of {model!r} says that it left something out of a reply (content_filter)."
    reported, counted = reply.usage.tokens, reply.usage.counted_tokens
    said = f"reports {reported} tokens for a call" if reported else "does not report how many tokens a call takes"
    return f"The server of {model!r} {said}; limits count {counted}, by the bytes that were sent and received."


# A run's time at work: the time in which a call of an agent or a tool is open, and the time at work of its children.
#
# - Folded from the times of the records, so it is the same in every process; only for runs with a limit of seconds.
# - A call is counted when a worker answers it. While a run waits for a person or a timer nothing is counted, and
#   neither is the time between two processes: the first answer after a restart says when its worker began.
# - A child is counted when it reports, by its own time at work: it may have waited for a person, or for a server that
#   was down. What goes on side by side counts once.
# - From the first refusal of a call on, only the attempt that is answered counts.
# - A call that a worker holds back, for the sake of its provider or until a person has spoken, is not at work.
# - The deadline is a timer that is open only while something is at work. A step that answers one call and makes the
#   next one leaves it alone, so it costs a record only where work begins or ends. A child has its own.


DEADLINE = "ripstop:deadline"
"""Name of the kernel's own timer, which ends a run whose time is up."""
AT_WORK = frozenset({AskAgent, CallTool})
ANSWERED_BY_WORKERS = frozenset({*AT_WORK, SetTimer})
SECOND = 1_000_000


class WorkTime(Struct, frozen=True, gc=False):
    """Times in microseconds."""

    counted: int = 0
    """Up to the last answer of a worker."""
    since: int = 0
    """When the time that is not counted yet began; 0 while nothing is at work."""
    deadline: int = 0
    """The open timer that ends the run when its time is up; 0 for none."""

    def is_up(self, seconds: float) -> bool:
        return self.counted >= round(seconds * SECOND)

    def within(self, seconds: float | None) -> "WorkTime":
        """Without what was worked beyond a limit, so that raising the limit by a second gives a second."""
        if seconds is None or self.counted <= seconds * SECOND:
            return self
        return WorkTime(round(seconds * SECOND), self.since, self.deadline)

    def until(self, at: int) -> int:
        """What is counted up to that moment, if what is at work now is counted."""
        return self.counted + (max(0, at - self.since) if self.since else 0)

    def left(self, seconds: float) -> float:
        """Seconds until the limit, as far as time is counted."""
        return max(0.0, seconds - self.counted / SECOND)


class HasCommand(Protocol):
    """The fields of an open command that are used here."""

    @property
    def command(self) -> Command: ...


def is_deadline(command: Command) -> bool:
    return type(command) is SetTimer and command.name == DEADLINE


def after_asking(time: WorkTime, number: int, command: Command, at: int) -> WorkTime:
    if type(command) in AT_WORK:
        return time if time.since else WorkTime(time.counted, at, time.deadline)
    return WorkTime(time.counted, time.since, number) if is_deadline(command) else time


def after_answer(time: WorkTime, command: Command, answered: Answered, in_doubt: bool, at: int) -> WorkTime:
    """Count up to an answer."""
    deadline = 0 if answered.to == time.deadline else time.deadline
    if time.since and type(command) in ANSWERED_BY_WORKERS and not in_doubt:
        return WorkTime(time.counted + max(0, at - max(time.since, answered.began)), at, deadline)
    if type(command) in AT_WORK and not in_doubt:  # it was refused before, so time had stopped
        return WorkTime(time.counted + round(answered.took * SECOND), time.since, deadline)
    return WorkTime(time.counted, time.since, deadline)


def after_child(time: WorkTime, opened: "Open", answered: Answered, at: int) -> WorkTime:
    """Count what a child has worked, as far as that is not counted already."""
    worked = answered.answer.worked if type(answered.answer) is RunFinished else None
    if worked is None:
        worked = at - max(opened.at, answered.began)
    uncounted = at - opened.at - (time.until(at) - opened.counted)
    return WorkTime(time.counted + max(0, min(worked, uncounted)), time.since, time.deadline)


def in_fork(still_open: Mapping[int, HasCommand], in_doubt: Collection[int], at: int) -> WorkTime:
    """A fork has all its time before it."""
    deadline = next((number for number, opened in still_open.items() if is_deadline(opened.command)), 0)
    return after_closing(WorkTime(0, at, deadline), still_open, in_doubt)


def after_closing(time: WorkTime, still_open: Mapping[int, HasCommand], in_doubt: Collection[int]) -> WorkTime:
    """Stop counting if nothing is at work any more, and forget a deadline that is closed."""
    if time.since:
        for number, opened in still_open.items():
            if type(opened.command) in AT_WORK and number not in in_doubt:
                break
        else:
            time = WorkTime(time.counted, 0, time.deadline)
    return time if time.deadline in still_open or not time.deadline else WorkTime(time.counted, time.since, 0)


S = TypeVar("S")
Marks: TypeAlias = tuple[tuple[int, str], ...]

GUARD, DOUBT, OUTAGE, RESTORED = "ripstop:guard", "ripstop:doubt", "ripstop:outage", "ripstop:restored"
OWN_PURPOSES = (GUARD, DOUBT, OUTAGE, RESTORED)
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
    attempts: int = 0
    """Attempts that were made before it was reopened."""
    counted: int = 0
    """For a child: the run's time at work when it was asked for, in microseconds."""


class Refusals(Struct, frozen=True, gc=False):
    """What is known of an open call that was refused."""

    to: int
    count: int
    """Since it was asked."""
    since: int
    """When it was refused first since a person had it retried, in microseconds: from then on patience is counted."""
    tries: int
    """Refusals since then."""
    reason: str
    by: str = ""
    again: int = 0
    """When it is tried again, in microseconds; 0: not before somebody says so."""
    pauses: int = 0
    """How often it has paused the run since then; 0: the run is not paused."""
    question: int = 0
    """The open question to a person about it; 0: none."""
    first: int = 0
    """When it was refused first since it was asked, in microseconds: no retry changes that."""
    told: tuple[str, bool] = ("", False)
    """What `news` was when the open question was asked."""
    is_made: bool = False
    """Its next attempt is being made. Recorded only of runs with a limit of seconds."""

    @property
    def waits(self) -> bool:
        """Whether it waits for its next attempt; one that a person wants made waits no longer."""
        return self.tries > 0 and not self.is_made

    @property
    def paused(self) -> bool:
        return self.pauses > 0

    @property
    def news(self) -> tuple[str, bool]:
        """What a person has to know before anything else: who refuses it, and whether it is tried again by itself."""
        return self.by, self.again > 0


class FailedCall(Struct, frozen=True, gc=False):
    """A call of an agent that could not be made, with which a run may have ended; it can be made again."""

    number: int
    opened: Open
    state: Any
    """Of the style, before it learned of that."""


class Spent(Struct, frozen=True, gc=False):
    turns: int = 0
    """Of agents; `Style.turns` counts what else is a turn in a style."""
    calls: int = 0
    usage: Usage = Usage()
    runs: int = 0
    """That have ended below it: its children, and theirs."""


class HeldRun(Struct, frozen=True, gc=False):
    """What is known of a run since its journal was put back from a copy (`restoring`)."""

    copy: str
    """Which copy it was."""
    at: int
    """The record that says so: what was asked before was open in the copy."""
    begun: tuple[int, ...] = ()
    """Calls that a worker had begun when the copy was made."""
    question: int = 0
    """The open question to a person, before whose answer nothing is performed; 0 once it is closed."""
    said: str = ""
    """What the person said: one of the question's choices."""
    words: str = ""
    again: tuple[int, ...] = ()
    """Calls that a person wants to be made all the same."""
    went_on: int = 0
    """The call that did not happen, nor anything after it, as a person said; those before it are as they were."""
    earlier: bool = False
    """It was put back before, too, and had not come to where it was then."""


class Contents(Struct, frozen=True):
    """Content that records name by its hash, decoded once in a process and shared by its runs."""

    definitions: dict[str, Any]
    results: dict[str, Any]


class Run(Struct, Generic[S], frozen=True, gc=False):
    """A run as its records have made it."""

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
    more_turn_calls: int = 0
    """Likewise the calls of one turn."""
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
    uncertain: tuple[CutOff, ...] = ()
    """Calls that were cut off at work and may have taken effect; a person is asked when the run is resumed."""
    resumed: int = 0
    """The record with which it continued last; 0: it was never stopped."""
    resuming: bool = False
    """It is to continue when the children that were stopped with it have reported."""
    waiting: tuple[int, ...] = ()
    """Open commands that wait for what is set aside of the budget to come back."""
    asked_here: tuple[tuple[int, int], ...] = ()
    """Questions of descendants that surfaced here and that it has not answered: (record, the `StartRun` they came
    through)."""
    known_messages: tuple[str, ...] = ()
    """Ids of the last messages, so that each is heard once."""
    message_records: tuple[int, ...] = ()
    """The records of these messages, in the same order: tuples, because most runs have none, and some have many."""
    payer: str = ""
    """The command (`run/number`) that started it, or resumed it last; it pays for what is spent from then on."""
    paid: Spent = Spent()
    """What had been spent by then."""
    refused: tuple[Refusals, ...] = ()
    """Open calls that the other side has refused: a tuple, because most runs have none."""
    held_back: dict[int, str] = {}
    """Open calls that wait for what the run has not caused, each with the provider that takes no calls now. With an
    empty text, which is known only if the run's seconds are limited, a call has asked for something else."""
    failed_call: FailedCall | None = None
    """The call that could not be made in the step that came last, or with which the run ended."""
    held: HeldRun | None = None
    """What is known since its journal was put back from a copy; `None`: it never was."""
    marks: Marks = ()
    """(record, what keys of calls that are asked for after it end with): a tuple, because most runs have none."""
    unkept: str = ""
    """Why the user's files were not kept before the first call for which they were not."""

    @property
    def is_settled(self) -> bool:
        """Whether it has ended, and so have all its children: what it cost is known.

        Calls that were cut off are still to be reported; only a parent waits for them, because it pays. What it says in
        the place of an ancestor is heard there before its end is: else its last words would be lost.
        """
        if self.ended is None:
            return False
        if self.started.parent is not None:
            speaks = self.started.surface is not None and any(
                type(opened.command) is Say and not opened.command.channel for opened in self.open.values()
            )
            return not self.late and not speaks
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
    """In one word: an outcome, or `working`, `paused`, `waiting`, `listening`, or `stuck`.

    Not ended, nothing open and not listening is a run that nothing can ever move again.
    """
    if run.ended:
        return run.ended.outcome
    if run.resuming or (run.held and run.held.question):
        return "waiting"
    waits, idle = False, False
    paused = [one.to for one in run.refused if one.paused] if run.refused else ()
    for number, opened in run.open.items():
        kind = type(opened.command)
        if number in run.waiting:
            waits = True
        elif kind is AskAgent or kind is CallTool or kind is AnswerChild:
            if number not in paused and (not run.doubts or number not in run.doubts.values()):
                return "working"
        elif kind is AskPerson or kind is StartRun:
            waits = True
        else:
            idle = idle or not is_deadline(opened.command)
    if paused:
        return "paused"
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
    one that never was. So is what has its default, so that a version that knows more comes to the same; for its sake
    the runs below are left out, too: a limit on them came later.
    """
    spent = Spent(run.spent.turns, run.spent.calls, run.spent.usage)
    place = (
        run.definition,
        run.state,
        run.length,
        sorted((number, opened.command) for number, opened in run.open.items()),
        spent,
        run.ended,
    )
    # numbers as keys, such as those of open tool calls, cannot be sorted by the encoder unless they are texts
    plain = msgspec.to_builtins(_without_defaults(place), str_keys=True)
    return hashlib.sha256(_encode(plain)).hexdigest()


def _without_defaults(value: Any) -> Any:
    """The value with every Struct in it as the fields that differ from their defaults, and its class's tag."""
    if isinstance(value, Struct):
        fields = {field.name: (getattr(value, field.name), field) for field in msgspec.structs.fields(value)}
        kept = {name: _without_defaults(one) for name, (one, field) in fields.items() if not _is_default(one, field)}
        tag = type(value).__struct_config__.tag
        return kept if tag is None else {"type": tag, **kept}
    if isinstance(value, dict):
        return {key: _without_defaults(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_without_defaults(one) for one in value]
    return value


def _is_default(value: Any, field: FieldInfo) -> bool:
    if field.default_factory is not NODEFAULT:
        return bool(value == field.default_factory())
    return bool(value == field.default)  # NODEFAULT is equal to nothing else
