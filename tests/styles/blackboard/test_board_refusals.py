"""What does not belong on a board is refused by name, and nothing outside of it is touched."""

import errno
import hashlib
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ripstop.engine.performers import Refused, TryAgain
from ripstop.styles.blackboard import contents
from ripstop.tools.shared_folder import opened
from tests.styles.blackboard.board_folders import HISTORY, PLAN, REPORT, BoardDesk


@pytest.fixture
def desk(tmp_path: Path) -> BoardDesk:
    (tmp_path / "board").mkdir()
    return BoardDesk.fresh(tmp_path / "board")


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "secret").write_text("secret")
    return folder


@pytest.mark.parametrize(
    "arguments",
    [
        {"reports": {"reports/../memory/x.md": ""}},
        {"reports": {"memory/report_x.md": ""}},
        {"reports": {"reports/notes.md": ""}},
        {"reports": {"reports/deep/report_x.md": ""}},
        {"reports": {"/reports/report_x.md": ""}},
        {"reports": {"reports//report_x.md": ""}},
        {"plan": "dev_plan.md"},
        {"plan": "memory"},
        {"plan": "memory/../x.md"},
        {"plan": "reports/plan.md"},
        {"history": "/memory/history.md"},
        {"plan": HISTORY},
        {"plan_text": "\ud800"},
        {"append": "\ud800"},
        {"append": "x" * 5_000_001},
    ],
)
def test_what_does_not_belong_on_the_board_is_refused(desk: BoardDesk, arguments: dict[str, Any]) -> None:
    desk.open()
    before = desk.files()
    with pytest.raises(Refused):
        desk.write(**arguments)
    assert desk.files() == before


