"""Where a run's document is written: in its own folder, in one that was moved, or in one that a definition names."""

import asyncio
from pathlib import Path

import pytest

from ripstop.app.relocation import Relocated, in_folder, untrusted_folder
from ripstop.engine.performers import Refused, Request
from ripstop.kernel.events import RunSettings
from ripstop.security.consent import Consents, TrustedFolders
from ripstop.styles.handoff.publisher import folder_of, own_tools, publishing_tool
from tests.tools.tool_requests import tool_request

TEXT = {"number": 1, "file": "a.md", "text": "one", "over": "", "keep": "", "folder": ""}


def perform(request: Request, trusted: TrustedFolders, **places: Path) -> None:
    performer = Relocated(publishing_tool(folder_of), places, trusted)
    asyncio.run(performer.perform(request))


@pytest.fixture
def trusted(tmp_path: Path) -> TrustedFolders:
    (tmp_path / "here").mkdir()
    return TrustedFolders(tmp_path / "journal.db", tmp_path / "here", Consents(tmp_path / "state"))


def document(root: Path) -> Path:
    return root / ".workflows" / "a.md"


def test_a_document_is_written_where_its_settings_say(tmp_path: Path, trusted: TrustedFolders) -> None:
    perform(tool_request(TEXT, settings=RunSettings(folder=str(tmp_path / "here"))), trusted)
    assert document(tmp_path / "here").read_text() == "one"


def test_a_folder_that_was_moved_is_found_by_what_its_runs_are_named_after(
    tmp_path: Path, trusted: TrustedFolders
) -> None:
    before = in_folder(RunSettings(), tmp_path / "gone")
    perform(tool_request(TEXT, "docs-abcde.x", settings=before), trusted, **{"docs-abcde": tmp_path / "here"})
    assert document(tmp_path / "here").is_file() and not (tmp_path / "gone").exists()


def test_a_run_that_another_workflow_started_writes_where_its_definition_says(
    tmp_path: Path, trusted: TrustedFolders
) -> None:
    perform(tool_request({**TEXT, "folder": str(tmp_path / "here")}, "flow-k3f9x.4"), trusted)
    assert document(tmp_path / "here").is_file()


@pytest.mark.parametrize("tool", ["publish_document", "send_reply"])
def test_a_folder_that_nobody_has_named_is_refused_whoever_names_it(
    tmp_path: Path, trusted: TrustedFolders, tool: str
) -> None:
    elsewhere = str(tmp_path / "elsewhere")
    performer = Relocated(own_tools()[tool], {}, trusted)
    for request in (
        tool_request({**TEXT, "folder": elsewhere}, tool=tool),
        tool_request(TEXT, tool=tool, settings=RunSettings(folder=elsewhere)),
    ):
        with pytest.raises(Refused, match="was not named for this journal"):
            asyncio.run(performer.perform(request))
    assert not (tmp_path / "elsewhere").exists()


def test_an_agent_cannot_name_a_folder_with_the_arguments_of_its_call(tmp_path: Path, trusted: TrustedFolders) -> None:
    request = tool_request({**TEXT, "folder": str(tmp_path / "here")}, agent="eve")
    with pytest.raises(Refused, match="has no folder of documents"):
        perform(request, trusted)


def test_a_run_without_a_folder_writes_nowhere(
    tmp_path: Path, trusted: TrustedFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(Refused, match="has no folder of documents"):
        perform(tool_request(TEXT), trusted)
    assert list((tmp_path / "here").iterdir()) == []


def test_a_workspace_is_as_trusted_as_the_user_has_named_it(tmp_path: Path, trusted: TrustedFolders) -> None:
    here = in_folder(RunSettings(model="local"), tmp_path / "here")
    assert here.model == "local" and untrusted_folder(here, trusted) is None
    assert untrusted_folder(RunSettings(workspace=str(tmp_path)), trusted) == tmp_path
