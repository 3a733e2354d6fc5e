"""`ripstop work`: a journal that several processes work on, and what other processes do to it meanwhile."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ripstop.kernel.effects import AskAgent
from tests.walks import foreign_style
from tests.walks.commands import a_run, log_of, ripstop, succeed
from tests.walks.test_command_line import HAIKU, SCRIPT

pytestmark = pytest.mark.long

PATIENT = 60
"""Seconds that anything may take before a test gives up; nothing is measured with it."""
LONG_CALL = 300


@contextmanager
def working(folder: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """A worker in a process of its own."""
    command = [sys.executable, "-m", "ripstop", *options, "work"]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def stopped(process: subprocess.Popen[str]) -> int:
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PATIENT)
    return process.returncode


def rows(folder: Path) -> dict[str, dict[str, Any]]:
    return {row["run"]: row for row in json.loads(succeed("runs", "--json", cwd=folder))}


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENT
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def forks(folder: Path, count: int) -> list[str]:
    """Runs that wait for a worker."""
    run = a_run(folder)["run"]
    return [json.loads(succeed("fork", run, "--at", "5", "--json", cwd=folder))["run"] for _ in range(count)]


def test_runs_that_other_processes_started_are_carried_out_until_idle(tmp_path: Path) -> None:
    started = forks(tmp_path, 2)
    told = succeed("work", "--until-idle", cwd=tmp_path)
    assert told == "3 completed\n"
    assert {rows(tmp_path)[run]["status"] for run in started} == {"completed"}
    assert json.loads(succeed("work", "--until-idle", "--json", cwd=tmp_path)) == {"counts": {"completed": 3}}


@pytest.mark.long
def test_several_workers_do_each_call_once_and_stop_with_143(tmp_path: Path) -> None:
    started = forks(tmp_path, 6)
    with working(tmp_path) as one, working(tmp_path) as other:
        until(lambda: all(row["status"] == "completed" for row in rows(tmp_path).values()))
        late = json.loads(succeed("fork", started[0], "--at", "5", "--json", cwd=tmp_path))["run"]
        until(lambda: rows(tmp_path)[late]["status"] == "completed")
        assert (stopped(one), stopped(other)) == (143, 143)
    for run in started:
        answered = [record["to"] for record in log_of(run, tmp_path) if record["type"] == "answered"]
        assert len(answered) == len({*answered}), "no call was answered twice"
    assert succeed("verify", cwd=tmp_path).startswith("Sound: 8 runs")


@pytest.mark.long
def test_a_worker_that_is_stopped_in_a_call_loses_nothing(tmp_path: Path) -> None:
    with begun(tmp_path) as (run, process):
        assert stopped(process) == 143
    with working(tmp_path) as worker:
        until(lambda: rows(tmp_path)[run]["status"] == "working")
        assert stopped(worker) == 143
    assert rows(tmp_path)[run]["status"] == "interrupted"
    resumed = json.loads(succeed("resume", run, "--model", SCRIPT, "--json", cwd=tmp_path))
    assert (resumed["outcome"], resumed["path"][:2]) == ("completed", ["write", "judge"])


@contextmanager
def begun(folder: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A run in a process of its own, whose second call is under way, and would take longer than a test."""
    lines: list[dict[str, Any]] = [{"reply": '{"content": "one", "decisions": {"done": true}}'}]
    lines.append({"reply": '{"content": "two", "decisions": {"approved": true}}', "delay": LONG_CALL})
    (folder / "slow.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    command = [sys.executable, "-m", "ripstop", "run", str(HAIKU), "--model", "script:slow.jsonl"]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        until(lambda: any(row["records"] >= 5 for row in rows(folder).values()))
        (run,) = rows(folder)
        yield run, process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def test_a_cancel_from_another_process_reaches_a_call_under_way(tmp_path: Path) -> None:
    with begun(tmp_path) as (run, process):
        succeed("cancel", run, cwd=tmp_path)
        told = time.monotonic()
        process.communicate(timeout=PATIENT)
        print(f"the worker's process ended {time.monotonic() - told:.2f} s after `cancel` did")
        assert process.returncode == 3
    shown = json.loads(succeed("show", run, "--json", cwd=tmp_path))
    assert (shown["outcome"], shown["because"].startswith("cancelled")) == ("stopped", True)


def test_a_run_of_an_unknown_style_is_set_aside_and_the_others_go_on(tmp_path: Path) -> None:
    healthy = forks(tmp_path, 2)
    foreign_style.start(tmp_path, "poison-1", AskAgent(agent="ada"))
    done = ripstop("work", "--until-idle", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    listed = rows(tmp_path)
    assert {listed[run]["status"] for run in healthy} == {"completed"}
    assert listed["poison-1"]["status"] == "set_aside"
    assert "'errands', which is not installed here" in listed["poison-1"]["set_aside"]
    told = succeed("runs", cwd=tmp_path)
    assert "set_aside" in told and "which is not installed here" in told
    refused = ripstop("show", "poison-1", cwd=tmp_path)
    assert (refused.returncode, "which is not installed here" in refused.stderr) == (1, True), refused.stderr
    assert succeed("verify", cwd=tmp_path).startswith("Sound: "), "a style that is not installed is not damage"
