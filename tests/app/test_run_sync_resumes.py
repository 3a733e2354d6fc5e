"""`run_sync` with a key continues the run that an earlier process began, whatever became of that process."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

import ripstop
from tests.walks.commands import ripstop as command
from tests.walks.test_command_line import HAIKU

REPLIES = [json.loads(line) for line in (HAIKU / "script.jsonl").read_text(encoding="utf-8").splitlines()]
PROGRAM = f"import ripstop; ripstop.run_sync({str(HAIKU)!r}, 'rain', model='script:s.jsonl', key='order-7')"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path: Path, lines: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def working(folder: Path, records: int) -> str:
    """The run, once it is at work and has so many records."""
    while True:
        for line in json.loads(command("runs", "--json", cwd=folder).stdout or "[]"):
            if line["status"] == "working" and line["records"] >= records:
                return str(line["run"])
        time.sleep(0.05)


def test_run_sync_resumes_the_run_of_a_killed_process(project: Path) -> None:
    script = project / "s.jsonl"
    write(script, [REPLIES[0], {**REPLIES[1], "delay": 3600}, *REPLIES[2:]])
    with subprocess.Popen([sys.executable, "-c", PROGRAM], cwd=project) as first:
        run = working(project, records=6)  # the first reply is on record, the second does not come
        first.kill()
    write(script, REPLIES)
    done = ripstop.run_sync(HAIKU, "rain", model="script:s.jsonl", key="order-7")
    assert (done.run, done.status) == (run, "completed")
    told = [json.loads(line) for line in command("log", run, "--json", cwd=project).stdout.splitlines()]
    answers = [one for one in told if one["type"] == "answered" and one["answer"]["type"] == "agent_replied"]
    assert len(answers) == len(REPLIES)  # none was asked again for what it had said
    assert [one.get("attempt", 1) for one in answers] == [1, 2, 1, 1]


def test_run_sync_retries_the_run_that_an_outage_paused(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RIPSTOP_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    (project / "ripstop.toml").write_text("attempts = 1\n", encoding="utf-8")
    paused = ripstop.run_sync(HAIKU, "rain", model="openai:m", key="order-7")
    assert paused.status == "paused"
    again = ripstop.run_sync(HAIKU, "rain", model="openai:m", key="order-7")
    assert again.status == "paused"
    told = command("log", again.run, cwd=project).stdout
    assert told.count("call_refused") == 2
    write(project / "s.jsonl", REPLIES)
    done = ripstop.run_sync(HAIKU, "rain", model="script:s.jsonl", key="order-7")
    assert (done.run, done.status) == (paused.run, "completed")
