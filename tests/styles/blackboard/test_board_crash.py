"""A write that was killed anywhere is completed by the next attempt, or taken back if somebody has edited since."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ripstop.styles import blackboard
from ripstop.styles.blackboard import board_files as board_module
from ripstop.styles.blackboard import bookkeeping
from ripstop.styles.blackboard.plugin import PLUGIN
from tests.styles.blackboard.board_folders import HISTORY, PLAN, REPORT, BoardDesk

SOURCES = Path(blackboard.__file__).parent.glob("*.py")
REACHED = {name for path in SOURCES for name in re.findall(r'failpoint\("([\w.]+)"\)', path.read_text())}
MAX_ATTEMPTS = 20


class Killed(Exception):
    """The process is gone."""


class Killer:
    """Kills at the fail-point that is reached after so many others."""

    def __init__(self) -> None:
        self.left = 0

    def __call__(self, name: str) -> None:
        self.left -= 1
        if self.left == 0:
            raise Killed(name)


@contextmanager
def killing() -> Iterator[Killer]:
    killer = Killer()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(board_module, "failpoint", killer)
        patched.setattr(bookkeeping, "failpoint", killer)
        yield killer


def write_until_done(
    desk: BoardDesk, killer: Killer, kills: list[int], edits: list[Callable[[], str]], **arguments: Any
) -> set[str]:
    """As a style does it, in processes that are killed; edits come while no process is there. Returns what was told."""
    told: set[str] = set()
    again = False
    for _ in range(MAX_ATTEMPTS):
        killer.left = kills.pop() if kills else 0
        given = {"digest": desk.digest, **arguments}
        try:
            done = desk.call("board_write", again=again, **given)
        except Killed:
            again = True
            desk = BoardDesk.after(desk)
            if edits:
                edits.pop()()
            continue
        desk.digest, again, killer.left = done["digest"], False, 0
        if not done["edited"]:
            return told
        told |= {one["path"] for one in done["edited"]}
    raise AssertionError("it does not end")


def person(desk: BoardDesk, path: str, words: str) -> Callable[[], str]:
    def edit() -> str:
        file = desk.folder / path
        desk.edit(path, (file.read_text() if file.exists() else "") + words)
        return path

    return edit


Story = list[tuple[list[int], list[str]]]
STORIES = st.lists(
    st.tuples(
        st.lists(st.integers(1, 14), max_size=4),
        st.lists(st.sampled_from([PLAN, HISTORY, REPORT, "memory/notes.md"]), max_size=2),
    ),
    min_size=1,
    max_size=4,
)


def live(folder: Path, story: Story, killer: Killer) -> tuple[dict[str, bytes], str]:
    """Some writes, each with kills and edits. Returns the board and its digest."""
    desk = BoardDesk.fresh(folder)
    desk.open()
    for number, (kills, edited) in enumerate(story):
        edits = [person(desk, path, f"by hand {number} {index}\n") for index, path in enumerate(edited)]
        text = {"plan_text": f"plan {number}\n", "append": f"## Iteration {number}\n", "reports": {REPORT: f"{number}"}}
        write_until_done(desk, killer, list(kills), edits, **text)
        assert desk.text(PLAN) == f"plan {number}\n"
        assert desk.text(REPORT) == f"{number}"
    return desk.files(), desk.digest


@given(STORIES)
@example([([13], [HISTORY])])
@example([([12], [HISTORY]), ([13, 1], [PLAN, HISTORY])])
@settings(max_examples=20, deadline=None)
def test_kills_and_edits_lose_nothing_and_double_nothing(story: Story) -> None:
    with killing() as killer, tempfile.TemporaryDirectory() as folder:
        files, digest = live(Path(folder), story, killer)
        history = files[HISTORY].decode()
        entries = [line for line in history.splitlines() if line.startswith("## ")]
        assert entries == [f"## Iteration {number}" for number in range(len(story))]
        for line in [line for line in history.splitlines() if line.startswith("by hand")]:
            assert history.count(f"{line}\n") == 1
        assert BoardDesk(Path(folder)).open()["digest"] == digest


@pytest.mark.long
@given(st.lists(st.lists(st.integers(1, 14), max_size=4), min_size=1, max_size=4))
@settings(max_examples=15, deadline=None)
def test_kills_alone_change_neither_files_nor_digests(kills: list[list[int]]) -> None:
    with killing() as killer, tempfile.TemporaryDirectory() as killed, tempfile.TemporaryDirectory() as whole:
        ended = live(Path(killed), [(one, []) for one in kills], killer)
        assert ended == live(Path(whole), [([], []) for _ in kills], killer)


@pytest.mark.parametrize("path", [PLAN, HISTORY, "memory/notes.md"])
@pytest.mark.parametrize("kill", range(1, 9))
def test_an_edit_after_a_kill_is_told_and_kept(tmp_path: Path, kill: int, path: str) -> None:
    desk = BoardDesk.fresh(tmp_path)
    desk.open()
    arguments: dict[str, Any] = {"append": "## Iteration 1\n", "reports": {REPORT: "x\n"}}
    with killing() as killer:
        told = write_until_done(desk, killer, [kill], [person(desk, path, "by hand\n")], **arguments)
    assert told == {path}
    assert desk.text(path).count("by hand\n") == 1
    assert desk.text(HISTORY).count("## Iteration 1\n") == 1


# Processes that are killed

STORY = """
import json, sys
from pathlib import Path
from tests.styles.blackboard.board_folders import HISTORY, PLAN, REPORT, BoardDesk

