"""The token file is made once, for its owner alone, and a weak or open one is refused."""

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ripstop.app.settings.settings_file import Settings
from ripstop.faces.http.tokens import VARIABLE, find_token
from ripstop.faces.serve import token_of
from ripstop.kernel.errors import UsageError

GOOD = "a" * 32


def test_makes_a_private_file_once(tmp_path: Path) -> None:
    path = tmp_path / ".ripstop" / "journal.db.token"
    found = find_token(path, {})
    assert len(found.token) >= 43 and found.where == str(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert find_token(path, {}) == found
    assert {one.name for one in path.parent.iterdir()} == {path.name, ".gitignore"}


def test_the_token_of_a_journal_is_in_the_users_state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    shipped = tmp_path / ".ripstop" / "journal.db.token"
    shipped.parent.mkdir()
    shipped.write_text(GOOD)
    shipped.chmod(0o600)
    found = token_of(Settings(), None)
    assert found.token != GOOD and Path(found.where).is_relative_to(tmp_path / "state")
    assert stat.S_IMODE(Path(found.where).parent.stat().st_mode) == 0o700
    assert token_of(Settings(), None) == found
    assert token_of(Settings(store="sqlite:other.db"), None).token != found.token
    assert token_of(Settings(), shipped).token == GOOD, "the user has named it"
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.delenv("HOME", raising=False)
    with pytest.raises(UsageError, match="HOME is not set"):
        token_of(Settings(), None)


def test_many_that_start_at_once_find_the_same_token(tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        found = set(pool.map(lambda _: find_token(tmp_path / "token", {}).token, range(64)))
    assert len(found) == 1


def test_the_environment_wins_and_makes_no_file(tmp_path: Path) -> None:
    assert find_token(tmp_path / "token", {VARIABLE: GOOD}) == (GOOD, VARIABLE)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("token", ["", "short", "x" * 31, "x" * 501, "a b" * 20, "é" * 40, GOOD + "\n", "a\nb" * 20])
def test_refuses_a_token_that_cannot_be_one_without_quoting_it(tmp_path: Path, token: str) -> None:
    with pytest.raises(UsageError) as refused:
        find_token(tmp_path / "token", {VARIABLE: token})
    assert VARIABLE in str(refused.value) and (not token or token not in str(refused.value))


@pytest.mark.parametrize("content", [b"", b"\n", b"short\n", b"\xff" * 40, b"a" * 40 + b"\nb\n", b"x" * 2000])
def test_refuses_a_file_that_does_not_hold_a_token(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "token"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(UsageError, match="token"):
        find_token(path, {})


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_refuses_a_file_that_others_can_read(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "token"
    path.write_text(GOOD)
    path.chmod(mode)
    with pytest.raises(UsageError, match="Remove it"):
        find_token(path, {})


def test_refuses_what_is_not_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    (tmp_path / "folder").mkdir(mode=0o700)
    (tmp_path / "nowhere").symlink_to(tmp_path / "missing" / "x")
    for name in ("pipe", "folder", "nowhere"):
        with pytest.raises(UsageError, match="cannot be used"):
            find_token(tmp_path / name, {})
