"""Folding records into a run. It never decides: it only applies what was decided and recorded.

`type(event) is X` rather than `isinstance`: of the events only `TurnResult` and a style's facts have subclasses, every
record is folded, and a class of msgspec makes `isinstance` slow where the answer is no.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeVar

from msgspec.structs import replace

from .doubts import IN_DOUBT, MOST_CUT_OFF, cut_off_by, given_up
from .effects import (
    AgentReplied,
    AnswerChild,
    AskAgent,
    AskPerson,
    CallTool,
    Command,
    CutOff,
    Failed,
    Guards,
    RunFinished,
    Say,
    SetTimer,
    StartRun,
    ToolReturned,
)
from .errors import RunNotFound
from .events import (
    Allowed,
    Answered,
    Asked,
    CallHeldBack,
    CallRefused,
    CancelRequested,
    ChildSpoke,
    Doubted,
    DoubtResolved,
    Ended,
    Event,
    Forked,
    GuardTripped,
    Heard,
    Record,
    Redefined,
    Reopened,
    Repeated,
    Restored,
    Resumed,
    ResumeRequested,
    SettingsChanged,
    Started,
    TurnRestarted,
    TurnResult,
    Withdrawn,
)
from .progress import follow
from .restoring import ASK, after_repeat, is_held, is_where_it_was
from .restoring import after_answer as after_copy_answered
from .resuming import raised
from .run import (
    DOUBT,
    GUARD,
    OUTAGE,
    RESTORED,
    Contents,
    FailedCall,
    HeldRun,
    Open,
    Refusals,
    Run,
    Spent,
    WorkTime,
    after_answer,
    after_asking,
    after_child,
    after_closing,
    gaps,
    in_fork,
    is_transcript,
)

S = TypeVar("S")

KNOWN_MESSAGES = 100
"""Ids of messages that a run remembers, so that each is heard once."""
KNOWN_LATE = 100
"""Withdrawn calls of agents and tools whose late answers are still recorded."""
REPORTING = frozenset({AskAgent, CallTool, StartRun})
"""Commands that may cost something, so that their answers are recorded even if they are no longer needed."""


class Folding(Protocol[S]):
    """How a style's own state grows out of events."""

    def guards(self, definition: Any, wishes: Mapping[str, Any]) -> Guards: ...

    def begin(self, definition: Any, started: Started) -> S: ...

    def rebase(self, state: S, definition: Any) -> S: ...

    def evolve(self, state: S, number: int, event: Event) -> S: ...

    def joined(self, state: S, number: int, event: Answered, result: Any) -> S: ...


def replay(
    style: Folding[S],
    contents: Contents,
    run_id: str,
    records: Iterable[Record],
    run: Run[S] | None = None,
) -> Run[S] | None:
    """Fold records into a run, from the start or from where `run` left off."""
    for record in records:
        run = apply(style, contents, run_id, run, record)
    return run


def apply(style: Folding[S], contents: Contents, run_id: str, run: Run[S] | None, record: Record) -> Run[S]:
    event, number = record.event, record.number
    if run is None:
        return _started(style, contents, run_id, record)
    if type(event) is Asked:
        state, command = style.evolve(run.state, number, event), event.command
        if event.waits:
            opened = {**run.open, number: Open(command, state, record.at)}
            return replace(run, state=state, length=number, open=opened, waiting=(*run.waiting, number))
        if type(command) is not AskAgent:
            return _asked(run, number, command, state, record.at)
        spent, opened = run.spent, run.open.copy()  # by far the most frequent
        spent = replace(spent, turns=spent.turns + (command.continues is None), calls=spent.calls + 1)
        opened[number] = Open(command, state, record.at, spent.calls)
        timed = run.limits.seconds is not None and not is_held(run)
        work = after_asking(run.work, number, command, record.at) if timed else run.work
        return replace(run, state=state, length=number, open=opened, spent=spent, work=work)
    if type(event) is Answered:
        return _answered(style, contents, run, event, record)
    if isinstance(event, TurnResult):
        state = style.evolve(run.state, number, event)
        return replace(run, state=state, length=number, trail=follow(run.trail, number, event, run.guards))
    if type(event) is DoubtResolved:
        return _doubt_resolved(style, run, event, number)
    if type(event) is Forked or type(event) is Redefined:
        run = _redefined(style, contents, run, event)
        if type(event) is Forked:
            run = _forked(_marked(run, number, event.mark), run_id, event, record.at)
    return _apply_rare(replace(run, state=style.evolve(run.state, number, event), length=number), record)


