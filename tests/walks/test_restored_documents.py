"""A document whose file is ahead of its journal, because a backup was put back: nothing of the file is lost."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.walks.commands import ripstop, succeed

pytestmark = pytest.mark.long


def reply(**decisions: str) -> dict[str, str]:
    return {"reply": json.dumps({"content": "Looked.", "decisions": {"next_action": "", "result": "", **decisions}})}


@pytest.fixture
def backed_up(tmp_path: Path) -> Path:
    """A folder whose document was handed to the clerk when the backup was made, and was signed since."""
    (tmp_path / "roles").mkdir()
    (tmp_path / "roles" / "clerk.md").write_text("You are the clerk.")
    passes, ends = reply(action="pass", to="cfo"), reply(action="terminate", to="")
    for name, lines in (("pass", passes), ("end", ends)):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(lines) + "\n")
    succeed("docs", "new", "Paper", "--to", "clerk", "--id", "paper", cwd=tmp_path)
    succeed("backup", "copy.db", cwd=tmp_path)
    succeed("docs", "watch", "--once", "--model", "script:pass.jsonl", cwd=tmp_path)
    (asked,) = json.loads(succeed("desk", "--json", cwd=tmp_path))
    succeed("answer", asked["id"], "complete", "--field", "result=It is signed for 4000.", cwd=tmp_path)
    succeed("resume", asked["run"], cwd=tmp_path)
    assert "Status: completed" in text_in(tmp_path)
    succeed("restore", "copy.db", cwd=tmp_path)
    return tmp_path


def file_in(folder: Path) -> Path:
    (path,) = (folder / ".workflows").glob("*.md")
    return path


def text_in(folder: Path) -> str:
    return file_in(folder).read_text(encoding="utf-8")


def listed(folder: Path) -> dict[str, Any]:
    (document,) = json.loads(succeed("docs", "list", "--json", cwd=folder))["documents"]
    return dict(document)


def test_a_file_that_is_ahead_of_a_restored_journal_is_named_and_left_alone(backed_up: Path) -> None:
    before = text_in(backed_up)
    done = ripstop("docs", "list", cwd=backed_up)
    assert "ahead of the journal" in done.stderr and "pending" in done.stdout
    assert text_in(backed_up) == before
    assert len(json.loads(succeed("desk", "--json", cwd=backed_up))) == 1, "it is still asked what became of it"


@pytest.mark.parametrize("answer", ["happened", "ask", "continue"])
def test_what_a_lost_branch_wrote_is_kept(backed_up: Path, answer: str) -> None:
    """Its note knew the file, so the next view of the journal was written over it, with nothing kept."""
    succeed("answer", "--all", "restored", answer, cwd=backed_up)
    done = ripstop("docs", "watch", "--once", "--model", "script:end.jsonl", cwd=backed_up)
    assert "hands the document over" in done.stderr and "kept next to it" in done.stderr
    (kept,) = listed(backed_up)["refused"]
    assert "It is signed for 4000." in (backed_up / ".workflows" / kept).read_text(encoding="utf-8")


def test_what_a_lost_branch_wrote_is_read_back_if_it_can_be(tmp_path: Path) -> None:
    succeed("docs", "new", "Paper", "--to", "ann", "--id", "paper", cwd=tmp_path)
    succeed("backup", "copy.db", cwd=tmp_path)
    succeed("docs", "accept", "paper", cwd=tmp_path)
    succeed("docs", "complete", "paper", "--result", "It is signed for 4000.", cwd=tmp_path)
    succeed("restore", "copy.db", cwd=tmp_path)
    succeed("answer", "--all", "restored", "continue", cwd=tmp_path)
    found = listed(tmp_path)
    assert (found["status"], found["result"], found["refused"]) == ("completed", "It is signed for 4000.", [])


def test_what_cannot_be_read_back_is_kept_beside_the_file(backed_up: Path) -> None:
    """The run has gone on another way before anybody looked at the file."""
    succeed("answer", "--all", "restored", "continue", cwd=backed_up)
    run = json.loads(succeed("runs", "--json", cwd=backed_up))[0]["run"]
    succeed("act", run, "terminate", "--field", "message=Not needed.", cwd=backed_up)
    succeed("work", "--until-idle", cwd=backed_up)
    documents = [path for path in (backed_up / ".workflows").iterdir() if path.is_file()]
    assert any("It is signed for 4000." in path.read_text(encoding="utf-8") for path in documents)
    assert "Status: terminated" in text_in(backed_up)


def test_a_file_that_is_gone_is_not_waited_for_while_its_run_is_held(backed_up: Path) -> None:
    file_in(backed_up).unlink()
    done = ripstop("docs", "list", cwd=backed_up)
    assert "it is gone" in done.stderr and not list((backed_up / ".workflows").glob("*.md"))
    succeed("answer", "--all", "restored", "continue", cwd=backed_up)
    assert listed(backed_up)["status"] == "pending"
    assert "Status: pending" in text_in(backed_up)
