"""The index follows the files, survives kills and damage, and is shared by processes."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ripstop.tools.knowledge import folder as folders
from ripstop.tools.knowledge.index import KnowledgeBases, SearchResult

SEARCHER = """
import sys
from pathlib import Path
from ripstop.tools.knowledge.index import KnowledgeBases
bases = KnowledgeBases(Path(sys.argv[1]))
print("ready", flush=True)
for _ in range(int(sys.argv[3])):
    found = bases.search(Path(sys.argv[2]), "refund of topic7", 1).passages
    assert found and found[0].source == "f7.md#Topic7", found
print("done", flush=True)
"""


class Shelf:
    """A knowledge folder with an index of its own."""

    def __init__(self, above: Path) -> None:
        self.cache = above / "cache"
        self.folder = above / "knowledge"
        self.folder.mkdir()
        self.bases = KnowledgeBases(self.cache)

    def write(self, path: str, text: str | bytes) -> Path:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return file

    def search(self, question: str, most: int = 10) -> SearchResult:
        return self.bases.search(self.folder, question, most)

    def sources(self, question: str) -> list[str]:
        return [passage.source for passage in self.search(question).passages]

    @property
    def index(self) -> Path:
        (found,) = (self.cache / "knowledge").glob("*.db")
        return found

    def process(self, times: int) -> "subprocess.Popen[str]":
        arguments = [sys.executable, "-c", SEARCHER, str(self.cache), str(self.folder), str(times)]
        return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


def test_changes_of_files_are_found_at_the_next_search(shelf: Shelf) -> None:
    file = shelf.write("a.md", "# A\n\nalpha")
    assert shelf.sources("alpha") == ["a.md#A"]
    file.write_text("# B\n\ngamma")  # of the same length, perhaps in the same tick of the clock
    assert shelf.sources("alpha") == [] and shelf.sources("gamma") == ["a.md#B"]
    shelf.write("deep/b.txt", "gamma ray")
    assert sorted(shelf.sources("gamma")) == ["a.md#B", "deep/b.txt"]
    file.rename(shelf.folder / "c.md")
    assert sorted(shelf.sources("gamma")) == ["c.md#B", "deep/b.txt"]
    (shelf.folder / "c.md").unlink()
    assert shelf.sources("gamma") == ["deep/b.txt"]


def test_a_file_that_was_put_back_with_its_old_time_is_read_again(shelf: Shelf) -> None:
    file = shelf.write("a.md", "alpha")
    os.utime(file, (1, 1))
    assert shelf.sources("alpha") == ["a.md"]
    file.write_text("gamma")
    os.utime(file, (1, 1))
    assert shelf.sources("gamma") == ["a.md"]


def test_many_changes_leave_an_index_like_a_new_one(shelf: Shelf, tmp_path: Path) -> None:
    words = ["alpha", "beta", "退货", "运费", "refunds"]
    for number in range(40):
        shelf.write(f"f{number % 7}.md", f"# {words[number % 5]}\n\n{words[number % 3]} {number} {words[number % 4]}")
        if number % 6 == 5:
            (shelf.folder / f"f{number % 5}.md").unlink(missing_ok=True)
        shelf.search("alpha")
    fresh = KnowledgeBases(tmp_path / "other")
    for word in words:
        assert shelf.search(word) == fresh.search(shelf.folder, word, 10)
    with sqlite3.connect(shelf.index) as db:
        db.execute("INSERT INTO words (words) VALUES ('integrity-check')")
        db.execute("INSERT INTO trigrams (trigrams) VALUES ('integrity-check')")
    db.close()


def test_files_that_cannot_be_read_are_reported_and_the_others_found(shelf: Shelf, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("alpha secret")
    shelf.write("good.md", "alpha")
    shelf.write("latin.md", "alpha caf\xe9".encode("latin-1"))
    shelf.write("bom.txt", b"\xef\xbb\xbf# alpha")
    shelf.write(".hidden.md", "alpha")
    shelf.write(".git/x.md", "alpha")
    shelf.write("picture.png", "alpha")
    shelf.write("pipes/x.txt", "alpha")
    os.mkfifo(shelf.folder / "pipe.md")
    (shelf.folder / "link.md").symlink_to(tmp_path / "secret.md")
    (shelf.folder / "folder").symlink_to(tmp_path)
    os.link(tmp_path / "secret.md", shelf.folder / "hard.md")
    os.close(os.open(os.fsencode(shelf.folder) + b"/\xff.md", os.O_CREAT | os.O_WRONLY))
    found = shelf.search("alpha")
    assert sorted(passage.source for passage in found.passages) == ["bom.txt", "good.md", "pipes/x.txt"]
    skipped = {one.path: one.reason for one in found.skipped}
    assert skipped == {
        "latin.md": "it is not UTF-8 text: byte 9 is wrong",
        "pipe.md": "it is not a regular file",
        "link.md": "it is a symbolic link, and links are not followed",
        "hard.md": "it is a hard link: the same file has another name, perhaps elsewhere; copy it",
        "folder": "it is a symbolic link, and links are not followed",
        "\\udcff.md": "its name is not UTF-8",
    }
    shelf.write("latin.md", "alpha again")
    assert "latin.md" in shelf.sources("alpha")


def test_bounds_leave_files_out_and_say_so(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.md", "b.md", "c.md", "1/2/3/d.md"):
        shelf.write(name, f"alpha {name}")
    monkeypatch.setattr(folders, "MAX_DEPTH", 2)
    monkeypatch.setattr(folders, "MAX_FILES", 2)
    found = shelf.search("alpha")
    assert {passage.source for passage in found.passages} == {"a.md", "b.md"}
    assert [one.path for one in found.skipped] == ["1/2/3", "c.md"]
    monkeypatch.setattr(folders, "MAX_FILES", 10)
    monkeypatch.setattr(folders, "MAX_FILE", 9)
    assert [one.path for one in shelf.search("alpha").skipped] == ["1/2/3", "a.md", "b.md", "c.md"]


@pytest.mark.parametrize("damage", ["garbage", "empty", "cut", "version", "tables", "flipped"])
def test_a_damaged_index_is_made_again(shelf: Shelf, damage: str) -> None:
    for number in range(30):
        shelf.write(f"f{number}.md", f"# Topic{number}\n\nrefund {'words ' * 100}")
    shelf.search("refund")
    index = shelf.index
    data = index.read_bytes()
    if damage == "garbage":
        index.write_bytes(b"not a database at all" * 100)
    elif damage == "empty":
        index.write_bytes(b"")
    elif damage == "cut":
        index.write_bytes(data[: len(data) // 2])
    elif damage == "flipped":
        index.write_bytes(data[:4096] + bytes(255 - byte for byte in data[4096:]))
    else:
        change = "PRAGMA user_version = 99" if damage == "version" else "DROP TABLE passages"
        with sqlite3.connect(index) as db:
            db.execute(change)
        db.close()
    assert shelf.search("topic7 refund").passages[0].source == "f7.md#Topic7"


def test_an_index_is_for_its_owner_alone(shelf: Shelf) -> None:
    shelf.write("a.md", "alpha")
    shelf.search("alpha")
    assert shelf.index.stat().st_mode & 0o777 == 0o600 and shelf.index.parent.stat().st_mode & 0o777 == 0o700


def test_without_a_cache_folder_the_index_lasts_as_long_as_the_process(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "knowledge").mkdir()
    (tmp_path / "knowledge" / "a.md").write_text("alpha")
    bases = KnowledgeBases(tmp_path / "file")
    assert [passage.source for passage in bases.search(tmp_path / "knowledge", "alpha", 5).passages] == ["a.md"]


def test_processes_that_search_at_once_share_an_index(shelf: Shelf) -> None:
    for number in range(60):
        shelf.write(f"f{number}.md", f"# Topic{number}\n\nrefund {number}")
    processes = [shelf.process(30) for _ in range(3)]
    for number in range(60, 80):
        shelf.write(f"f{number}.md", f"# Topic{number}\n\nother {number}")
        shelf.search("other")
    assert [process.communicate()[0] for process in processes] == ["ready\ndone\n"] * 3
    assert [process.returncode for process in processes] == [0, 0, 0]


def test_a_process_that_is_killed_while_it_indexes_leaves_a_usable_index(shelf: Shelf) -> None:
    for number in range(300):
        shelf.write(f"f{number}.md", f"# Topic{number}\n\n" + f"refund 退货政策 {number} of many words " * 30)
    for delay in (0.0, 0.02, 0.1, 0.2):
        process = shelf.process(1)
        assert process.stdout and process.stdout.readline() == "ready\n"
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert shelf.search("topic7").passages[0].source == "f7.md#Topic7"
