"""Whether a worker lives is told by a lock, also while others look."""

import fcntl
import os
import threading
from pathlib import Path

import pytest

from ripstop.journals.sqlite.liveness import Liveness


def test_a_worker_enters_although_another_process_looks_at_its_file(tmp_path: Path) -> None:
    journal = tmp_path / "journal.db"
    file = tmp_path / "journal.db-worker-1"
    looking = os.open(file, os.O_RDWR | os.O_CREAT)
    fcntl.flock(looking, fcntl.LOCK_EX)
    looked = threading.Timer(0.05, os.close, (looking,))  # it waits for that, however long it takes
    looked.start()
    mine, other = Liveness(journal), Liveness(journal)
    mine.enter(1)
    looked.join()
    assert not other.gone(1)
    mine.abandon(1)
    assert other.gone(1)


def test_a_worker_that_was_taken_for_dead_as_it_entered_enters_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, others = tmp_path / "journal.db", Liveness(tmp_path / "journal.db")
    lock, times = fcntl.flock, 0

    def buried_first(handle: int, how: int) -> None:
        nonlocal times
        times += 1
        if times == 1:
            others.bury(1)
        lock(handle, how)

    mine = Liveness(journal)
    monkeypatch.setattr(fcntl, "flock", buried_first)
    mine.enter(1)
    monkeypatch.undo()
    assert times == 2 and others.marks() == {1} and not others.gone(1)
    mine.leave(1)
