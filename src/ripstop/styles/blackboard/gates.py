"""Gates: the checks that a policy composes. Nothing here is about a field of work.

- A gate for reports looks at lines of one report.
- A gate for decisions looks at what was reported before, and at the plan as the decision leaves it: `before` when an
  agent is called; `finish_needs`, `finish_needs_plan` and `no_open_blockers` when the run is to end.
- `per_task`: a decision is about the tasks that it names, in its task or else in its reason; one that names none is
  about every open task. For which of them the report counts is in `standings.py`.
- A verdict that the evidence does not bear out opens no gate, nor does one that is older than the work (`after`).
- MAIN writes the plan, so the plan alone proves nothing: a task that the run was given cannot disappear, and what
  exempts it is read in the plan that the run was given. What was done before the run needs no verdict of the run.
- So that a later run can rely on the plan, MAIN sets a task finished only once what the end wants of that task is
  shown: `finish_needs` looks at it then, and MAIN is told what is missing.
"""

from collections.abc import Sequence
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from ripstop.kernel.text_limits import shown as quoted

from ..checks import (
    Shown,
    line_exists,
    no_open_blockers,
    number_in,
    number_reaches,
    task_is,
    verdict_is,
)
from ..key_lines import key_lines, lines_of, one_colon
from .decision import Decision, HeldBack, WrongDecision
from .definition import FINISH, USER, Gate, VerificationPolicy, includes
from .plan import PlanTask, apply_updates, is_in_state, status_of, tasks_named, tasks_of, updates_in, words_about
from .state import BoardState, Standing

MAX_NAMED = 10
"""Tasks and gates that one message names."""
NO_REPORT = "which has not reported in this run"
_FOR_REPORTS = ("require_line", "forbid_line", "min_number", "max_number")


class ReportProblem(Struct, frozen=True):
    text: str
    line: int = 1
    column: int = 1
    field: str = ""
    quote: str = ""

    def __str__(self) -> str:
        return f"{self.text} (line {self.line}: {quoted(self.quote)})" if self.quote else self.text


# Reports


class ReportCheck(Struct, frozen=True):
    """What a gate found in a report."""

    gate: Gate
    shown: Shown
    problem: ReportProblem | None = None


def report_checks(text: str, verdict: str | None, policy: VerificationPolicy, agent: str) -> list[ReportCheck]:
    """What the gates find in a report, in their order. A number that is neither there nor required is left out."""
    found: list[ReportCheck] = []
    lines: Sequence[str] = ()
    for gate in policy.gates:
        if applies_to_report(gate, policy, agent) and (not gate.verdicts or verdict in gate.verdicts):
            lines = lines or lines_of(text)
            check = _look(gate, lines)
            if check and not any(check.shown == one.shown for one in found):
                found.append(check)
    return found


def report_problems(
    text: str, verdict: str | None, policy: VerificationPolicy, agent: str, then: str = ""
) -> list[ReportProblem]:
    """What the gates find wrong with a report. `then`: only gates that stop the run, or only those that tell MAIN."""
    checks = report_checks(text, verdict, policy, agent)
    return [one.problem for one in checks if one.problem and (not then or one.gate.on_failure == then)]


def applies_to_report(gate: Gate, policy: VerificationPolicy, agent: str) -> bool:
    return gate.gate in _FOR_REPORTS and includes(gate.agents or policy.report_rules.apply_to, agent)


def _look(gate: Gate, lines: Sequence[str]) -> ReportCheck | None:
    found = [line for start in (gate.prefix, *gate.also) for line in key_lines(lines, start) if not line.is_marked]
    found.sort(key=lambda line: line.number)
    where = max(1, len(lines))
    line = found[-1] if found else None
    match gate.gate:
        case "forbid_line":
            shown = Shown(f"no line {gate.prefix!r}", found[0].text if found else "there is none", not found)
            text, line = f"the gate {gate.name!r} forbids a line {gate.prefix!r}", found[0] if found else None
        case "require_line":
            shown = line_exists(gate.prefix, found, gate.allowed)
            choice = f" with one of {', '.join(gate.allowed)}" if gate.allowed else ""
            text = f"the gate {gate.name!r} wants a line {gate.prefix!r}{choice}"
        case _ if line is None:
            if not gate.required:
                return None
            shown = line_exists(gate.prefix, ())
            text = f"the gate {gate.name!r} wants a line {gate.prefix!r} with a number"
        case _:
            shown, text = _number(gate, line.value)
    if shown.holds:
        return ReportCheck(gate, shown)
    if line is None:
        return ReportCheck(gate, shown, ReportProblem(text, where, field=gate.name))
    return ReportCheck(gate, shown, ReportProblem(text, line.number, line.column, gate.name, line.text))


