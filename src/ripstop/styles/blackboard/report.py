"""Reading a report by a policy: three key fields, and everything else is left to MAIN.

- A field is a line that begins with its prefix. The full-width colon and the ASCII one are the same; blanks before and
  after are not part of it.
- The iteration is always needed. Verdict and blockers are checked in the reports of the agents that the rules apply to.
  Both have to be there if the rules require a verdict; otherwise they can be left out, but what is there must be valid.
  In the reports of other agents they are only read.
- Lines that have the prefix of the iteration or the verdict and no valid value do not count, unless no line has one:
  logs and tables in a report may begin with the same word.
- A problem says where it is and quotes the line.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from ripstop.kernel.text_limits import shown as shown_of_plain

from .definition import FINISH, Board, Evidence, Gate, ReportRules, VerificationPolicy, includes
from .state import BoardState, Shown

MAX_BLOCKERS = 200
MAX_DIGITS = 9
LONGEST_QUOTE = 200
_NEWLINE = re.compile(r"\r\n|\r|\n")
MISSING_ITERATION = "Report missing iteration (critical field)"


class ReportProblem(Struct, frozen=True):
    text: str
    line: int = 1
    column: int = 1
    field: str = ""
    quote: str = ""

    def __str__(self) -> str:
        return f"{self.text} (line {self.line}: {shown_of_plain(self.quote)})" if self.quote else self.text


class FieldLine(Struct, frozen=True):
    """A line that begins with a prefix."""

    number: int
    column: int
    """Where the value begins."""
    value: str
    text: str


class Report(Struct, frozen=True):
    iteration: int | None = None
    verdict: str | None = None
    blockers: tuple[str, ...] = ()
    clear: bool | None = None
    """Whether all blockers are the clear value; none if there is no blocker line."""
    problems: tuple[ReportProblem, ...] = ()

    @property
    def open_blockers(self) -> tuple[str, ...]:
        return () if self.clear else self.blockers


def read_report(text: str, rules: ReportRules, agent: str, iteration: int | None = None) -> Report:
    """What a report says. `iteration`: the one that it has to be of; none: any."""
    problems: list[ReportProblem] = []
    lines = lines_of(text)
    number = _iteration(lines, rules, iteration, problems)
    of_policy: list[ReportProblem] = []
    verdict = _verdict(lines, rules, rules.require_verdict, of_policy)
    blockers, clear = _blockers(lines, rules, rules.require_verdict, of_policy)
    if includes(rules.apply_to, agent):
        problems += of_policy
    return Report(number, verdict, blockers, clear, tuple(problems))


def lines_of(text: str) -> list[str]:
    """The lines as editors count them; `str.splitlines` breaks at more characters."""
    lines = _NEWLINE.split(text.removeprefix("\ufeff"))
    return lines if lines[-1] else lines[:-1]


def lines_with(lines: Sequence[str], prefix: str, any_case: bool = False) -> Iterator[FieldLine]:
    """The lines that begin with a prefix, each with what comes after it."""
    wanted = _comparable(prefix.strip(), any_case)
    for number, line in enumerate(lines, 1):
        bare = line.lstrip()
        if _comparable(bare[: len(wanted)], any_case) == wanted:
            rest = bare[len(wanted) :]
            column = len(line) - len(rest.lstrip()) + 1
            yield FieldLine(number, column, rest.strip(), line.strip()[:LONGEST_QUOTE])


def one_colon(text: str) -> str:
    return text.replace("：", ":")


def _comparable(text: str, any_case: bool) -> str:
    return one_colon(text).lower() if any_case else one_colon(text)


def _iteration(
    lines: Sequence[str], rules: ReportRules, wanted: int | None, problems: list[ReportProblem]
) -> int | None:
    found = list(lines_with(lines, rules.iteration_prefix))
    if not found:
        problems.append(ReportProblem(MISSING_ITERATION, field="iteration"))
        return None
    numbers: dict[int, FieldLine] = {}
    for line in found:
        if line.value.isascii() and line.value.isdigit() and len(line.value) <= MAX_DIGITS:
            numbers.setdefault(int(line.value), line)
    if len(numbers) > 1:
        named = " and ".join(map(str, list(numbers)[:5])) + (" and others" if len(numbers) > 5 else "")
        problems.append(_at(list(numbers.values())[1], "iteration", f"the report names several iterations: {named}"))
        return None
    if not numbers:
        problems.append(
            _at(found[0], "iteration", f"the iteration {shown_of_plain(found[0].value)} is not a whole number")
        )
        return None
    number, line = next(iter(numbers.items()))
    if wanted is not None and number != wanted:
        problems.append(_at(line, "iteration", f"the report is of iteration {number}, and the current one is {wanted}"))
    return number


def _verdict(lines: Sequence[str], rules: ReportRules, needed: bool, problems: list[ReportProblem]) -> str | None:
    found = list(lines_with(lines, rules.verdict_prefix))
    allowed = ", ".join(rules.verdict_allowed)
    if not found:
        if needed:
            text = f"the report has no verdict: a line {rules.verdict_prefix!r} with one of {allowed}"
            problems.append(ReportProblem(text, line=max(1, len(lines)), field="verdict"))
        return None
    valid = [line for line in found if line.value in rules.verdict_allowed]
    if not valid:
        problems.append(
            _at(
                found[-1],
                "verdict",
                f"the verdict {shown_of_plain(found[-1].value)} is not allowed; allowed are {allowed}",
            )
        )
        return None
    said = list(dict.fromkeys(line.value for line in valid))
    if len(said) > 1 and rules.verdict_pick != "last":
        text = f"the report has several verdicts that differ: {', '.join(said)}; `verdict_pick: last` takes the last"
        problems.append(_at(next(line for line in valid if line.value == said[1]), "verdict", text))
        return None
    return valid[-1].value


def _blockers(
    lines: Sequence[str], rules: ReportRules, needed: bool, problems: list[ReportProblem]
) -> tuple[tuple[str, ...], bool | None]:
    found = list(lines_with(lines, rules.blocker_prefix))
    if not found:
        if needed:
            text = f"the report does not say what blocks: a line {rules.blocker_prefix!r}"
            clear = f"{text} with {rules.blocker_clear_value!r} if nothing does"
            problems.append(ReportProblem(clear, line=max(1, len(lines)), field="blockers"))
        return (), None
    empty = next((line for line in found if not line.value), None)
    if empty:
        text = f"the line says nothing; write {rules.blocker_clear_value!r} if nothing blocks"
        problems.append(_at(empty, "blockers", text))
    if len(found) > MAX_BLOCKERS:
        text = f"the report has {len(found)} lines of blockers; at most {MAX_BLOCKERS} are read"
        problems.append(_at(found[MAX_BLOCKERS], "blockers", text))
    texts = tuple(line.value for line in found[:MAX_BLOCKERS])
    return texts, all(text == rules.blocker_clear_value for text in texts)


def _at(line: FieldLine, field: str, text: str) -> ReportProblem:
    return ReportProblem(text, line.number, line.column, field, line.text)


# Gates: the checks that a policy composes, of reports and of decisions.
#
# A gate for reports looks at lines of one report. A gate for decisions looks at what has been reported before: `before`
# when an agent is called, `finish_needs` when the run is to end.


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
        text = f"the gate {gate.name!r} wants a number, not {shown_of_plain(line.value)}"
    elif gate.gate == "min_number" and number < gate.number:
        text = f"the gate {gate.name!r} wants at least {gate.number:g}, and the report says {number:g}"
    elif gate.gate == "max_number" and number > gate.number:
        text = f"the gate {gate.name!r} wants at most {gate.number:g}, and the report says {number:g}"
    else:
        return None
    return ReportProblem(text, line.number, line.column, gate.name, line.text)


_FOR_REPORTS = frozenset({"require_line", "forbid_line", "min_number", "max_number"})


# What a report has to show: evidence that the policy demands, looked for on disk and put beside what is claimed.


MAX_EVIDENCE = 50
"""Things that are looked for after one report."""


def read(state: BoardState, text: str) -> Report:
    assert state.agent is not None
    return read_report(text, state.definition.policy.report_rules, state.agent.name, state.iteration)


def problems(state: BoardState, text: str, report: Report) -> list[ReportProblem]:
    """Why the policy does not accept a report."""
    assert state.agent is not None
    found = list(report.problems)
    return found or report_problems(text, report, state.definition.policy, state.agent.name, then="stop")


def wanted(board: Board, agent: str, text: str, verdict: str | None) -> list[tuple[Evidence, dict[str, Any]]]:
    """The evidence that a report needs, each with what the tool has to look for."""
    found: list[tuple[Evidence, dict[str, Any]]] = []
    lines = lines_of(text)
    for one in board.policy.evidence:
        if not includes(one.agents or board.policy.report_rules.apply_to, agent):
            continue
        if one.verdicts and verdict not in one.verdicts:
            continue
        found += [(one, looked) for looked in _looks(one, agent, lines)]
    return found[:MAX_EVIDENCE]


def _looks(one: Evidence, agent: str, lines: Sequence[str]) -> list[dict[str, Any]]:
    if one.evidence == "command":
        return [{"evidence": "command", "command": list(one.command), "exit_code": one.exit_code}]
    path = one.path.replace("{agent}", agent)
    look = {
        "evidence": one.evidence,
        "path": path,
        "sha256": one.sha256,
        "prefix": one.prefix,
        "at_least": one.at_least,
        "at_most": one.at_most,
        "text": "",
    }
    if not one.line:
        return [look]
    named = [line.value.strip("`\"'“”") for line in lines_with(lines, one.line, any_case=True) if line.value]
    if one.evidence == "quote":
        return [{**look, "text": text} for text in named]
    return [{**look, "path": name} for name in named]


def shown(state: BoardState, text: str, report: Report) -> list[tuple[Evidence | None, Shown]]:
    """What was claimed and what was found, in the order of the policy."""
    assert state.agent is not None
    agent, board = state.agent.name, state.definition
    looked = wanted(board, agent, text, report.verdict)
    results: list[dict[str, Any]] = state.found.get("evidence") or []
    found: list[tuple[Evidence | None, Shown]] = []
    for (one, look), result in zip(looked, results, strict=False):
        found.append((one, Shown(_claim(one, look, report), str(result["shown"]), bool(result["holds"]))))
    told = report_problems(text, report, board.policy, agent, then="tell")
    found += [(None, Shown(problem.quote or report.verdict or "", problem.text, False)) for problem in told]
    missing = [one for one in board.policy.evidence if one.line and not any(one is each for each, _ in looked)]
    for one in missing:
        applies = includes(one.agents or board.policy.report_rules.apply_to, agent)
        if applies and (not one.verdicts or report.verdict in one.verdicts):
            text_of_claim = f"{report.verdict or 'the report'}, {one.name or one.evidence}"
            found.append((one, Shown(text_of_claim, f"the report has no line {one.line!r}", False)))
    return found


def _claim(one: Evidence, look: dict[str, Any], report: Report) -> str:
    if one.evidence == "command":
        what = f"`{' '.join(one.command)[:100]}` ends with {one.exit_code}"
    else:
        what = {
            "file": f"{look['path']} exists",
            "number": f"{one.prefix or 'the number'} in {look['path']}",
            "quote": f"{look['text'][:100]!r} in {look['path']}",
        }[one.evidence]
    return f"{report.verdict}: {what}" if report.verdict else what