def _started(style: Folding[S], contents: Contents, run_id: str, record: Record) -> Run[S]:
    event = record.event
    if not isinstance(event, Started):
        raise RunNotFound(run_id)
    definition = contents.definitions[event.definition]
    return Run(
        run_id,
        event,
        event.definition,
        event.limits,
        record.at,
        style.begin(definition, event),
        record.number,
        event.settings,
        event.pinned,
        guards=style.guards(definition, event.guards),
        payer=f"{event.parent[0]}/{event.parent[1]}" if event.parent else "",
        held=HeldRun("", record.number, said=ASK) if event.in_doubt else None,
        marks=((record.number, event.mark),) if event.mark else (),
    )


def _asked(run: Run[S], number: int, command: Command, state: S, at: int) -> Run[S]:
    if type(command) is AskPerson:
        if command.purpose == DOUBT:
            run = replace(run, doubts={**run.doubts, number: command.about[0]})
        elif command.purpose == GUARD:
            run = replace(run, asks_about_verdict=number)
        elif command.purpose == OUTAGE:
            told = next((one.news for one in run.refused if one.to == command.about[0]), ("", False))
            run = _with_refusals(run, command.about[0], question=number, told=told)
        elif command.purpose == RESTORED and run.held:
            run = replace(run, held=replace(run.held, question=number))
    elif type(command) is Say and is_transcript(run, command):
        return replace(run, state=state, length=number)  # it is sent, because it can be read
    opened = run.open.copy()
    opened[number] = _open(run, command, state, at)
    timed = run.limits.seconds is not None and not is_held(run)
    work = after_asking(run.work, number, command, at) if timed else run.work
    return replace(run, state=state, length=number, open=opened, work=work)


def _open(run: Run[S], command: Command, state: S, at: int) -> Open:
    counted = run.work.until(at) if type(command) is StartRun else 0
    return Open(command, state, at, run.spent.calls, counted=counted)


def _answered(style: Folding[S], contents: Contents, run: Run[S], event: Answered, record: Record) -> Run[S]:
    number, answer = record.number, event.answer
    run, spent = _reported(run, event)
    if event.to in run.late:
        return _answered_late(run, event, number, spent)
    opened = _without(run.open, event.to)
    if run.ended:  # a message that was delivered after the end
        return replace(run, length=number, open=opened, spent=spent)
    troubled = run.refused or run.failed_call or run.held_back
    if troubled or run.asked_here or run.waiting or type(answer) is Failed:
        run = _after_refusals(_after_wait(run, event), event)
    if type(answer) is RunFinished and answer.result:
        state = style.joined(run.state, number, event, contents.results[answer.result])
    else:
        state = style.evolve(run.state, number, event)
    work = run.work if run.limits.seconds is None else _work_after(run, event, opened, record.at)
    if event.to in run.doubts:
        run = replace(run, doubts=_without(run.doubts, event.to))
    if run.held and event.to == run.held.question:
        held = after_copy_answered(run.held, answer)
        run, work = replace(run, held=held), _work_again(run, opened, record.at)
    return replace(run, state=state, length=number, open=opened, spent=spent, work=work)


def _reported(run: Run[S], event: Answered) -> tuple[Run[S], Spent]:
    """What an answer says beside the answer, also a late one: above all what it cost."""
    answer, spent = event.answer, run.spent
    if event.retries:
        spent = replace(spent, usage=spent.usage.plus(event.retried))
    if type(answer) is AgentReplied:
        spent = replace(spent, usage=spent.usage.plus(answer.usage))
        if (found := gaps(run.limits, answer)) and event.to not in run.late:  # a late answer cannot say so
            run = replace(run, gaps=run.gaps.union(found))
    elif type(answer) is RunFinished:
        return _after_child(run, event.to, answer, spent)
    elif type(answer) is Failed:
        spent = replace(spent, usage=spent.usage.plus(answer.usage))
    elif type(answer) is ToolReturned and answer.unkept:
        run = replace(run, unkept=run.unkept or answer.unkept)
    return run, spent


