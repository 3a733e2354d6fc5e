"""A file is replaced only if it still is what it was, whoever saves in that very moment."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ripstop.styles.handoff import files as exchange
from ripstop.styles.handoff.files import replace_if


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class Files:
    """Two files, and an editor that saves whenever somebody looks, as often as it was told to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.saves: list[tuple[int, Callable[[], None]]] = []
        self.looks = 0
        (folder / "new").write_text("ours")
        (folder / "a.md").write_text("before")

    def sha_of(self, above: int, name: str) -> str:
        found = sha((self.folder / name).read_text())
        self.looks += 1
        for at, save in self.saves:
            if at == self.looks:
                save()
        return found

    def save(self, text: str) -> None:
        (self.folder / "theirs").write_text(text)
        os.rename(self.folder / "theirs", self.folder / "a.md")

    def replace(self) -> bool:
        descriptor = os.open(self.folder, os.O_RDONLY)
        try:
            return replace_if((descriptor, "new"), (descriptor, "a.md"), sha("before"), self.sha_of)
        finally:
            os.close(descriptor)

    @property
    def text(self) -> str:
        return (self.folder / "a.md").read_text()


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def test_what_is_as_expected_is_replaced(files: Files) -> None:
    assert files.replace()
    assert files.text == "ours"


def test_what_is_not_as_expected_stays(files: Files) -> None:
    files.save("edited")
    assert not files.replace()
    assert files.text == "edited"


def test_a_save_right_after_the_last_look_is_put_back(files: Files) -> None:
    files.saves = [(2, lambda: files.save("edited"))]
    assert not files.replace()
    assert files.text == "edited"


def test_of_two_saves_in_that_moment_the_last_one_stays(files: Files) -> None:
    files.saves = [(2, lambda: files.save("edited")), (3, lambda: files.save("edited again"))]
    assert not files.replace()
    assert files.text == "edited again"


def test_a_file_that_is_deleted_in_that_moment_is_not_made_again(files: Files) -> None:
    files.saves = [(2, (files.folder / "a.md").unlink)]
    assert not files.replace()
    assert not (files.folder / "a.md").exists()


def test_where_nothing_can_be_exchanged_a_rename_does(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "_renameat2", lambda: None)
    assert files.replace()
    assert files.text == "ours"
