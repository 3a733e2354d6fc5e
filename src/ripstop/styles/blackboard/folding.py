"""How a run on a board is folded from its records."""

from typing import Any

import msgspec
from msgspec.structs import replace

from ripstop.kernel.effects import (
    Answer,
    AskAgent,
    AskPerson,
    CallTool,
    Command,
    PersonAnswered,
    RunFinished,
    StartRun,
    ToolReturned,
)
from ripstop.kernel.events import Answered, Asked, CancelRequested, Event, Resumed, TurnRestarted
from ripstop.kernel.result import handed_on, read_result

from .. import turn as turns
from ..checks import failed
from ..key_lines import key_lines
from ..reply import meant
from ..reply_operations import WRITE as WRITE_FILE
from .calls import CHECK, OPEN, WRITE, CheckedBoard, HistoryTail, OpenedBoard, WrittenBoard
from .decision import read_decision
from .definition import FINISH, MAIN
from .flow import LAST_REPORT, PURPOSE, flip_key
from .gates import is_finished
from .history import History, decision_entry, read_history, report_entry, user_entry
from .plan import apply_updates, tasks_of, updates_in
from .report import claims_shown, current_report
from .standings import left_open, with_report
from .state import (
    BoardEdited,
    BoardState,
    ChecksFailed,
    Decided,
    KnownBoard,
    MainDecided,
    RefusedWork,
    Reported,
    ReportVerified,
    UserDecided,
    Writing,
)

MAX_FLIPS = 20
"""Verdicts that are kept per agent and task, and pairs of them."""
MIN_KEPT = 12
"""Decisions, reports and refusals that are kept for those who look."""


def evolve(state: BoardState, number: int, event: Event) -> BoardState:
    """Fold one event. Whatever it does to the plan, the tasks are those of the plan."""
    folded = _evolve(state, number, event)
    known = folded.known
    if known.plan is state.known.plan:
        return folded
    return replace(folded, known=_with_tasks(known, state))


def _evolve(state: BoardState, number: int, event: Event) -> BoardState:
    match event:
        case MainDecided() | ReportVerified() | ChecksFailed() | UserDecided() | BoardEdited():
            return _recorded(state, number, event)
        case Asked(command=command):
            return _asked(state, number, event, command)
        case Answered(answer=PersonAnswered() as said) if state.phase == "user":
            return replace(_with_nothing_found(state), said=said, found_at=number)
        case Answered(answer=RunFinished() as finished):
            return joined(state, number, finished, None)
        case Answered(to=to, answer=ToolReturned(value=value)) if to == state.asked_at:
            return _found(state, number, value)
        case Resumed(raises=raises, accept_edits=accepts):
            return _resumed(state, int(raises.get("iterations", 0)), accepts)
        case TurnRestarted():
            return replace(state, turn=None)
        case CancelRequested():
            return replace(state, cancelled=True)
    turn = turns.evolve(state.turn, number, event)
    return state if turn is state.turn else replace(state, turn=turn)


def _recorded(
    state: BoardState, number: int, event: MainDecided | ReportVerified | ChecksFailed | UserDecided | BoardEdited
) -> BoardState:
    match event:
        case MainDecided():
            return _decided(state, number, event)
        case ReportVerified():
            return _reported(state, event)
        case ChecksFailed(iteration=iteration, agent=agent, shown=found):
            made = RefusedWork(iteration, number, agent, failed(found))
            return replace(state, refusals=(*state.refusals[1 - MIN_KEPT :], made))
        case UserDecided():
            return _answered_by_user(state, event)
        case BoardEdited():
            return replace(state, rewrites=state.rewrites + 1)


def _with_tasks(known: KnownBoard, before: BoardState) -> KnownBoard:
    """The tasks of a plan that is new. What MAIN has not written, a person has."""
    tasks, policy = tasks_of(known.plan), before.definition.policy
    done = [one.id.casefold() for one in tasks if is_finished(one, policy)]
    if known.plan is before.writing.plan:
        return replace(known, tasks=tasks, accepted=tuple(one for one in known.accepted if one in done))
    was_done = {one.id.casefold() for one in before.known.tasks if is_finished(one, policy)}
    accepted = tuple(one for one in done if one in known.accepted or one not in was_done)
    return replace(known, tasks=tasks, given=tasks, accepted=accepted)


