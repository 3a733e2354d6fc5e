"""What an agent can do with its files, and what it cannot."""

import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from ripstop.engine.performers import Refused
from ripstop.tools.files import MAX_ENTRIES, MAX_HITS, MAX_LINE, MAX_READ, MAX_WRITE, PAGE_LINES, PAGE_SIZE, Files


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path / "work", "writer")


def own(tmp_path: Path, name: str = "") -> Path:
    return tmp_path / "work" / "writer" / name


def shared(tmp_path: Path, name: str = "") -> Path:
    return tmp_path / "work" / "collab" / name


# Where files are


@pytest.mark.req("S1-18", "S1-19", "S1-46", "S1-52")
@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("a.txt", "writer/a.txt"),
        ("./a.txt", "writer/a.txt"),
        ("writer/a.txt", "writer/a.txt"),
        ("writer/writer/a.txt", "writer/writer/a.txt"),
        ("writer/collab/a.txt", "writer/collab/a.txt"),
        ("reviewer/a.txt", "writer/reviewer/a.txt"),
        ("deep//er/a.txt", "writer/deep/er/a.txt"),
        ("collab/a.txt", "collab/a.txt"),
        ("collab/deep/方案.md", "collab/deep/方案.md"),
        ("workspaces/soup/collab/a.txt", "collab/a.txt"),
        ("workspaces/soup/writer/a.txt", "writer/a.txt"),
        ("workspaces/soup/a.txt", "writer/workspaces/soup/a.txt"),
        ("a..b.txt", "writer/a..b.txt"),
        ("...", "writer/..."),
        ("C/x:y", "writer/C/x:y"),
    ],
)
def test_a_path_means_one_of_the_two_folders(files: Files, tmp_path: Path, path: str, place: str) -> None:
    answer = files.write(path, "hello\n")
    assert (tmp_path / "work" / place).read_text() == "hello\n"
    assert files.read(path) == files.read(answer["path"]) == "hello\n"
    assert answer["path"] in files.list()["entries"]


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("", "empty"),
        ("  ", "empty"),
        ("..", r"'\.\.' in it"),
        ("../a.txt", r"'\.\.' in it"),
        ("collab/../../a.txt", r"'\.\.' in it"),
        ("a/../b", r"'\.\.' in it"),
        ("/etc/passwd", "slash at its beginning"),
        ("//a", "slash at its beginning"),
        ("~/a.txt", "relative"),
        ("C:/a.txt", "relative"),
        ("c:a.txt", "relative"),
        ("a\\b.txt", "backslash"),
        ("a\0b", "control character"),
        ("a\nb", "control character"),
        ("a\x7f", "control character"),
        ("a\ud800", "control character"),
        ("x" * 256, "255 bytes"),
        ("汤" * 90, "255 bytes"),
        ("a/" * 600, "too long"),
        ("a/" * 40 + "b", "41 names"),
        (".ripstop-1", "ours"),
        (".", "folder"),
        ("collab", "folder"),
        ("writer/", "folder"),
        ("new/", "folder"),
    ],
)
def test_refuses_a_path_that_is_none_of_its_own(files: Files, tmp_path: Path, path: str, why: str) -> None:
    for call in (lambda: files.write(path, "x"), lambda: files.read(path), lambda: files.edit(path, "", "x")):
        with pytest.raises(Refused, match=why) as refusal:
            call()
        assert refusal.value.fault == "agent"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("agent", ["", ".", "..", "a/b", "a\0", "a\\b"])
def test_refuses_an_agent_whose_name_is_no_folder(tmp_path: Path, agent: str) -> None:
    with pytest.raises(Refused, match="no folder of its own"):
        Files(tmp_path, agent)


# Links and other traps