def _number(gate: Gate, value: str) -> tuple[Shown, str]:
    number = number_in(value, of_several=min if gate.gate == "min_number" else max)
    bound = "at least" if gate.gate == "min_number" else "at most"
    limits = {"at_least": gate.number} if gate.gate == "min_number" else {"at_most": gate.number}
    shown = number_reaches(gate.prefix.strip(), number, **limits)
    if number is None:
        text = f"the gate {gate.name!r} wants a number, not {quoted(value)}"
        return shown, f"{text}; write the number alone, with a unit at most"
    return shown, f"the gate {gate.name!r} wants {bound} {gate.number:g}, and the report says {number:g}"


# Decisions


def decision_checks(state: BoardState, decision: Decision) -> tuple[Shown, ...]:
    """What the gates found for a decision that passes all of them. Raises `WrongDecision` for one that does not.

    It raises `HeldBack` if MAIN is told of every one that fails: because the gate says so, or because all that is
    wrong is a status that is too early.
    """
    found: list[Shown] = []
    failed: list[tuple[bool, str]] = []
    looking = _Decisions(state, decision)
    for gate in state.definition.policy.gates:
        shown, problem = looking.look(gate)
        found += shown
        if problem:
            is_early = gate.gate == "finish_needs" and decision.next_agent != FINISH
            failed.append((is_early or gate.on_failure == "tell", problem))
    if failed:
        told = "; ".join(problem for _, problem in failed[:MAX_NAMED])
        refusal = HeldBack if all(is_told for is_told, _ in failed) else WrongDecision
        raise refusal(told, tuple(found))
    return tuple(found)


def is_finished(task: PlanTask, policy: VerificationPolicy) -> bool:
    """Whether the plan has a task in a state in which a run may end."""
    ends = [gate.statuses for gate in policy.gates if gate.gate == "finish_needs_plan" and gate.statuses]
    done = policy.done_statuses
    return all(is_in_state(task, statuses, done) for statuses in ends or [done])


def concerned(state: BoardState, decision: Decision, tasks: Sequence[PlanTask]) -> tuple[PlanTask, ...]:
    """The tasks that a decision is about: those that it names, else all that are open."""
    tracked = tracked_tasks(tasks)
    done = state.definition.policy.done_statuses
    named = tasks_named(tracked, decision.task) or tasks_named(tracked, decision.reason)
    return named or tuple(one for one in tracked if not is_in_state(one, done, done))


def plan_after(state: BoardState, decision: Decision) -> tuple[PlanTask, ...]:
    """The tasks of the plan as a decision leaves it."""
    updates = updates_in(decision.dev_plan)
    if not updates and not decision.dev_plan_next:
        return state.known.tasks
    plan, tasks = state.known.plan, state.known.tasks
    if decision.dev_plan_next:
        plan, tasks = decision.dev_plan_next, tasks_of(decision.dev_plan_next)
    return tasks_of(apply_updates(plan, updates, state.definition.policy.done_statuses, tasks)[0])


def tracked_tasks(tasks: Sequence[PlanTask]) -> tuple[PlanTask, ...]:
    """A task without a place for a status is a heading over others."""
    return tuple(one for one in tasks if one.place is not None)


Looked = tuple[list[Shown], str]
"""What was found, and what is wrong with it; empty if nothing is."""


