"""The shipped scenarios run to their end with scripted agents: the same code, other files."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from ripstop.faces.cli.main import cli
from ripstop.styles.blackboard.reader import READER


@pytest.mark.req("S4-5", "S4-8", "S4-59", "S4-60", "S4-61", "S4-62", "S4-63")
@pytest.mark.parametrize("scenario", READER.scenarios)
def test_a_scenario_runs_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scenario: str) -> None:
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(cli, ["init", "blackboard", "board", "--scenario", scenario]).exit_code == 0
    done = CliRunner().invoke(cli, ["--json", "run", "board", "--model", "script:board/script.jsonl"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["outcome"] == "completed"
    shown = json.loads(CliRunner().invoke(cli, ["--json", "show", json.loads(done.stdout)["run"]]).stdout)
    claims = [claim for part in shown["parts"] for claim in part.get("claims", ())]
    assert claims and all(claim["holds"] is not False for claim in claims)
    called = (tmp_path / "board/memory/project_history.md").read_text(encoding="utf-8").count("next_agent:")
    assert called == sum('"next_agent"' in json.loads(line).get("reply", "") for line in script(tmp_path / "board"))


def script(board: Path) -> list[str]:
    return (board / "script.jsonl").read_text(encoding="utf-8").splitlines()
