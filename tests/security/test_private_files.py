"""What is below the user's state folder is his alone, whatever the umask."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from ripstop.kernel.advice import NextStep
from ripstop.security.consent import Consent, UserFile
from ripstop.security.files import make_folder, make_private_folder
from ripstop.tools.snapshots.contents import ContentFolder

AGAIN = NextStep("again", "agree again", "agree again")


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    try:
        yield
    finally:
        os.umask(before)


def modes(folder: Path) -> set[int]:
    return {stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.rglob("*"))}


@pytest.mark.usefixtures("open_umask")
def test_the_state_folder_and_all_below_it_are_private_whatever_the_umask(tmp_path: Path) -> None:
    state = tmp_path / ".local" / "state" / "ripstop"
    make_private_folder(state / "snapshots" / "a" / "contents")
    ContentFolder(state / "snapshots" / "a" / "contents").keep(b"mine")
    with UserFile(state / "consents.json", AGAIN).locked():
        UserFile(state / "consents.json", AGAIN).write(Consent("folder", "/x", "/x"))
    assert modes(tmp_path / ".local") == {0o700, 0o600}


@pytest.mark.usefixtures("open_umask")
def test_a_state_folder_that_others_could_write_is_closed_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    state = tmp_path / "ripstop"
    state.mkdir(0o777)
    assert UserFile(state / "consents.json", AGAIN).read(Consent) is None
    assert modes(state) == {0o700}
    assert f"Other users could write to {state}" in caplog.text
    make_private_folder(state / "snapshots")
    assert len(caplog.records) == 1


@pytest.mark.usefixtures("open_umask")
def test_nobody_else_can_write_in_a_workspace_that_was_made(tmp_path: Path) -> None:
    make_folder(tmp_path / ".ripstop" / "workspaces" / "a" / "ann")
    assert modes(tmp_path / ".ripstop" / "workspaces") == {0o755}