def _after_child(run: Run[S], to: int, answer: RunFinished, spent: Spent) -> tuple[Run[S], Spent]:
    """A child has reported what it cost, and asks no more questions."""
    if run.asked_here:
        run = replace(run, asked_here=tuple(one for one in run.asked_here if one[1] != to))
    calls, runs = spent.calls + max(0, answer.calls), spent.runs + max(1, answer.runs)
    return _with_cut_off(run, answer.uncertain), Spent(spent.turns, calls, spent.usage.plus(answer.usage), runs)


def _after_wait(run: Run[S], event: Answered) -> Run[S]:
    """A question of a descendant may be answered now; a command that waits is only answered in a crafted journal."""
    if not run.asked_here and not run.waiting:
        return run
    was = run.open.get(event.to)
    asked = was.command.asked if was and type(was.command) is AnswerChild else 0
    waiting = tuple(number for number in run.waiting if number != event.to)
    return replace(run, waiting=waiting, asked_here=tuple(one for one in run.asked_here if one[0] != asked))


def _allowed(run: Run[S], event: Allowed, at: int) -> Run[S]:
    """A command that has waited counts and is at work from now on."""
    was, command, spent, work = run.open.get(event.number), event.command, run.spent, run.work
    if was is None or event.number not in run.waiting:
        return run  # a crafted journal
    if type(command) is AskAgent:
        spent = replace(spent, turns=spent.turns + (command.continues is None), calls=spent.calls + 1)
    if run.limits.seconds is not None and not is_held(run):
        work = after_asking(work, event.number, command, at)
    waiting = tuple(number for number in run.waiting if number != event.number)
    run = replace(run, spent=spent, waiting=waiting)
    return replace(run, open={**run.open, event.number: _open(run, command, was.state, at)}, work=work)


def _answered_late(run: Run[S], event: Answered, number: int, spent: Spent) -> Run[S]:
    if type(event.answer) is Failed and event.answer.uncertain:
        run = _with_cut_off(run, cut_off_by(run, event.to, event.answer))
    worked = event.answer.worked if type(event.answer) is RunFinished else None
    work = replace(run.work, counted=run.work.counted + worked) if worked else run.work  # a child is counted at its end
    return replace(run, length=number, late=_without(run.late, event.to), spent=spent, work=work)


def _work_again(run: Run[S], still_open: dict[int, Open], at: int) -> WorkTime:
    """A run that was held goes on: time counts again if something is at work."""
    if run.limits.seconds is None:
        return run.work
    return after_closing(WorkTime(run.work.counted, at, run.work.deadline), still_open, _not_at_work(run))


def _work_after(run: Run[S], event: Answered, still_open: dict[int, Open], at: int) -> WorkTime:
    answered = run.open.get(event.to)
    work, in_doubt = run.work, _not_at_work(run)
    if answered and type(answered.command) is StartRun:
        work = after_child(work, answered, event, at)
    elif answered:
        work = after_answer(work, answered.command, event, event.to in in_doubt, at)
    return after_closing(work, still_open, in_doubt)


def _doubt_resolved(style: Folding[S], run: Run[S], event: DoubtResolved, number: int) -> Run[S]:
    resolved = Answered(to=event.to, answer=event.answer)
    state = style.evolve(run.state, number, resolved)
    run = _after_refusals(run, resolved)
    opened, doubts = _without(run.open, event.to), _no_doubt_about(run.doubts, event.to)
    run = replace(run, state=state, length=number, open=opened, doubts=doubts)
    return replace(run, work=after_closing(run.work, opened, _not_at_work(run)))


