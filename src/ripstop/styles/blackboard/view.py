"""What faces show of a run on a board: the plan, what was decided and why, what was claimed and what was shown."""

from typing import Literal

from ripstop.kernel.events import Event
from ripstop.kernel.parts import Claim, Claims, Facts, Ledger, LedgerEntry, Part, Task, Tasks
from ripstop.kernel.run import Run, end_line
from ripstop.kernel.style import Explanation, Picture, Reason

from ..checks import Shown
from .decision import WrongDecision, read_decision
from .definition import MAIN, USER, VerificationPolicy
from .plan import PlanTask
from .report import claims_shown, current_report
from .state import BoardEdited, BoardState, MainDecided, Reported, ReportVerified

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
    claims = (*(claim for one in state.reports for claim in _claims(one)), *_gates(state))
    if claims:
        found.append(Claims(claims, "Claimed and shown"))
    return tuple(found)


def explain(before: BoardState, event: Event) -> Explanation:
    match event:
        case MainDecided():
            return Explanation((*_why_decided(before), *map(_reason, event.shown)))
        case ReportVerified():
            report = current_report(before)
            said = Reason(f"verdict {report.verdict or 'none'}, {_blockers(report.open_blockers)}", taken=True)
            return Explanation((said, *(_reason(one) for _, one in claims_shown(before, report))))
        case BoardEdited(paths=paths):
            return Explanation((Reason(f"edited between two turns: {', '.join(paths)}"),))
    return Explanation()


def _reason(one: Shown) -> Reason:
    return Reason(str(one), holds=one.holds)


def _why_decided(before: BoardState) -> tuple[Reason, ...]:
    if before.turn is None or not before.turn.exchanges:
        return ()
    try:
        decision = read_decision(before.turn.exchanges[-1].reply.text, before.definition)
    except WrongDecision:
        return ()
    return (Reason(f"{decision.next_agent}: {decision.reason}", taken=True),)


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
    by = f"{one.agent}, iteration {one.iteration}"
    if not one.shown:
        return [Claim(one.number, by, one.verdict, "", None)] if one.verdict else []
    return [Claim(one.number, by, each.claimed, each.shown, each.holds) for each in one.shown]


def _gates(state: BoardState) -> list[Claim]:
    """What the gates wanted of the last decision."""
    if not state.decisions:
        return []
    last = state.decisions[-1]
    by = f"{MAIN}, iteration {last.iteration}"
    return [Claim(last.number, by, one.claimed, one.shown, one.holds) for one in last.shown]
