"""What a report has to show: evidence that the policy demands, looked for on disk and put beside what is claimed."""

from collections.abc import Sequence
from typing import Any

from .definition import Board, Evidence, includes
from .gates import report_problems
from .report import Report, ReportProblem, lines_of, lines_with, read_report
from .state import BoardState, Shown

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