def _apply_rare(run: Run[S], record: Record) -> Run[S]:
    """What a run has in common with few others: `run` has the state and the length already."""
    event = record.event
    if run.failed_call and event.is_fact and not run.ended:
        run = replace(run, failed_call=None)  # the run went on in spite of it
    if type(event) is Withdrawn:
        return _withdrawn(run, event, record.at)
    if type(event) is TurnRestarted:
        return replace(run, spent=replace(run.spent, turns=run.spent.turns - 1))
    if type(event) is Ended:
        # it can no longer be asked what became of a message in doubt
        doubted = run.doubts.values()
        unsent = {n: opened for n, opened in run.open.items() if type(opened.command) is Say and n not in doubted}
        run = _with_cut_off(run, given_up(run, doubted))
        made = {number: opened.command for number, opened in run.open.items() if number not in run.waiting}
        late = _with_late(run.late, made)
        work = WorkTime(run.work.counted)
        held = run.held and replace(run.held, question=0)
        run = replace(
            run, open=unsent, late=late, doubts={}, refused=(), held=held, waiting=(), asked_here=(), held_back={}
        )
        return replace(run, ended=event, work=work, resuming=False)
    if type(event) is GuardTripped:
        return replace(run, verdict=event, uncertain=() if event.guard == IN_DOUBT else run.uncertain)
    if type(event) is Resumed:
        return _resumed(replace(run, began=record.at, resumed=record.number), event)
    if type(event) is Heard:
        return _with_message(run, heard_id(event), record.number) if event.id else run
    if type(event) is ChildSpoke:
        if event.ask:
            run = replace(run, asked_here=(*run.asked_here, (record.number, event.command)))
        return _with_message(run, spoken_id(event), record.number)
    if type(event) is Allowed:
        return _allowed(run, event, record.at)
    if type(event) is Restored:  # the question about it comes next, so time stops here
        earlier = run.held is not None and not is_where_it_was(run.held)
        held = HeldRun(event.copy, record.number, event.begun, earlier=earlier)
        run = _marked(run, record.number, event.mark)
        return replace(run, held=held, work=after_closing(run.work, run.open, run.open))
    return _steered(_with_troubled_call(run, event, record.at), event)


def _marked(run: Run[S], number: int, mark: str) -> Run[S]:
    return replace(run, marks=(*run.marks, (number, mark))) if mark else run


def _with_troubled_call(run: Run[S], event: Event, at: int) -> Run[S]:
    """A call is in doubt, was refused, or is made again."""
    if type(event) is Repeated:
        held = run.held and after_repeat(run.held, event)
        run = replace(run, doubts=_no_doubt_about(run.doubts, event.number), held=held)
        run = _with_refusals(run, event.number, since=at, tries=0, again=at, pauses=0)
        return _at_work_again(run, event.number, at)
    if type(event) is Doubted:  # the question about it comes next, so time stops here
        run = _without_refusals(run, event.to)  # a retry is for what did not happen, and that is not known any more
        return replace(run, work=after_closing(run.work, run.open, (*run.doubts.values(), *run.waiting, event.to)))
    if type(event) is CallRefused:
        return _refused(run, event, at)
    if type(event) is CallHeldBack:
        return _held_back(run, event, at)
    if type(event) is Reopened:
        return _reopened(run, event.number, at)
    return run


def _steered(run: Run[S], event: Event) -> Run[S]:
    if type(event) is SettingsChanged:
        return replace(run, settings=event.settings)
    if type(event) is CancelRequested:
        return replace(run, verdict=None, asks_about_verdict=0)  # a cancelled run is not to continue
    if type(event) is ResumeRequested and run.ended:
        return replace(run, payer=event.by if "/" in event.by else "", paid=run.spent)
    return run


