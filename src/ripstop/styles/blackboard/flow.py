"""One iteration after the other: MAIN decides, the decision is written, somebody works, the report is written.

- A decision is in the history before it is carried out, `FINISH` too.
- Whatever is wrong with a decision, a report or the board stops the run at once, and says where it is. What was said so
  far stays on record. A refused report is put on the board first. How a run continues is in `resuming.py`.
- MAIN cannot touch files, so what changed during its turn, or while the run was stopped between two turns, was edited
  by a person and counts. What changed during an agent's turn cannot be told from the agent's work: the run stops.
"""

from collections.abc import Sequence
from itertools import pairwise

from ripstop.kernel import progress
from ripstop.kernel.budget import allows_no_child
from ripstop.kernel.effects import (
    Answer,
    AskAgent,
    AskPerson,
    CallTool,
    Failed,
    PersonAnswered,
    RunFinished,
    StartRun,
    ToolReturned,
)
from ripstop.kernel.errors import Unworkable
from ripstop.kernel.events import GuardTripped
from ripstop.kernel.result import Result
from ripstop.kernel.step import Step
from ripstop.kernel.text_limits import shown
from ripstop.text.courtesy import courteous

from .. import turn as turns
from ..checks import Shown, failed
from ..turn import FinishedTurn
from .calls import CHECK, WRITE, ChangedFile
from .decision import WrongDecision, check_form, read_decision
from .definition import FINISH, MAIN, USER
from .gates import decision_checks
from .plan import MAX_UPDATES, unread_updates, updates_in
from .prompts import tools_of
from .report import claims_shown, current_report, why_refused
from .state import BoardEdited, BoardState, ChecksFailed, MainDecided, ReportVerified, UserDecided

PURPOSE = "user"
LAST_REPORT = "last_report"
"""The key of the last report in a result."""
OTHER = "something else"
MAX_REWRITES = 5
"""Writes in a row that find edits; then something edits all the time."""
MAX_SHOWN = 10
"""Changed files that a stop names."""
MAX_TOLD = 3
"""How often MAIN is told in one turn that a gate does not let its decision pass; then the run stops."""


# MAIN


def call_main(step: Step[BoardState]) -> None:
    state = step.state
    if state.taken > state.most_iterations:
        most = state.most_iterations
        made = "1 iteration was made" if most == 1 else f"{most} iterations were made"
        text = f"{made}, which is all that max_iterations allows."
        step.stop(GuardTripped(guard="max_iterations", limit=most, value=most, text=text))
    recent = tuple(one.number for one in state.reports)
    step.ask(AskAgent(agent=MAIN, model=state.definition.main.model, context=(1, *recent)))


def after_main(step: Step[BoardState], finished: FinishedTurn) -> None:
    state, turn = step.state, step.state.turn
    assert turn is not None
    if finished.failure:
        raise Unworkable(f"MAIN could not be asked in iteration {state.iteration}: {finished.failure.reason}")
    try:
        check_form(finished.text, state.definition)
        decision = read_decision(finished.text, state.definition)
        gates = decision_checks(state, decision)
    except WrongDecision as error:
        if error.found:
            step.record(ChecksFailed(iteration=state.iteration, agent=MAIN, reply=finished.number, shown=error.found))
        most = state.definition.policy.main_retries + (MAX_TOLD if error.is_told else 0)
        if finished.corrections < most and not finished.recorded:
            return turns.correct(step, turn, finished, f"Your decision could not be used: {error}. Decide again.")
        said = f"record {finished.number}: {shown(finished.text.strip())}"
        raise Unworkable(f"{error} (MAIN, iteration {state.iteration}, {said})") from error
    changes = (decision.next_agent, decision.assignment, decision.dev_plan, decision.dev_plan_next)
    step.record(
        MainDecided(
            agent=MAIN,
            digest=progress.digest(*changes),
            iteration=state.iteration,
            reply=finished.number,
            next_agent=decision.next_agent,
            at=step.at,
            shown=gates,
        )
    )
    if decision.missing:
        step.warn(f"MAIN's decision has no {' and no '.join(map(repr, decision.missing))}, which counts as null")
    for one in gates:
        if one.holds is False:
            step.warn(f"MAIN passes a gate that does not hold: {one}")
    if len(updates_in(decision.dev_plan)) == MAX_UPDATES:
        step.warn(f"of the updates to the plan at most {MAX_UPDATES} are carried out")
    for words in unread_updates(decision.dev_plan)[:MAX_SHOWN]:
        step.warn(f"nothing was updated by {words!r} of the dev_plan; `update ID status to STATUS` is carried out")
    for update in step.state.writing.unplaced:
        step.warn(f"the plan has no place for a status of {update.task!r}; {update.status!r} was only recorded")
    for name in list(decision.others)[:MAX_SHOWN]:
        step.warn(f"MAIN's decision has {name!r}, which is kept and does nothing")
    write(step)


