"""Gates: the checks that a policy composes, of reports and of decisions.

A gate for reports looks at lines of one report. A gate for decisions looks at what has been reported before: `before`
when an agent is called, `finish_needs` when the run is to end.
"""

import re
from collections.abc import Mapping, Sequence

from ripstop.kernel.plain import shown

from .definition import FINISH, Gate, VerificationPolicy, includes
from .report import Report, ReportProblem, lines_of, lines_with

_NUMBER = re.compile(r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?")
_PERCENTAGE = re.compile(rf"({_NUMBER.pattern})\s*[%％]")
MAX_SEARCHED = 200
"""Characters of a line in which a number is looked for."""


def report_problems(
    text: str, report: Report, policy: VerificationPolicy, agent: str, then: str = ""
) -> list[ReportProblem]:
    """What the gates find wrong with a report. `then`: only gates that stop the run, or only those that tell MAIN."""
    problems = []
    lines: Sequence[str] = ()
    for gate in policy.gates:
        if gate.gate not in _FOR_REPORTS or (then and gate.on_failure != then):
            continue
        if not _applies(gate, policy, agent) or (gate.verdicts and report.verdict not in gate.verdicts):
            continue
        lines = lines or lines_of(text)
        problem = _look(gate, lines)
        if problem:
            problems.append(problem)
    return problems


def call_problem(policy: VerificationPolicy, agent: str, words: str, verdicts: Mapping[str, str]) -> str:
    """Why an agent may not be called now; empty if it may.

    Args:
        words: The task, and what the plan says about it.
        verdicts: The last verdict of every agent that has reported.
    """
    for gate in policy.gates:
        if gate.gate != "before" or gate.then.casefold() != agent.casefold() or gate.marked not in words:
            continue
        said = verdicts.get(gate.first.casefold())
        if said is None or (gate.verdicts and said not in gate.verdicts):
            needed = f" with {' or '.join(gate.verdicts)}" if gate.verdicts else ""
            return f"the gate {gate.name!r} wants a report of {gate.first}{needed} before {agent} is called"
    return ""


def finish_problem(policy: VerificationPolicy, verdicts: Mapping[str, str]) -> str:
    """Why the run may not end now; empty if it may."""
    for gate in policy.gates:
        for agent in gate.agents if gate.gate == "finish_needs" else ():
            said = verdicts.get(agent.casefold())
            if said in gate.verdicts or (said is None and gate.if_reported):
                continue
            needed = f"the gate {gate.name!r} wants {' or '.join(gate.verdicts)} of {agent} before {FINISH}"
            found = "which has not reported in this run" if said is None else f"whose last verdict is {said or 'none'}"
            return f"{needed}, {found}"
    return ""


def number_in(text: str) -> float | None:
    """The first percentage in a text, else the first number: 60 in `90/150 (60 %)`, 2150 in `2,150 words`."""
    part = text[:MAX_SEARCHED]
    percentage = _PERCENTAGE.search(part)
    found = percentage[1] if percentage else (number[0] if (number := _NUMBER.search(part)) else None)
    return None if found is None else float(found.replace(",", ""))


def _applies(gate: Gate, policy: VerificationPolicy, agent: str) -> bool:
    return includes(gate.agents or policy.report_rules.apply_to, agent)


def _look(gate: Gate, lines: Sequence[str]) -> ReportProblem | None:
    found = list(lines_with(lines, gate.prefix, any_case=True))
    where = max(1, len(lines))
    if gate.gate == "forbid_line":
        if not found:
            return None
        text = f"the gate {gate.name!r} forbids a line {gate.prefix!r}"
        return ReportProblem(text, found[0].number, found[0].column, gate.name, found[0].text)
    if gate.gate == "require_line":
        if any(line.value in gate.allowed if gate.allowed else line.value for line in found):
            return None
        choice = f" with one of {', '.join(gate.allowed)}" if gate.allowed else ""
        text = f"the gate {gate.name!r} wants a line {gate.prefix!r}{choice}"
        if found:
            return ReportProblem(text, found[-1].number, found[-1].column, gate.name, found[-1].text)
        return ReportProblem(text, where, field=gate.name)
    if not found:
        text = f"the gate {gate.name!r} wants a line {gate.prefix!r} with a number"
        return ReportProblem(text, where, field=gate.name) if gate.required else None
    line = found[-1]
    number = number_in(line.value)
    if number is None:
        text = f"the gate {gate.name!r} wants a number, not {shown(line.value)}"
    elif gate.gate == "min_number" and number < gate.number:
        text = f"the gate {gate.name!r} wants at least {gate.number:g}, and the report says {number:g}"
    elif gate.gate == "max_number" and number > gate.number:
        text = f"the gate {gate.name!r} wants at most {gate.number:g}, and the report says {number:g}"
    else:
        return None
    return ReportProblem(text, line.number, line.column, gate.name, line.text)


_FOR_REPORTS = frozenset({"require_line", "forbid_line", "min_number", "max_number"})