def joined(state: BoardState, number: int, finished: Answer, result: Any) -> BoardState:
    """The end of a workflow that took an agent's place: its result is the report."""
    assert isinstance(finished, RunFinished)
    found = read_result(result)
    report = handed_on(found.whole_text, finished)
    if isinstance(found.data, dict) and isinstance(inner := found.data.get(LAST_REPORT), str):
        report = f"{report}\n\n{inner}"  # of a board: the lines that its last agent wrote
    lines, prefix = report.splitlines(), state.definition.policy.report_rules.iteration_prefix
    counted = {line.number: line.value for line in key_lines(lines, prefix)}
    if set(counted.values()) != {str(state.iteration)}:  # it knows nothing of iterations, or counts its own
        kept = [line for number, line in enumerate(lines, 1) if number not in counted]
        report = "\n".join([f"{prefix} {state.iteration}", *kept])
    continued = finished.run if finished.outcome == "limit" else ""
    return replace(state, report=report, report_number=number, continued=continued)


# Commands


def _asked(state: BoardState, number: int, event: Asked, command: Command) -> BoardState:
    match command:
        case AskAgent(agent=agent, continues=None):
            turn = turns.evolve(None, number, event)
            if agent == MAIN:
                return replace(state, phase="main", turn=turn, decision=None, agent=None)
            return replace(_with_agent(state, agent), turn=turn)
        case StartRun():
            assert state.decision is not None
            return replace(_with_agent(state, state.decision.next_agent), turn=None)
        case AskPerson(purpose=purpose) if purpose == PURPOSE:
            return replace(state, phase="user")
        case CallTool(tool=tool, agent="") if tool == OPEN:
            return replace(state, phase="open", asked=OPEN, asked_at=number)
        case CallTool(tool=tool, agent="") if tool == CHECK:
            return replace(_with_report(state), phase="check", asked=CHECK, asked_at=number)
        case CallTool(tool=tool, agent="") if tool == WRITE:
            return replace(state, asked=WRITE, asked_at=number)
    turn = turns.evolve(state.turn, number, event)
    return state if turn is state.turn else replace(state, turn=turn)


def _with_agent(state: BoardState, name: str) -> BoardState:
    agent = state.definition.agent(name)
    return replace(
        _with_nothing_found(state), phase="agent", agent=agent, report="", report_number=0, report_kept=False
    )


def _with_report(state: BoardState) -> BoardState:
    """The agent's last words are its report, unless it has written the report's file in this turn."""
    turn, agent = state.turn, state.agent
    if turn is None or agent is None or not turn.exchanges or state.report_number:
        return state
    last = turn.exchanges[-1]
    text = meant(last.reply.text)
    for tool, arguments in turns.effects_of(turn):
        named = str(arguments.get("path", "")).casefold()
        if tool == WRITE_FILE and named.removeprefix(f"{agent.name}/".casefold()) == agent.report.casefold():
            text = str(arguments.get("content", ""))
    return replace(state, report=text, report_number=last.number)


# What the board's tools have found


def _with_nothing_found(state: BoardState) -> BoardState:
    return replace(state, checked=CheckedBoard(), written=WrittenBoard())


def _found(state: BoardState, number: int, value: Any) -> BoardState:
    if state.asked == WRITE and state.phase == "check":
        return _kept(state, msgspec.convert(value, WrittenBoard))
    state = replace(_with_nothing_found(state), found_at=number)
    if state.asked == OPEN:
        return _opened(state, msgspec.convert(value, OpenedBoard))
    if state.asked == CHECK:
        return _checked(state, number, msgspec.convert(value, CheckedBoard))
    return _written(state, msgspec.convert(value, WrittenBoard))


def _kept(state: BoardState, answer: WrittenBoard) -> BoardState:
    """A refused report was written to the board, or edits were found instead. What was checked stays in view."""
    state = replace(state, known=replace(state.known, digest=answer.digest))
    if answer.edited:
        return replace(_with_edits(state, answer), rewrites=state.rewrites + 1)
    return replace(state, report_kept=True)


def _opened(state: BoardState, answer: OpenedBoard) -> BoardState:
    known = KnownBoard(answer.digest, answer.plan, _history(state, answer.tail))
    blocked = left_open(state.definition, answer.blocker_lines)
    return replace(state, known=known, iteration=answer.iteration + 1, taken=1, left_open=blocked)


def _history(state: BoardState, tail: HistoryTail) -> History:
    return read_history(tail.history, tail.left_out, state.definition.policy.recent_history)


def _checked(state: BoardState, number: int, answer: CheckedBoard) -> BoardState:
    state, text = replace(state, checked=answer), answer.report
    if not answer.changed:
        state = replace(state, known=replace(state.known, digest=answer.digest or ""))
    if text is None or text == state.report:
        return replace(state, recheck=False)
    evidence = bool(state.definition.policy.evidence)
    return replace(state, report=text, report_number=number, recheck=evidence)


