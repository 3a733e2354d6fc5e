"""A run that was interrupted, and whose files are not where it left them when it is resumed."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.walks.commands import log_of, ripstop, succeed
from tests.walks.test_command_line import HAIKU, hurry
from tests.walks.test_unfinished_runs import listed

POEM = "collab/poem.md"


@pytest.fixture
def killed(tmp_path: Path) -> str:
    """A run that has written a file, and whose process was killed while the next agent took its time."""
    wrote = {"content": "I wrote it.", "decisions": {"done": True}}
    lines = [
        {"agent": "poet", "reply": f"{POEM}\n```\nThe sea.\n```\n{json.dumps(wrote)}"},
        {"agent": "critic", "reply": '{"content": "fine", "decisions": {"approved": true}}', "delay": 600},
    ]
    script = tmp_path / "slow.jsonl"
    script.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    command = [sys.executable, "-m", "ripstop", "run", str(HAIKU), "--model", f"script:{script}", "--workspace", "ws"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 60
        while not (runs := listed(tmp_path)) or not any(
            record.get("command", {}).get("agent") == "critic" for record in log_of(runs[0]["run"], tmp_path)
        ):
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.05)
    finally:
        process.kill()
        process.communicate(timeout=30)
    assert (tmp_path / "ws" / POEM).exists()
    hurry(tmp_path)
    return str(runs[0]["run"])


@pytest.mark.parametrize("is_file", [False, True])
def test_a_run_whose_folder_is_gone_is_not_resumed_as_if_it_were_there(
    killed: str, tmp_path: Path, is_file: bool
) -> None:
    workspace = tmp_path / "ws"
    workspace.rename(tmp_path / "elsewhere")
    if is_file:
        workspace.write_text("x", encoding="utf-8")
    what = "is a file now" if is_file else "is not there any more"
    for command in (("resume", killed), ("resume", "--all"), ("retry", killed)):
        done = ripstop(*command, cwd=tmp_path)
        said = " ".join((done.stdout + done.stderr).split())
        assert f"{killed} cannot continue" in said and what in said and "--workspace DIR" in said, said
        assert listed(tmp_path)[0]["status"] in ("interrupted", "set_aside")
    workspace.unlink(missing_ok=True)
    (tmp_path / "elsewhere").rename(workspace)
    assert "completed" in succeed("resume", killed, cwd=tmp_path)


def test_files_that_are_gone_are_named_when_their_run_is_resumed(killed: str, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "ws" / "collab")
    done = ripstop("resume", killed, cwd=tmp_path)
    assert done.returncode == 0
    assert f"{killed} has written files that are not there any more: {POEM}." in " ".join(done.stderr.split())


LOSES = """
import shutil
from pathlib import Path

from ripstop import tool

@tool("unsafe")
def deliver() -> str:
    shutil.rmtree(Path(".ripstop"))
    return "delivered"
"""
DELIVERS = """
name: delivers
initial_message: go
agents: [{name: w, type: coder, tools: [deliver]}]
states:
  - {name: write, agent: w, start: true, prompt: write it, transitions: [{to: END, condition: done}]}
"""


def test_a_run_whose_journal_was_removed_is_not_said_to_be_completed(tmp_path: Path) -> None:
    (tmp_path / "delivers.yaml").write_text(DELIVERS, encoding="utf-8")
    (tmp_path / "losing.py").write_text(LOSES, encoding="utf-8")
    lines: list[dict[str, object]] = [
        {"agent": "w", "calls": [{"tool": "deliver", "args": {}}]},
        {"agent": "w", "reply": '{"content": "ok", "decisions": {"done": true}}'},
    ]
    (tmp_path / "s.jsonl").write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    command = ("--tools", "losing", "--model", "script:s.jsonl", "run", "delivers.yaml", "--any-name")
    done = ripstop(*command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": os.pathsep.join([".", *sys.path])})
    assert done.returncode == 1, done.stdout + done.stderr
    assert "was replaced, or removed" in done.stderr
    assert "completed" not in done.stdout + done.stderr