def _withdrawn(run: Run[S], event: Withdrawn, at: int) -> Run[S]:
    was = run.open.get(event.number)
    if was is not None and type(was.command) is SetTimer and run.work == WorkTime(run.work.counted):
        return replace(run, open=_without(run.open, event.number))  # with every message, a session's timers go
    waited = event.number in run.waiting  # nobody was asked, so no answer comes late
    never = was is None or event.unmade or waited
    late = run.late if was is None or never else _with_late(run.late, {event.number: was.command})
    if waited:
        run = replace(run, waiting=tuple(number for number in run.waiting if number != event.number))
    if run.doubts and not event.unmade and event.number in run.doubts.values():
        run = _with_cut_off(run, given_up(run, (event.number,)))
    uncounted = event.unmade and not waited and was is not None and type(was.command) is AskAgent
    spent = replace(run.spent, calls=run.spent.calls - uncounted)
    opened = _without(run.open, event.number)
    doubts = _no_doubt_about(_without(run.doubts, event.number), event.number) if run.doubts else run.doubts
    if run.refused or run.held_back:
        run = _without_refusals(run, event.number)
    run = replace(run, open=opened, late=late, spent=spent, doubts=doubts)
    run = replace(run, work=after_closing(run.work, opened, _not_at_work(run)))
    if run.held and event.number == run.held.question:
        run = replace(run, held=after_copy_answered(run.held, None), work=_work_again(run, opened, at))
    asked = event.number == run.asks_about_verdict
    return replace(run, verdict=None, asks_about_verdict=0) if asked else run


# Calls that were refused


def _refused(run: Run[S], event: CallRefused, at: int) -> Run[S]:
    before = next((one for one in run.refused if one.to == event.to), None)
    known = before or Refusals(event.to, 0, at, 0, "")
    pauses = known.pauses + 1 if event.pauses else known.pauses
    now = Refusals(
        event.to,
        known.count + 1,
        known.since if known.tries else at,
        known.tries + 1,
        event.reason,
        event.by,
        event.again,
        pauses,
        known.question,
        known.first or at,
        known.told,
    )
    others = tuple(one for one in run.refused if one.to != event.to)
    spent = replace(run.spent, usage=run.spent.usage.plus(event.usage))
    run = replace(run, refused=(*others, now), spent=spent)
    return replace(run, work=after_closing(run.work, run.open, _not_at_work(run)))


def _held_back(run: Run[S], event: CallHeldBack, at: int) -> Run[S]:
    if event.over:
        run = replace(run, held_back=_without(run.held_back, event.to))
        return _at_work_again(_with_refusals(run, event.to, is_made=True), event.to, at)
    run = replace(run, held_back={**run.held_back, event.to: event.by})
    return replace(run, work=after_closing(run.work, run.open, _not_at_work(run)))


def _not_at_work(run: Run[S]) -> tuple[int, ...]:
    """Open calls whose time does not count: in doubt, refused, held back, or not allowed yet."""
    if not run.refused:
        return (*run.doubts.values(), *run.waiting, *run.held_back)
    refused = (one.to for one in run.refused if one.waits)
    return (*run.doubts.values(), *run.waiting, *run.held_back, *refused)


def _at_work_again(run: Run[S], number: int, at: int) -> Run[S]:
    work = run.work
    if run.limits.seconds is not None and number in run.open:
        work = after_asking(work, number, run.open[number].command, at)
    return replace(run, work=after_closing(work, run.open, _not_at_work(run)))


def _with_refusals(run: Run[S], number: int, **changes: int | tuple[str, bool]) -> Run[S]:
    if not run.refused:
        return run
    return replace(run, refused=tuple(replace(one, **changes) if one.to == number else one for one in run.refused))


def _without_refusals(run: Run[S], number: int) -> Run[S]:
    """The call, or the question about it, is closed."""
    others = (one for one in run.refused if one.to != number)
    run = replace(run, held_back=_without(run.held_back, number))
    return replace(run, refused=tuple(replace(one, question=0) if one.question == number else one for one in others))


def _after_refusals(run: Run[S], event: Answered) -> Run[S]:
    """What an answer leaves of it. A call that could not be made is remembered in case the run ends with it."""
    opened, answer, failed = run.open.get(event.to), event.answer, None
    if type(answer) is Failed and opened and type(opened.command) is AskAgent:
        again = replace(opened, attempts=event.attempt)
        failed = FailedCall(event.to, again, run.state)
    return replace(_without_refusals(run, event.to), failed_call=failed)


def _reopened(run: Run[S], number: int, at: int) -> Run[S]:
    failed = run.failed_call
    if failed is None or failed.number != number:
        return run  # a crafted journal
    opened = {**run.open, number: failed.opened}
    run = replace(run, state=failed.state, open=opened, ended=None, failed_call=None, resumed=run.length)
    return _at_work_again(run, number, at)


