"""One run works on a board at a time, in whichever process."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ripstop.engine.performers import Refused, TryAgain
from ripstop.styles.blackboard.bookkeeping import KEPT
from ripstop.tools import shared_folder as folder_locks
from tests.styles.blackboard.board_folders import HISTORY, BoardDesk

HOLDER = """
import sys
from pathlib import Path
from tests.styles.blackboard.board_folders import BoardDesk
desk = BoardDesk(Path(sys.argv[1]), sys.argv[2])
try:
    print(desk.open()["digest"], flush=True)
except Exception as error:
    print(error, flush=True)
sys.stdin.readline()
"""


@contextmanager
def another_process(folder: Path, run_id: str) -> Iterator["tuple[subprocess.Popen[str], str]"]:
    """A process that opens the board for a run, and what came of it. It lives until it is told to end."""
    command = [sys.executable, "-c", HOLDER, str(folder), run_id]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


@pytest.fixture
def desk(tmp_path: Path) -> BoardDesk:
    return BoardDesk.fresh(tmp_path)


def ended(*runs: str) -> Any:
    async def is_over(run_id: str) -> bool:
        return run_id in runs

    return {"is_over": is_over}


def test_another_run_of_this_process_is_refused(desk: BoardDesk) -> None:
    desk.open()
    other = BoardDesk(desk.folder, "other", desk.tools)
    with pytest.raises(Refused, match="is being worked on by the run r; wait until it has ended, or cancel it"):
        other.open()
    other.digest = desk.digest
    with pytest.raises(Refused, match="worked on by the run r"):
        other.write(append="x\n")
    with pytest.raises(Refused, match="worked on by the run r"):
        other.check()
    assert desk.text(HISTORY) == "# Project History\n"


def test_closing_lets_another_run_in(desk: BoardDesk) -> None:
    desk.open()
    desk.write(append="## Iteration 1\n", close=True)
    other = BoardDesk(desk.folder, "other", desk.tools)
    assert other.open()["iteration"] == 1
    with pytest.raises(Refused, match="worked on by the run other"):
        desk.write(append="x\n")


def test_a_write_that_finds_edits_does_not_close(desk: BoardDesk) -> None:
    desk.open()
    desk.edit("memory/notes.md", "x")
    assert desk.write(append="x\n", close=True)["edited"]
    with pytest.raises(Refused, match="worked on by the run r"):
        BoardDesk(desk.folder, "other", desk.tools).open()
    assert desk.write(append="x\n", close=True)["edited"] == []
    BoardDesk(desk.folder, "other", desk.tools).open()


def test_a_closed_board_can_be_closed_again(desk: BoardDesk) -> None:
    desk.open()
    arguments: dict[str, Any] = {"digest": desk.digest, "append": "x\n", "close": True}
    first = desk.call("board_write", **arguments)
    assert desk.call("board_write", again=True, **arguments) == first
    assert desk.text(HISTORY) == "# Project History\nx\n"


def test_a_run_that_has_ended_gives_way(desk: BoardDesk) -> None:
    desk.open()
    other = BoardDesk(desk.folder, "other", desk.tools)
    with pytest.raises(Refused):
        other.open(of=ended("unrelated"))
    other.open(of=ended("r"))
    with pytest.raises(Refused, match="worked on by the run other"):
        desk.open()


@pytest.mark.req("S4-1")
def test_a_run_of_another_process_is_refused_until_it_dies(desk: BoardDesk) -> None:
    with another_process(desk.folder, "first") as (process, _):
        with pytest.raises(Refused, match="worked on by the run first"):
            desk.open()
        assert (desk.folder / ".ripstop/board/lock").read_text() == "first"
        process.send_signal(signal.SIGKILL)
        process.wait()
        desk.open()


def test_another_process_is_told_who_works_here(desk: BoardDesk) -> None:
    desk.open()
    with another_process(desk.folder, "second") as (_, said):
        assert "is being worked on by the run r" in said


def test_the_same_run_continues_in_another_process(desk: BoardDesk) -> None:
    digest = desk.open()["digest"]
    with another_process(desk.folder, "r") as (_, said):
        assert said == digest
        assert desk.write(append="x\n")["edited"] == []


@pytest.mark.long
def test_a_run_that_has_ended_in_another_process_gives_way(desk: BoardDesk) -> None:
    with another_process(desk.folder, "first"):
        desk.open(of=ended("first"))
        with another_process(desk.folder, "third") as (_, said):
            assert "worked on by the run r" in said
        desk.write(append="x\n")


def test_a_board_behind_a_link_has_one_lock(desk: BoardDesk, tmp_path_factory: pytest.TempPathFactory) -> None:
    desk.open()
    link = tmp_path_factory.mktemp("links") / "board"
    link.symlink_to(desk.folder)
    with pytest.raises(Refused, match="worked on by the run r"):
        BoardDesk(link, "other", desk.tools).open()
    BoardDesk(link, "r", desk.tools).open()


def test_a_deleted_lock_file_is_made_again(desk: BoardDesk) -> None:
    desk.open()
    shutil.rmtree(desk.folder / ".ripstop")
    desk.write(append="x\n")
    with another_process(desk.folder, "second") as (_, said):
        assert "is being worked on by the run r" in said


def test_a_call_waits_for_the_one_before_it(desk: BoardDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.open()
    monkeypatch.setattr(folder_locks, "LONGEST_WAIT", 0.05)
    another = folder_locks.FolderLocks("board", KEPT)
    with another.alone(desk.folder), pytest.raises(TryAgain, match="in use by another process"):
        desk.write(append="x\n")
    desk.write(append="x\n")


def test_no_descriptors_are_left_open(desk: BoardDesk) -> None:
    desk.open()
    before = len(os.listdir("/dev/fd"))
    for number in range(5):
        desk.write(append=f"{number}\n")
        desk.check()
        with pytest.raises(Refused):
            BoardDesk(desk.folder, "other", desk.tools).open()
    assert len(os.listdir("/dev/fd")) == before