# The board


def write(step: Step[BoardState]) -> None:
    """Write what is to be written, or only look for edits."""
    step.ask(CallTool(tool=WRITE))


def after_writing(step: Step[BoardState], answer: Answer) -> None:
    state = step.state
    _check_tool(state, answer)
    edited, plan = state.written.edited, state.written.plan
    if edited:
        step.record(BoardEdited(paths=tuple(one.path for one in edited)))
        if state.phase == "decide" and state.decision and state.decision.dev_plan_next and plan is not None:
            step.warn("the plan was edited while MAIN decided, so the whole new plan that MAIN gave is not written")
        if step.state.rewrites >= MAX_REWRITES:
            raise Unworkable(f"The board is edited all the time: {_names(edited)}. Stop what edits it, then resume.")
        return write(step)
    match state.phase:
        case "decide":
            return _carry_out(step)
        case "check":
            return verify(step)
        case "sync" if state.agent is not None and state.report_number:
            return check(step)
        case "sync" if state.decision is not None:
            return _carry_out(step)
        case _:
            return call_main(step)


def _check_tool(state: BoardState, answer: Answer) -> None:
    if isinstance(answer, Failed):
        raise Unworkable(f"The board cannot be used in iteration {state.iteration}: {answer.reason}")
    assert isinstance(answer, ToolReturned)


def after_opening(step: Step[BoardState], answer: Answer) -> None:
    _check_tool(step.state, answer)
    call_main(step)


# What was decided


def _carry_out(step: Step[BoardState]) -> None:
    state = step.state
    decision = state.decision
    assert decision is not None
    if decision.next_agent == FINISH:
        return step.end("completed", decision.reason, result_of(state))
    if decision.next_agent == USER:
        choices = dict(decision.options)
        if choices:
            choices.setdefault(OTHER, "")  # MAIN may offer it itself, with words of its own
        step.ask(
            AskPerson(
                question=decision.question or decision.reason,
                purpose=PURPOSE,
                title=decision.title,
                choices=choices,
                other=OTHER if choices else "",
                about=(state.decisions[-1].number,),
            )
        )
        return None
    agent = state.definition.agent(decision.next_agent)
    if agent is None:
        raise Unworkable(f"The board has no agent {decision.next_agent!r} any more (iteration {state.iteration}).")
    context = (1, state.decisions[-1].number)
    if agent.workflow:
        step.ask(StartRun(workflow=agent.workflow, name=state.continued, context=context))
    else:
        step.ask(AskAgent(agent=agent.name, model=agent.model, context=context))
    return None


def after_person(step: Step[BoardState], answer: Answer) -> None:
    if not isinstance(answer, PersonAnswered):
        raise Unworkable(f"The question of iteration {step.state.iteration} was not answered.")
    step.record(UserDecided(iteration=step.state.iteration, answer=step.number, at=step.at))
    write(step)


# Reports


def after_agent(step: Step[BoardState], finished: FinishedTurn) -> None:
    state, turn = step.state, step.state.turn
    assert turn is not None
    if finished.failure:
        raise Unworkable(f"{turn.ask.agent} could not work in iteration {state.iteration}: {finished.failure.reason}")
    turns.warn_about_files(step, finished)
    check(step)


def after_workflow(step: Step[BoardState], answer: Answer) -> None:
    state = step.state
    assert state.decision is not None
    agent = state.decision.next_agent
    if not isinstance(answer, RunFinished):
        reason = answer.reason if isinstance(answer, Failed) else "its run has no end"
        raise Unworkable(f"The workflow of {agent} could not be run in iteration {state.iteration}: {reason}")
    if answer.outcome == "limit" and allows_no_child(step.run, _start_of(state)):
        return _carry_out(step)  # it is the limit of this run, so a guard says so
    if answer.outcome != "completed":
        ended = f"ended as {answer.outcome} ({answer.run}): {answer.because}"
        raise Unworkable(f"The workflow of {agent} in iteration {state.iteration} {ended}")
    return check(step)


def _start_of(state: BoardState) -> StartRun:
    assert state.agent is not None
    return StartRun(workflow=state.agent.workflow)