class _Decisions:
    """What gates find for one decision."""

    def __init__(self, state: BoardState, decision: Decision) -> None:
        self._state = state
        self._decision = decision
        self._policy = state.definition.policy

    @cached_property
    def _after(self) -> tuple[PlanTask, ...]:
        return tracked_tasks(plan_after(self._state, self._decision))

    @cached_property
    def _given(self) -> dict[str, PlanTask]:
        return {one.id.casefold(): one for one in tracked_tasks(self._state.known.given)}

    def look(self, gate: Gate) -> Looked:
        called = self._decision.next_agent
        match gate.gate:
            case "before" if called not in (FINISH, USER) and gate.then.casefold() == called.casefold():
                return self._before(gate)
            case "finish_needs" if called == FINISH:
                return self._finish_needs(gate)
            case "finish_needs" if gate.per_task:
                return self._newly_finished(gate)
            case "finish_needs_plan" if called == FINISH:
                return self._finish_needs_plan(gate)
            case "no_open_blockers" if called == FINISH:
                return self._no_open_blockers(gate)
        return [], ""

    def _before(self, gate: Gate) -> Looked:
        tasks = concerned(self._state, self._decision, self._after) if gate.per_task else ()
        if tasks:
            tasks = tuple(one for one in tasks if self._needs(gate, one))
            if not tasks:
                return [], ""
        elif gate.marked:
            said = self._decision.assignment
            if gate.marked not in f"{said}\n{words_about(self._state.known.tasks, said)}":
                return [], ""
        found, wrong = self._verdicts(gate, gate.first, tasks)
        if not wrong:
            return found, ""
        needed = f" with {' or '.join(gate.verdicts)}" if gate.verdicts else ""
        about = f" on {_names(list(wrong))}" if tasks else ""
        text = f"the gate {gate.name!r} wants a report of {gate.first}{needed}{about}"
        return found, f"{text} before {self._decision.next_agent} is called{_instead(wrong)}"

    def _finish_needs(self, gate: Gate) -> Looked:
        found: list[Shown] = []
        for agent in gate.agents:
            tasks: tuple[PlanTask, ...] = ()
            if gate.per_task and self._after:
                needing = [one for one in self._after if self._needs(gate, one)]
                tasks = tuple(one for one in needing if self._is_open(gate, one, agent))
                found += [_not_judged(gate, agent, one) for one in needing if one not in tasks]
                if not tasks:
                    continue
            shown, wrong = self._wanted_verdicts(gate, agent, tasks)
            if wrong and self._decision.overrides and self._policy.finish_override:
                why = self._decision.override[:100]
                found += [replace(one, shown=f"{one.shown}; MAIN overrides it: {why}") for one in shown]
                continue
            found += shown
            if wrong:
                text = f"the gate {gate.name!r} wants {' or '.join(gate.verdicts)} of {agent} before {FINISH}"
                about = f" ({_names(list(wrong))})" if tasks else ""
                return found, f"{text}, {next(iter(wrong.values()))}{about}"
        return found, ""

    def _newly_finished(self, gate: Gate) -> Looked:
        """Of the tasks that the decision sets finished: whether a gate of the end holds for them already."""
        before = {one.id.casefold() for one in self._state.known.tasks if is_finished(one, self._policy)}
        new = [one for one in self._after if one.id.casefold() not in before and is_finished(one, self._policy)]
        tasks = [one for one in new if self._needs(gate, one)]
        found: list[Shown] = []
        for agent in gate.agents if tasks else ():
            shown, wrong = self._wanted_verdicts(gate, agent, tasks)
            found += shown
            if wrong:
                ids = {one.id: status_of(one) for one in tasks if one.id in wrong}
                text = f"the gate {gate.name!r} wants {' or '.join(gate.verdicts)} of {agent} before a task is "
                early = (
                    f"{' or '.join(dict.fromkeys(ids.values()))}, {next(iter(wrong.values()))} ({_names(list(ids))})"
                )
                return found, f"{text}{early}; leave its status as it is until then"
        return found, ""

    def _wanted_verdicts(self, gate: Gate, agent: str, tasks: Sequence[PlanTask]) -> tuple[list[Shown], dict[str, str]]:
        """As `_verdicts`, but where the gate says so nobody is asked for who has not reported."""
        shown, wrong = self._verdicts(gate, agent, tasks)
        if gate.if_reported:
            wrong = {task: why for task, why in wrong.items() if why != NO_REPORT}
        return shown, wrong

    def _verdicts(self, gate: Gate, agent: str, tasks: Sequence[PlanTask]) -> tuple[list[Shown], dict[str, str]]:
        """The verdict of an agent on each task, or on anything if there are none; and why some do not open the gate."""
        found: list[Shown] = []
        wrong: dict[str, str] = {}
        for task in [one.id for one in tasks] or [""]:
            said = self._said(agent, task)
            by = f"{agent} on {task}" if task else agent
            shown = verdict_is(by, said.verdict if said else None, gate.verdicts)
            if shown.holds and said and (stale := self._why_stale(gate, task, said)):
                shown = Shown(shown.claimed, f"{said.verdict}, {stale}", False)
            elif shown.holds and said and not said.is_named:
                shown = Shown(shown.claimed, f"{shown.shown}, in a report on several tasks that names none", False)
            elif shown.holds and said and gate.verdicts and not said.holds:
                shown = Shown(shown.claimed, f"{said.verdict}, which does not hold: {said.shown}", False)
            found.append(shown)
            if not shown.holds:
                wrong[task] = NO_REPORT if said is None else f"whose last verdict is {shown.shown}"
        return found, wrong

    def _said(self, agent: str, task: str) -> Standing | None:
        """What an agent has said last about a task; about anything, if it is empty."""
        said = self._state.standings.get(agent.casefold(), {}).get(task.casefold())
        return said if said and said.iteration else None

    def _why_stale(self, gate: Gate, task: str, said: Standing) -> str:
        for agent in gate.after:
            later = self._state.standings.get(agent.casefold(), {}).get(task.casefold())
            if later and later.worked > said.iteration:
                return f"which is of iteration {said.iteration}, and {agent} has worked in {later.worked}"
        return ""

    def _needs(self, gate: Gate, task: PlanTask) -> bool:
        """Whether a gate is for a task, by what the plan says about it. MAIN cannot exempt a task that was given."""
        words = self._given.get(task.id.casefold(), task).words
        if gate.marked and gate.marked not in f"{words}\n{task.words}\n{self._decision.assignment}":
            return False
        return not any(_holds_words(words, one) for one in gate.unless)

    def _is_open(self, gate: Gate, task: PlanTask, agent: str) -> bool:
        """Whether a task needs a verdict of this run: it was not done before, or the agent has judged it again."""
        known = task.id.casefold()
        said = self._said(agent, known)
        is_judged = said is not None and (said.is_named or said.verdict not in gate.verdicts)
        return known not in self._state.known.accepted or is_judged

    def _finish_needs_plan(self, gate: Gate) -> Looked:
        done = self._policy.done_statuses
        wanted = gate.statuses or done
        there = {one.id.casefold() for one in self._after}
        gone = [one.id for one in self._given.values() if one.id.casefold() not in there]
        found = [
            replace(task_is(one.id, status_of(one), wanted), holds=is_in_state(one, wanted, done))
            for one in self._after
        ]
        found += [replace(task_is(name, "", wanted), shown="the plan no longer has it") for name in gone]
        text = f"the gate {gate.name!r} wants every task of the plan to be {' or '.join(wanted)} before {FINISH}"
        if not found:
            return [Shown(f"every task is {' or '.join(wanted)}", "the plan has no task with a status", False)], (
                f"{text}, and it has no task with a status"
            )
        left = (one for one in self._after if not is_in_state(one, wanted, done))
        wrong = [f"{one.id} is {status_of(one) or 'without a status'}" for one in left]
        wrong += [f"{name} is not in the plan any more" for name in gone]
        return found, f"{text}: {_names(wrong)}" if wrong else ""

    def _no_open_blockers(self, gate: Gate) -> Looked:
        ids = {one.id.casefold(): one.id for one in self._after}
        agents = gate.agents or self._policy.report_rules.apply_to
        left = ((agent, one) for agent, ones in self._state.left_open.items() for one in ones)
        found = [f"{agent} before this run: {one}" for agent, one in left if includes(agents, agent)]
        for agent in agents:
            standings = self._state.standings.get(agent.casefold(), {})
            about_tasks = {task: said for task, said in standings.items() if task}
            for task, said in (about_tasks or standings).items():
                by = f"{agent} on {ids.get(task, task)}" if task else agent
                found += [f"{by}: {one}" for one in said.blockers]
        shown = no_open_blockers(found)
        text = f"the gate {gate.name!r} wants no open blockers before {FINISH}; open are {shown.shown}"
        return [shown], "" if shown.holds else text


def _not_judged(gate: Gate, agent: str, task: PlanTask) -> Shown:
    """Of a task that needs no verdict of this run: the plan has it as finished, and that is all that is known."""
    claimed = verdict_is(f"{agent} on {task.id}", None, gate.verdicts).claimed
    return Shown(claimed, f"not looked at: it was {status_of(task)} when the run was given it", None)


def _holds_words(text: str, words: str) -> bool:
    """Whether a text holds words, and they end there."""
    text, words = (" ".join(one_colon(one).casefold().replace(":", " : ").split()) for one in (text, words))
    at = text.find(words)
    while at >= 0:
        behind = text[at + len(words) : at + len(words) + 1]
        if not (behind.isalnum() or behind == "_"):
            return True
        at = text.find(words, at + 1)
    return False


def _instead(wrong: dict[str, str]) -> str:
    said = next((why for why in wrong.values() if why != NO_REPORT), "")
    return f"; {said.replace('whose', 'its', 1)}" if said else ""


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return f"{', '.join(names[:MAX_NAMED])}{more}"
