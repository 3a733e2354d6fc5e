"""Files in a shared folder: complete or not there, and all that guards them is in few modules."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ripstop.engine.performers import Refused
from ripstop.tools import shared_folder
from ripstop.tools.shared_folder import (
    LISTING,
    complete_file,
    open_beneath,
    open_lock,
    put,
    read_file,
    remove_files,
    sweep,
    try_lock,
    unlock,
    wait_for_lock,
)

SOURCE = Path(__file__).parents[2] / "src" / "ripstop"
GUARDING = re.compile(r"O_NOFOLLOW|flock|os\.replace|os\.rename|os\.link")
GUARDED = {
    "engine/shared_pauses.py": "the lock by which processes take turns at a provider: no content that has to be whole",
    "faces/cli/init.py": "a person's private copy of a document, which only this user's editor shares",
    "faces/http/tokens.py": "the server's token: a private file, made once",
    "journals/sqlite/group_commit.py": "the queue of writers beside the journal",
    "journals/sqlite/journal.py": "a copy of a journal gets its name when it is complete",
    "journals/sqlite/liveness.py": "the locks by which a dead worker is recognised",
    "security/consent.py": "the user's consents, below everything that knows a folder",
    "security/known_journals.py": "the lock by which the last process on a journal is recognised",
    "security/files.py": "reading a file that is part of a definition, below everything that knows a folder",
    "styles/blackboard/contents.py": "a copied board: a whole folder gets its name when it is complete",
    "styles/handoff/files.py": "a document changes places with its editor's file",
    "tools/shared_folder.py": "everything else",
    "tools/workspace.py": "opens one folder from another, on which the shared folder is built, and copies workspaces",
}
"""The modules that open without links, lock or rename, and why they do it themselves."""

PREFIX = ".unfinished-"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    descriptor = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield descriptor
    os.close(descriptor)


def test_only_the_listed_modules_guard_files_themselves() -> None:
    found = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if GUARDING.search(path.read_text(encoding="utf-8"))
    }
    assert found == set(GUARDED)


def test_a_file_is_replaced_as_a_whole_and_leaves_no_other_name(folder: int, tmp_path: Path) -> None:
    put(folder, "a", b"old", PREFIX)
    put(folder, "a", b"new", PREFIX, mode=0o640)
    assert (tmp_path / "a").read_bytes() == b"new" and (tmp_path / "a").stat().st_mode & 0o777 == 0o640
    assert os.listdir(folder) == ["a"]


def test_a_link_in_the_place_of_a_file_is_replaced_and_never_followed(folder: int, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("kept")
    (tmp_path / "a").symlink_to("outside")
    with pytest.raises(OSError):
        read_file(folder, "a", 100)
    put(folder, "a", b"new", PREFIX)
    assert (tmp_path / "outside").read_text() == "kept" and not (tmp_path / "a").is_symlink()


def test_a_name_that_is_taken_is_not_created_again(folder: int, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("first")
    with complete_file(folder, b"second", PREFIX) as new:
        assert not new.create(folder, "a") and new.create(folder, "b")
    assert (tmp_path / "a").read_text() == "first" and (tmp_path / "b").read_text() == "second"


def test_a_file_that_cannot_be_completed_leaves_nothing(folder: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError):
        put(folder, "a", b"x", PREFIX)
    assert os.listdir(folder) == []


def test_sweeping_leaves_folders_and_other_names(folder: int, tmp_path: Path) -> None:
    (tmp_path / f"{PREFIX}1").write_text("x")
    (tmp_path / f"{PREFIX}2").mkdir()
    (tmp_path / "a").write_text("x")
    sweep(folder, PREFIX)
    remove_files(folder, ["gone"])
    assert sorted(os.listdir(folder)) == [f"{PREFIX}2", "a"]


def test_only_a_regular_file_is_read_and_only_up_to_a_bound(folder: int, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "long").write_bytes(b"x" * 11)
    for name in ("pipe", "long"):
        with pytest.raises(Refused):
            read_file(folder, name, 10)


def test_a_lock_has_one_holder_and_shared_ones_several(tmp_path: Path) -> None:
    first, second = (open_lock(tmp_path / "lock", 0o600) for _ in range(2))
    try:
        assert try_lock(first, shared=True) and try_lock(second, shared=True)
        assert not try_lock(first)
        unlock(second)
        wait_for_lock(first)
        assert not try_lock(second, shared=True)
    finally:
        os.close(first)
        os.close(second)


def test_a_link_is_not_locked(tmp_path: Path) -> None:
    (tmp_path / "lock").symlink_to("elsewhere")
    with pytest.raises(OSError):
        open_lock(tmp_path / "lock", 0o600)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("has_openat2", [True, False])
def test_nothing_beneath_a_folder_is_opened_through_a_link(
    folder: int, tmp_path: Path, has_openat2: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_openat2:
        monkeypatch.setattr(shared_folder, "_OPENAT2", 1_000_000)
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "link").symlink_to("a")
    found = open_beneath(folder, ("a", "b"), LISTING)
    assert os.path.samestat(os.fstat(found), (tmp_path / "a" / "b").stat())
    os.close(found)
    for parts in (("link", "b"), ("a", "..", "..", "etc")) if has_openat2 else (("link", "b"),):
        with pytest.raises(OSError, match=r"link|directory|cross-device"):
            open_beneath(folder, parts, LISTING)
    with pytest.raises(FileNotFoundError):
        open_beneath(folder, ("a", "nothing"))
