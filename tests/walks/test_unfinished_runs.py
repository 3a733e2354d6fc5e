"""Runs that were interrupted or have ended: how they are listed, and what `resume` makes of them."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ripstop.faces.cli.words import shown_path
from tests.walks.commands import a_run, ripstop, succeed
from tests.walks.test_command_line import HAIKU, SCRIPT, slow

__all__ = ["slow"]  # a fixture


def listed(cwd: Path, *options: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(succeed("runs", "--json", *options, cwd=cwd))
    return found


def a_fork(cwd: Path, run: str) -> str:
    """A run that nobody works on."""
    forked: str = json.loads(succeed("fork", run, "--at", "5", "--json", cwd=cwd))["run"]
    return forked


def test_a_killed_run_is_listed_as_interrupted(slow: "subprocess.Popen[str]", tmp_path: Path) -> None:
    assert listed(tmp_path)[0]["status"] == "working"
    slow.kill()
    slow.communicate(timeout=30)
    (info,) = listed(tmp_path)
    assert info["status"] == "interrupted"
    shown = succeed("show", info["run"], cwd=tmp_path)
    assert "interrupted" in shown
    assert f"ripstop resume {info['run']}" in shown
    assert json.loads(succeed("show", info["run"], "--json", cwd=tmp_path))["outcome"] == "interrupted"


@pytest.mark.long
def test_runs_are_filtered_by_status_and_time(tmp_path: Path) -> None:
    first, second = a_run(tmp_path)["run"], a_run(tmp_path)["run"]
    fork = a_fork(tmp_path, first)
    assert [info["run"] for info in listed(tmp_path)] == [first, second, fork]
    assert [info["run"] for info in listed(tmp_path, "--status", "completed")] == [first, second]
    assert [info["run"] for info in listed(tmp_path, "--status", "interrupted")] == [fork]
    assert [info["run"] for info in listed(tmp_path, "--status", "completed", "--last", "1")] == [second]
    told = succeed("runs", "--last", "2", cwd=tmp_path)
    assert first not in told
    assert "… 1 more" in told
    assert "No runs are failed (3 runs in this journal)." in succeed("runs", "--status", "failed", cwd=tmp_path)


def test_resume_of_an_ended_run_says_how_it_ended_and_how_to_fork(tmp_path: Path) -> None:
    run = a_run(tmp_path)["run"]
    done = ripstop("resume", run, cwd=tmp_path)
    assert done.returncode == 0, "as it ended: completed"
    assert f"{run} had already ended, so nothing was resumed." in done.stderr
    assert "completed" in done.stdout
    assert f"ripstop fork {run} --at N" in done.stdout
    told = json.loads(succeed("resume", run, "--json", cwd=tmp_path))
    assert (told["resumed"], told["outcome"]) == (False, "completed")
    assert told["ways_on"] == [f"ripstop fork {run} --at N"], "to look is not a way on"


@pytest.mark.long
def test_resume_all_resumes_every_interrupted_run(tmp_path: Path) -> None:
    run = a_run(tmp_path)["run"]
    forks = [a_fork(tmp_path, run) for _ in range(3)]
    done = ripstop("resume", "--all", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "3 interrupted runs to resume." in done.stderr
    for fork in forks:
        assert f"{fork}  " in done.stderr, "lines begin with the run's name"
        assert f"{fork}  completed" in done.stdout
    assert {info["status"] for info in listed(tmp_path)} == {"completed"}
    nothing = json.loads(succeed("resume", "--all", "--json", cwd=tmp_path))
    assert nothing == {"runs": []}


@pytest.mark.long
def test_resume_all_stops_in_order_on_a_signal(slow: "subprocess.Popen[str]", tmp_path: Path) -> None:
    slow.kill()
    slow.communicate(timeout=30)
    command = [sys.executable, "-m", "ripstop", "resume", "--all"]
    resuming = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert resuming.stderr is not None
    first = resuming.stderr.readline()
    assert "1 interrupted run to resume." in first
    resuming.send_signal(signal.SIGINT)
    _, err = resuming.communicate(timeout=30)
    assert resuming.returncode == 130
    assert "Nothing is lost; resume with:  ripstop resume --all" in err
    assert "Traceback" not in err and "never retrieved" not in err, err


def test_resume_takes_a_run_or_all(tmp_path: Path) -> None:
    assert ripstop("resume", "x", "--all", cwd=tmp_path).returncode == 2


@pytest.mark.parametrize("turns", [1, 40, 41, 12_345])
def test_a_long_path_shows_its_beginning_and_end(turns: int) -> None:
    shown = shown_path([f"s{number}" for number in range(turns)])
    assert shown.startswith("s0")
    assert shown.endswith(f"s{turns - 1}")
    assert len(shown) < 500
    assert ("more …" in shown) == (turns > 40)
    if turns == 12_345:
        assert "… 12,305 more …" in shown


def test_the_path_is_whole_in_json(tmp_path: Path) -> None:
    run = json.loads(succeed("run", str(HAIKU), "--model", SCRIPT, "--json", cwd=tmp_path))
    assert run["path"] == ["write", "judge", "write", "judge"]
