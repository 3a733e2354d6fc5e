"""How the command line suggests an answer, and what it says of one that was given."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ripstop.testing.commands import command
from tests.styles.blackboard.board_definitions import board

SOUP = {"next_agent": "USER", "reason": "two ways", "question": "Salt?", "options": ["yes", "no"]}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def asked(folder: Path, decision: dict[str, Any] = SOUP) -> tuple[str, str]:
    """The id of an open question, and the summary of its run."""
    board(folder / "kitchen")
    (folder / "script.jsonl").write_text(json.dumps({"agent": "MAIN", "reply": json.dumps(decision)}) + "\n")
    done = command("run", "kitchen", "--model", "script:script.jsonl")
    assert done.code == 4, done
    (item,) = json.loads(command("desk", "--json").out)
    return item["id"], done.out


def test_a_suggested_answer_is_a_command_and_a_line_that_says_what_can_be_typed(tmp_path: Path) -> None:
    question, summary = asked(tmp_path)
    run = question.partition("/")[0]
    suggested, takes = f"ripstop answer {question} CHOICE\n", "CHOICE: yes, no or 'something else'\n"
    assert f"        {suggested}        {takes}" in summary
    assert f"  {suggested}  {takes}" in command("desk").out
    assert f"answer    ripstop answer {question} CHOICE\n" in (told := command("why", run).out) and takes in told
    assert f"Salt?  → {suggested}" in command("show", run).out


def test_a_suggested_answer_that_is_pasted_as_it_is_answers_nothing(tmp_path: Path) -> None:
    question, summary = asked(tmp_path)
    (line,) = (line.strip() for line in summary.splitlines() if "ripstop answer" in line)
    echoed = subprocess.run(["sh", "-c", f"echo {line}"], capture_output=True, text=True, check=True).stdout
    assert echoed.split() == line.split(), "a shell passes it on as it is"
    pasted = command(*line.split()[1:])
    assert pasted.code == 2 and "Replace CHOICE with your answer: yes, no or 'something else'." in pasted.err
    assert json.loads(command("desk", "--json").out)[0]["id"] == question


def test_a_question_without_choices_takes_a_text(tmp_path: Path) -> None:
    question, summary = asked(tmp_path, {"next_agent": "USER", "reason": "a name", "question": "Which soup?"})
    assert f"ripstop answer {question} TEXT\n" in summary and "CHOICE" not in summary
    assert "Replace TEXT with your answer." in command("answer", question, "TEXT").err


@pytest.mark.parametrize(
    ("words", "recorded"),
    [
        (("maybe",), 'something else ("maybe")'),
        (("yes",), "yes"),
        (("no", "not again"), 'no ("not again")'),
        (("x" * 500,), f'something else ("{"x" * 79}…")'),
    ],
)
def test_what_was_recorded_as_the_answer_is_said(tmp_path: Path, words: tuple[str, ...], recorded: str) -> None:
    question, _ = asked(tmp_path)
    assert command("answer", question, *words).out.startswith(f"Answered: {recorded}. kitchen-")


def test_an_answer_without_choices_is_said_in_its_words(tmp_path: Path) -> None:
    question, _ = asked(tmp_path, {"next_agent": "USER", "reason": "a name", "question": "Which soup?"})
    assert command("answer", question, "tomato").out.startswith('Answered: "tomato". kitchen-')
