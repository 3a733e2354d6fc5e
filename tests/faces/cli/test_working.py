"""`ripstop work` sets runs aside that want what their user has not allowed, and works on the others."""

import asyncio
import json
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from ripstop.app.application import App
from ripstop.testing.commands import command
from tests.harness.mutate_journals import SCRIPT, WORKFLOW
from tests.harness.own_journal import own_journal
from tests.walks.test_command_line import EXAMPLES


@pytest.fixture
def moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A run that is at work, in the user's journal, with files in another folder, which is not trusted here."""
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir()
    (there / "ask.yaml").write_text(WORKFLOW, encoding="utf-8")
    (there / "script.jsonl").write_text("\n".join(map(json.dumps, SCRIPT)), encoding="utf-8")
    run = _started(there, monkeypatch)
    shutil.copytree(there, here)
    own_journal(here / ".ripstop" / "journal.db")
    monkeypatch.chdir(here)
    return run


def _started(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A run with work to do, and no worker."""
    monkeypatch.chdir(folder)
    done = command("run", "ask.yaml", "--model", "script:script.jsonl", "--json")
    fork = command("fork", json.loads(done.out)["run"], "--at", "2", "--json")
    return str(json.loads(fork.out)["run"])


def _runs() -> dict[str, dict[str, object]]:
    return {row["run"]: row for row in json.loads(command("runs", "--json").out)}


def test_a_run_in_a_folder_that_is_not_trusted_is_set_aside(
    moved: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    mine = _started(tmp_path / "here", monkeypatch)
    before = {path for path in (tmp_path / "there").rglob("*") if path.is_file()}
    records = _runs()[moved]["records"]
    worked = command("work", "--until-idle")
    assert worked.code == 0
    workspace = tmp_path / "there" / ".ripstop" / "workspaces" / moved
    consent = f"`ripstop resume {moved} --workspace {workspace}` does so."
    assert consent in caplog.text
    found = _runs()
    assert (found[mine]["status"], found[moved]["status"]) == ("completed", "set_aside")
    assert found[moved]["records"] == records, "no call was made for it"
    assert {path for path in (tmp_path / "there").rglob("*") if path.is_file()} == before
    assert f"{moved} is set aside: Run '{moved}' would use the files in {workspace}" in command("runs").out
    assert command("resume", moved, "--workspace", str(workspace)).code == 0
    assert _runs()[moved]["status"] == "completed"


def test_a_run_at_an_address_that_was_not_agreed_to_is_set_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "ask.yaml").write_text(WORKFLOW, encoding="utf-8")
    (tmp_path / "script.jsonl").write_text("\n".join(map(json.dumps, SCRIPT)), encoding="utf-8")
    run = _started(tmp_path, monkeypatch)
    address = "http://127.0.0.1:9/v1"

    async def change() -> None:
        async with App(scope=None, create=False) as app:
            settings = (await app.engine.look(run)).run.settings
            await app.engine.change_settings(run, replace(settings, model_for_all="openai:m", base_url=address))

    asyncio.run(change())
    assert command("work", "--until-idle").code == 0
    assert f"`ripstop trust {run}`" in caplog.text and address in caplog.text
    assert _runs()[run]["status"] == "set_aside"


def test_a_child_in_a_folder_of_documents_that_is_not_trusted_is_not_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    shutil.copytree(EXAMPLES / "office", there / "office")
    monkeypatch.chdir(there)
    script = ("--model", "script:office/script.jsonl")
    limited = command("run", "office", *script, "--max-calls", "2", "--json")
    assert limited.code == 3, limited
    run = json.loads(limited.out)["run"]
    shutil.copytree(there, here)
    own_journal(here / ".ripstop" / "journal.db")
    monkeypatch.chdir(here)
    refused = command("resume", run, "--workspace", str(here / "files"), "--raise", "calls=9")
    assert refused.code == 2
    team = there / "office" / "team"
    assert f"would use the files in {team}, which you have not named for this journal" in refused.err
    assert f"`ripstop resume {run}` asks you, on a terminal." in refused.err
    monkeypatch.chdir(there)
    assert command("resume", run, "--raise", "calls=9").code == 0, "running the graph has named the folder there"


def test_a_folder_that_was_named_for_another_workflow_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(EXAMPLES / "office", tmp_path / "project" / "office")
    monkeypatch.chdir(tmp_path / "project")
    assert command("run", "office", "--model", "script:office/script.jsonl").code == 0
    team, other = tmp_path / "project" / "office" / "team", tmp_path / "other"
    other.mkdir()
    text = (tmp_path / "project" / "office" / "workflow.yaml").read_text(encoding="utf-8")
    (other / "graph.yaml").write_text(text.replace("workflow: team\n", f"workflow: {team}\n"), encoding="utf-8")
    monkeypatch.chdir(other)
    store = f"sqlite:{tmp_path / 'project' / '.ripstop' / 'journal.db'}"
    refused = command("--store", store, "run", "graph.yaml", "--model", f"script:{team.parent / 'script.jsonl'}")
    assert refused.code == 2 and "neither in its own folder nor in the current one" in refused.err, refused
