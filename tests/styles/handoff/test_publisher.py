"""What we write is ours to overwrite; what somebody else has written is not, whatever dies when."""

import asyncio
import errno
import hashlib
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripstop.engine.performers import Kind, Refused, TryAgain
from ripstop.kernel.effects import CallTool, ToolReturned
from ripstop.styles.handoff import files
from ripstop.styles.handoff import files as exchange
from ripstop.styles.handoff import publisher as publisher_module
from ripstop.styles.handoff.calls import PUBLISH
from ripstop.styles.handoff.folder import Folder
from ripstop.styles.handoff.publisher import PublishedVersion, _last, edited, key_of, publishing_tool, rescue, restore
from tests.tools.tool_requests import tool_request

FILE = "workflow_x_20260131_235959.md"
NEWER = {"file": FILE, "done": "newer"}
WRITTEN = {"file": FILE, "done": "written"}


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class Desk:
    """A folder, a publisher for it, and somebody with an editor."""

    def __init__(self, root: Path) -> None:
        self.folder = Folder(root)
        self.publisher = publishing_tool(lambda request: self.folder)
        self.path = root / ".workflows" / FILE
        self.key = key_of("run/1")

    def publish(self, number: int, text: str, over: str = "", keep: str = "", file: str = FILE) -> dict[str, Any]:
        return self.call({"number": number, "file": file, "text": text, "over": over, "keep": keep, "folder": ""})

    def call(self, arguments: dict[str, Any], tool: str = PUBLISH) -> dict[str, Any]:
        request = tool_request(arguments, "run/1", tool)
        answer = asyncio.run(self.publisher.perform(request))
        assert isinstance(answer, ToolReturned)
        return dict(answer.value)

    def edit(self, text: str) -> None:
        self.path.parent.mkdir(exist_ok=True)
        self.path.write_bytes(text.encode())

    def save(self, text: str) -> None:
        """As most editors do it."""
        new = self.path.parent / "a.md~"
        new.write_bytes(text.encode())
        new.rename(self.path)

    @property
    def text(self) -> str | None:
        return self.path.read_bytes().decode() if self.path.exists() else None

    @property
    def version(self) -> PublishedVersion:
        return _last(self.folder, self.key, ())

    def found_edited(self) -> tuple[str, int] | None:
        return asyncio.run(edited(self.folder, self.key, (), FILE))

    def kept(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in self.path.parent.glob("*.refused-*")}


async def no_history() -> list[Any]:
    return []


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


# The rules


@pytest.mark.req("S0-58", "S0-61")
def test_publishes_and_notes_what_it_has_written(desk: Desk) -> None:
    assert desk.publish(3, "three 三\r\n") == WRITTEN
    assert desk.text == "three 三\r\n"
    assert desk.version == PublishedVersion(3, sha("three 三\r\n"), "", "", FILE)
    assert desk.publish(5, "five") == WRITTEN
    assert desk.version == PublishedVersion(5, sha("five"), sha("three 三\r\n"), desk.version.stamp, FILE)
    assert desk.found_edited() is None


def test_an_older_text_is_never_put_over_a_newer_one(desk: Desk) -> None:
    desk.publish(5, "five")
    assert desk.publish(4, "four") == NEWER
    assert desk.publish(5, "five") == NEWER
    assert desk.text == "five"
    desk.edit("by hand")
    assert desk.publish(4, "four", over=sha("by hand")) == NEWER
    assert desk.text == "by hand"


@pytest.mark.req("S0-61")
def test_an_edit_is_handed_back_and_stays(desk: Desk) -> None:
    desk.publish(3, "three")
    desk.edit("by hand")
    found = {"file": FILE, "done": "edited", "found": "by hand", "base": 3}
    assert desk.publish(5, "five") == found
    assert desk.publish(6, "six", over=sha("another edit"), keep="1") == found
    assert desk.publish(3, "three") == found, "a repeat sees it, too"
    assert desk.text == "by hand"
    assert desk.found_edited() == ("by hand", 3)
    assert desk.version.number == 3


def test_an_edit_that_was_dealt_with_may_be_overwritten(desk: Desk) -> None:
    desk.publish(3, "three")
    desk.edit("by hand")
    assert desk.publish(5, "five", over=sha("by hand")) == WRITTEN
    assert desk.text == "five"
    assert desk.kept() == {}


