"""What faces show of a run on a board: the plan, what was decided and why, what was claimed and what was shown."""

from typing import Literal

from msgspec.structs import replace

from ripstop.kernel.events import Event
from ripstop.kernel.parts import Claim, Claims, Facts, Ledger, LedgerEntry, Part, Task, Tasks
from ripstop.kernel.run import Run, end_line
from ripstop.kernel.style import Explanation, Picture, Reason

from ..checks import Shown, as_reason
from .decision import WrongDecision, read_decision
from .definition import MAIN, USER, VerificationPolicy
from .plan import PlanTask
from .report import Report, claims_shown, current_report
from .state import (
    BoardEdited,
    BoardState,
    ChecksFailed,
    MainDecided,
    Reported,
    ReportVerified,
)

_FAILED = ("FAIL", "FAILED", "BLOCKED", "REJECTED")
_OPEN = ("", "TODO", "OPEN", "PENDING", "PLANNED", "NEW")


def picture(run: Run[BoardState]) -> Picture:
    state = run.state
    return Picture(
        where=where(state),
        whose_turn="" if run.ended else whose_turn(state),
        progress=_progress(state),
        document=_said_last(state),
    )


def where(state: BoardState) -> str:
    return USER if state.phase == "user" else whose_turn(state)


def _said_last(state: BoardState) -> str:
    """The words of whoever spoke last: a decision, once it is read; a report, even if it is refused."""
    if state.phase == "main" and state.turn and state.turn.exchanges:
        return state.turn.exchanges[-1].reply.text
    if state.phase in ("agent", "check") and state.report_number:
        return state.report
    decision = state.decision
    if decision and state.phase in ("decide", "agent", "user"):
        return f"{decision.next_agent}: {decision.reason}"
    return state.reports[-1].text if state.reports else ""


def gist(run: Run[BoardState]) -> str:
    if reason := end_line(run):
        return reason
    state = run.state
    who = whose_turn(state)
    return f"iteration {state.iteration}, {who}" if state.iteration and who else "opening the board"


def whose_turn(state: BoardState) -> str:
    if state.phase == "user":
        return "a person"
    if state.phase in ("agent", "check", "report") and state.agent:
        return state.agent.name
    return MAIN


def parts(run: Run[BoardState]) -> tuple[Part, ...]:
    state = run.state
    last = state.reports[-1] if state.reports else None
    facts = [
        ("Iteration", f"{state.iteration} (at most {state.most_iterations} in this run)"),
        ("Turn", "" if run.ended else whose_turn(state)),
        ("Plan", state.definition.plan),
        ("Last verdict", f"{last.agent}: {last.verdict}" if last and last.verdict else ""),
    ]
    facts += [("Blocker", f"{last.agent}: {one}") for one in last.blockers] if last else []
    left = ((agent, one) for agent, ones in state.left_open.items() for one in ones)
    facts += [("Blocker of an earlier run", f"{agent}: {one}") for agent, one in left]
    found: list[Part] = [Facts(tuple(row for row in facts if row[1]), state.definition.name)]
    tasks = state.known.tasks
    if tasks:
        policy = state.definition.policy
        found.append(Tasks(tuple(_task(one, policy) for one in tasks), f"{_done(tasks, policy)} of {len(tasks)} done"))
    if state.decisions:
        entries = (
            LedgerEntry(one.number, MAIN, one.reason, f"{one.iteration} → {one.next_agent}") for one in state.decisions
        )
        found.append(Ledger(tuple(entries), "Decisions"))
    reported = (claim for one in state.reports for claim in _claims(one))
    refused = (claim for one in state.refusals for claim in _rows(one.number, one.by, one.iteration, one.failed))
    claims = sorted((*reported, *_gates(state), *refused), key=lambda one: one.number)
    if claims:
        found.append(Claims(tuple(claims), "Claimed and shown"))
    return tuple(found)


def explain(before: BoardState, event: Event) -> Explanation:
    match event:
        case MainDecided():
            return Explanation((*_why_decided(before), *map(as_reason, event.shown)))
        case ChecksFailed(agent=agent, shown=found):
            said = _why_decided(before) if agent == MAIN else (Reason(_said(current_report(before))),)
            return Explanation((*(replace(one, taken=False) for one in said), *map(as_reason, found)))
        case ReportVerified():
            report = current_report(before)
            shown = (one for _, one in claims_shown(before, report))
            return Explanation((Reason(_said(report), taken=True), *map(as_reason, shown)))
        case BoardEdited(paths=paths):
            return Explanation((Reason(f"edited between two turns: {', '.join(paths)}"),))
    return Explanation()


def _why_decided(before: BoardState) -> tuple[Reason, ...]:
    if before.turn is None or not before.turn.exchanges:
        return ()
    try:
        decision = read_decision(before.turn.exchanges[-1].reply.text, before.definition)
    except WrongDecision:
        return ()
    return (Reason(f"{decision.next_agent}: {decision.reason}", taken=True),)


def _said(report: Report) -> str:
    return f"verdict {report.verdict or 'none'}, {_blockers(report.open_blockers)}"


def _blockers(blockers: tuple[str, ...]) -> str:
    return f"blocked by {'; '.join(blockers)}" if blockers else "no blockers"


def _progress(state: BoardState) -> str:
    tasks = state.known.tasks
    done = f", {_done(tasks, state.definition.policy)} of {len(tasks)} tasks done" if tasks else ""
    before = f" (iteration {state.iteration} of the board)" if state.iteration != state.taken else ""
    return f"{state.taken} of at most {state.most_iterations} iterations{before}{done}"


def _done(tasks: tuple[PlanTask, ...], policy: VerificationPolicy) -> int:
    return sum(_state_of(one, policy) == "done" for one in tasks)


def _task(one: PlanTask, policy: VerificationPolicy) -> Task:
    title = f"{one.title} ({one.status})" if one.status else one.title
    return Task(one.id, title, _state_of(one, policy))


def _state_of(one: PlanTask, policy: VerificationPolicy) -> Literal["open", "doing", "done", "failed"]:
    status = one.status.upper()
    if status in (word.upper() for word in policy.done_statuses):
        return "done"
    if status in _OPEN:
        return "open"
    return "failed" if status in _FAILED else "doing"


def _claims(one: Reported) -> list[Claim]:
    if not one.shown:
        return [Claim(one.number, _by(one.agent, one.iteration), one.verdict)] if one.verdict else []
    return _rows(one.number, one.agent, one.iteration, one.shown)


def _gates(state: BoardState) -> list[Claim]:
    """What the gates wanted of the last decision."""
    if not state.decisions:
        return []
    last = state.decisions[-1]
    return _rows(last.number, MAIN, last.iteration, last.shown)


def _rows(number: int, agent: str, iteration: int, found: tuple[Shown, ...]) -> list[Claim]:
    return [Claim(number, _by(agent, iteration), one.claimed, one.shown, one.holds) for one in found]


def _by(agent: str, iteration: int) -> str:
    return f"{agent}, iteration {iteration}"
