"""Families whose process was killed between two runs: a run that waits only for a worker is interrupted."""

import json
import os
from pathlib import Path

import pytest

from tests.walks.commands import ripstop, succeed
from tests.walks.test_family_lines import CHILD, PARENT
from tests.walks.test_family_lines import SCRIPT as UNDONE
from tests.walks.test_unfinished_runs import listed

pytestmark = pytest.mark.long  # every story is a dozen commands, one after the other

SCRIPT = UNDONE.replace("false", "true")


@pytest.fixture
def family(tmp_path: Path) -> Path:
    for name, text in (("parent", PARENT), ("child", CHILD)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "workflow.yaml").write_text(text)
    (tmp_path / "s.jsonl").write_text(SCRIPT)
    return tmp_path


def killed(family: Path, failpoint: str) -> None:
    armed = {**os.environ, "RIPSTOP_FAILPOINT": failpoint}
    done = ripstop("run", "parent", "--model", "script:s.jsonl", cwd=family, env=armed)
    assert done.returncode < 0 or done.returncode > 128, done.stderr


@pytest.mark.parametrize("commit", [5, 7], ids=["before the child exists", "after the child ended"])
def test_a_killed_family_is_interrupted_and_resumed_with_all(family: Path, commit: int) -> None:
    killed(family, f"sqlite.after_commit:{commit}")
    assert "working" not in {info["status"] for info in listed(family)}
    assert listed(family, "--status", "interrupted"), listed(family)
    (result,) = json.loads(succeed("resume", "--all", "--json", cwd=family))["runs"]
    assert result["outcome"] == "completed"
    assert {info["status"] for info in listed(family)} == {"completed"}


def test_an_answer_after_which_a_child_is_to_be_started_says_how_to_resume(family: Path) -> None:
    (family / "parent" / "workflow.yaml").write_text(f"{PARENT}guards: {{then: ask}}\n")
    done = ripstop("run", "parent", "--model", "script:s.jsonl", "--max-calls", "1", "--json", cwd=family)
    (question,) = json.loads(done.stdout)["waiting"]
    run = json.loads(done.stdout)["run"]
    said = succeed("answer", question["id"], "continue", cwd=family)
    assert f"{run} is interrupted.  Resume it:  ripstop resume {run}" in said
    assert f"ripstop resume {run}" in succeed("show", run, cwd=family)
    assert json.loads(succeed("resume", run, "--json", cwd=family))["outcome"] == "completed"
