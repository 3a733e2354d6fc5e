"""How a run on a board is folded from its records."""

from typing import Any

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

from .. import turn as turns
from ..reply_operations import WRITE as WRITE_FILE
from .decision import read_decision
from .definition import FINISH, MAIN
from .flow import CHECK, OPEN, PURPOSE, flip_key, with_updates
from .history import decision_entry, read_history, report_entry, user_entry
from .report import lines_with, read_report, shown
from .state import (
    BoardEdited,
    BoardState,
    Decided,
    KnownBoard,
    MainDecided,
    Reported,
    ReportVerified,
    UserDecided,
    Writing,
)

MAX_FLIPS = 20
"""Verdicts that are kept per agent and task, and pairs of them."""
MIN_KEPT = 12
"""Decisions and reports that are kept for those who look."""
CONTENT = "content"


def evolve(state: BoardState, number: int, event: Event) -> BoardState:
    match event:
        case MainDecided():
            return _decided(state, number, event)
        case ReportVerified():
            return _reported(state, event)
        case UserDecided():
            return _answered_by_user(state, event)
        case BoardEdited():
            return replace(state, rewrites=state.rewrites + 1)
        case Asked(command=command):
            return _asked(state, number, event, command)
        case Answered(answer=PersonAnswered() as said) if state.phase == "user":
            return replace(state, found={"choice": said.choice, "text": said.text, "by": said.by}, found_at=number)
        case Answered(answer=RunFinished() as finished):
            return joined(state, number, finished, None)
        case Answered(answer=ToolReturned(value=value)) if not _is_turns(state, event):
            return _looked(state, number, value if isinstance(value, dict) else {})
        case Resumed(raises=raises, accept_edits=accepts):
            return _resumed(state, int(raises.get("iterations", 0)), accepts)
        case TurnRestarted():
            return replace(state, turn=None)
        case CancelRequested():
            return replace(state, cancelled=True)
    turn = turns.evolve(state.turn, number, event)
    return state if turn is state.turn else replace(state, turn=turn)


def joined(state: BoardState, number: int, finished: Answer, result: Any) -> BoardState:
    """The end of a workflow that took an agent's place: its result is the report."""
    assert isinstance(finished, RunFinished)
    text = result.get(CONTENT) if isinstance(result, dict) else result
    report = text if isinstance(text, str) and text.strip() else finished.because
    prefix = state.definition.policy.report_rules.iteration_prefix
    if not any(lines_with(report.splitlines(), prefix)):  # a workflow knows nothing of iterations
        report = f"{prefix} {state.iteration}\n{report}"
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
            return replace(state, phase="open")
        case CallTool(tool=tool, agent="") if tool == CHECK:
            return replace(_with_report(state), phase="check")
    turn = turns.evolve(state.turn, number, event)
    return state if turn is state.turn else replace(state, turn=turn)


def _with_agent(state: BoardState, name: str) -> BoardState:
    agent = state.definition.agent(name)
    return replace(state, phase="agent", agent=agent, report="", report_number=0, report_kept=False, found={})


def _with_report(state: BoardState) -> BoardState:
    """The agent's last words are its report, unless it has written the report's file in this turn."""
    turn, agent = state.turn, state.agent
    if turn is None or agent is None or not turn.exchanges or state.report_number:
        return state
    last = turn.exchanges[-1]
    text = last.reply.text
    for tool, arguments in turns.deeds(turn):
        named = str(arguments.get("path", "")).casefold()
        if tool == WRITE_FILE and named.removeprefix(f"{agent.name}/".casefold()) == agent.report.casefold():
            text = str(arguments.get("content", ""))
    return replace(state, report=text, report_number=last.number)


def _is_turns(state: BoardState, event: Answered) -> bool:
    """Whether an answer is that of a tool which the agent called."""
    return state.turn is not None and event.to in state.turn.pending


# What the board tools found