def check(step: Step[BoardState]) -> None:
    step.ask(CallTool(tool=CHECK))


def after_check(step: Step[BoardState], answer: Answer) -> None:
    state = step.state
    _check_tool(state, answer)
    changed = state.checked.changed
    if changed:
        who = state.agent.name if state.agent else "an agent"
        differences = "\n".join(one.diff for one in changed[:MAX_SHOWN])
        raise Unworkable(
            f"The board was changed during the turn of {who} in iteration {state.iteration}: {_names(changed)}. Agents "
            "may write only their own report. Put the files back, or resume with --accept-edits if a person edited "
            f"them.\n{differences}"
        )
    if state.recheck:  # the report is another than the one whose evidence was looked for
        return check(step)
    if not state.report_number:  # the turn was broken off, and the board is as it was: the turn begins again
        return _carry_out(step)
    return verify(step)


def verify(step: Step[BoardState]) -> None:
    """The report counts if the policy accepts it."""
    state, agent = step.state, step.state.agent
    assert agent is not None
    report = current_report(state)
    wrong = why_refused(state, report)
    claims = claims_shown(state, report)
    found = tuple(one for _, one in claims)
    if wrong:
        return _refuse(step, "; ".join(f"{problem.field}: {problem}" for problem in wrong[:MAX_SHOWN]), found)
    for demanded, one in claims:
        if demanded and demanded.on_failure == "stop" and not one.holds:
            return _refuse(step, f"claimed {one.claimed}, shown {one.shown}", found)
    for _, one in claims:
        if not one.holds:
            step.warn(f"{agent.name} claims {one.claimed}, and that does not hold: {one.shown}")
    effects_of = turns.effects_of(state.turn) if state.turn else []
    decision = state.decision
    assert decision is not None
    step.record(
        ReportVerified(
            agent=agent.name,
            digest=progress.digest(decision.assignment, report.verdict, report.open_blockers, effects_of),
            courteous=courteous(state.report, step.run.guards),
            end_marker=progress.has_end_marker(state.report, step.run.guards),
            iteration=state.iteration,
            report=state.report_number,
            evidence=state.found_at,
            verdict=report.verdict or "",
            at=step.at,
        )
    )
    _check_flips(step, agent.name, decision.assignment)
    return write(step)


def _refuse(step: Step[BoardState], told: str, found: tuple[Shown, ...]) -> None:
    """Stop the run; first put the report on the board, where a person can mend it."""
    state, agent = step.state, step.state.agent
    assert agent is not None
    if not state.report_kept and state.rewrites < MAX_REWRITES:
        return write(step)
    if failed(found):
        step.record(ChecksFailed(iteration=state.iteration, agent=agent.name, reply=state.report_number, shown=found))
    raise Unworkable(f"{agent.report} of {agent.name} in iteration {state.iteration} is refused: {told}")


def _check_flips(step: Step[BoardState], agent: str, task: str) -> None:
    """Stop a run in which the verdict on one task goes back and forth."""
    said, patience = step.state.flips.get(flip_key(agent, task), ()), step.run.guards.patience
    flips = sum(one != other for one, other in pairwise(said))
    if patience and flips >= patience:
        text = f"{agent} has changed its verdict on one task {flips} times: {' → '.join(said)}."
        numbers = tuple(one.number for one in step.state.reports if one.agent == agent)
        step.stop(GuardTripped(guard="verdict_flips", limit=patience, value=flips, text=text, evidence=numbers))


def flip_key(agent: str, task: str) -> str:
    return f"{agent}/{progress.digest(task)}"


def result_of(state: BoardState) -> Result:
    """What MAIN says at the end; the last report as it was made, for those that read its lines."""
    last, reason = state.reports[-1] if state.reports else None, state.decision.reason if state.decision else ""
    data = {
        "iterations": state.taken,
        "reason": reason,
        "verdicts": dict(state.verdicts),
        LAST_REPORT: last.text if last else "",
    }
    return Result(reason, data)


def _names(changed: Sequence[ChangedFile]) -> str:
    named = ", ".join(f"{one.path} ({one.what})" for one in changed[:MAX_SHOWN])
    return f"{named} and {len(changed) - MAX_SHOWN} more" if len(changed) > MAX_SHOWN else named


def tools_for(state: BoardState) -> tuple[str, ...]:
    """What the agent whose turn it is may call."""
    return tools_of(state.agent) if state.agent and state.phase == "agent" else ()
