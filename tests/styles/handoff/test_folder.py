"""Files appear complete or not at all, and nothing is overwritten that should stay."""

import errno
import hashlib
import os
import re
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ripstop.engine.performers import Refused, TryAgain
from ripstop.kernel.errors import UsageError
from ripstop.styles.handoff import files
from ripstop.styles.handoff.files import MAX_SIZE, FoundFile, Missing
from ripstop.styles.handoff.folder import LETTERS, Folder

AT = "20260131_235959"


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def put(root: Path, name: str, content: str | bytes) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def names(path: Path) -> list[str]:
    return sorted(one.name for one in path.iterdir())


def only(found: list[FoundFile]) -> FoundFile:
    (one,) = found
    return one


# Reading


@pytest.mark.req("S0-48", "S0-51", "S0-58")
def test_finds_every_document_and_nothing_else(folder: Folder, tmp_path: Path) -> None:
    put(tmp_path, ".workflows/b.md", "two\r\n")
    put(tmp_path, ".workflows/任务.md", "\ufeff一")
    put(tmp_path, ".workflows/notes.txt", "")
    put(tmp_path, ".workflows/.hidden.md", "")
    put(tmp_path, ".workflows/deep/c.md", "")
    put(tmp_path, ".workflows/folder.md/x", "")
    put(tmp_path, "secret.md", "out of it")
    (tmp_path / ".workflows" / "link.md").symlink_to(tmp_path / "secret.md")
    os.mkfifo(tmp_path / ".workflows" / "pipe.md")
    os.utime(tmp_path / ".workflows" / "b.md", ns=(0, 1_700_000_000_123_456_000))
    found = {one.name: one for one in folder.documents()}
    assert found.keys() == {"b.md", "任务.md"}
    assert found["b.md"] == FoundFile("b.md", "two\r\n", "", 1_700_000_000_123_456)
    assert found["任务.md"].text == "\ufeff一"


def test_a_folder_that_nobody_has_written_to_is_empty(folder: Folder, tmp_path: Path) -> None:
    assert (folder.documents(), folder.agents(), folder.messages("ann")) == ([], [], [])
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_text_or_too_much_is_named_with_its_problem(folder: Folder, tmp_path: Path) -> None:
    put(tmp_path, ".workflows/bad.md", b"good \xff bad")
    assert only(folder.documents()).text is None
    assert "byte 5" in only(folder.documents()).problem
    put(tmp_path, ".workflows/bad.md", b"x" * (MAX_SIZE + 1))
    assert "1000001 bytes, at most 1000000" in only(folder.documents()).problem
    put(tmp_path, ".workflows/bad.md", b"x" * MAX_SIZE)
    assert only(folder.documents()).problem == ""


def test_reading_sees_one_text_or_the_other_while_others_write(folder: Folder, tmp_path: Path) -> None:
    texts = {letter * 400_000 for letter in "abc"}
    name = folder.create("x", AT, "a" * 400_000)
    writer = subprocess.Popen([sys.executable, "-c", REWRITER, str(tmp_path), name])
    try:
        for _ in range(60):
            assert only(folder.documents()).text in texts
    finally:
        writer.kill()
        writer.wait()


REWRITER = """
import sys
from pathlib import Path
from ripstop.styles.handoff.folder import Folder
for letter in "abc" * 2000:  # it is killed long before; if nobody is left to do that, it ends by itself
    Folder(Path(sys.argv[1])).replace(sys.argv[2], letter * 400_000)
"""


