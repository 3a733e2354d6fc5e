"""`docs watch` ends in order when it is stopped, whether nothing happens or agents are at work."""

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.walks.commands import succeed
from tests.walks.test_command_line import EXAMPLES

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_idle_watcher_stops_without_a_traceback(tmp_path: Path, number: signal.Signals) -> None:
    folder = tmp_path / "office"
    shutil.copytree(EXAMPLES / "handoff", folder)
    command = [sys.executable, "-m", "ripstop", "docs", "watch", "--model", "script:script.jsonl"]
    watcher = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
    assert watcher.stderr is not None
    assert any("Watching" in line for line in watcher.stderr)
    until_it_waits_for_changes(watcher.pid)
    watcher.send_signal(number)
    _, said = watcher.communicate(timeout=240)
    assert watcher.returncode == 128 + number
    assert said.splitlines() == ["stopping …", "Interrupted. Nothing is lost."]


def until_it_waits_for_changes(pid: int) -> None:
    """Wait until the system reports changes to it."""
    end = time.monotonic() + 60
    while not any("inotify" in link for link in links(pid)):
        assert time.monotonic() < end, "it never watched anything"
        time.sleep(0.02)


def links(pid: int) -> list[str]:
    found = []
    for path in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found.append(str(path.readlink()))
        except FileNotFoundError:  # closed meanwhile
            continue
    return found


def test_a_watcher_drains_the_calls_under_way_until_a_second_signal(tmp_path: Path) -> None:
    (tmp_path / "roles").mkdir()
    (tmp_path / "roles" / "writer.md").write_text("Write.\n", encoding="utf-8")
    (tmp_path / "script.jsonl").write_text('{"reply": "Later.", "delay": 3600}\n', encoding="utf-8")
    succeed("docs", "new", "A poem", "--to", "writer", cwd=tmp_path)
    command = [sys.executable, "-m", "ripstop", "docs", "watch", "--model", "script:script.jsonl", "--drain", "600"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as watcher:
        try:
            assert watcher.stderr is not None
            assert any("writer is at work" in line for line in watcher.stderr)
            watcher.send_signal(signal.SIGTERM)
            line = next(line for line in watcher.stderr if "stopping" in line)
            assert "Calls under way get 600 s to finish; a second signal ends at once." in line
            watcher.send_signal(signal.SIGTERM)
            _, said = watcher.communicate(timeout=240)
        finally:
            watcher.kill()
    assert (watcher.returncode, "Nothing is lost" in said) == (128 + signal.SIGTERM, True)
