"""A process is killed at every fail-point of this package, each time it gets there; then the work is done again."""

import hashlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ripstop.styles import handoff
from ripstop.styles.handoff.folder import Folder
from ripstop.styles.handoff.plugin import PLUGIN
from ripstop.styles.handoff.publisher import _last, key_of

SOURCES = Path(handoff.__file__).parent.glob("*.py")
REACHED = {name for path in SOURCES for name in re.findall(r'failpoint\("([\w.]+)"\)', path.read_text())}

STORY = """
import asyncio, hashlib, sys
from pathlib import Path
from ripstop.styles.handoff.folder import Folder
from ripstop.styles.handoff.publisher import publishing_tool
from tests.tools.tool_requests import tool_request

root = Path(sys.argv[1])
folder, document = Folder(root), root / ".workflows" / "a.md"

def sha(text):
    return hashlib.sha256(text.encode()).hexdigest()

def publish(number, over="", keep=""):
    text = f"text {number} " * 9999
    arguments = {"number": number, "file": "a.md", "text": text, "over": over, "keep": keep, "folder": ""}
    return asyncio.run(publishing_tool(lambda request: folder).perform(tool_request(arguments))).value

print(folder.id, flush=True)
removed = folder.create("old", "20260131_235959", "to be removed")
assert folder.remove(removed, sha("to be removed"))
folder.create("new", "20260131_235959", "new " * 9999)
publish(2)
if publish(3)["done"] == "written":
    document.write_text("by hand")
answer = publish(4)
publish(5, over=sha(answer.get("found", "")), keep="4")
if not folder.messages("ann") and not (root / ".inbox/ann/processed").exists():
    folder.send("ann", "m", "message")
for message in folder.messages("ann"):
    folder.processed("ann", message.name)
if not (root / ".workflows/set-aside").exists():
    (root / ".workflows/bad.md").write_text("bad")
if (root / ".workflows/bad.md").exists():
    folder.set_aside("bad.md", "why")
"""


def live(root: Path, failpoint: str, time: int) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "RIPSTOP_FAILPOINT": f"{failpoint}:{time}"}
    command = [sys.executable, "-c", STORY, str(root)]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, env=environment)


def live_on(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same once more, here, where nobody is killed."""
    monkeypatch.setattr(sys, "argv", ["story", str(root)])
    exec(STORY, {})


def files(folder: Path) -> dict[str, str]:
    found = [path for path in folder.glob("*") if path.is_file() and not path.name.startswith(".")]
    return {path.name: path.read_text() for path in found}


def check_nothing_is_torn(root: Path) -> None:
    ours = {f"text {number} " * 9999 for number in (2, 3, 4, 5)}
    whole = ours | {"by hand", "new " * 9999, "to be removed", "bad"}
    shown = files(root / ".workflows")
    assert set(shown.values()) <= whole
    # where a file is moved to, an empty one may have taken a name before
    assert set(files(root / ".inbox" / "ann").values()) <= {"message"}
    assert set(files(root / ".inbox" / "ann" / "processed").values()) <= {"message", ""}
    assert set(files(root / ".workflows" / "set-aside").values()) <= {"bad", "why\n", ""}


@pytest.mark.long
@pytest.mark.req("S0-61")
@pytest.mark.parametrize("failpoint", PLUGIN.failpoints)
def test_killed_anywhere_nothing_is_torn_or_lost_and_the_next_one_finishes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failpoint: str
) -> None:
    kills = 0
    for time in range(1, 100):
        root = tmp_path / str(time)
        root.mkdir()
        died = live(root, failpoint, time)
        if died.returncode == 0:
            break
        assert died.returncode == -signal.SIGKILL, died.stderr
        kills += 1
        check_nothing_is_torn(root)
        shown = files(root / ".workflows")
        noted = _last(Folder(root), key_of("r"), ())
        edit_was_made = noted.number >= 5 or "by hand" in shown.values()
        live_on(root, monkeypatch)
        assert died.stdout in ("", f"{Folder(root).id}\n"), "one folder id for all"
        check_nothing_is_torn(root)
        shown = files(root / ".workflows")
        assert shown["a.md"] == "text 5 " * 9999
        assert not edit_was_made or shown["a.md.refused-4"] == "by hand"
        seen = _last(Folder(root), key_of("r"), ())
        assert (seen.number, seen.sha) == (5, hashlib.sha256(shown["a.md"].encode()).hexdigest())
        assert [text for text in files(root / ".inbox" / "ann" / "processed").values() if text] == ["message"]
        assert "bad" in files(root / ".workflows" / "set-aside").values()
        assert "bad.md" not in shown
    assert kills, "the story never gets there"


def test_every_fail_point_of_the_package_can_be_named() -> None:
    assert set(PLUGIN.failpoints) == REACHED
