"""Which run `ripstop resume` takes where none is named."""

import json
from pathlib import Path
from typing import Any

import pytest

from ripstop.testing.commands import Done, command
from tests.harness.mutate_journals import WORKFLOW
from tests.styles.blackboard.board_definitions import board, policy

GOOD = "iteration: 1\nVerdict: GOOD\nBlockers: none"
COOK = {"agent": "MAIN", "reply": json.dumps({"next_agent": "COOK", "reason": "raw", "task": "Cook it."})}
FINISH = {"agent": "MAIN", "reply": json.dumps({"next_agent": "FINISH", "reason": "it is eaten"})}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(folder: Path, workflow: str, *replies: dict[str, Any]) -> tuple[Done, str]:
    """What came of a run, and its name."""
    (folder / "script.jsonl").write_text("".join(json.dumps(line) + "\n" for line in replies), encoding="utf-8")
    done = command("--json", "run", workflow, "--model", "script:script.jsonl")
    return done, json.loads(done.out)["run"]


def test_the_latest_run_that_has_failed_and_can_be_resumed_is_resumed(tmp_path: Path) -> None:
    board(tmp_path / "kitchen")
    failed, name = run(tmp_path, "kitchen", {"agent": "MAIN", "reply": "Hm."}, FINISH)
    assert failed.code == 1, failed
    resumed = json.loads(command("resume", "--json").out)
    assert (resumed["run"], resumed["outcome"]) == (name, "completed")


def test_a_run_that_waits_goes_before_one_that_has_failed(tmp_path: Path) -> None:
    board(tmp_path / "kitchen"), board(tmp_path / "pub")
    question = {"next_agent": "USER", "reason": "two ways", "question": "Salt?", "options": ["yes", "no"]}
    _, waiting = run(tmp_path, "kitchen", {"agent": "MAIN", "reply": json.dumps(question)})
    run(tmp_path, "pub", {"agent": "MAIN", "reply": "Hm."})
    assert json.loads(command("resume", "--json").out)["run"] == waiting


def test_a_run_that_would_stop_again_at_its_limit_is_named_with_the_command_that_raises_it(tmp_path: Path) -> None:
    board(tmp_path / "kitchen", policy(max_iterations=1))
    limited, name = run(tmp_path, "kitchen", COOK, {"agent": "COOK", "reply": GOOD}, FINISH)
    assert limited.code == 3, limited
    done = command("resume")
    assert (done.code, done.out) == (2, "")
    assert f"{name} has reached its limit of iterations. Raise it to continue:" in done.err
    (line,) = (line.strip() for line in done.err.splitlines() if line.startswith("  ripstop resume"))
    assert line == f"ripstop resume {name} --raise iterations=+1"
    assert command(*line.split()[1:]).code == 0


def test_that_nothing_is_unfinished_is_not_a_wrong_use_of_the_command(tmp_path: Path) -> None:
    (tmp_path / "ask.yaml").write_text(WORKFLOW, encoding="utf-8")
    done, _ = run(tmp_path, "ask.yaml", {"reply": '{"content": "written", "decisions": {"ready": false}}'})
    assert done.code == 0, done
    nothing = command("resume")
    why = "No project found in this folder. Nothing is unfinished in this journal."
    told = f"ripstop: {why} `ripstop runs` lists what is there.\n"
    assert (nothing.code, nothing.out, nothing.err) == (2, "", told)


def test_a_limit_is_raised_for_the_latest_run_that_reached_one(tmp_path: Path) -> None:
    board(tmp_path / "kitchen", policy(max_iterations=1)), board(tmp_path / "pub")
    _, name = run(tmp_path, "kitchen", COOK, {"agent": "COOK", "reply": GOOD}, FINISH)
    script = (tmp_path / "script.jsonl").read_text(encoding="utf-8")
    run(tmp_path, "pub", {"agent": "MAIN", "reply": "Hm."})
    (tmp_path / "script.jsonl").write_text(script, encoding="utf-8")
    resumed = json.loads(command("resume", "--raise", "iterations=2", "--json").out)
    assert (resumed["run"], resumed["outcome"]) == (name, "completed")


def test_there_is_nothing_to_raise_where_no_run_reached_a_limit(tmp_path: Path) -> None:
    board(tmp_path / "pub")
    run(tmp_path, "pub", {"agent": "MAIN", "reply": "Hm."})
    done = command("resume", "--raise", "turns=2")
    assert done.code == 2 and "No run of this journal has reached a limit" in done.err, done