def test_looks_again_at_a_file_that_changes_while_it_is_read(
    folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(tmp_path, ".workflows/a.md", "old")
    fstat, saves = os.fstat, ["half", "whole text"]

    def save_meanwhile(descriptor: int) -> os.stat_result:
        status = fstat(descriptor)
        if saves and stat.S_ISREG(status.st_mode):
            path.write_text(saves.pop(0))
        return status

    monkeypatch.setattr(os, "fstat", save_meanwhile)
    assert folder.read("a.md") == "whole text"


def test_a_file_that_an_editor_takes_away_for_a_moment_is_found(
    folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(tmp_path, ".workflows/a.md", "text")
    aside = path.rename(tmp_path / "a.md~")
    put(tmp_path, ".workflows/b.md", "other")
    found, looked = files.found, []

    def listed_before(above: int, name: str) -> FoundFile | None:
        looked.append(name)
        return found(above, "a.md")

    monkeypatch.setattr(files, "found", listed_before)
    monkeypatch.setattr(time, "sleep", lambda seconds: aside.rename(path))
    assert only(folder.documents()).text == "text"
    assert looked == ["b.md", "b.md"]


# Creating


@pytest.mark.req("S0-58", "S0-59")
def test_a_new_document_is_named_by_its_kind_and_time(folder: Folder, tmp_path: Path) -> None:
    assert folder.create("bug fix", AT, "one") == f"workflow_bug_fix_{AT}.md"
    assert folder.create("bug/fix", AT, "two") == f"workflow_bug_fix_{AT}_2.md"
    assert folder.create("bug.fix", AT, "three") == f"workflow_bug_fix_{AT}_3.md"
    assert folder.create("缺陷 修复", AT, "四") == f"workflow_缺陷_修复_{AT}.md"
    assert folder.create("", AT, "") == f"workflow_untitled_{AT}.md"
    assert sorted(str(one.text) for one in folder.documents()) == ["", "one", "three", "two", "四"]
    with pytest.raises(UsageError, match="2026-01-31"):
        folder.create("x", "2026-01-31", "")


@pytest.mark.req("S0-59")
def test_a_text_may_depend_on_the_name_that_it_gets(folder: Folder) -> None:
    assert folder.create("x", AT, "taken") == f"workflow_x_{AT}.md"
    name = folder.create("x", AT, lambda stem: f"# Workflow: {stem}\n")
    assert name == f"workflow_x_{AT}_2.md"
    assert folder.read(name) == f"# Workflow: workflow_x_{AT}_2\n"


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kind=st.text(max_size=300) | st.text("界🎉x/. ", min_size=50, max_size=90))
@pytest.mark.req("S0-59")
def test_any_kind_gives_a_name_that_stays_in_the_folder(tmp_path: Path, kind: str) -> None:
    folder = Folder(tmp_path)
    name = folder.create(kind, AT, "text")
    assert (tmp_path / ".workflows" / name).read_text() == "text"
    assert re.fullmatch(rf"workflow_[\w-]+_{AT}(_\d+)?\.md", re.sub(r"[^\x00-\x7f]", "x", name))
    kept = folder.keep_beside(name, "refused", kind)
    assert (tmp_path / ".workflows" / kept).read_text() == "refused"
    assert folder.set_aside(name, "why").read_text() == "text"


CREATOR = """
import sys
from pathlib import Path
from ripstop.styles.handoff.folder import Folder
folder = Folder(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
print(folder.id, *(folder.create("race", sys.argv[2], f"{sys.argv[3]}-{n} " * 5000) for n in range(15)))
"""


@pytest.mark.req("S0-59", "S0-61")
def test_eight_processes_in_one_second_get_names_of_their_own_and_one_folder_id(tmp_path: Path) -> None:
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", CREATOR, str(tmp_path), AT]
    creators = [subprocess.Popen([*command, str(who)], stdin=pipe, stdout=pipe, text=True) for who in range(8)]
    for creator in creators:
        assert creator.stdout is not None
        assert creator.stdout.readline() == "ready\n"
    for creator in creators:
        assert creator.stdin is not None
        creator.stdin.write("go\n")
        creator.stdin.flush()
    said = [creator.communicate(timeout=100)[0].split() for creator in creators]
    assert {words[0] for words in said} == {Folder(tmp_path).id}
    assert len({name for words in said for name in words[1:]}) == 120
    for who, words in enumerate(said):
        for number, name in enumerate(words[1:]):
            assert (tmp_path / ".workflows" / name).read_text() == f"{who}-{number} " * 5000
    assert len(names(tmp_path / ".workflows")) == 121, "the documents and our bookkeeping, no temporary files"


def test_the_folder_id_is_drawn_once_and_a_damaged_one_is_named(folder: Folder, tmp_path: Path) -> None:
    assert len(folder.id) == 5
    assert set(folder.id) <= set(LETTERS)
    assert folder.id == Folder(tmp_path).id
    put(tmp_path, ".workflows/.ripstop/folder-id", "../..")
    with pytest.raises(Refused, match="damaged"):
        _ = folder.id


def test_left_over_files_go_after_an_hour(folder: Folder, tmp_path: Path) -> None:
    old, young = put(tmp_path, ".workflows/.unfinished-1", "x"), put(tmp_path, ".workflows/.unfinished-2", "x")
    os.utime(old, (old.stat().st_mtime - 3700,) * 2)
    os.utime(young, (young.stat().st_mtime - 3500,) * 2)
    folder.create("x", AT, "")
    assert not old.exists()
    assert young.exists()


# Replacing, keeping, setting aside, removing


@pytest.mark.req("S0-61")
def test_replacing_keeps_the_mode_and_follows_no_link(folder: Folder, tmp_path: Path) -> None:
    path = put(tmp_path, ".workflows/a.md", "old")
    path.chmod(0o640)
    assert folder.replace("a.md", "new")
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", 0o640)
    path.unlink()
    path.symlink_to(put(tmp_path, "outside", "safe"))
    assert folder.replace("a.md", "newer")
    assert (path.read_text(), path.is_symlink(), (tmp_path / "outside").read_text()) == ("newer", False, "safe")


def test_replaces_only_what_it_was_told_to(folder: Folder, tmp_path: Path) -> None:
    assert folder.replace("a.md", "one", over="")
    assert not folder.replace("a.md", "two", over="")
    assert not folder.replace("a.md", "two", over=sha("other"), key="k")
    assert folder.read("a.md") == "one"
    assert folder.replace("a.md", "two", over=sha("one"), key="k")
    assert folder.read("a.md") == "two"
    assert names(tmp_path / ".workflows") == [".ripstop", "a.md"]
    assert folder.replacing() == []


def test_keeps_a_refused_text_once_and_never_over_another(folder: Folder, tmp_path: Path) -> None:
    assert folder.keep_beside("a.md", "one", "7") == "a.md.refused-7"
    assert folder.keep_beside("a.md", "two", "7") == "a.md.refused-7_2"
    assert folder.keep_beside("a.md", "one", "7") == "a.md.refused-7"
    assert folder.keep_beside("a.md", "two", "7") == "a.md.refused-7_2"
    assert names(tmp_path / ".workflows") == ["a.md.refused-7", "a.md.refused-7_2"]
    assert folder.documents() == []


def test_setting_aside_never_overwrites_and_says_why(folder: Folder, tmp_path: Path) -> None:
    for number in range(3):
        put(tmp_path, ".workflows/bad.md", f"text {number}")
        folder.set_aside("bad.md", f"reason {number}")
    aside = tmp_path / ".workflows" / "set-aside"
    assert [(aside / name).read_text() for name in ("bad.md", "bad_2.md", "bad_3.md")] == ["text 0", "text 1", "text 2"]
    assert (aside / "bad_2.md.reason.txt").read_text() == "reason 1\n"
    assert len(names(aside)) == 6
    assert folder.documents() == []


def test_a_file_that_is_gone_is_not_set_aside_and_leaves_nothing_there(folder: Folder, tmp_path: Path) -> None:
    put(tmp_path, ".workflows/other.md", "")
    with pytest.raises(Missing, match=r"'bad\.md' is gone"):
        folder.set_aside("bad.md", "why")
    assert names(tmp_path / ".workflows" / "set-aside") == []


@pytest.mark.req("S0-62")
def test_removes_only_the_text_that_it_was_told_to(folder: Folder) -> None:
    folder.replace("a.md", "edited since")
    assert not folder.remove("a.md", sha("old"))
    assert folder.read("a.md") == "edited since"
    assert folder.remove("a.md", sha("edited since"))
    assert not folder.remove("a.md", sha("edited since"))
    assert folder.read("a.md") is None


@pytest.mark.parametrize("name", ["", " ", ".", "..", "../a.md", "a/b.md", "/a.md", ".hidden.md", "a\0.md", "a\n.md"])
def test_a_name_that_leads_elsewhere_is_refused(folder: Folder, tmp_path: Path, name: str) -> None:
    attempts: list[Any] = [
        lambda: folder.read(name),
        lambda: folder.replace(name, ""),
        lambda: folder.replace(name, "", over=""),
        lambda: folder.keep_beside(name, "", "1"),
        lambda: folder.set_aside(name, ""),
        lambda: folder.remove(name, ""),
        lambda: folder.processed("ann", name),
        lambda: folder.set_message_aside("ann", name, ""),
    ]
    put(tmp_path, ".workflows/x", "")
    for attempt in attempts:
        with pytest.raises(Refused, match="cannot be used: give a name"):
            attempt()


# The inbox


def set_aside(folder: Folder) -> None:
    folder.set_message_aside("bob", "m.md", "why")


@pytest.mark.req("S0-60")
def test_messages_are_sent_found_and_handled(folder: Folder, tmp_path: Path) -> None:
    assert folder.send("小明", "来自 ann", "你好")
    assert folder.send("小明", "来自 ann 2", "再见")
    folder.send("bob", "m", "x")
    put(tmp_path, ".inbox/processed/m.md", "not an agent")
    put(tmp_path, ".inbox/file", "")
    assert sorted(folder.agents()) == ["bob", "小明"]
    assert {one.name: one.text for one in folder.messages("小明")} == {"来自_ann.md": "你好", "来自_ann_2.md": "再见"}
    assert folder.processed("小明", "来自_ann.md") == tmp_path / ".inbox" / "小明" / "processed" / "来自_ann.md"
    with pytest.raises(Missing):
        folder.processed("小明", "来自_ann.md")
    assert folder.set_message_aside("小明", "来自_ann_2.md", "empty").read_text() == "再见"
    assert names(tmp_path / ".inbox" / "小明" / "set-aside") == ["来自_ann_2.md", "来自_ann_2.md.reason.txt"]
    assert folder.messages("小明") == []


def test_handled_messages_of_one_name_are_all_kept(folder: Folder, tmp_path: Path) -> None:
    for number in range(3):
        put(tmp_path, ".inbox/bob/m.md", str(number))
        folder.processed("bob", "m.md")
    handled = tmp_path / ".inbox" / "bob" / "processed"
    assert [(handled / name).read_text() for name in ("m.md", "m_2.md", "m_3.md")] == ["0", "1", "2"]


@pytest.mark.parametrize("put_away", [lambda f: None, lambda f: f.processed("bob", "m.md"), set_aside])
def test_a_message_is_sent_once_whatever_became_of_it(folder: Folder, put_away: Callable[[Folder], Any]) -> None:
    assert folder.send("bob", "m", "x")
    put_away(folder)
    left = folder.messages("bob")
    assert not folder.send("bob", "m", "x")
    assert folder.messages("bob") == left


@pytest.mark.parametrize("agent", ["", "  ", ".", "..", "a/b", "/", "../bob", "processed", "set-aside", ".x", "a\0"])
def test_an_agent_whose_name_leaves_the_inbox_is_refused(folder: Folder, tmp_path: Path, agent: str) -> None:
    for attempt in (lambda: folder.send(agent, "m", ""), lambda: folder.messages(agent)):
        with pytest.raises(Refused, match="cannot be used"):
            attempt()
    assert list(tmp_path.iterdir()) == []


# Troubles


def test_a_file_in_the_place_of_a_folder_is_named(folder: Folder, tmp_path: Path) -> None:
    put(tmp_path, ".workflows", "")
    for attempt in (folder.documents, lambda: folder.create("x", AT, ""), lambda: folder.lock("k")):
        with pytest.raises(Refused, match=r"\.workflows.*a file, not a folder.*Move away"):
            attempt()


def test_a_link_in_the_place_of_a_folder_is_not_followed(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".workflows").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Refused, match="symbolic link"):
        folder.create("x", AT, "")
    assert names(tmp_path / "elsewhere") == []


