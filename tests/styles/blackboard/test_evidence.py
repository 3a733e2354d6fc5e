"""Claims are checked in the workspace; what cannot be checked does not hold, and says why."""

import hashlib
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripstop.styles.blackboard import evidence
from ripstop.styles.blackboard.calls import AnyFileClaim, ClaimResult
from ripstop.styles.blackboard.evidence import check_files
from ripstop.tools import shared_folder as regular_files
from tests.styles.blackboard.board_folders import BoardDesk


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "collab").mkdir()
    (tmp_path / "collab/a.txt").write_text("first 1\n  覆盖率： 87.5%\nThe quick\n\tbrown   fox\nerrors: 2,150\n")
    (tmp_path / "collab/n.txt").write_text("Words:\n\n7 words\n")
    twice = "coverage: 100%\n- Coverage: 2%\ncoverage: below 90%\n\nsame: 1\nsame: 1.0\n"
    (tmp_path / "collab/twice.txt").write_text(twice)
    return tmp_path


def claim(kind: str, path: str = "collab/a.txt", **more: Any) -> AnyFileClaim:
    rest = {"sha256": "", "prefix": "", "at_least": None, "at_most": None, "text": ""}
    made: AnyFileClaim = msgspec.convert({"evidence": kind, "path": path, **rest, **more}, AnyFileClaim)
    return made


def result(workspace: Path, one: AnyFileClaim) -> ClaimResult:
    return check_files(workspace, [one])[0]


@pytest.mark.parametrize(
    ("one", "told"),
    [
        (claim("number", "collab/n.txt"), "7 (line 3)"),
        (claim("number", "collab/twice.txt", prefix="same:"), "1 (line 5)"),
        (claim("number", prefix="覆盖率:", at_least=80), "87.5 (line 2)"),
        (claim("number", prefix="覆盖率：", at_least=80, at_most=87.5), "87.5 (line 2)"),
        (claim("quote", text="quick brown\nfox"), "line 3"),
        (claim("quote", text=" fox "), "line 4"),
        (claim("number", "./collab//n.txt"), "7 (line 3)"),
    ],
)
def test_what_is_there_is_shown(workspace: Path, one: AnyFileClaim, told: str) -> None:
    assert result(workspace, one) == ClaimResult(True, told)


def test_a_file_is_shown_with_size_and_hash(workspace: Path) -> None:
    (workspace / "big.bin").write_bytes(b"\xff" * 1234)
    sha = hashlib.sha256(b"\xff" * 1234).hexdigest()
    told = f"1,234 bytes, sha256 {sha[:12]}…"
    assert result(workspace, claim("file", "big.bin")) == ClaimResult(True, told)
    assert result(workspace, claim("file", "big.bin", sha256=sha.upper())) == ClaimResult(True, told)
    other = result(workspace, claim("file", "big.bin", sha256="0" * 64))
    assert other == ClaimResult(False, f"{told}, not 000000000000…")


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (claim("file", "collab/none.txt"), "there is no file 'collab/none.txt'"),
        (claim("file", "none/a.txt"), "there is no file 'none/a.txt'"),
        (claim("file", "collab"), "not a regular file"),
        (claim("file", "collab/a.txt/b"), "not a folder"),
        (claim("file", "../x"), "cannot be used as a path"),
        (claim("file", "/etc/passwd"), "cannot be used as a path"),
        (claim("file", ""), "cannot be used as a path"),
        (claim("file", "x\0y"), "cannot be used as a path"),
        (claim("number", prefix="覆盖率:", at_least=90), "87.5 (line 2), which is less than 90"),
        (claim("number", prefix="覆盖率:", at_most=80), "87.5 (line 2), which is more than 80"),
        (claim("number", prefix="errors:", at_most=100), "2150 (line 5), which is more than 100"),
        (claim("number"), "has no number on a line of its own"),
        (claim("number", "collab/twice.txt", prefix="coverage:"), "itself: 100 (line 1) and 2 (line 2)"),
        (claim("number", prefix="missing:"), "has no number after 'missing:'"),
        (claim("number", prefix="The"), "has no number after 'The'"),
        (claim("quote", text="slow fox"), "does not have these words"),
        (claim("quote", text=" "), "the quote is empty"),
    ],
)
def test_what_is_not_there_does_not_hold(workspace: Path, one: AnyFileClaim, words: str) -> None:
    found = result(workspace, one)
    assert not found.holds
    assert words in found.shown