def _written(state: BoardState, answer: WrittenBoard) -> BoardState:
    known, writing = replace(state.known, digest=answer.digest), state.writing
    state = replace(state, written=answer)
    if answer.edited:
        return _with_edits(replace(state, known=known), answer)
    if writing.plan is not None:
        known = replace(known, plan=writing.plan)
    if writing.append:
        most = state.definition.policy.recent_history
        known = replace(known, history=known.history.plus(writing.append.strip(), most))
    ends = state.phase == "decide" and state.decision is not None and state.decision.next_agent == FINISH
    state = replace(state, known=known, writing=Writing(), rewrites=0, finished=ends)
    if state.phase in ("report", "answer"):
        return replace(
            state, iteration=state.iteration + 1, taken=state.taken + 1, decision=None, agent=None, phase="sync"
        )
    return state


def _with_edits(state: BoardState, answer: WrittenBoard) -> BoardState:
    known, writing, plan = state.known, state.writing, answer.plan
    if answer.history is not None:
        known = replace(known, history=_history(state, answer.history))
    if plan is not None:
        known = replace(known, plan=plan)
        if writing.plan is not None and state.decision is not None:
            updates, done = updates_in(state.decision.dev_plan), state.definition.policy.done_statuses
            updated, _ = apply_updates(plan, updates, done)
            writing = replace(writing, plan=None if updated == plan else updated)
    return replace(state, known=known, writing=writing)


# Decisions


def _decided(state: BoardState, number: int, event: MainDecided) -> BoardState:
    assert state.turn is not None
    decision = read_decision(state.turn.exchanges[-1].reply.text, state.definition)
    before, updates, done = state.known.plan, updates_in(decision.dev_plan), state.definition.policy.done_statuses
    tasks = None if decision.dev_plan_next else state.known.tasks
    plan, unplaced = apply_updates(decision.dev_plan_next or before, updates, done, tasks)
    entry = decision_entry(state.iteration, decision, event.at)
    ends = decision.next_agent == FINISH
    writing = Writing(append=_apart(entry), plan=None if plan == before else plan, close=ends, unplaced=unplaced)
    made = Decided(state.iteration, number, decision.next_agent, decision.reason, event.shown)
    kept = (*state.decisions[1 - MIN_KEPT :], made)
    return replace(state, phase="decide", turn=None, decision=decision, writing=writing, decisions=kept, continued="")


def _reported(state: BoardState, event: ReportVerified) -> BoardState:
    agent, policy = state.agent, state.definition.policy
    assert agent is not None and state.decision is not None
    report = current_report(state)
    found = tuple(one for _, one in claims_shown(state, report))
    words = state.report.strip()
    one = Reported(
        iteration=state.iteration,
        agent=agent.name,
        number=event.report,
        text=words[: policy.max_report_chars],
        length=len(words),
        verdict=event.verdict,
        blockers=report.open_blockers,
        shown=found,
    )
    kept = max(policy.recent_reports, MIN_KEPT)
    entry = report_entry(state.iteration, agent.name, agent.report, event.verdict, report.open_blockers, event.at)
    writing = Writing(append=_apart(entry), reports=report_file(state))
    return replace(
        with_report(state, report, found),
        phase="report",
        turn=None,
        writing=writing,
        reports=(*state.reports[1 - kept :], one),
        verdicts={**state.verdicts, agent.name.casefold(): event.verdict},
        flips=_flips(state, flip_key(agent.name, state.decision.assignment), event.verdict),
    )


def _flips(state: BoardState, key: str, verdict: str) -> dict[str, tuple[str, ...]]:
    flips = {name: said for name, said in state.flips.items() if name != key}
    if len(flips) >= MAX_FLIPS:
        flips.pop(next(iter(flips)))
    return {**flips, key: (*state.flips.get(key, ())[1 - MAX_FLIPS :], verdict)}


def _answered_by_user(state: BoardState, event: UserDecided) -> BoardState:
    said, decision = state.said, state.decision
    assert decision is not None
    question = decision.question or decision.reason
    entry = user_entry(state.iteration, question, said.choice, said.text, said.by, event.at)
    return replace(state, phase="answer", writing=Writing(append=_apart(entry)))


def _apart(entry: str) -> str:
    """An entry with a blank line before it."""
    return f"\n{entry}"


def report_file(state: BoardState) -> dict[str, str]:
    assert state.agent is not None
    return {state.agent.report: f"{state.report.rstrip()}\n"}


# Resuming


def _resumed(state: BoardState, more: int, accepts: bool) -> BoardState:
    """Begin again what was not finished: a write goes on, a turn that went wrong is taken again."""
    state = replace(state, most_iterations=state.most_iterations + more, rewrites=0, flips={})
    match state.phase:
        case "open" | "decide" | "report" | "answer":
            return state
        case "check" if state.checked.changed:
            return replace(state, phase="sync", writing=Writing()) if accepts else state
        case "agent" | "check":
            state = replace(state, report="", report_number=0, writing=Writing())
            return replace(state, phase="sync") if accepts else replace(state, phase="agent")
    return replace(state, phase="sync", writing=Writing())
