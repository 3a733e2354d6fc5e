"""`ripstop board …`: what people who write policies need."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ripstop.faces.cli.options import Family, Options, shared_options
from ripstop.faces.cli.terminal import say, say_json, say_text

if TYPE_CHECKING:
    from ripstop.definitions.blackboard.report_file import CheckedReport

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
    from ripstop.definitions.blackboard.report_file import check_report

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
