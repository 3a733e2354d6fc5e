"""The lines that a person sees while a run is under way: what each is about, and in which order they come."""

import json
from pathlib import Path
from typing import Any

import pytest

from ripstop.testing.commands import command
from tests.walks.delivery import IDEA, SCRIPT

WORKFLOW = """\
name: ask
initial_message: Write it.
agents: [{name: ada, type: coder}]
states:
  - name: work
    agent: ada
    prompt: "{{COLLABORATION_GUIDE}} {{initial_message}}"
    transitions: [{to: END, condition: ready}]
"""
READY = {"reply": '{"content": "It is written.", "decisions": {"ready": true}}'}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ask.yaml").write_text(WORKFLOW, encoding="utf-8")


def lines(folder: Path, *replies: dict[str, Any], options: tuple[str, ...] = ()) -> list[str]:
    (folder / "script.jsonl").write_text("".join(json.dumps(line) + "\n" for line in replies), encoding="utf-8")
    return command("run", "ask.yaml", "--model", "script:script.jsonl", *options).err.splitlines()


def where(told: list[str], beginning: str) -> int:
    found = [number for number, line in enumerate(told) if line.startswith(beginning)]
    assert len(found) == 1, (beginning, told)
    return found[0]


def test_a_call_that_was_cut_off_is_named(tmp_path: Path) -> None:
    told = lines(tmp_path, {**READY, "delay": 20}, options=("--max-seconds", "0.3"))
    assert "  ● ada: It was cut off, because it was no longer needed." in told


def test_a_tool_that_failed_is_named_below_the_reply_that_called_it(tmp_path: Path) -> None:
    call = {"calls": [{"tool": "read_file", "args": {"path": "missing.md"}}]}
    told = lines(tmp_path, call, READY)
    called, failed, written = (where(told, text) for text in ("    calls", "  ● ada · read_file: ", "    It is"))
    assert called < failed < written, told
    assert told[called] == "    calls read_file" and told[written] == "    It is written."


def test_a_warning_is_below_the_reply_that_it_is_about(tmp_path: Path) -> None:
    told = lines(tmp_path, {"reply": '{"content": "Half of it.", "decisions": {"ready": false}}'})
    reply, warning = where(told, "  ● work ada"), where(told, "  warning: ")
    assert reply < warning and told[reply + 1] == "    Half of it.", told


def test_the_summary_shows_the_time_at_work_of_the_run_and_not_of_the_process(tmp_path: Path) -> None:
    lines(tmp_path, {**READY, "delay": 1.2})
    (listed,) = json.loads(command("runs", "--json").out)
    looked = command("resume", listed["run"]).out
    (spent,) = (line for line in looked.splitlines() if line.startswith("spent "))
    assert spent.endswith(" s at work") and float(spent.split()[-4]) >= 1.2, "it had ended; this process did nothing"


def test_the_summary_shows_no_time_where_none_is_counted(tmp_path: Path) -> None:
    (tmp_path / "script.jsonl").write_text(json.dumps(READY), encoding="utf-8")
    told = command("run", "ask.yaml", "--model", "script:script.jsonl", "--no-default-limits").out
    (spent,) = (line for line in told.splitlines() if line.startswith("spent "))
    assert spent.endswith(" tokens"), told


def test_a_turn_is_shown_before_the_question_about_it_and_once(tmp_path: Path) -> None:
    told = command("--model", f"script:{SCRIPT}", "new", IDEA).err.splitlines()
    turn, asked = where(told, "  ● prd  "), where(told, "  a person is asked: Review the draft of the stage")
    assert turn < asked and told[turn + 1].startswith("    # Requirements: to-do list 1. People can add"), told
    run_id = told[0].split()[0]
    (question,) = json.loads(command("desk", "--json").out)
    assert command("answer", question["id"], "pass").code == 0
    again = command("resume", run_id).err
    assert "to-do list 1. People" not in again and "  ● prd  " in again, again


def test_a_decision_of_a_board_is_shown_before_the_question_that_it_asks(tmp_path: Path) -> None:
    assert command("init", "blackboard", "board", "--scenario", "tdd").code == 0
    ask = {"next_agent": "USER", "reason": "The goal is open.", "question": "Which one?", "dev_plan": ""}
    (tmp_path / "script.jsonl").write_text(json.dumps({"agent": "MAIN", "reply": json.dumps(ask)}), encoding="utf-8")
    told = command("run", "board", "--model", "script:script.jsonl").err.splitlines()
    turn, asked = where(told, "  ● MAIN  "), where(told, "  a person is asked: Which one?")
    assert turn < asked and told[turn + 1] == "    USER: The goal is open.", told


def test_the_last_words_of_a_board_are_those_with_which_main_finished(tmp_path: Path) -> None:
    assert command("init", "blackboard", "board", "--scenario", "tdd").code == 0
    done = command("run", "board", "--model", "script:board/script.jsonl")
    finish = "FINISH: Both tasks are verified, all tests pass, and nothing blocks."
    assert done.err.splitlines()[-2].startswith("  ● MAIN  ") and done.err.splitlines()[-1] == f"    {finish}", done.err
    assert f"last    {finish}" in done.out.splitlines(), done.out


MIDDLE_OF_A_TURN: tuple[dict[str, Any], ...] = (
    {"agent": "MAIN", "reply": json.dumps({"next_agent": "TEST", "reason": "No test yet.", "dev_plan": ""})},
    {"agent": "TEST", "calls": [{"tool": "list_files", "args": {}}]},
    {"agent": "TEST", "error": "rate_limit"},
    {"agent": "TEST", "error": "rate_limit"},
)


@pytest.mark.parametrize(("options", "says"), [((), "  again in "), (("--max-calls", "2"), "  guard budget.calls:")])
def test_what_stops_a_turn_in_its_middle_is_below_its_words_and_these_are_not_those_of_another(
    tmp_path: Path, options: tuple[str, ...], says: str
) -> None:
    assert command("init", "blackboard", "board", "--scenario", "tdd").code == 0
    (tmp_path / "ripstop.toml").write_text("attempts = 2\n", encoding="utf-8")
    script = "".join(json.dumps(line) + "\n" for line in MIDDLE_OF_A_TURN)
    (tmp_path / "script.jsonl").write_text(script, encoding="utf-8")
    done = command("run", "board", "--model", "script:script.jsonl", *options)
    told = done.err.splitlines()
    called, stopped = where(told, "  ● TEST  "), where(told, says)
    assert called < stopped and told[called + 1] == "    calls list_files", told
    assert told.count("    TEST: No test yet.") == 1, told
    if not options:
        assert "paused  by a model server that refuses a call" in done.out and "3 calls (1 refused)" in done.out, (
            done.out
        )
        assert "3 calls (1 refused)" in command("show", told[0].split()[0]).out
