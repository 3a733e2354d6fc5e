"""What people read: no empty lines, no value twice, and always what to do next."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.walks.commands import a_run, ripstop, succeed

LOOP = """\
name: loop
initial_message: go round
max_turns: 9
guards: { patience: 2, then: ask }
agents:
  - { name: ann, type: coder }
states:
  - name: one
    agent: ann
    start: true
    prompt: "{{COLLABORATION_GUIDE}} Say whether you are done."
    transitions:
      - { to: END, condition: done }
      - { to: one, condition: NOT done }
"""
NOT_DONE = {"reply": '{"content": "not yet", "decisions": {"done": false}}'}


def loop(folder: Path, *lines: dict[str, Any]) -> "subprocess.CompletedProcess[str]":
    (folder / "loop.yaml").write_text(LOOP, encoding="utf-8")
    (folder / "script.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return ripstop("run", "loop.yaml", "--model", "script:script.jsonl", cwd=folder)


@pytest.mark.long
def test_why_names_the_command_that_answers_an_open_question(tmp_path: Path) -> None:
    assert loop(tmp_path, *[NOT_DONE] * 9).returncode == 4
    (question,) = json.loads(succeed("desk", "--json", cwd=tmp_path))
    run = question["id"].partition("/")[0]
    told = succeed("why", run, cwd=tmp_path)
    assert f"ripstop answer {question['id']} CHOICE" in told and "CHOICE: continue or stop" in told
    assert "limit 2  value 2" in told, "whole numbers are shown as such"
    succeed("answer", question["id"], "stop", cwd=tmp_path)
    assert "ripstop answer" not in succeed("why", run, cwd=tmp_path)


def test_answer_and_runs_use_the_same_word_for_a_run_without_a_worker(tmp_path: Path) -> None:
    assert loop(tmp_path, *[NOT_DONE] * 9).returncode == 4
    (question,) = json.loads(succeed("desk", "--json", cwd=tmp_path))
    told = json.loads(succeed("answer", question["id"], "continue", "--json", cwd=tmp_path))
    (listed,) = json.loads(succeed("runs", "--json", cwd=tmp_path))
    assert told["status"] == listed["status"] == "interrupted"


def test_why_shows_the_value_under_a_not_once(tmp_path: Path) -> None:
    told = succeed("why", f"{a_run(tmp_path)['run']}@7", cwd=tmp_path)
    lines = told.splitlines()
    taken = next(index for index, line in enumerate(lines) if "NOT approved  (taken)" in line)
    assert [line for line in lines[taken:] if "approved = false" in line] == [lines[taken + 1]]


def test_a_reply_that_only_calls_tools_says_which(tmp_path: Path) -> None:
    calls = {"reply": "", "calls": [{"tool": "write_file", "args": {"path": "a.txt", "content": "a"}}]}
    done = loop(tmp_path, calls, {"reply": '{"content": "written", "decisions": {"done": true}}'})
    assert done.returncode == 0, done.stderr
    assert "    calls write_file\n" in done.stderr
    assert all(line.strip() for line in done.stderr.splitlines())


def test_help_names_the_exit_codes_of_an_interruption(tmp_path: Path) -> None:
    assert "129, 130 or 143 interrupted" in " ".join(succeed("--help", cwd=tmp_path).split())


def test_what_is_unknown_is_said_in_whole_sentences(tmp_path: Path) -> None:
    assert (
        ripstop("docs", "watch", "--once", cwd=tmp_path)
        .stderr.rstrip()
        .endswith("There are no roles: write roles/NAME.md.")
    )
    succeed("docs", "new", "Add", "--to", "ann", "--id", "sum", cwd=tmp_path)
    assert "known are sum.\n" in ripstop("docs", "show", "nothing-like-it", cwd=tmp_path).stderr
    assert "did you mean 'sum'?\n" in ripstop("docs", "show", "sun", cwd=tmp_path).stderr
    (tmp_path / "x.yaml").write_text(LOOP.replace("name: one", "name: END").replace("to: one", "to: far"), "utf-8")
    assert "known are END\n" in ripstop("check", "x.yaml", cwd=tmp_path).stdout


def test_a_script_that_is_checked_as_a_workflow_is_said_to_be_one(tmp_path: Path) -> None:
    (tmp_path / "script.jsonl").write_text('{"reply": "one"}\n{"reply": "two"}\n', "utf-8")
    told = ripstop("check", "script.jsonl", cwd=tmp_path).stdout
    assert "script.jsonl:2:1: error: this is not one YAML document: another begins here; a script of replies" in told
    assert "--model script:PATH" in told


def test_shared_options_may_stand_after_the_name_of_a_family_of_commands(tmp_path: Path) -> None:
    assert json.loads(succeed("docs", "--json", "list", cwd=tmp_path)) == {"documents": [], "problems": []}
    assert "model" in json.loads(succeed("model", "--json", "install", cwd=tmp_path))


def test_an_option_of_a_command_that_stands_before_it_is_sent_to_its_place(tmp_path: Path) -> None:
    done = ripstop("docs", "--folder", ".", "list", cwd=tmp_path)
    assert done.returncode == 2
    assert "--folder goes after the command: ripstop docs list --folder" in done.stderr
    assert "No such option" in ripstop("docs", "--nonsense", "list", cwd=tmp_path).stderr
