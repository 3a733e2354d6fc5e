"""What a person is told about a family of runs after a kill or an answer is true, and works."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.walks.commands import ripstop, succeed
from tests.walks.matrix import GOAL, make_cell, write


def statuses(folder: Path) -> dict[str, str]:
    return {info["run"]: info["status"] for info in json.loads(succeed("runs", "--json", cwd=folder))}


@pytest.fixture
def asking(tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    """A graph that runs a graph that runs a board, whose MAIN asks a person."""
    make_cell(tmp_path, "graph", "blackboard", asks=True)
    text = (tmp_path / "parent" / "workflow.yaml").read_text().replace("name: parent", "name: top")
    write(tmp_path / "top", {"workflow.yaml": text.replace("../child", "../parent")})
    done = ripstop("run", "top", "--input", GOAL, "--json", cwd=tmp_path)
    return tmp_path, json.loads(done.stdout)


def test_the_hint_after_an_answer_names_the_root(asking: tuple[Path, dict[str, Any]]) -> None:
    folder, result = asking
    (question,) = result["waiting"]
    said = succeed("answer", question["id"], "yes", cwd=folder)
    assert f"Resume it:  ripstop resume {result['run']}" in said.replace("  (with", " (with")
    assert set(statuses(folder).values()) == {"interrupted"}
    assert json.loads(succeed("resume", result["run"], "--json", cwd=folder))["outcome"] == "completed"


def test_resuming_a_member_resumes_its_family(asking: tuple[Path, dict[str, Any]]) -> None:
    folder, result = asking
    (question,) = result["waiting"]
    succeed("answer", question["id"], "yes", cwd=folder)
    resumed = json.loads(succeed("resume", question["id"].partition("/")[0], "--json", cwd=folder))
    assert (resumed["run"], resumed["outcome"]) == (result["run"], "completed")
    assert set(statuses(folder).values()) == {"completed"}


def test_no_run_of_a_killed_family_is_said_to_wait(tmp_path: Path) -> None:
    make_cell(tmp_path, "graph", "graph")
    armed = {**os.environ, "RIPSTOP_FAILPOINT": "worker.before_perform:2"}  # the first one starts the child
    done = ripstop("run", "parent", "--input", GOAL, cwd=tmp_path, env=armed)
    assert done.returncode < 0 or done.returncode > 128, done.stderr
    found = statuses(tmp_path)
    assert len(found) == 2 and set(found.values()) == {"interrupted"}, found
    root = min(found, key=len)
    assert json.loads(succeed("resume", root, "--json", cwd=tmp_path))["outcome"] == "completed"