@pytest.mark.parametrize("own", [PLAN, "reports/other.md", "../report_x.md"])
def test_only_a_report_can_be_an_agents_own(desk: BoardDesk, own: str) -> None:
    desk.open()
    with pytest.raises(Refused):
        desk.check(own)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("board_open", {"tail": "many"}),
        ("board_check", {}),
        ("board_check", {"digest": "x", "evidence": [{"evidence": "rumour", "path": "x"}]}),
        ("board_write", {"digest": "x", "reports": ["x"]}),
    ],
)
def test_a_wrong_call_is_our_fault(desk: BoardDesk, tool: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(Refused, match="called wrongly") as refused:
        desk.call(tool, **arguments)
    assert refused.value.fault == "ours"


def test_text_that_is_not_utf8_is_named(desk: BoardDesk) -> None:
    desk.open()
    desk.edit(REPORT, b"\xff\xfe")
    with pytest.raises(Refused, match=f"'{REPORT}' is not UTF-8"):
        desk.check(REPORT)
    desk.edit(PLAN, b"\xff")
    with pytest.raises(Refused, match=f"'{PLAN}' is not UTF-8"):
        desk.open()


def test_files_that_are_not_text_belong_to_the_board(desk: BoardDesk) -> None:
    desk.edit("reports/picture.png", b"\x89PNG\xff")
    desk.open()
    desk.edit("reports/picture.png", b"\x89PNG\xfe")
    assert desk.check(REPORT)["changed"] == [{"path": "reports/picture.png", "what": "changed", "diff": ""}]


def test_a_large_file_that_nobody_reads_belongs_to_the_board(desk: BoardDesk) -> None:
    desk.edit("reports/large.bin", b"x" * 6_000_000)
    desk.open()
    desk.edit("reports/large.bin", b"y" * 6_000_000)
    assert desk.check(REPORT)["changed"] == [{"path": "reports/large.bin", "what": "changed", "diff": ""}]


def test_a_name_that_is_not_utf8_is_refused(desk: BoardDesk) -> None:
    Path(os.fsdecode(os.fsencode(desk.folder) + b"/memory/\xff.md")).write_text("x")
    with pytest.raises(Refused, match=r"not UTF-8\. Rename it"):
        desk.open()


def test_bounds_are_refused_with_their_number(desk: BoardDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.edit(PLAN, "x" * 5_000_001)
    with pytest.raises(Refused, match="too large"):
        desk.open()
    monkeypatch.setattr(contents, "MAX_BYTES", 1000)
    with pytest.raises(Refused, match="1,000 bytes"):
        desk.open()
    monkeypatch.setattr(contents, "MAX_FILES", 0)
    with pytest.raises(Refused, match="more than 0 files"):
        desk.open()


@pytest.mark.parametrize("where", ["memory/link.md", REPORT, PLAN, HISTORY, "memory/deep/link"])
def test_a_link_on_the_board_is_refused_by_name(desk: BoardDesk, elsewhere: Path, where: str) -> None:
    desk.open()
    link = desk.folder / where
    link.parent.mkdir(exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(elsewhere / "secret")
    calls: list[Callable[[], object]] = [
        desk.open,
        desk.check,
        lambda: desk.write(append="x\n", plan_text="y", reports={REPORT: "x"}),
    ]
    for call in calls:
        with pytest.raises(Refused, match=f"'{where}' on the board is a symbolic link"):
            call()
    assert (elsewhere / "secret").read_text() == "secret"


@pytest.mark.parametrize("where", ["memory", "reports", ".ripstop", ".ripstop/board", ".ripstop/board/copies"])
def test_a_folder_behind_a_link_is_refused(desk: BoardDesk, elsewhere: Path, where: str) -> None:
    desk.open()
    (desk.folder / where).rename(elsewhere / "moved")
    (desk.folder / where).symlink_to(elsewhere / "moved")
    before = {path: path.read_bytes() for path in elsewhere.rglob("*") if path.is_file()}
    with pytest.raises(Refused, match="link"):
        desk.write(append="x\n", reports={REPORT: "x"})
    assert {path: path.read_bytes() for path in elsewhere.rglob("*") if path.is_file()} == before


def open_and_write(desk: BoardDesk) -> None:
    desk.open()
    desk.write(append="x\n")


@pytest.mark.parametrize("name", ["lock", "mutex", "index.json", "pending.json"])
def test_a_link_in_place_of_our_notes_is_not_followed(desk: BoardDesk, elsewhere: Path, name: str) -> None:
    desk.open()
    note = desk.folder / ".ripstop/board" / name
    note.unlink(missing_ok=True)
    note.symlink_to(elsewhere / "secret")
    other = BoardDesk(desk.folder)
    with pytest.raises(Refused, match=f"{re.escape(str(note))}.*symbolic link"):
        open_and_write(other)
    assert (elsewhere / "secret").read_text() == "secret"


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
@pytest.mark.parametrize("name", ["lock", "mutex"])
def test_what_cannot_be_locked_is_refused_by_its_path(desk: BoardDesk, name: str, make: Callable[[Path], None]) -> None:
    desk.open()
    lock = desk.folder / ".ripstop/board" / name
    lock.unlink()
    make(lock)
    for _ in range(2):
        with pytest.raises(Refused, match=f"{re.escape(str(lock))}.*ove it away"):
            BoardDesk(desk.folder).open()


def test_a_folder_in_place_of_a_note_is_refused_by_its_path(desk: BoardDesk) -> None:
    note = desk.folder / ".ripstop/board/index.json"
    note.mkdir(parents=True)
    with pytest.raises(Refused, match=f"{re.escape(str(note))}.*move it away"):
        desk.open()


def test_a_folder_among_the_copies_stops_nothing(desk: BoardDesk) -> None:
    desk.open()
    (desk.folder / ".ripstop/board/copies/folder").mkdir()
    (desk.folder / ".ripstop/board/.unfinished-folder").mkdir()
    desk.write(append="x\n", plan_text="new\n")
    assert desk.text(PLAN) == "new\n"


def test_a_pipe_on_the_board_is_refused(desk: BoardDesk) -> None:
    desk.open()
    os.mkfifo(desk.folder / "memory/pipe")
    with pytest.raises(Refused, match="'memory/pipe' on the board is not a regular file"):
        desk.check()


def test_a_folder_that_has_gone_is_refused(desk: BoardDesk) -> None:
    desk.open()
    desk.folder.rename(desk.folder.with_name("gone"))
    with pytest.raises(Refused, match="There is no folder"):
        desk.write(append="x\n")
    assert not desk.folder.exists()


def test_a_run_without_an_absolute_folder_is_refused(desk: BoardDesk) -> None:
    desk.folder = Path("relative")
    with pytest.raises(Refused, match="no folder"):
        desk.open()


@pytest.mark.parametrize(
    ("number", "kind", "words"),
    [
        (errno.EACCES, Refused, "Allow this user"),
        (errno.EROFS, Refused, "Make it writable"),
        (errno.ENOSPC, TryAgain, "Make room"),
    ],
)
@pytest.mark.parametrize("function", ["rename", "fsync", "fchmod"])
def test_what_the_disk_refuses_is_put_into_words(
    desk: BoardDesk, monkeypatch: pytest.MonkeyPatch, function: str, number: int, kind: type[Exception], words: str
) -> None:
    desk.open()

    def fail(*args: Any, **kwargs: Any) -> None:
        raise OSError(number, os.strerror(number))

    before = desk.files()
    with monkeypatch.context() as patched:
        patched.setattr(os, function, fail)
        with pytest.raises(kind, match=words):
            desk.call("board_write", digest=desk.digest, append="x\n")
    assert desk.files() == before
    assert not [path for path in (desk.folder / ".ripstop/board").iterdir() if path.name.startswith(".")]
    assert desk.call("board_write", again=True, digest=desk.digest, append="x\n")["edited"] == []
    assert desk.text(HISTORY) == "# Project History\nx\n"


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    "path", ["../elsewhere/secret", "reports/../../elsewhere/secret", "memory/prompts/x.md", "", "/", "reports/", ".."]
)
@pytest.mark.parametrize("old", ["", "forged"])
def test_a_forged_note_about_a_write_touches_no_other_file(
    desk: BoardDesk, elsewhere: Path, path: str, old: str
) -> None:
    desk.edit("memory/prompts/x.md", "secret")
    desk.open()
    (desk.folder / ".ripstop/board/copies" / sha(old)).write_text(old)
    desk.edit(PLAN, "edited\n")
    files = {PLAN: [sha("x"), sha("y")], path: [sha(old) if old else "", sha("secret")]}
    desk.edit(".ripstop/board/pending.json", json.dumps({"key": f"r/{desk.number + 1}", "files": files}))
    before = desk.files()
    assert [one["path"] for one in desk.write(append="- entry\n")["edited"]] == [PLAN]
    assert (elsewhere / "secret").read_text() == "secret"
    assert desk.files() == before


@pytest.mark.parametrize("part", ["", ".", "..", "a/b", "/", "a\0b"])
def test_a_folder_is_opened_by_names_alone(desk: BoardDesk, part: str) -> None:
    with pytest.raises(Refused, match="in it is not a name"), opened(desk.folder, ("memory", part), create=True):
        pytest.fail("it was opened")


@pytest.mark.parametrize("named", ["../../../../elsewhere/tail", "a\0b"])
def test_a_forged_hash_names_no_file(desk: BoardDesk, elsewhere: Path, named: str) -> None:
    (elsewhere / "tail.end").write_text(json.dumps({"skipped": 0, "head": "", "text": "secret"}))
    desk.open()
    files = {PLAN: named, HISTORY: named}
    desk.edit(".ripstop/board/index.json", json.dumps({"files": files, "before": {}}))
    desk.digest = contents.digest_of(files)
    changed = desk.check()["changed"]
    assert [(one["path"], one["diff"]) for one in changed] == [(PLAN, ""), (HISTORY, "")]
