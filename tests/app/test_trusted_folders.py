"""A folder that the user names for a journal is a consent like any other."""

import os
from pathlib import Path

import pytest

from ripstop.kernel.errors import UsageError
from ripstop.security import consent as consent_module
from ripstop.security.consent import Consent, Consents, TrustedFolders


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def trusted(tmp_path: Path, journal: str = "project/.ripstop/journal.db", here: str = "project") -> TrustedFolders:
    return TrustedFolders(tmp_path / journal, tmp_path / here, Consents(tmp_path / "state"))


def test_a_named_folder_is_one_of_the_users_consents(tmp_path: Path, state: Path) -> None:
    address = Consent("address", "https://a.example/v1", "/here")
    Consents(state).remember([address])
    trusted(tmp_path).remember(tmp_path / "out")
    folder = Consent(
        "folder", str(tmp_path / "out"), str(tmp_path / "project"), str(tmp_path / "project/.ripstop/journal.db")
    )
    assert Consents(state).all() == (address, folder)
    assert sorted(os.listdir(state)) == ["consents.json", "consents.lock"]


def test_a_folder_is_named_for_one_journal_from_any_current_folder(tmp_path: Path) -> None:
    trusted(tmp_path).remember(tmp_path / "out")
    assert trusted(tmp_path, here="elsewhere").cover(tmp_path / "out")
    assert trusted(tmp_path).cover_documents(tmp_path / "out")
    assert not trusted(tmp_path).cover(tmp_path / "out" / "below")
    assert not trusted(tmp_path, "project/.ripstop/other.db").cover(tmp_path / "out")
    assert not trusted(tmp_path, "other/.ripstop/journal.db").cover(tmp_path / "out")


def test_a_revoked_folder_is_not_covered(tmp_path: Path, state: Path) -> None:
    trusted(tmp_path).remember(tmp_path / "out")
    Consents(state).revoke(Consents(state).all())
    assert not trusted(tmp_path).cover(tmp_path / "out")


def test_naming_a_folder_again_writes_nothing(tmp_path: Path, state: Path) -> None:
    trusted(tmp_path).remember(tmp_path / "out")
    before = (state / "consents.json").stat()
    trusted(tmp_path).remember(tmp_path / "out")
    assert (state / "consents.json").stat().st_ino == before.st_ino


@pytest.mark.parametrize(("part", "other"), [("/out", "/home"), ("journal.db", "foreign.db")])
def test_an_entry_that_was_changed_by_hand_does_not_count(tmp_path: Path, state: Path, part: str, other: str) -> None:
    trusted(tmp_path).remember(tmp_path / "out")
    file = state / "consents.json"
    file.write_text(file.read_text().replace(part, other))
    folders = trusted(tmp_path, "project/.ripstop/journal.db".replace(part, other))
    assert not folders.cover(tmp_path / "out".replace(part[1:], other[1:]))


def test_a_damaged_store_is_an_error_not_a_consent(tmp_path: Path, state: Path) -> None:
    trusted(tmp_path).remember(tmp_path / "out")
    (state / "consents.json").write_text("{")
    with pytest.raises(UsageError, match="damaged"):
        trusted(tmp_path).cover(tmp_path / "out")
    with pytest.raises(UsageError, match="damaged"):
        trusted(tmp_path).remember(tmp_path / "other")


def test_where_consents_cannot_be_written_the_process_remembers(tmp_path: Path, state: Path) -> None:
    state.write_text("in the way")
    folders = trusted(tmp_path)
    folders.remember(tmp_path / "out")
    assert folders.cover(tmp_path / "out")
    assert not trusted(tmp_path).cover(tmp_path / "out")


def test_a_name_that_is_not_utf8_is_remembered_by_the_process(tmp_path: Path, state: Path) -> None:
    odd = tmp_path / os.fsdecode(b"out\xff")
    folders = trusted(tmp_path)
    folders.remember(odd)
    assert folders.cover(odd)
    assert not trusted(tmp_path).cover(odd)
    assert not state.exists()


def test_the_oldest_folders_are_forgotten_and_no_address(
    tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consent_module, "MOST_FOLDERS", 3)
    address = Consent("address", "https://a.example/v1", "/here")
    Consents(state).remember([address])
    for number in range(5):
        trusted(tmp_path).remember(tmp_path / str(number))
    kept = Consents(state).all()
    assert [Path(one.content).name for one in kept if one.kind == "folder"] == ["2", "3", "4"]
    assert kept[0] == address


def test_who_names_a_folder_of_documents_names_where_its_roles_work(tmp_path: Path) -> None:
    trusted(tmp_path).remember(tmp_path / "desk")
    assert trusted(tmp_path).cover(tmp_path / "desk" / "workspace")
    (tmp_path / "desk").mkdir()
    (tmp_path / "desk" / "workspace").symlink_to(tmp_path)
    assert not trusted(tmp_path).cover(tmp_path / "desk" / "workspace"), "a link leads elsewhere"
