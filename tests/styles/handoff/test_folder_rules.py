"""`handoff.yaml` counts for every document of its folder, whichever command begins it or works on it."""

import json
from pathlib import Path
from typing import Any

import pytest

from ripstop.testing.commands import command

DONE = '{"content": "Bought.", "decisions": {"action": "complete", "to": "", "next_action": "", "result": "ink"}}'
BUYER = "models: {buyer: script:ok.jsonl}\n"


@pytest.fixture
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "roles").mkdir()
    for name in ("assistant", "buyer"):
        (tmp_path / "roles" / f"{name}.md").write_text("You work.", encoding="utf-8")
    (tmp_path / "ok.jsonl").write_text(json.dumps({"agent": "buyer", "reply": DONE}), encoding="utf-8")
    return tmp_path


def docs(*args: str) -> Any:
    done = command("docs", *args, "--json")
    assert done.code == 0, done.err
    return json.loads(done.out)


def new(*more: str) -> Any:
    return docs("new", "Buy ink", "--from", "ann", *more)


def limits(document: dict[str, Any]) -> str:
    return " ".join(document["termination_conditions"])


def test_a_document_takes_its_limits_from_the_folder(office: Path) -> None:
    (office / "handoff.yaml").write_text("max_interactions: 4\n", encoding="utf-8")
    assert "more than 4 interactions" in limits(new("--to", "buyer"))
    made = new("--to", "ann", "--id", "ping")
    for owner in ("bob", "ann"):
        docs("accept", made["id"])
        docs("pass", made["id"], "--to", owner, "-m", f"over to {owner}", "--next", f"Ask {owner}")
    stopped = command("docs", "accept", made["id"])
    assert stopped.code == 3 and "4 interactions" in stopped.err, stopped.err


def test_the_command_line_wins_over_the_folder_and_the_folder_over_the_settings(office: Path) -> None:
    (office / "ripstop.toml").write_text('[docs]\nmax_interactions = 7\nlanguage = "zh"\n', encoding="utf-8")
    assert "7" in limits(new("--to", "buyer", "--id", "by-settings"))
    (office / "handoff.yaml").write_text("max_interactions: 4\n", encoding="utf-8")
    by_folder = limits(new("--to", "buyer", "--id", "by-folder"))
    assert "4" in by_folder and "interactions" not in by_folder, "the language of the settings still counts"
    assert "5" in limits(new("--to", "buyer", "--id", "by-flag", "--max-interactions", "5"))


def test_a_document_obeys_the_guards_of_the_folder(office: Path) -> None:
    (office / "handoff.yaml").write_text("guards: {end_marker: '[STOP]'}\n", encoding="utf-8")
    made = new("--to", "ann")
    docs("accept", made["id"])
    stopped = command("docs", "pass", made["id"], "--to", "bob", "-m", "Enough. [STOP]")
    assert stopped.code == 3 and "[STOP]" in stopped.err, stopped.err


def test_a_message_is_read_by_the_guards_of_the_folder(office: Path) -> None:
    (office / "handoff.yaml").write_text("guards: {end_marker: '[STOP]'}\n", encoding="utf-8")
    inbox = office / ".inbox" / "buyer"
    inbox.mkdir(parents=True)
    text = (
        "# Message\nFrom: ann\nTo: buyer\nTime: 2026-11-16 09:30:00\nType: normal\n\n## Content\nNo more ink. [STOP]\n"
    )
    (inbox / "1.md").write_text(text, encoding="utf-8")
    assert "nothing is started" in docs("inbox", "--handle")[0]["became"]


def test_agents_under_watch_use_the_models_of_the_folder(office: Path) -> None:
    (office / "handoff.yaml").write_text(BUYER, encoding="utf-8")
    (office / "ripstop.toml").write_text('[docs.models]\nbuyer = "script:nowhere.jsonl"\n', encoding="utf-8")
    new("--to", "buyer")
    [document] = docs("watch", "--once", "--role", "buyer")["documents"]
    assert (document["status"], document["result"]) == ("completed", "ink")


def test_a_model_of_the_command_line_wins_over_those_of_the_folder(office: Path) -> None:
    (office / "handoff.yaml").write_text("models: {buyer: script:nowhere.jsonl}\n", encoding="utf-8")
    new("--to", "buyer")
    refused = command("docs", "watch", "--once", "--role", "buyer")
    assert refused.code == 2 and "handoff.yaml: the model of 'buyer': There is no script" in refused.err, refused.err
    [document] = docs("watch", "--once", "--role", "buyer", "--model", "script:ok.jsonl")["documents"]
    assert document["status"] == "completed"


def test_a_role_can_have_the_strong_model_of_the_settings(office: Path) -> None:
    (office / "handoff.yaml").write_text("models: {buyer: strong}\n", encoding="utf-8")
    (office / "ripstop.toml").write_text('[models]\nstrong = "script:ok.jsonl"\n', encoding="utf-8")
    new("--to", "buyer")
    [document] = docs("watch", "--once", "--role", "buyer")["documents"]
    assert document["status"] == "completed"


def test_a_document_without_an_owner_is_for_the_first_role(office: Path) -> None:
    assert new("--id", "by-name")["current_owner"] == "assistant"
    (office / "handoff.yaml").write_text("first: buyer\n", encoding="utf-8")
    assert new("--id", "by-file")["current_owner"] == "buyer"


def test_where_nobody_works_a_document_needs_an_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    refused = command("docs", "new", "Buy ink")
    assert refused.code == 2 and "--to NAME" in refused.err, refused.err
    assert not (tmp_path / ".workflows").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("max_interactions: 0\n", "handoff.yaml:1:19: error"),
        ("first: eve\n", "handoff.yaml:1:8: error: 'first' names 'eve'"),
        ("models:\n  buyr: local\n", "handoff.yaml:2:3: error: handoff.yaml names 'buyr'"),
    ],
)
@pytest.mark.parametrize("args", [("new", "Buy ink", "--to", "buyer"), ("watch", "--once"), ("list",)])
def test_wrong_rules_are_refused_with_their_place_before_anything_is_made(
    office: Path, args: tuple[str, ...], text: str, said: str
) -> None:
    (office / "handoff.yaml").write_text(text, encoding="utf-8")
    refused = command("docs", *args)
    assert refused.code == 2 and said in refused.err, refused.err
    assert not (office / ".ripstop").exists() and not (office / ".workflows").exists()
