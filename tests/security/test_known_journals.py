"""What is known of journals is read whole, however many processes write it."""

import multiprocessing
import os
from pathlib import Path

from ripstop.security.consent import UserFile
from ripstop.security.known_journals import AGAIN, KnownJournal, KnownJournals, new_id

WRITERS, WRITES = 3, 60


def write_again_and_again(folder: str, id: str, number: int) -> None:
    known = KnownJournals(Path(folder))
    for position in range(WRITES):
        known.keep(KnownJournal(id, "/journal.db", position, f"{number}" * 64))
        if position % 10 == number:
            known.forget(id)
        known.get(id)  # raises, if a file is not whole


def test_a_note_is_always_whole_though_processes_write_and_remove_it(tmp_path: Path) -> None:
    context, id = multiprocessing.get_context("spawn"), new_id()
    writers = [
        context.Process(target=write_again_and_again, args=(str(tmp_path), id, number)) for number in range(WRITERS)
    ]
    for one in writers:
        one.start()
    for one in writers:
        one.join(300)
    assert [one.exitcode for one in writers] == [0] * WRITERS
    assert not [name for name in os.listdir(tmp_path / "journals") if name.endswith(".new")]


def test_who_waited_for_a_lock_that_was_removed_waits_for_the_next_one(tmp_path: Path) -> None:
    file = UserFile(tmp_path / "notes.json", AGAIN)
    lock = tmp_path / "notes.lock"
    with file.locked():
        first = lock.stat().st_ino
        lock.unlink()
        with file.locked():  # would wait for ever for the lock that is gone
            assert lock.exists() and lock.stat().st_ino != first


def test_a_note_does_not_take_the_place_of_a_newer_one(tmp_path: Path) -> None:
    known, id = KnownJournals(tmp_path), new_id()
    newer = KnownJournal(id, "/journal.db", 7)
    known.keep(newer)
    known.keep(KnownJournal(id, "/journal.db", 3), lambda found: found.position < 3)
    assert known.get(id) == newer