def test_follows_no_link_on_the_way_and_none_at_the_end(files: Files, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a.txt").write_text("secret")
    files.write("collab/x", "")
    shared(tmp_path, "way").symlink_to(tmp_path / "out")
    shared(tmp_path, "end").symlink_to(tmp_path / "out" / "a.txt")
    shared(tmp_path, "inside").symlink_to("x")
    for path in ("collab/way/a.txt", "collab/end", "collab/inside", "collab/way/new.txt"):
        for call in (
            lambda p=path: files.read(p),
            lambda p=path: files.write(p, "x"),
            lambda p=path: files.search("s", p),
        ):
            with pytest.raises(Refused, match="symbolic link"):
                call()
    assert files.list("collab")["entries"] == ["collab/x"]
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["a.txt"]


def test_a_root_that_is_a_link_is_refused_but_the_workspace_may_be_one(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "work").symlink_to(tmp_path / "real")
    (tmp_path / "real" / "collab").symlink_to(tmp_path / "out")
    files = Files(tmp_path / "work", "writer")
    files.write("a.txt", "fine")
    assert (tmp_path / "real" / "writer" / "a.txt").read_text() == "fine"
    with pytest.raises(Refused, match="'collab' in the path is a symbolic link"):
        files.write("collab/a.txt", "x")


def test_refuses_hard_links_pipes_and_folders(files: Files, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    files.write("a/b.txt", "")
    os.link(tmp_path / "secret.txt", own(tmp_path, "hard.txt"))
    os.mkfifo(own(tmp_path, "pipe"))
    for path, why in (("hard.txt", "hard link"), ("pipe", "not a regular file"), ("a", "a folder")):
        for call in (lambda p=path: files.read(p), lambda p=path: files.write(p, "x")):
            with pytest.raises(Refused, match=why):
                call()
    with pytest.raises(Refused, match=r"'b\.txt' in the path is a file, not a folder"):
        files.write("a/b.txt/c.txt", "x")
    assert files.search("secret")["hits"] == []
    assert (tmp_path / "secret.txt").read_text() == "secret"


# Reading and writing


def test_writing_again_replaces_everything_and_keeps_the_permissions(files: Files, tmp_path: Path) -> None:
    files.write("run.sh", "one\n" * 100)
    own(tmp_path, "run.sh").chmod(0o750)
    assert files.write("run.sh", "two\n") == files.write("run.sh", "two\n") == {"path": "run.sh", "bytes": 4}
    assert own(tmp_path, "run.sh").read_text() == "two\n"
    assert own(tmp_path, "run.sh").stat().st_mode & 0o777 == 0o750
    assert [path.name for path in own(tmp_path).iterdir()] == ["run.sh"]


def test_a_file_that_fits_into_a_page_is_read_as_it_is(files: Files) -> None:
    for text in ("", "one", "one\n", "one\n\n", "a\x0bb\u2028c\r\nd\n", "x\n" * PAGE_LINES):
        files.write("a.txt", text)
        assert files.read("a.txt") == text


def test_a_long_file_is_read_page_by_page_and_no_line_is_lost(files: Files) -> None:
    text = "".join(f"line {number}\n" for number in range(1, 12_346))
    files.write("a.txt", text)
    read, offset = [], 1
    while offset:
        *lines, note = files.read("a.txt", offset).split("\n")
        assert len("\n".join(lines)) <= PAGE_SIZE and len(lines) <= PAGE_LINES
        assert note.startswith(f"[lines {offset:,} to {offset + len(lines) - 1:,} of 12,345")
        read += lines
        offset = int(found[1]) if (found := re.search(r"read on with offset (\d+)]", note)) else 0
    assert "\n".join(read) + "\n" == text


def test_a_page_has_the_lines_that_were_asked_for(files: Files) -> None:
    files.write("a.txt", "one\ntwo\nthree\nfour")
    assert files.read("a.txt", 2, 2) == "two\nthree\n[lines 2 to 3 of 4; read on with offset 4]"
    assert files.read("a.txt", offset=4) == "four\n[lines 4 to 4 of 4]"
    for offset, lines, why in ((5, 1, "has 4 lines"), (0, 1, "from 1"), (1, 0, "1 or more")):
        with pytest.raises(Refused, match=why):
            files.read("a.txt", offset, lines)


def test_a_line_longer_than_a_page_is_cut_and_what_follows_can_be_read(files: Files) -> None:
    files.write("a.txt", "x" * 100_000 + "\nend\n")
    page = files.read("a.txt")
    assert page.startswith("x" * PAGE_SIZE + "\n[line 1 has 100,000 characters") and page.endswith("offset 2]")
    assert files.read("a.txt", 2) == "end\n[lines 2 to 2 of 2]"


def test_says_politely_what_cannot_be_read(files: Files, tmp_path: Path) -> None:
    own(tmp_path).mkdir(parents=True)
    own(tmp_path, "large.txt").write_text("x" * (MAX_READ + 1))
    own(tmp_path, "picture.png").write_bytes(b"\x89PNG\0\0")
    own(tmp_path, "latin.txt").write_bytes("süß".encode("latin-1"))
    for path, why in (
        ("large.txt", f"{MAX_READ + 1} bytes, at most {MAX_READ}"),
        ("picture.png", "binary file of 6 bytes"),
        ("latin.txt", r"not UTF-8 text \(byte 1"),
        ("none.txt", r"There is no 'none\.txt'.*list_files"),
        ("no/none.txt", r"There is no 'no/none\.txt'"),
    ):
        with pytest.raises(Refused, match=why):
            files.read(path)


@pytest.mark.parametrize(("content", "why"), [("x" * (MAX_WRITE + 1), "too long"), ("\ud800", "UTF-8"), ("\0", "NUL")])
def test_refuses_to_write_what_is_no_text_or_too_much(files: Files, tmp_path: Path, content: str, why: str) -> None:
    with pytest.raises(Refused, match=why):
        files.write("a.txt", content)
    assert not own(tmp_path).exists()


# Editing


def test_an_edit_replaces_what_stands_there_once(files: Files) -> None:
    files.write("a.py", "x = 1\ny = 2\nx = 3\n")
    assert files.edit("a.py", "y = 2\n", "y = 4\nz = 5\n") == {"path": "a.py", "bytes": 24}
    assert files.read("a.py") == "x = 1\ny = 4\nz = 5\nx = 3\n"


def test_an_edit_that_fails_says_why_and_changes_nothing(files: Files) -> None:
    text = "def soup():\n    return 'hot'\n\n\ndef tea():\n    return 'hot'\n"
    files.write("a.py", text)
    for search, why in (
        ("    return 'hot'\n", "is there 2 times"),
        ("    return 'hit'\n", r"line 2 is like its first line: \"return 'hot'\""),
        ("@@@@\n", "not there, nor any line like"),
        ("", "has content"),
    ):
        with pytest.raises(Refused, match=why):
            files.edit("a.py", search, "x")
    with pytest.raises(Refused, match=r"There is no 'new/b\.py'"):
        files.edit("new/b.py", "x", "y")
    assert files.list()["entries"] == ["a.py"]
    assert files.read("a.py") == text


def test_an_edit_with_nothing_to_search_makes_a_new_file(files: Files) -> None:
    assert files.edit("collab/new/a.txt", "", "hello\n") == {"path": "collab/new/a.txt", "bytes": 6}
    files.write("empty.txt", "")
    files.edit("empty.txt", "", "now\n")
    assert files.read("empty.txt") == "now\n"


def test_an_edit_can_be_asked_whether_it_happened(files: Files) -> None:
    assert files.was_edited("a.txt", "", "x") is None
    files.write("a.txt", "one\ntwo\n")
    for search, replace in (("two\n", "three\n"), ("one\n", "one\nand a half\n"), ("three\n", "")):
        assert files.was_edited("a.txt", search, replace) is None
        assert files.edit("a.txt", search, replace) == files.was_edited("a.txt", search, replace)
    files.edit("b.txt", "", "new\n")
    assert files.was_edited("b.txt", "", "new\n") == {"path": "b.txt", "bytes": 4}


def test_edits_at_the_same_time_do_not_undo_each_other(files: Files, tmp_path: Path) -> None:
    files.write("collab/list.txt", "".join(f"line {n} open\n" for n in range(40)))

    def work(numbers: range) -> None:
        for n in numbers:
            Files(tmp_path / "work", f"agent{n}").edit("collab/list.txt", f"line {n} open", f"line {n} done")

    threads = [threading.Thread(target=work, args=(range(start, 40, 4),)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert files.read("collab/list.txt") == "".join(f"line {n} done\n" for n in range(40))


# Looking around


def test_lists_both_folders_with_names_that_can_be_read(files: Files, tmp_path: Path) -> None:
    for path in ("b/c.txt", "a.txt", "collab/d.txt", "writer/collab/e.txt"):
        files.write(path, "x\n")
    own(tmp_path, ".ripstop-left").touch()
    (own(tmp_path) / os.fsdecode(b"\xff")).touch()
    assert files.list()["entries"] == [
        "a.txt",
        "b/",
        "b/c.txt",
        "writer/collab/",
        "writer/collab/e.txt",
        "collab/d.txt",
    ]
    assert files.list("collab")["entries"] == ["collab/d.txt"]
    assert files.list("b")["entries"] == ["b/c.txt"]
    with pytest.raises(Refused, match="There is no 'nowhere'"):
        files.list("nowhere")


def test_a_long_list_says_that_there_is_more(files: Files, tmp_path: Path) -> None:
    files.write("a.txt", "")
    for n in range(MAX_ENTRIES):
        own(tmp_path, f"b{n}").touch()
    found = files.list()
    assert len(found["entries"]) == MAX_ENTRIES
    assert found["more"] is True


def test_search_finds_lines_and_cuts_long_ones(files: Files, tmp_path: Path) -> None:
    files.write("a.txt", "soup\nTea\nmore soup\r\n")
    files.write("collab/b.txt", "x" * 1000 + "soup" + "y" * 1000)
    own(tmp_path, "c.bin").write_bytes(b"soup\0")
    hits = files.search("soup")["hits"]
    assert hits[:2] == [{"path": "a.txt", "line": 1, "text": "soup"}, {"path": "a.txt", "line": 3, "text": "more soup"}]
    assert [(hit["path"], hit["line"]) for hit in hits[2:]] == [("collab/b.txt", 1)]
    assert "soup" in hits[2]["text"] and len(hits[2]["text"]) == MAX_LINE + 2
    assert [hit["line"] for hit in files.search("soup", "a.txt")["hits"]] == [1, 3]
    for text in ("", "a\nb"):
        with pytest.raises(Refused, match="piece of one line"):
            files.search(text)


def test_a_search_with_many_hits_says_that_there_is_more(files: Files) -> None:
    files.write("a.txt", "soup\n" * (MAX_HITS + 1))
    found = files.search("soup")
    assert (len(found["hits"]), found["more"]) == (MAX_HITS, True)


# Crashes


KILLED = """
import sys
from pathlib import Path
from ripstop.tools.files import Files
Files(Path(sys.argv[1]), "writer").edit("a.txt", "one", "one and two")
"""


@pytest.mark.parametrize(("failpoint", "happened"), [("files.before_rename", False), ("files.after_rename", True)])
def test_a_killed_edit_happened_or_did_not(files: Files, tmp_path: Path, failpoint: str, happened: bool) -> None:
    files.write("a.txt", "one\n")
    environment = {**os.environ, "RIPSTOP_FAILPOINT": failpoint}
    ended = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "work")], env=environment)
    assert ended.returncode == -9
    assert files.read("a.txt") == ("one and two\n" if happened else "one\n")
    assert (files.was_edited("a.txt", "one", "one and two") is not None) is happened
    assert files.list()["entries"] == ["a.txt"]
    files.write("b.txt", "")
    assert sorted(path.name for path in own(tmp_path).iterdir()) == ["a.txt", "b.txt"]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.write("a.txt", "old\n")

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "rename", full)
    with pytest.raises(Refused, match="No space left"):
        files.write("a.txt", "new\n")
    assert [path.name for path in own(tmp_path).iterdir()] == ["a.txt"]
    assert own(tmp_path, "a.txt").read_text() == "old\n"
