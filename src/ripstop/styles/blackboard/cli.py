"""`ripstop board …`: what people who write policies need."""

import sys
from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from ripstop.definitions.problems import Position, Problem, WrongDefinition
from ripstop.definitions.yaml_tree import read_text
from ripstop.faces.cli.options import Family, Options, shared_options
from ripstop.faces.cli.terminal import say, say_json, say_text
from ripstop.kernel.errors import UsageError

from ..key_lines import lines_of
from .definition import includes
from .gates import ReportProblem, report_problems
from .policy_reader import read_policy
from .report import Report, read_report

# Reading one report by a policy, for people who write policies and for other programs. No prompts are needed.


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
    found = (*report.problems, *report_problems(text, report.verdict, read.policy, agent))
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


REFUSED = 2


@click.group(cls=Family, short_help="Blackboards: reports, and the policy that verifies them.")
@shared_options
def board() -> None:
    """Blackboards: MAIN decides, specialists report, and a policy verifies what they report.

    \b
    Example:
      ripstop board report reports/report_check.md --policy memory/verification_policy.json --agent CHECK
    """


@board.command(short_help="Read one report by a policy.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--policy", required=True, type=click.Path(path_type=Path), metavar="FILE", help="The policy to read by.")
@click.option("--agent", required=True, metavar="NAME", help="Whose report it is; case does not matter.")
@click.option("--iteration", type=click.IntRange(0), metavar="N", help="The iteration it has to be of. Default: any.")
@shared_options
@click.pass_obj
def report(options: Options, file: Path, policy: Path, agent: str, iteration: int | None) -> None:
    """Read one report by a policy: its iteration, verdict and blockers, and what is wrong with it.

    \b
    Exit codes: 0 the policy accepts it, 2 it does not.
    Example:
      ripstop board report report_check.md --policy verification_policy.json --agent CHECK --iteration 3 --json
    """

    if not agent.strip():
        raise click.UsageError("--agent is empty. Name the agent whose report it is.")
    checked = check_report(file, policy, agent.strip(), iteration)
    if options.as_json:
        say_json(checked.as_json())
    else:
        _tell(file, agent.strip(), checked)
    sys.exit(REFUSED if checked.problems else 0)


def _tell(file: Path, agent: str, checked: "CheckedReport") -> None:
    for warning in checked.warnings:
        say((str(warning), "yellow"), err=True)
    if not checked.is_covered:
        say((f"{agent!r} is not in 'apply_to', so only the iteration is needed.", "yellow"), err=True)
    read = checked.report
    say(("iteration  ", "dim"), "none" if read.iteration is None else str(read.iteration))
    say(("verdict    ", "dim"), read.verdict or "none")
    for blocker in read.blockers or ("not said",):
        say(("blockers   ", "dim"), blocker)
    for problem in checked.problems:
        say(f"{problem.place}: ", ("error", "red bold"), f": {problem.text}")
        if problem.source:
            say_text(problem.excerpt)
    say(f"{file}: {'refused' if checked.problems else 'accepted'}.")
