"""Reading one report by a policy, for people who write policies and for other programs. No prompts are needed."""

from pathlib import Path
from typing import Any

from msgspec import Struct

from ripstop.definitions.problems import Position, Problem, WrongDefinition
from ripstop.definitions.yaml_tree import read_text
from ripstop.kernel.errors import UsageError
from ripstop.styles.blackboard.definition import includes
from ripstop.styles.blackboard.gates import report_problems
from ripstop.styles.blackboard.report import Report, ReportProblem, lines_of, read_report

from .policy_reader import read_policy

MAX_BYTES = 10_000_000


class CheckedReport(Struct, frozen=True):
    report: Report
    found: tuple[ReportProblem, ...]
    problems: tuple[Problem, ...]
    """The same, with the file and its lines."""
    warnings: tuple[Problem, ...]
    """About the policy."""
    is_covered: bool
    """Whether the report rules apply to the agent."""

    def as_json(self) -> dict[str, Any]:
        return {
            "iteration": self.report.iteration,
            "verdict": self.report.verdict,
            "blockers": list(self.report.blockers),
            "clear": self.report.clear,
            "problems": [{"line": one.line, "column": one.column, "text": str(one)} for one in self.found],
        }


def check_report(file: Path, policy: Path, agent: str, iteration: int | None = None) -> CheckedReport:
    """What a policy says about a report. Raises `WrongDefinition` for a policy, `UsageError` for a report."""
    read = read_policy(policy)
    text = _text(file)
    report = read_report(text, read.policy.report_rules, agent, iteration)
    found = (*report.problems, *report_problems(text, report, read.policy, agent))
    lines = lines_of(text)
    problems = tuple(
        Problem(Position(str(file), one.line, one.column), one.text, source=lines[one.line - 1] if one.quote else "")
        for one in found
    )
    return CheckedReport(report, found, problems, read.warnings, includes(read.policy.report_rules.apply_to, agent))


def _text(file: Path) -> str:
    try:
        text = read_text(file, str(file), MAX_BYTES)
    except WrongDefinition as error:
        problem = error.problems[0]
        raise UsageError(f"The report {problem.place} cannot be read: {problem.text}.") from error
    if "\0" in text:
        raise UsageError(f"The report {file} is not text: it holds a NUL. Save it as UTF-8.")
    return text
