"""Every style as a parent of every style: 25 cells, each through the command line."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.walks.commands import ripstop
from tests.walks.matrix import GOAL, STYLES, WORDS, fail, make_cell, say_otherwise

CELLS = [pytest.param(parent, child, id=f"{parent}-{child}") for parent in STYLES for child in STYLES]


def run(folder: Path, *more: str) -> tuple[int, dict[str, Any]]:
    done = ripstop("run", "parent", "--input", GOAL, "--json", *more, cwd=folder)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def handed_on(folder: Path, parent: str, result: dict[str, Any]) -> str:
    """What the parent made of its child's result, where it is meant to be seen."""
    if parent == "blackboard":
        return (folder / "parent" / "reports" / "report_diver.md").read_text()
    return str(result["result"]["content"])


DATA: dict[str, dict[str, Any]] = {
    "graph": {"done": True},
    "blackboard": {"reason": WORDS, "verdicts": {"chemist": "OK"}},
    "pipeline": {"stages": ["answer"]},
    "handoff": {"status": "completed", "result": WORDS},
    "conversation": {},
}
"""Data of a child's result, which a graph has as its decisions."""
OWN_DATA: dict[str, dict[str, Any]] = {
    "graph": {},
    "blackboard": {"iterations": 2, "reason": "The diver has found out."},
    "pipeline": {"stages": ["dive"]},
    "handoff": {"status": "completed", "owner": "diver"},
    "conversation": {},
}


def check_data_and_files(folder: Path, parent: str, child: str, result: dict[str, Any]) -> None:
    """A graph passes on its child's data and files; the others have data of their own, and name its files in text."""
    of_child = [str(path) for path in (folder / "child" / ".workflows").glob("*.md")]
    assert len(of_child) == (child == "handoff")
    assert result.items() >= OWN_DATA[parent].items()
    if parent == "graph":
        assert set(result) == {"content", "decisions"}
        assert result["decisions"].items() >= {"outcome": "completed", **DATA[child]}.items()
        assert result["decisions"].get("files", []) == of_child
        return
    own = [str(path) for path in (folder / "parent" / ".workflows").glob("*.md")]
    assert result.get("files", []) == own and len(own) == (parent == "handoff")
    if parent != "conversation":  # a customer gets words
        assert all(path in handed_on(folder, parent, {"result": result}) for path in of_child)


@pytest.mark.parametrize(("parent", "child"), CELLS)
def test_a_parent_hands_on_what_its_child_came_to(tmp_path: Path, parent: str, child: str) -> None:
    make_cell(tmp_path, parent, child)
    code, result = run(tmp_path)
    assert (code, result["outcome"]) == (0, "completed"), result
    text = handed_on(tmp_path, parent, result)
    assert WORDS in text
    check_data_and_files(tmp_path, parent, child, result["result"])
    if parent == "conversation":
        greeting = ["Hello."] if child == "conversation" else []
        assert text.splitlines() == [*greeting, WORDS], "the customer gets the text, and nothing else"


@pytest.mark.parametrize("parent", STYLES)
def test_a_child_that_comes_to_nothing_hands_on_nothing_and_no_reason(tmp_path: Path, parent: str) -> None:
    make_cell(tmp_path, parent, "graph")
    say_otherwise(tmp_path, WORDS, "")
    code, result = run(tmp_path)
    if parent == "conversation":  # a user is never left without words
        log = ripstop("log", result["run"], "--json", cwd=tmp_path).stdout
        assert "Sorry, that did not work." in log and "END" not in result["because"]
        return
    assert (code, result["outcome"]) == (0, "completed"), result
    text = handed_on(tmp_path, parent, result)
    assert "done" not in text and "END" not in text, "why the child ended is not what it came to"


@pytest.mark.parametrize("parent", STYLES)
def test_why_a_child_has_failed_is_said_and_is_nobodys_result(tmp_path: Path, parent: str) -> None:
    make_cell(tmp_path, parent, "graph")
    fail(tmp_path, "clerk")
    code, result = run(tmp_path)
    assert result.get("result") is None
    why = result["waiting"][0]["question"] if parent == "handoff" else result["because"]
    assert "the script says that agent 'clerk' meets 'refused'" in why
    assert (code, result["outcome"]) == ((4, "waiting") if parent == "handoff" else (1, "failed"))
    if parent == "conversation":
        assert "Sorry, that did not work." in ripstop("log", result["run"], "--json", cwd=tmp_path).stdout


# What a family of runs goes through on its way


ANSWERS = {
    "graph": ("continue", "--field", "raise=3"),
    "blackboard": ("yes",),
    "pipeline": ("pass",),
    "handoff": ("again",),
    "conversation": (WORDS,),
}
"""How a person answers the question of a child."""