def test_a_refused_edit_is_kept_beside(desk: Desk) -> None:
    desk.publish(3, "three")
    desk.edit("nonsense")
    assert desk.publish(5, "five", over=sha("nonsense"), keep="4") == WRITTEN
    assert desk.kept() == {f"{FILE}.refused-4": "nonsense"}
    desk.edit("five")
    assert desk.publish(7, "seven", over=sha("gone meanwhile"), keep="6") == WRITTEN
    assert len(desk.kept()) == 1, "our own text is no refused text"


def test_somebody_elses_file_is_not_ours_until_we_are_told(desk: Desk) -> None:
    desk.edit("theirs")
    assert desk.publish(2, "two") == {"file": FILE, "done": "edited", "found": "theirs", "base": 0}
    assert desk.found_edited() == ("theirs", 0)
    assert desk.publish(2, "two", over=sha("theirs")) == WRITTEN
    assert desk.text == "two"


def test_a_text_that_is_there_already_is_only_noted(desk: Desk) -> None:
    desk.edit("two")
    before = desk.path.stat()
    assert desk.publish(2, "two") == WRITTEN
    assert desk.path.stat().st_ino == before.st_ino
    assert desk.version.number == 2
    assert desk.publish(3, "two") == WRITTEN
    assert desk.path.stat().st_ino == before.st_ino
    assert desk.version.number == 3


def test_a_file_that_was_deleted_is_written_again(desk: Desk) -> None:
    desk.publish(2, "two")
    desk.path.unlink()
    assert desk.found_edited() is None
    assert desk.publish(3, "three") == WRITTEN
    assert desk.text == "three"


@pytest.mark.parametrize("note", [b"", b"{", b'{"number": "x"}', b'{"number": 3, "sha": "\xff"}', b"[]", b"\0" * 50])
def test_a_damaged_note_is_no_note(desk: Desk, tmp_path: Path, note: bytes) -> None:
    desk.publish(3, "three")
    (tmp_path / ".workflows" / ".ripstop" / "seen" / f"{desk.key}.json").write_bytes(note)
    assert desk.publish(4, "four") == {"file": FILE, "done": "edited", "found": "three", "base": 0}
    assert desk.publish(4, "four", over=sha("three")) == WRITTEN


