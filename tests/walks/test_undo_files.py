"""What a delivery did to files that were there: shown, and brought back on request."""

import json
from pathlib import Path

import pytest

from ripstop.tools.snapshots import run_files
from tests.walks.delivery import deliver, ripstop

pytestmark = pytest.mark.long

OLD = "body { color: black }\n"


@pytest.fixture
def delivered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A run that has replaced a file which was there."""
    monkeypatch.chdir(tmp_path)
    Path("style.css").write_text(OLD)
    Path("notes.txt").write_text("mine")
    code, result = deliver()
    assert code == 0
    assert Path("style.css").read_text() != OLD
    return str(result["run"])


def test_a_run_says_which_files_of_the_user_it_changed(delivered: str) -> None:
    shown = json.loads(ripstop("show", delivered, "--json").stdout)
    assert [(one["path"], one["what"]) for one in shown["files"]["changes"]] == [("style.css", "changed")]
    told = ripstop("show", delivered).stdout
    assert "changed style.css" in told and f"ripstop undo-files {delivered}" in told


def test_the_delivery_report_says_which_files_of_the_user_were_changed(delivered: str) -> None:
    report = Path(".cowork/artifacts/delivery_report.md").read_text()
    section = report.partition("## Files that were there before\n")[2].partition("\n## ")[0]
    assert section.strip() == "- changed: style.css", delivered


def test_undo_files_brings_them_back_and_keeps_what_is_there(delivered: str) -> None:
    new = Path("style.css").read_text()
    done = ripstop("undo-files", delivered, "--yes")
    assert done.exit_code == 0, done.stderr
    assert "changed  style.css" in done.stdout and "style.css.before-undo-1" in done.stdout
    assert Path("style.css").read_text() == OLD
    assert Path("style.css.before-undo-1").read_text() == new
    assert Path("index.html").exists(), "what the run made stays"


def test_undo_files_does_nothing_without_a_yes(delivered: str) -> None:
    new = Path("style.css").read_text()
    unasked = ripstop("undo-files", delivered)
    assert unasked.exit_code == 2 and "Nothing was changed. Add --yes" in unasked.stderr
    assert ripstop("undo-files", delivered, "--json").exit_code == 2
    assert Path("style.css").read_text() == new


def test_undo_files_leaves_alone_what_was_changed_since_unless_it_is_named(delivered: str) -> None:
    Path("style.css").write_text("by hand")
    assert "changed by somebody else" in ripstop("undo-files", delivered, "--yes").stdout
    assert Path("style.css").read_text() == "by hand"
    assert ripstop("undo-files", delivered, "style.css", "--yes").exit_code == 0
    assert Path("style.css").read_text() == OLD


def test_undo_files_refuses_a_file_that_the_run_did_not_touch(delivered: str) -> None:
    refused = ripstop("undo-files", delivered, "notes.txt", "--yes")
    assert refused.exit_code == 2 and "neither removed nor changed" in refused.stderr


PARENT = """\
name: parent
initial_message: tidy up
max_turns: 3
states:
  - name: delegate
    workflow: ../child
    start: true
    transitions: [{ to: END, condition: always }]
"""
CHILD = """\
name: child
initial_message: tidy up
max_turns: 3
agents: [{ name: ann, type: coder }]
states:
  - name: write
    agent: ann
    start: true
    prompt: "{{COLLABORATION_GUIDE}} decisions: done"
    transitions: [{ to: END, condition: done }, { to: write, condition: NOT done }]
"""


def test_undo_files_of_a_run_brings_back_what_its_children_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in (("parent", PARENT), ("child", CHILD)):
        Path(name).mkdir()
        Path(name, "workflow.yaml").write_text(text)
    Path("work/collab").mkdir(parents=True)
    notes = Path("work/collab/notes.md")
    notes.write_text("mine")
    writes = {"tool": "write_file", "args": {"path": "collab/notes.md", "content": "theirs"}}
    done = {"agent": "ann", "reply": json.dumps({"content": "ok", "decisions": {"done": True}})}
    Path("script.jsonl").write_text("\n".join(map(json.dumps, [{"agent": "ann", "calls": [writes]}, done])))
    ran = ripstop("run", "parent", "--model", "script:script.jsonl", "--workspace", "work", "--json")
    assert ran.exit_code == 0, ran.stderr
    run_id = json.loads(ran.stdout)["run"]
    assert notes.read_text() == "theirs"
    assert "changed collab/notes.md" in ripstop("show", run_id).stdout
    undone = json.loads(ripstop("undo-files", run_id, "--yes", "--json").stdout)
    assert undone["restored"] == ["collab/notes.md"] and notes.read_text() == "mine"


@pytest.mark.parametrize("state", ["/dev/null/state", None])
def test_a_run_whose_files_could_not_be_kept_says_so_and_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("style.css").write_text(OLD)
    with monkeypatch.context() as without:
        if state:
            without.setattr(run_files, "state_folder", lambda: Path(state))
        else:
            without.setattr(run_files, "state_folder", lambda: None)
        _, result = deliver()
    report = Path(".cowork/artifacts/delivery_report.md").read_text()
    why = "/dev/null: File exists" if state else "neither HOME nor XDG_STATE_HOME"
    for told in (
        ripstop("show", result["run"]).stdout,
        ripstop("undo-files", result["run"]).stdout,
        report,
    ):
        said = " ".join(told.split())
        assert "were not kept before the run could change them" in said and why in said
        assert "another machine" not in said


def test_undo_files_says_that_it_was_done_already(delivered: str) -> None:
    ripstop("undo-files", delivered, "--yes")
    again = ripstop("undo-files", delivered)
    assert again.exit_code == 0 and "as it was before the run already" in again.stdout
    named = ripstop("undo-files", delivered, "style.css", "--yes")
    assert named.exit_code == 2 and "as it was before the run already" in named.stderr