def _looked(state: BoardState, number: int, value: dict[str, Any]) -> BoardState:
    if state.phase == "check" and "edited" in value:
        return _kept(state, value)
    state = replace(state, found=value, found_at=number)
    match state.phase:
        case "open":
            return _opened(state, value)
        case "check":
            return _checked(state, number, value)
    return _written(state, value)


def _kept(state: BoardState, value: dict[str, Any]) -> BoardState:
    """A refused report was written to the board, or edits were found instead."""
    state = replace(state, known=replace(state.known, digest=str(value.get("digest", ""))))
    if value.get("edited"):
        return replace(_with_edits(state, value), rewrites=state.rewrites + 1)
    return replace(state, report_kept=True)


def _opened(state: BoardState, value: dict[str, Any]) -> BoardState:
    history = _history(state, value)
    known = KnownBoard(str(value.get("digest", "")), str(value.get("plan", "")), history)
    return replace(state, known=known, iteration=int(value.get("iteration", 0)) + 1, taken=1)


def _history(state: BoardState, value: dict[str, Any]) -> Any:
    most = state.definition.policy.recent_history
    return read_history(str(value.get("history", "")), int(value.get("left_out", 0)), most)


def _checked(state: BoardState, number: int, value: dict[str, Any]) -> BoardState:
    text = value.get("report")
    if not value.get("changed"):
        state = replace(state, known=replace(state.known, digest=str(value.get("digest", ""))))
    if not isinstance(text, str) or text == state.report:
        return replace(state, recheck=False)
    evidence = bool(state.definition.policy.evidence)
    return replace(state, report=text, report_number=number, recheck=evidence)


def _written(state: BoardState, value: dict[str, Any]) -> BoardState:
    known, writing = replace(state.known, digest=str(value.get("digest", ""))), state.writing
    if value.get("edited"):
        return _with_edits(replace(state, known=known), value)
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


def _with_edits(state: BoardState, value: dict[str, Any]) -> BoardState:
    known, writing, plan = state.known, state.writing, value.get("plan")
    if isinstance(value.get("history"), dict):
        known = replace(known, history=_history(state, value["history"]))
    if isinstance(plan, str):
        known = replace(known, plan=plan)
        if writing.plan is not None and state.decision is not None:
            updated = with_updates(plan, state.decision, state.definition.policy.done_statuses)
            writing = replace(writing, plan=None if updated == plan else updated)
    return replace(state, known=known, writing=writing)


# Decisions


def _decided(state: BoardState, number: int, event: MainDecided) -> BoardState:
    assert state.turn is not None
    decision = read_decision(state.turn.exchanges[-1].reply.text, state.definition)
    before = state.known.plan
    plan = with_updates(decision.dev_plan_next or before, decision, state.definition.policy.done_statuses)
    entry = decision_entry(state.iteration, decision, event.at)
    ends = decision.next_agent == FINISH
    writing = Writing(append=_apart(entry), plan=None if plan == before else plan, close=ends)
    kept = (*state.decisions[1 - MIN_KEPT :], Decided(state.iteration, number, decision.next_agent, decision.reason))
    return replace(state, phase="decide", turn=None, decision=decision, writing=writing, decisions=kept, continued="")


def _reported(state: BoardState, event: ReportVerified) -> BoardState:
    agent, policy = state.agent, state.definition.policy
    assert agent is not None and state.decision is not None
    report = read_report(state.report, policy.report_rules, agent.name, state.iteration)
    found = tuple(one for _, one in shown(state, state.report, report))
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
        state,
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
    said, decision = state.found, state.decision
    assert decision is not None
    question = decision.question or decision.reason
    entry = user_entry(state.iteration, question, said["choice"], said["text"], said["by"], event.at)
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
        case "check" if state.found.get("changed"):
            return replace(state, phase="sync", writing=Writing()) if accepts else state
        case "agent" | "check":
            state = replace(state, report="", report_number=0, writing=Writing())
            return replace(state, phase="sync") if accepts else replace(state, phase="agent")
    return replace(state, phase="sync", writing=Writing())