desk, answers = BoardDesk(Path(sys.argv[1])), Path(sys.argv[1]) / "answers"
known = [json.loads(line) for line in answers.read_text().splitlines()] if answers.exists() else []

def once(tool, **arguments):
    if desk.number < len(known):
        desk.number += 1
        return known[desk.number - 1]
    found = desk.call(tool, digest=desk.digest, **arguments)
    with answers.open("a") as file:
        file.write(json.dumps(found) + "\\n")
    return found

desk.digest = once("board_open")["digest"]
for number in range(3):
    text = {"append": f"## Iteration {number}\\n", "reports": {REPORT: f"report {number} " * 9999}}
    desk.digest = once("board_write", plan_text=f"plan {number}\\n", **text)["digest"]
    desk.digest = once("board_check", own=REPORT)["digest"]
print(desk.digest)
"""


def run_story(root: Path, failpoint: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "RIPSTOP_FAILPOINT": failpoint}
    command = [sys.executable, "-c", STORY, str(root)]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, env=environment)


@pytest.mark.long
@pytest.mark.req("S0-61")
@pytest.mark.parametrize("failpoint", PLUGIN.failpoints)
def test_a_killed_process_leaves_a_board_that_the_next_one_completes(tmp_path: Path, failpoint: str) -> None:
    whole = BoardDesk.fresh(tmp_path / "whole")
    digest = run_story(whole.folder, "").stdout
    assert digest
    kills = 0
    for time in range(1, 100):
        desk = BoardDesk.fresh(tmp_path / str(time))
        died = run_story(desk.folder, f"{failpoint}:{time}")
        if died.returncode == 0:
            break
        assert died.returncode == -signal.SIGKILL, died.stderr
        kills += 1
        assert run_story(desk.folder, "").stdout == digest
        assert desk.files() == whole.files()
        left = [path.name for path in (desk.folder / ".ripstop/board").iterdir()]
        assert sorted(left) == ["copies", "index.json", "lock", "mutex", "pending.json"]
        answers = [json.loads(line) for line in (desk.folder / "answers").read_text().splitlines()]
        assert answers == [json.loads(line) for line in (whole.folder / "answers").read_text().splitlines()]
    assert kills, "the story never gets there"


def test_every_fail_point_of_the_package_can_be_named() -> None:
    assert set(PLUGIN.failpoints) == REACHED
