"""A run: what every style has in common, folded from its journal.

Folding never decides: it only applies what was decided and recorded. All of it is immutable, so
an open command can keep the state it was asked in for the price of a reference.

`type(event) is X` rather than `isinstance`: of the events only `Worked` has subclasses, every record is folded, and
a class of msgspec makes `isinstance` slow where the answer is no.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Generic, Protocol, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from .effects import (
    AgentReplied,
    AskAgent,
    AskPerson,
    CallTool,
    Command,
    Guards,
    Limits,
    RunFinished,
    Say,
    SetTimer,
    StartRun,
    Usage,
)
from .errors import RunNotFound
from .events import (
    CANCEL,
    RESUME,
    USE,
    Answered,
    Asked,
    Doubted,
    Ended,
    Event,
    Forked,
    GuardTripped,
    Ordered,
    Record,
    Repeated,
    Started,
    TurnResult,
    Withdrawn,
)
from .progress import TurnDigest, follow
from .resuming import GO_ON, STOP, raised
from .usage_gaps import Gap, gaps
from .work_time import WorkTime, after_answer, after_asking, after_closing, in_fork, is_deadline

S = TypeVar("S")


class Open(Struct, frozen=True, gc=False):
    """A command nobody has answered yet, with the style's state at the moment it was asked."""

    command: Command
    state: Any
    at: int
    ordinal: int = 0
    """For a call of an agent: which one of the run's calls it is, counted from 1."""


class Spent(Struct, frozen=True, gc=False):
    turns: int = 0
    calls: int = 0
    usage: Usage = Usage()


class Run(Struct, Generic[S], frozen=True, gc=False):
    id: str
    started: Started
    definition: str
    """Hash of the definition in force: the first one, or the one a fork brought."""
    limits: Limits
    began: int
    state: S
    length: int
    settings: dict[str, Any] = {}
    """What the shell must know: as the run was started, and as it was changed since (`use`, a fork)."""
    open: dict[int, Open] = {}
    doubts: dict[int, int] = {}
    """Question to a person → the command in doubt that it is about."""
    spent: Spent = Spent()
    ended: Ended | None = None
    guards: Guards = Guards()
    trail: tuple[TurnDigest, ...] = ()
    """What the last turns changed."""
    verdict: GuardTripped | None = None
    """Why a guard stopped the run, as long as it has not gone on."""
    asks_about_verdict: int = 0
    """The question to a person whether the run may go on in spite of the verdict."""
    gaps: frozenset[Gap] = frozenset()
    """What models did not say about the cost of their replies."""
    work: WorkTime = WorkTime()
    """Counted only if `limits.seconds` limits it."""


class Folding(Protocol[S]):
    """How a style's own state grows out of events."""

    def guards(self, definition: Any, wishes: Mapping[str, Any]) -> Guards:
        """The guards of a run: the style's own, then what the operator wishes, then what the definition says."""

    def begin(self, definition: Any, started: Started) -> S: ...

    def rebase(self, state: S, definition: Any) -> S: ...

    def evolve(self, state: S, number: int, event: Event) -> S: ...


def replay(
    style: Folding[S],
    definitions: Mapping[str, Any],
    run_id: str,
    records: Iterable[Record],
    run: Run[S] | None = None,
) -> Run[S] | None:
    """Fold records into a run, from the start or from where `run` left off."""
    for record in records:
        run = apply(style, definitions, run_id, run, record)
    return run


def apply(style: Folding[S], definitions: Mapping[str, Any], run_id: str, run: Run[S] | None, record: Record) -> Run[S]:
    event, number = record.event, record.number
    if run is None:
        return _started(style, definitions, run_id, record)
    if type(event) is Asked:
        state, spent = style.evolve(run.state, number, event), run.spent
        if type(event.command) is AskAgent:
            new_turn = event.command.continues is None
            spent = Spent(spent.turns + new_turn, spent.calls + 1, spent.usage)
        opened = run.open.copy()
        opened[number] = Open(event.command, state, record.at, spent.calls)
        # a style may have questions of its own after a verdict, such as why its last word could not be written
        if run.verdict and isinstance(event.command, AskPerson) and event.command.choices == (GO_ON, STOP):
            run = replace(run, asks_about_verdict=number)
        work = run.work if run.limits.seconds is None else after_asking(run.work, number, event.command, record.at)
        return replace(run, state=state, length=number, open=opened, spent=spent, work=work)
    if type(event) is Answered:
        state, spent, answer = style.evolve(run.state, number, event), run.spent, event.answer
        if type(answer) is AgentReplied or type(answer) is RunFinished:
            spent = Spent(spent.turns, spent.calls, spent.usage.plus(answer.usage))
            if type(answer) is AgentReplied and (found := gaps(run.limits, answer)):
                run = replace(run, gaps=run.gaps.union(found))
        opened = _without(run.open, event.to)
        work = run.work if run.limits.seconds is None else _work_after(run, event, opened, record.at)
        return replace(run, state=state, length=number, open=opened, spent=spent, work=work)
    if isinstance(event, TurnResult):
        state = style.evolve(run.state, number, event)
        return replace(run, state=state, length=number, trail=follow(run.trail, number, event, run.guards))
    if type(event) is Forked:
        run = _forked(style, definitions, run_id, run, event, record.at)
    return _apply_rare(replace(run, state=style.evolve(run.state, number, event), length=number), record)