def test_links_and_pipes_are_not_evidence(workspace: Path) -> None:
    (workspace / "link").symlink_to("/etc/hostname")
    (workspace / "folder").symlink_to("collab")
    os.mkfifo(workspace / "pipe")
    for path, words in (("link", "symbolic link"), ("folder/a.txt", "symbolic link"), ("pipe", "regular file")):
        for kind in ("file", "number", "quote"):
            found = result(workspace, claim(kind, path, text="x"))
            assert not found.holds
            assert words in found.shown


def test_what_cannot_be_read_does_not_hold(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (workspace / "binary").write_bytes(b"\xff1")
    assert "not UTF-8" in result(workspace, claim("number", "binary")).shown
    monkeypatch.setattr(evidence, "MAX_TEXT", 3)
    monkeypatch.setattr(evidence, "MAX_BYTES", 3)
    for kind in ("file", "number", "quote"):
        found = result(workspace, claim(kind, text="x"))
        assert (found.holds, "too large" in found.shown) == (False, True)


def test_evidence_without_a_workspace_does_not_hold(tmp_path: Path) -> None:
    assert not result(tmp_path / "none", claim("file")).holds


def test_a_file_is_read_once_however_many_claims_are_about_it(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (workspace / "b.txt").write_text("other words")
    opened: list[str] = []
    real = regular_files.opened_file

    def opened_file(above: int, name: str) -> Any:
        opened.append(name)
        return real(above, name)

    monkeypatch.setattr(regular_files, "opened_file", opened_file)
    quotes = [claim("quote", path, text="quick brown") for path in ("collab/a.txt", "b.txt", "./collab//a.txt")]
    found = check_files(workspace, [*quotes, claim("number", prefix="first"), *quotes])
    assert [found[position].holds for position in range(7)] == [True, False, True, True, True, False, True]
    assert opened == ["a.txt", "b.txt"]


def test_a_check_shows_evidence_in_order(tmp_path: Path) -> None:
    desk = BoardDesk.fresh(tmp_path)
    desk.open()
    desk.workspace.mkdir()
    (desk.workspace / "a.txt").write_text("coverage: 81 %")
    claims = [claim("number", "a.txt", prefix="coverage：", at_least=80), claim("file", "b.txt")]
    assert desk.check(evidence=msgspec.to_builtins(claims))["evidence"] == [
        {"holds": True, "shown": "81 (line 1)"},
        {"holds": False, "shown": "there is no file 'b.txt'"},
    ]


@given(
    st.sampled_from(["file", "number", "quote"]),
    st.text(max_size=30) | st.just("a.txt"),
    st.binary(max_size=200),
    st.text(max_size=20),
    st.floats(),
)
@settings(max_examples=80, deadline=None)
def test_no_claim_raises(
    tmp_path_factory: pytest.TempPathFactory, kind: str, path: str, data: bytes, words: str, bound: float
) -> None:
    folder = tmp_path_factory.getbasetemp() / "claims"
    folder.mkdir(exist_ok=True)
    (folder / "a.txt").write_bytes(data)
    one = claim(kind, path, prefix=words, text=words, sha256=words, at_least=bound)
    found = result(folder, one)
    assert isinstance(found.holds, bool)
    assert found.shown


@given(
    st.lists(st.sampled_from(["a", "bb", " ", "\n", "\t", "  "]), max_size=40), st.integers(0, 40), st.integers(1, 9)
)
@settings(max_examples=80, deadline=None)
def test_a_quote_from_the_file_is_found(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[str], start: int, length: int
) -> None:
    folder = tmp_path_factory.getbasetemp() / "quotes"
    folder.mkdir(exist_ok=True)
    (folder / "a.txt").write_text("".join(pieces))
    quote = "".join(pieces[start : start + length])
    assert result(folder, claim("quote", "a.txt", text=quote)).holds == bool(quote.split())
