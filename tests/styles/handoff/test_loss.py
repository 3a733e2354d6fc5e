"""Documents whose files, folder or hidden folder are gone: it is noticed, told, and can be put right."""

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from ripstop.app.application import App
from ripstop.app.settings.settings_file import Settings
from ripstop.engine.ports import NOTHING
from ripstop.faces.next_steps import in_commands
from ripstop.styles.handoff.document_view import DocumentView
from ripstop.styles.handoff.service import HandoffService, open_documents


class Office:
    """A folder of documents, opened anew for everything that is done, as commands do."""

    def __init__(self, root: Path, journal: Path) -> None:
        self.root, self.journal = root, journal
        root.mkdir(exist_ok=True)
        self.told: list[str] = []

    def do(self, name: str, *args: object) -> object:
        async def go() -> object:
            async with App(Settings(store=f"sqlite:{self.journal}"), scope=NOTHING) as app:
                documents = await open_documents(
                    app, self.root, lambda trouble: self.told.append(in_commands(trouble.text))
                )
                return await getattr(documents, name)(*args)

        self.told.clear()
        return asyncio.run(go())

    def stock(self) -> dict[str, str]:
        found = self.do("reconcile")
        assert isinstance(found, list)
        return {document.id: document.run for document in found}

    def new(self, named: str) -> DocumentView:
        made = self.do("new", "Add", "ann", "boss", "task", named)
        assert isinstance(made, DocumentView)
        return made

    def files(self) -> dict[str, str]:
        return {path.name: path.read_text(encoding="utf-8") for path in (self.root / ".workflows").glob("*.md")}


@pytest.fixture
def office(tmp_path: Path) -> Office:
    office = Office(tmp_path / "office", tmp_path / "journal.db")
    for named in ("a", "b", "c"):
        office.new(named)
    finished = office.do("find", "c")
    office.do("act", finished, "terminate", "boss")
    return office


def test_a_lost_folder_is_told_and_restored_as_it_was(office: Office) -> None:
    before, files = office.stock(), office.files()
    shutil.rmtree(office.root / ".workflows")
    assert office.stock() == {}
    assert office.told == ["the journal has 3 documents that are not in this folder: ripstop docs restore"]
    assert not (office.root / ".workflows").exists(), "looking creates nothing"
    restored = office.do("restore")
    assert isinstance(restored, list) and {document.id for document in restored} == set(before)
    assert (office.stock(), office.told, office.files()) == (before, [], files)


def test_a_lost_hidden_folder_makes_no_second_documents(office: Office) -> None:
    before, files = office.stock(), office.files()
    shutil.rmtree(office.root / ".workflows" / ".ripstop")
    assert office.stock() == before
    assert ["the same ones" in text for text in office.told] == [True]
    assert (office.stock(), office.told, office.files()) == (before, [], files)


def test_a_folder_that_was_moved_without_its_hidden_folder_is_known_by_its_documents(office: Office) -> None:
    before = office.stock()
    shutil.rmtree(office.root / ".workflows" / ".ripstop")
    moved = Office(office.root.rename(office.root.with_name("moved")), office.journal)
    assert moved.stock() == before


def test_a_copy_of_a_folder_in_use_is_a_folder_of_its_own(office: Office) -> None:
    before = office.stock()
    copy = office.root.with_name("copy")
    shutil.copytree(office.root, copy)
    shutil.rmtree(copy / ".workflows" / ".ripstop")
    assert not set(Office(copy, office.journal).stock().values()) & set(before.values())
    assert office.stock() == before


def test_the_lost_file_of_a_finished_document_is_told_and_restored(office: Office) -> None:
    (file,) = [path for path in (office.root / ".workflows").glob("*.md") if "# Workflow: c" in path.read_text("utf-8")]
    text = file.read_text(encoding="utf-8")
    file.unlink()
    assert set(office.stock()) == {"a", "b"} and "1 document that is" in office.told[0]
    office.do("restore")
    assert file.read_text(encoding="utf-8") == text and set(office.stock()) == {"a", "b", "c"}


@pytest.mark.req("S0-62", "S0-63")
def test_a_cleaned_document_is_not_missing(office: Office) -> None:
    office.do("clean", -1.0, False)
    assert set(office.stock()) == {"a", "b"} and office.told == []
    assert office.do("restore") == []


def test_to_look_at_an_empty_folder_creates_nothing(tmp_path: Path) -> None:
    office = Office(tmp_path / "office", tmp_path / "journal.db")
    assert office.stock() == {} and os.listdir(office.root) == []


def test_refused_edits_are_named_and_cleaned(office: Office) -> None:
    file = office.root / ".workflows" / office.new("d").file
    file.write_text(file.read_text(encoding="utf-8").replace("Status: pending", "Status: completed"), encoding="utf-8")
    found = office.do("find", "d")
    assert isinstance(found, DocumentView)
    (name,) = found.refused
    assert name.startswith(f"{file.name}.refused-2") and name.endswith("-line-2")
    assert office.do("clean_refused", 7.0, False) == [] and office.do("clean_refused", -1.0, False) == [name]
    assert not (file.parent / name).exists()


def test_a_command_reads_only_the_document_that_it_names(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    state = HandoffService.state

    async def counted(self: HandoffService, run_id: str) -> object:
        looked.append(run_id)
        return await state(self, run_id)

    monkeypatch.setattr(HandoffService, "state", counted)
    found = office.do("find", "a")
    assert isinstance(found, DocumentView) and set(looked) == {found.run}
