"""A document that waits for somebody who does not exist is named, with the role that was meant."""

import json
from pathlib import Path

import pytest

from ripstop.testing.commands import command

SAID = "waits for 'byuer', who is not a role here and has not worked on anything; did you mean 'buyer'?"


@pytest.fixture(autouse=True)
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "roles").mkdir()
    for name in ("writer", "buyer"):
        (tmp_path / "roles" / f"{name}.md").write_text("You work.", encoding="utf-8")


def replies(to: str) -> None:
    decisions = {"action": "pass", "to": to, "next_action": "Buy it", "result": ""}
    reply = json.dumps({"content": "Ink is needed.", "decisions": decisions})
    Path("script.jsonl").write_text(json.dumps({"agent": "writer", "reply": reply}), encoding="utf-8")


def test_an_owner_whom_an_agent_misspelt_is_named_by_watch_and_list() -> None:
    replies("byuer")
    command("docs", "new", "Ink", "--to", "writer", "--from", "ann", "--id", "ink")
    watched = command("docs", "watch", "--once", "--model", "script:script.jsonl")
    assert watched.code == 0 and f"ink {SAID}" in watched.err, watched.err
    listed = command("docs", "list")
    assert f"ink {SAID}" in listed.err, listed.err
    [problem] = json.loads(command("docs", "list", "--json").out)["problems"]
    assert problem["text"] == f"ink {SAID}"


def test_a_person_who_has_worked_here_is_known() -> None:
    replies("ann")
    command("docs", "new", "Ink", "--to", "writer", "--from", "ann", "--id", "ink")
    command("docs", "watch", "--once", "--model", "script:script.jsonl")
    assert command("docs", "list").err == ""


def test_a_person_may_give_a_task_to_a_person_who_has_done_nothing_yet() -> None:
    command("docs", "new", "Ink", "--to", "zoe", "--from", "ann")
    assert command("docs", "list").err == ""


def test_a_finished_document_waits_for_nobody() -> None:
    command("docs", "new", "Ink", "--to", "byuer", "--from", "ann", "--id", "ink")
    assert SAID in command("docs", "list").err
    command("docs", "terminate", "ink", "--as", "ann")
    assert command("docs", "list").err == ""
