"""Runs the shipped scenarios of boards, the delivery and a graph with agents that lie; none may end as a success.

`python -m tests.harness.lies [NAME …]` prints a table: what was lied about, how the run ended, and why. The scripts
without a lie are run too, and have to succeed: otherwise a run could end for another reason than its lie.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from contextlib import chdir
from pathlib import Path
from typing import Any, NamedTuple

from click.testing import CliRunner

from ripstop.faces.cli.main import cli
from tests.harness.lie_table import DELIVERY, GRAPH, LIES, Lie, Line
from tests.walks.delivery import deliver, lines, write_script

TRUTHS = ("tdd", "tdd-zh", "novel", "analysis", DELIVERY, GRAPH)
EXAMPLE = Path(__file__).parents[2] / "examples" / GRAPH


class Told(NamedTuple):
    lie: Lie
    outcome: str
    because: str

    @property
    def is_caught(self) -> bool:
        """Whether it did not succeed, for the reason that the table gives."""
        return self.outcome != "completed" and self.lie.because in self.because


def tell(lie: Lie, folder: Path) -> Told:
    """Run a script with its lie, in an empty folder."""
    with chdir(folder):
        tells = {DELIVERY: _deliver, GRAPH: _run_graph}.get(lie.script, _run_board)
        result = tells(folder, lie)
    return Told(lie, result["outcome"], result["because"])


def truth(script: str) -> Lie:
    """A script as it is shipped."""
    return Lie("the truth", script, lambda lines: lines, "")


def _deliver(folder: Path, lie: Lie) -> dict[str, Any]:
    return deliver(write_script(folder, lie.change(lines())))[1]


def _run_graph(folder: Path, lie: Lie) -> dict[str, Any]:
    shutil.copytree(EXAMPLE, folder / GRAPH)
    return _run(folder / GRAPH, lie)


def _run_board(folder: Path, lie: Lie) -> dict[str, Any]:
    made = CliRunner().invoke(cli, ["init", "blackboard", "board", "--scenario", lie.script])
    assert made.exit_code == 0, made.output
    return _run(folder / "board", lie)


def _run(workflow: Path, lie: Lie) -> dict[str, Any]:
    """Run a workflow by its own script, changed."""
    file = workflow / "script.jsonl"
    script: list[Line] = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    found: dict[str, Any] = {}
    for change in filter(None, (lie.earlier, lie.change)):
        lines = (json.dumps(line, ensure_ascii=False) for line in change(script))
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        model = f"script:{workflow.name}/script.jsonl"
        found = json.loads(CliRunner().invoke(cli, ["--json", "run", workflow.name, "--model", model]).stdout)
    return found


def tell_all(lies: Sequence[Lie]) -> list[Told]:
    found = []
    for lie in lies:
        with tempfile.TemporaryDirectory() as folder:
            found.append(tell(lie, Path(folder).resolve()))
    return found


def main(names: Sequence[str]) -> int:
    with tempfile.TemporaryDirectory() as home:
        os.environ |= {"HOME": home, "XDG_STATE_HOME": f"{home}/state", "XDG_CONFIG_HOME": f"{home}/config"}
        truths = tell_all([truth(script) for script in TRUTHS])
        told = tell_all([lie for lie in LIES if not names or lie.name in names])
    for one in told:
        reason = " ".join(one.because.split())
        found = "caught" if one.is_caught else "MISSED"
        print(f"{found}  {one.lie.script:9} {one.lie.name}: {one.outcome}, {reason[:160]}")
    failed = [one.lie.script for one in truths if one.outcome != "completed"]
    for script in failed:
        print(f"FAILED  {script}: the script without a lie does not succeed")
    missed = sum(not one.is_caught for one in told)
    print(f"{len(told)} lies, {missed} missed; {len(truths)} truths, {len(failed)} failed")
    return 1 if missed or failed else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these lies")
    sys.exit(main(parser.parse_args().names))