def _with_late(late: dict[int, Command], gone: dict[int, Command]) -> dict[int, Command]:
    """Those that may still be answered; the oldest calls are forgotten, but no child."""
    late = late | {number: command for number, command in gone.items() if type(command) in REPORTING}
    calls = [number for number, command in late.items() if type(command) is not StartRun]
    for number in calls[: max(0, len(calls) - KNOWN_LATE)]:
        del late[number]
    return late


def _with_cut_off(run: Run[S], calls: tuple[CutOff, ...]) -> Run[S]:
    return replace(run, uncertain=tuple(dict.fromkeys((*run.uncertain, *calls)))[-MOST_CUT_OFF:]) if calls else run


def _redefined(style: Folding[S], contents: Contents, run: Run[S], event: Forked | Redefined) -> Run[S]:
    digest = event.definition or run.definition
    definition, guards = contents.definitions[digest], run.guards
    if event.definition:
        more = {"patience": run.more_patience, "turn_calls": run.more_turn_calls}
        _, guards = raised(run.limits, style.guards(definition, run.started.guards), more)
    return replace(
        run,
        state=style.rebase(run.state, definition),
        definition=digest,
        pinned=run.pinned if event.pinned is None else event.pinned,
        guards=guards,
    )


def _forked(run: Run[S], run_id: str, event: Forked, at: int) -> Run[S]:
    # messages that are still on their way belong to the run that said them, and so do late answers, and its parent
    opened = {number: opened for number, opened in run.open.items() if type(opened.command) is not Say}
    asked = run.asks_about_verdict in opened  # then the fork has the question, too, and its verdict
    limits = event.limits or run.limits
    return replace(
        run,
        id=run_id,
        started=replace(run.started, parent=None, surface=None),
        payer="",
        open=opened,
        held_back={},
        late={},
        limits=limits,
        work=WorkTime() if limits.seconds is None else in_fork(opened, (*run.doubts.values(), *run.waiting), at),
        settings=event.settings or run.settings,
        began=at,
        ended=None,
        verdict=run.verdict if asked else None,
        asks_about_verdict=run.asks_about_verdict if asked else 0,
        resuming=False,
        held=HeldRun("", 0, said=ASK) if event.in_doubt else run.held,
        unkept="",
    )


def _resumed(run: Run[S], event: Resumed) -> Run[S]:
    """A person wants the run to continue, so the guards ignore what it did before."""
    limits, guards = raised(run.limits, run.guards, event.raises)
    work = run.work.within(run.limits.seconds)
    return replace(
        run,
        limits=limits,
        guards=guards,
        more_patience=run.more_patience + guards.patience - run.guards.patience,
        more_turn_calls=run.more_turn_calls + guards.turn_calls - run.guards.turn_calls,
        work=work,
        trail=(),
        ended=None,
        verdict=None,
        asks_about_verdict=0,
        uncertain=run.uncertain if event.waits else (),
        resuming=event.waits,
    )


def _with_message(run: Run[S], message: str, number: int) -> Run[S]:
    known, records = run.known_messages[1 - KNOWN_MESSAGES :], run.message_records[1 - KNOWN_MESSAGES :]
    return replace(run, known_messages=(*known, message), message_records=(*records, number))


def heard_at(run: Run[Any], id: str) -> int:
    """The record of the message with a sender's id; 0 if it is not among those that the run remembers."""
    known = dict(zip(run.known_messages, run.message_records, strict=True))
    return known.get(_heard(id), 0)


def heard_id(heard: Heard) -> str:
    """What a run remembers a message by. Senders choose ids, so they must not look like those of descendants."""
    return _heard(heard.id)


def _heard(id: str) -> str:
    return f"heard {id}"


def spoken_id(spoke: ChildSpoke) -> str:
    """What a run remembers a message of a descendant by."""
    return f"spoken {spoke.run}/{spoke.number}"


V = TypeVar("V")


def _without(some: dict[int, V], number: int) -> dict[int, V]:
    rest = some.copy()
    rest.pop(number, None)
    return rest


def _no_doubt_about(doubts: dict[int, int], number: int) -> dict[int, int]:
    return {question: about for question, about in doubts.items() if about != number}