def _started(style: Folding[S], definitions: Mapping[str, Any], run_id: str, record: Record) -> Run[S]:
    event, number = record.event, record.number
    if not isinstance(event, Started):
        raise RunNotFound(run_id)
    definition = definitions[event.definition]
    guards = style.guards(definition, event.guards)
    state = style.begin(definition, event)
    settings = event.settings
    return Run(run_id, event, event.definition, event.limits, record.at, state, number, settings, guards=guards)


def _apply_rare(run: Run[S], record: Record) -> Run[S]:
    """What a run has in common with few others: `run` has the state and the length already."""
    event, number = record.event, record.number
    if type(event) is Withdrawn:
        spent = Spent(run.spent.turns - event.turn, run.spent.calls - event.call, run.spent.usage)
        opened = _without(run.open, event.number)
        work = after_closing(run.work, opened, run.doubts.values())
        run = replace(run, open=opened, spent=spent, work=work)
        asked = event.number == run.asks_about_verdict
        return replace(run, verdict=None, asks_about_verdict=0) if asked else run
    if type(event) is Ended:
        return replace(run, open={}, doubts={}, ended=event, work=WorkTime(run.work.counted))
    if type(event) is GuardTripped:
        return replace(run, verdict=event)
    if type(event) is Ordered and event.order == RESUME:
        return _resumed(replace(run, began=record.at), event)
    if type(event) is Ordered and event.order == USE:
        return replace(run, settings={**run.settings, **event.arguments})
    if type(event) is Ordered and event.order == CANCEL:
        return replace(run, verdict=None, asks_about_verdict=0)  # whoever cancels does not want it to go on
    if type(event) is Doubted or type(event) is Repeated:
        doubts, work = _doubts(run, number, event), run.work
        if run.limits.seconds is not None and type(event) is Repeated and event.number in run.open:
            work = after_asking(work, event.number, run.open[event.number].command, record.at)
        return replace(run, doubts=doubts, work=after_closing(work, run.open, doubts.values()))
    return run


def _work_after(run: Run[S], event: Answered, still_open: dict[int, Open], at: int) -> WorkTime:
    answered = run.open.get(event.to)
    work, in_doubt = run.work, run.doubts.values()
    if answered:
        work = after_answer(work, event.to, answered.command, event.to in in_doubt, event.began, at)
    return after_closing(work, still_open, in_doubt)


def _forked(
    style: Folding[S], definitions: Mapping[str, Any], run_id: str, run: Run[S], event: Forked, at: int
) -> Run[S]:
    definition = event.definition or run.definition
    asked = run.asks_about_verdict in run.open  # then the fork has the question, too, and its verdict
    state = style.rebase(run.state, definitions[definition])
    limits = event.limits or run.limits
    work = WorkTime() if limits.seconds is None else in_fork(run.open, run.doubts.values(), at)
    return replace(
        run,
        id=run_id,
        state=state,
        definition=definition,
        limits=limits,
        work=work,
        guards=style.guards(definitions[definition], run.started.guards) if event.definition else run.guards,
        settings={**run.settings, **event.settings},
        began=at,
        ended=None,
        verdict=run.verdict if asked else None,
        asks_about_verdict=run.asks_about_verdict if asked else 0,
    )


def _resumed(run: Run[S], order: Ordered) -> Run[S]:
    """Somebody looked at the run and wants it to go on, so what it did before is forgiven."""
    limits, guards = raised(run.limits, run.guards, order.arguments.get("raise", {}))
    work = run.work.within(run.limits.seconds)
    return replace(
        run, limits=limits, guards=guards, work=work, trail=(), ended=None, verdict=None, asks_about_verdict=0
    )


def _without(open_: dict[int, Open], number: int) -> dict[int, Open]:
    rest = open_.copy()
    rest.pop(number, None)
    return rest


def _doubts(run: Run[S], number: int, event: Doubted | Repeated) -> dict[int, int]:
    if isinstance(event, Doubted):
        # the question to a person is the record right after the doubt
        return {**run.doubts, number + 1: event.to}
    return {question: about for question, about in run.doubts.items() if about != event.number}


WAITS_FOR: dict[type, str] = {
    AskAgent: "worker",
    CallTool: "worker",
    Say: "worker",
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
    waiting = False
    for number, opened in run.open.items():
        if WAITS_FOR[type(opened.command)] == "worker" and number not in run.doubts.values():
            return "working"
        waiting = waiting or not is_deadline(opened.command)
    if waiting:
        return "waiting"
    return "listening" if listening else "stuck"


_encode = msgspec.json.Encoder(order="sorted").encode


def fingerprint(run: Run[Any]) -> str:
    """A hash of where the run stands: equal for two runs that stand in the same place.

    Times and ids are left out, so that a run that was killed and resumed can be compared with
    one that never was.
    """
    standing = (
        run.definition,
        run.state,
        run.length,
        sorted((number, opened.command) for number, opened in run.open.items()),
        run.spent,
        run.ended,
    )
    # numbers as keys, such as those of open tool calls, cannot be sorted by the encoder unless they are texts
    plain = msgspec.to_builtins(standing, str_keys=True)
    return hashlib.sha256(_encode(plain)).hexdigest()