def test_an_editor_that_saves_while_we_write_is_noticed(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.publish(3, "three")
    saves = ["by hand"]

    def save_now(place: str) -> None:
        if place == "documents.before_rename" and desk.version.number == 4 and saves:
            desk.edit(saves.pop())

    monkeypatch.setattr(files, "failpoint", save_now)
    assert desk.publish(4, "four") == {"file": FILE, "done": "edited", "found": "by hand", "base": 3}
    assert desk.text == "by hand"
    assert desk.found_edited() == ("by hand", 3)


def test_putting_back_the_text_before_ours_is_an_edit_like_any_other(desk: Desk) -> None:
    desk.publish(3, "three")
    desk.publish(5, "five")
    desk.edit("three")
    assert desk.found_edited() == ("three", 5)
    assert desk.publish(6, "six") == {"file": FILE, "done": "edited", "found": "three", "base": 5}
    assert desk.publish(6, "six", over=sha("three"), keep="6") == WRITTEN
    assert (desk.text, desk.kept()) == ("six", {f"{FILE}.refused-6": "three"})


def test_a_save_that_cannot_be_read_is_put_back_too(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.publish(3, "three")
    exchanged, saves = exchange._exchange, ["x" * 1_000_001]

    def save_first(one: exchange.Place, other: exchange.Place) -> bool:
        if saves:
            desk.save(saves.pop())
        return exchanged(one, other)

    monkeypatch.setattr(exchange, "_exchange", save_first)
    with pytest.raises(Refused, match="too large"):
        desk.publish(4, "four")
    assert desk.text == "x" * 1_000_001


def test_a_file_that_appears_or_goes_while_we_write_is_noticed(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def appear(place: str) -> None:
        if place == "documents.after_note":
            desk.edit("theirs")

    def go(place: str) -> None:
        if place == "documents.after_note":
            desk.path.unlink(missing_ok=True)

    monkeypatch.setattr(publisher_module, "failpoint", appear)
    assert desk.publish(1, "one") == {"file": FILE, "done": "edited", "found": "theirs", "base": 0}
    monkeypatch.setattr(publisher_module, "failpoint", go)
    assert desk.publish(2, "two", over=sha("theirs")) == WRITTEN
    assert desk.text == "two"


def test_a_document_is_put_right_and_what_was_found_is_kept(desk: Desk) -> None:
    desk.publish(3, "three")
    desk.edit("by hand")
    put_right = restore(desk.folder, desk.key, (), FILE, found="by hand", text="three", tag="late")
    assert asyncio.run(put_right) == f"{FILE}.refused-late"
    assert (desk.text, desk.kept()) == ("three", {f"{FILE}.refused-late": "by hand"})
    assert desk.found_edited() is None
    desk.edit("by another hand")
    assert asyncio.run(restore(desk.folder, desk.key, (), FILE, found="by hand", text="three", tag="late")) == ""
    assert desk.text == "by another hand"
    assert desk.found_edited() == ("by another hand", 3)


# Being a performer


def test_repeating_it_is_harmless_and_needs_no_probe(desk: Desk) -> None:
    assert desk.publisher.kind(CallTool(tool=PUBLISH)) is Kind.PURE


def test_wrong_calls_say_what_is_wrong(desk: Desk) -> None:
    with pytest.raises(Refused, match=r"publish_document was called wrongly.*number"):
        desk.call({"file": FILE, "text": ""})
    with pytest.raises(Refused, match="without folders"):
        desk.publish(1, "", file="../x.md")
    assert desk.publish(1, "x") == WRITTEN


def test_a_file_that_cannot_be_read_is_left_alone(desk: Desk) -> None:
    desk.publish(1, "one")
    desk.path.write_bytes(b"caf\xe9")
    with pytest.raises(Refused, match=r"not UTF-8 text: byte 3"):
        desk.publish(2, "two")
    assert desk.path.read_bytes() == b"caf\xe9"
    assert desk.version.number == 1


def test_a_text_that_cannot_be_written_is_refused_before_anything_is_noted(desk: Desk) -> None:
    with pytest.raises(Refused, match="too long"):
        desk.publish(1, "x" * 1_000_001)
    assert desk.version == PublishedVersion()


def test_a_folder_that_is_gone_or_no_folder_is_refused(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / ".workflows").write_text("a file")
    with pytest.raises(Refused, match="a file, not a folder"):
        desk.publish(1, "one")
    with pytest.raises(Refused, match="no folder"):
        Desk(tmp_path / "gone").publish(1, "one")


def test_a_full_disk_is_tried_again_and_then_healed(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.publish(1, "one")

    def full(*args: Any) -> bool:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(exchange, "_exchange", full)
    with pytest.raises(TryAgain, match="No space left"):
        desk.publish(2, "two")
    monkeypatch.undo()
    assert (desk.text, desk.version.number) == ("one", 2)
    assert desk.found_edited() is None
    assert desk.publish(2, "two") == WRITTEN
    assert desk.text == "two"


# Many at once


PUBLISHERS = """
import asyncio, random, sys
from pathlib import Path
from ripstop.styles.handoff.folder import Folder
from ripstop.styles.handoff.publisher import publishing_tool
from tests.tools.tool_requests import tool_request

async def main():
    folder, numbers = Folder(Path(sys.argv[1])), list(range(1, 41))
    random.Random(int(sys.argv[2])).shuffle(numbers)
    publisher = publishing_tool(lambda request: folder)
    def request(number):
        arguments = {"number": number, "file": "a.md", "text": f"{number} " * 999, "over": "", "keep": "", "folder": ""}
        return tool_request(arguments)
    answers = await asyncio.gather(*(publisher.perform(request(number)) for number in numbers))
    assert {answer.value["done"] for answer in answers} <= {"written", "newer"}, answers

asyncio.run(main())
"""


@pytest.mark.req("S0-61")
def test_the_newest_text_stands_at_the_end_whoever_publishes_in_what_order(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PUBLISHERS, str(tmp_path)]
    publishers = [subprocess.Popen([*command, str(seed)]) for seed in range(4)]
    assert [one.wait(timeout=100) for one in publishers] == [0] * 4
    folder = Folder(tmp_path)
    assert folder.read("a.md") == "40 " * 999
    assert _last(folder, key_of("r"), ()).number == 40
    assert sorted(path.name for path in (tmp_path / ".workflows").iterdir()) == [".ripstop", "a.md"]


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from ripstop.styles.handoff import files as exchange
from ripstop.styles.handoff.folder import Folder
from ripstop.styles.handoff.publisher import publishing_tool
from tests.tools.tool_requests import tool_request

root, file, edit = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
arguments = {"number": 4, "file": file, "text": "four", "over": "", "keep": "", "folder": ""}
request = tool_request(arguments, "run/1")
exchanged = exchange._exchange

def save_and_die(one, other):
    if edit:
        (root / "edit").write_text(edit)
        (root / "edit").rename(root / ".workflows" / file)
    assert exchanged(one, other)
    os.kill(os.getpid(), signal.SIGKILL)

exchange._exchange = save_and_die
asyncio.run(publishing_tool(lambda request: Folder(root)).perform(request))
"""


@pytest.mark.parametrize("edit", ["by hand", ""])
def test_an_edit_that_was_saved_when_somebody_was_killed_is_kept_and_told(
    desk: Desk, tmp_path: Path, edit: str
) -> None:
    desk.publish(3, "three")
    died = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), FILE, edit], timeout=60)
    assert died.returncode == -signal.SIGKILL
    assert (desk.text, desk.folder.replacing()) == ("four", [desk.key])
    kept = {"kept": f"{FILE}.refused-interrupted"} if edit else {}
    assert desk.publish(5, "five") == {**WRITTEN, **kept}
    assert (desk.text, desk.folder.replacing()) == ("five", [])
    assert desk.kept() == ({f"{FILE}.refused-interrupted": "by hand"} if edit else {})
    assert asyncio.run(rescue(desk.folder, desk.key, (), FILE)) == ""


class Death(BaseException):
    pass


def die_after_note(place: str) -> None:
    if place == "documents.after_note":
        raise Death


STEPS = st.lists(
    st.sampled_from(
        ["publish", "repeat", "deal with it", "refuse it", "die", "edit", "edit by rename", "undo", "delete"]
    ),
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(steps=STEPS)
@pytest.mark.req("S0-61")
def test_no_edit_is_ever_lost(steps: list[str]) -> None:
    with tempfile.TemporaryDirectory() as root:
        # standing: the edit that is in the file; handed_back: the last one that a publication has returned
        desk, number, standing, handed_back = Desk(Path(root)), 1, "", ""
        written: list[str] = []
        for count, step in enumerate(steps):
            if step.startswith("edit"):
                standing = f"edit {count}"
                if step == "edit by rename" and desk.path.parent.exists():
                    desk.save(standing)
                else:
                    desk.edit(standing)
                continue
            if step == "undo":
                for earlier in [text for text in written if sha(text) != desk.version.sha][-1:]:
                    desk.save(earlier)
                    standing, handed_back = earlier, ""
                continue
            if step == "delete":
                desk.path.unlink(missing_ok=True)
                standing = ""
                continue
            number += step != "repeat"
            over = sha(handed_back) if step in ("deal with it", "refuse it", "die") and handed_back else ""
            keep = str(number) if step == "refuse it" else ""
            with pytest.MonkeyPatch.context() as patch:
                if step == "die":
                    patch.setattr(publisher_module, "failpoint", die_after_note)
                try:
                    answer = desk.publish(number, f"text {number}", over, keep)
                except Death:
                    answer = {"done": "dead"}
            if answer["done"] == "edited":
                assert answer["found"] == standing == desk.text
                handed_back = standing
            elif standing and standing != handed_back:
                assert desk.text == standing, "nobody has been told of it"
            if answer["done"] == "written":
                assert desk.text == f"text {number}"
                written.append(f"text {number}")
                assert desk.found_edited() is None
                if keep and standing:
                    assert standing in desk.kept().values()
                standing = ""
        if standing and standing != handed_back:
            assert desk.text == standing
            assert desk.found_edited() is not None