def waiting(result: dict[str, Any]) -> str:
    (question,) = result["waiting"]
    return str(question["id"])


def resume(folder: Path, run_id: str, *more: str) -> dict[str, Any]:
    done = ripstop("resume", run_id, "--json", *more, cwd=folder)
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.long
@pytest.mark.parametrize(("parent", "child"), CELLS)
def test_a_childs_question_is_asked_once_and_its_answer_moves_the_family(
    tmp_path: Path, parent: str, child: str
) -> None:
    make_cell(tmp_path, parent, child, asks=True)
    code, result = run(tmp_path)
    assert (code, result["outcome"]) == (4, "waiting"), result
    said = ripstop("answer", waiting(result), *ANSWERS[child], cwd=tmp_path)
    assert said.returncode == 0, said.stderr
    if child == "conversation":  # a person has it until they give it back
        question = waiting(json.loads(ripstop("show", result["run"], "--json", cwd=tmp_path).stdout))
        assert ripstop("answer", question, "release", cwd=tmp_path).returncode == 0
    result = resume(tmp_path, result["run"])
    assert result["outcome"] == "completed", result
    assert WORDS in handed_on(tmp_path, parent, result)


@pytest.mark.long
@pytest.mark.parametrize(("parent", "child"), CELLS)
def test_cancelling_the_root_cancels_its_child(tmp_path: Path, parent: str, child: str) -> None:
    make_cell(tmp_path, parent, child, asks=True)
    _, result = run(tmp_path)
    done = ripstop("cancel", result["run"], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    infos = json.loads(ripstop("runs", "--json", cwd=tmp_path).stdout)
    assert {one["status"] for one in infos} <= {"stopped", "completed"}, infos  # completed: a plan that was made
    assert json.loads(ripstop("desk", "--json", cwd=tmp_path).stdout) == []


CALLS = {"graph": 2, "blackboard": 3, "pipeline": 2, "handoff": 2, "conversation": 2}
"""The calls of agents that a child makes; a board that starts one makes two of its own."""


def runs_of(folder: Path) -> list[str]:
    return sorted(one["run"] for one in json.loads(ripstop("runs", "--json", cwd=folder).stdout))


@pytest.mark.long
@pytest.mark.parametrize(("parent", "child"), CELLS)
def test_what_a_child_spends_counts_for_its_parent_and_a_raised_limit_continues_it(
    tmp_path: Path, parent: str, child: str
) -> None:
    make_cell(tmp_path, parent, child, twice=True)
    needed = CALLS[child] + (2 if parent == "blackboard" else 0)
    code, result = run(tmp_path, "--max-calls", str(needed - 1))
    assert (code, result["outcome"], result["usage"]["calls"]) == (3, "limit", needed - 1), result
    if parent == "conversation":
        said = ripstop("log", result["run"], "--json", cwd=tmp_path).stdout
        assert "Sorry, that did not work." in said, "nobody is left in silence"
    before = runs_of(tmp_path)
    result = resume(tmp_path, result["run"], "--raise", "calls=1")
    assert runs_of(tmp_path) == before, "the same child goes on: nothing is paid for twice"
    assert (result["outcome"], result["usage"]["calls"]) == ("completed", needed), result
    assert WORDS in handed_on(tmp_path, parent, result)


@pytest.mark.long
@pytest.mark.parametrize(("parent", "child"), CELLS)
def test_a_family_that_was_killed_is_resumed_to_the_same_end(tmp_path: Path, parent: str, child: str) -> None:
    folder, infos = killed_at_work(tmp_path, parent, child)
    root = next(one for one in infos if not one["parent"] and one["run"].startswith("parent"))
    assert root["status"] == "interrupted", infos
    result = resume(folder, root["run"])
    assert result["outcome"] == "completed", result
    assert WORDS in handed_on(folder, parent, result)


def killed_at_work(folder: Path, parent: str, child: str) -> tuple[Path, list[dict[str, Any]]]:
    """A family whose process was killed while its child was at work, and its runs."""
    for commit in range(5, 40):
        cell = folder / str(commit)
        cell.mkdir()
        make_cell(cell, parent, child, twice=True)
        armed = {**os.environ, "RIPSTOP_FAILPOINT": f"sqlite.after_commit:{commit}"}
        done = ripstop("run", "parent", "--input", GOAL, cwd=cell, env=armed)
        assert done.returncode < 0 or done.returncode > 128, done.stderr
        infos = json.loads(ripstop("runs", "--json", cwd=cell).stdout)
        if any(one["parent"] and one["status"] == "interrupted" and one["records"] > 1 for one in infos):
            return cell, infos
    raise AssertionError("no child was seen at work")