def test_a_folder_that_is_gone_is_not_made_again(tmp_path: Path) -> None:
    gone = Folder(tmp_path / "gone")
    for attempt in (gone.documents, lambda: gone.create("x", AT, ""), lambda: gone.replace("a.md", "")):
        with pytest.raises(Missing, match="gone"):
            attempt()
    assert not (tmp_path / "gone").exists()


def test_what_cannot_stand_in_a_file_is_refused(folder: Folder) -> None:
    with pytest.raises(Refused, match="Character 2"):
        folder.create("x", AT, "ab\ud800")
    with pytest.raises(Refused, match="too long"):
        folder.replace("a.md", "é" * (MAX_SIZE // 2 + 1))
    assert folder.documents() == []


@pytest.mark.parametrize("call", ["link", "rename", "fsync"])
def test_a_full_disk_may_pass_and_leaves_the_old_text(
    folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    folder.replace("a.md", "old")

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, call, full)
    if call != "link":
        with pytest.raises(TryAgain, match=r"No space left.*Make room"):
            folder.replace("a.md", "new")
    if call != "rename":
        with pytest.raises(TryAgain, match="No space left"):
            folder.create("x", AT, "new")
    monkeypatch.undo()
    assert folder.read("a.md") == "old"
    assert names(tmp_path / ".workflows") == ["a.md"]
