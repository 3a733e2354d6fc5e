"""Several journals on one file: in one process, and in several real ones."""

import asyncio
import shutil
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ripstop.engine.ports import ALL, RunQuery
from ripstop.journals.sqlite.journal import SqliteJournal
from ripstop.kernel.codec import Codec
from ripstop.kernel.errors import Conflict, JournalError, LeaseLost
from ripstop.kernel.events import Asked, Ended, Heard, Resumed, ResumeRequested
from ripstop.testing.journal_entries import LATER, NOW, OFFERS, TOOL, Scribe, answer, refuses


def test_two_journals_on_one_file_conflict_properly(tmp_path: Path) -> None:
    async def story() -> None:
        scribe = Scribe()
        one, two = (SqliteJournal(tmp_path / "j.db", Codec()) for _ in range(2))
        await one.append(scribe.start("a"))
        await refuses(Conflict, two.append(scribe.start("a")))
        await two.append(scribe.entry("a", Heard(text="from two"), after=1))
        # `one` still believes that the run is one record long
        await refuses(Conflict, one.append(scribe.entry("a", Heard(text="from one"), after=1)))
        assert await one.read("a") == await two.read("a")
        await one.append(scribe.entry("a", Heard(text="from one"), after=2))
        assert [record.number for record in await two.read("a")] == [1, 2, 3]
        assert await two.verify() == []
        await one.close()
        await two.close()

    asyncio.run(story())


def test_a_worker_is_fenced_out_across_journals(tmp_path: Path) -> None:
    async def story() -> None:
        scribe = Scribe()
        one, two = (SqliteJournal(tmp_path / "j.db", Codec()) for _ in range(2))
        old, new = await one.enrol(NOW), await two.enrol(LATER)
        assert new > old
        await one.append(scribe.start("a", TOOL, worker_id=old))
        assert [task.number for task in await two.claim(new, LATER, 9, ALL, OFFERS)] == [2]
        await refuses(LeaseLost, one.append(scribe.entry("a", answer(2), after=2, fence=(2, old))))
        await two.append(scribe.entry("a", answer(2), after=2, fence=(2, new)))
        await one.close()
        await two.close()

    asyncio.run(story())


def test_a_journal_sees_that_another_has_written_and_not_that_it_has_itself(tmp_path: Path) -> None:
    async def story() -> None:
        scribe = Scribe()
        one, two = (SqliteJournal(tmp_path / "j.db", Codec()) for _ in range(2))
        one.changed()
        await one.append(scribe.start("a"))
        assert not one.changed()
        await two.append(scribe.start("b"))
        assert one.changed()
        assert not one.changed()
        await one.close()
        await two.close()

    asyncio.run(story())


def test_the_death_of_a_worker_is_a_change_and_told_once(tmp_path: Path) -> None:
    async def story() -> None:
        one, other = (SqliteJournal(tmp_path / "j.db", Codec()) for _ in range(2))
        await other.enrol(NOW)
        assert one.changed() and not one.changed()
        await other.close()  # as when its process is killed: its lock is free, and nothing is written
        assert one.changed()
        assert not one.changed(), "or whoever takes nothing would look for work again and again"
        await one.close()

    asyncio.run(story())


def test_many_appends_in_one_turn_of_the_loop_share_few_commits(tmp_path: Path) -> None:
    async def story() -> None:
        scribe = Scribe()
        journal = SqliteJournal(tmp_path / "j.db", Codec())
        before = journal._commit.commits
        await asyncio.gather(*(journal.append(scribe.start(f"r{number}", TOOL)) for number in range(300)))
        assert journal._commit.commits - before <= 2
        assert len((await journal.runs(RunQuery(size=1000))).items) == 300
        await journal.close()

    asyncio.run(story())


def test_one_bad_append_does_not_spoil_the_others_of_its_commit(tmp_path: Path) -> None:
    async def story() -> None:
        scribe = Scribe()
        journal = SqliteJournal(tmp_path / "j.db", Codec())
        entries = [scribe.start("a"), scribe.start("a"), scribe.entry("b", Heard(text="x"), after=4), scribe.start("c")]
        results = await asyncio.gather(*(journal.append(new) for new in entries), return_exceptions=True)
        assert [type(result) for result in results] == [type(None), Conflict, Conflict, type(None)]
        assert [info.run_id for info in (await journal.runs()).items] == ["c", "a"]
        assert await journal.verify() == []
        await journal.close()

    asyncio.run(story())


def test_a_step_that_was_overtaken_does_not_spoil_the_others_of_its_commit(tmp_path: Path) -> None:
    async def story() -> None:
        scribe = Scribe()
        one, two = (SqliteJournal(tmp_path / "j.db", Codec()) for _ in range(2))
        old = await one.enrol(NOW)
        await asyncio.gather(*(one.append(scribe.start(name, TOOL, worker_id=old)) for name in "abcd"))
        await two.append(scribe.entry("b", Heard(text="from two"), after=2))
        new = await two.enrol(LATER)
        assert len(await two.claim(new, LATER, 9, ALL, OFFERS)) == 4
        await two.append(scribe.entry("c", answer(2), after=2, fence=(2, new)))
        entries = [
            scribe.entry("a", Heard(text="x"), Asked(command=TOOL), after=2),
            scribe.entry("b", Heard(text="x"), Asked(command=TOOL), after=2),
            scribe.entry("c", answer(2), after=2, fence=(2, old)),
            scribe.entry("d", answer(2), Asked(command=TOOL), after=2, fence=(2, old)),
            scribe.start("e", TOOL),
        ]
        results = await asyncio.gather(*(one.append(new) for new in entries), return_exceptions=True)
        assert [type(result) for result in results] == [type(None), Conflict, Conflict, LeaseLost, type(None)]
        assert {info.run_id: info.length for info in (await two.runs()).items} == {
            "a": 4,
            "b": 3,
            "c": 3,
            "d": 2,
            "e": 2,
        }
        assert {(task.run_id, task.number) for task in await two.claim(new, LATER, 9, ALL, OFFERS)} == {
            ("a", 4),
            ("e", 2),
        }
        assert await two.verify() == []
        await one.close()
        await two.close()
        with sqlite3.connect(tmp_path / "j.db") as file:
            assert file.execute("SELECT max(position) - count(*) FROM records").fetchone() == (0,)
        file.close()

    asyncio.run(story())


def test_a_run_that_ends_and_goes_on_in_one_commit_keeps_what_it_asked_last(tmp_path: Path) -> None:
    async def story() -> None:
        scribe = Scribe()
        journal = SqliteJournal(tmp_path / "j.db", Codec())
        worker_id = await journal.enrol(NOW)
        await journal.append(scribe.start("a", TOOL))
        ends = scribe.entry("a", answer(2), Asked(command=TOOL), Ended(outcome="stopped", because="enough"), after=2)
        goes_on = scribe.entry("a", ResumeRequested(), Resumed(), Asked(command=TOOL), after=5)
        await asyncio.gather(journal.append(ends), journal.append(goes_on))
        assert [task.number for task in await journal.claim(worker_id, LATER, 9, ALL, OFFERS)] == [8]
        assert await journal.verify() == []
        await journal.close()

    asyncio.run(story())


def test_a_locked_file_is_waited_for(tmp_path: Path) -> None:
    async def story() -> None:
        scribe = Scribe()
        journal = SqliteJournal(tmp_path / "j.db", Codec())
        other = sqlite3.connect(tmp_path / "j.db", isolation_level=None, check_same_thread=False)
        other.execute("BEGIN IMMEDIATE")
        appending = asyncio.ensure_future(journal.append(scribe.start("a")))
        beats = 0
        while beats < 5:
            await asyncio.sleep(0.01)  # the loop goes on while the journal waits
            beats += 1
        assert not appending.done()
        other.execute("COMMIT")
        other.close()
        async with asyncio.timeout(25):
            await appending
        assert len(await journal.read("a")) == 1
        await journal.close()

    asyncio.run(story())


def test_opening_waits_for_another_that_is_creating_the_file(tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "j.db", isolation_level=None, check_same_thread=False)
    other.execute("PRAGMA journal_mode = MEMORY")  # as ripstop does it: no file is beside the journal meanwhile
    other.execute("BEGIN EXCLUSIVE")
    release = threading.Timer(0.1, lambda: other.execute("COMMIT"))
    release.start()

    async def story() -> None:
        scribe = Scribe()
        journal = SqliteJournal(tmp_path / "j.db", Codec())
        await journal.append(scribe.start("a"))
        await journal.close()

    asyncio.run(story())
    release.join()
    other.close()


WRITER = """
import asyncio, sys
from ripstop.journals.sqlite.journal import SqliteJournal
from ripstop.kernel.codec import Codec
from ripstop.kernel.events import Heard
from ripstop.testing.journal_entries import Scribe

scribe = Scribe()

async def one(journal, name):
    await journal.append(scribe.start(name))
    for length in range(1, 4):
        await journal.append(scribe.entry(name, Heard(text=f"{name} {length}"), after=length))

async def main(path, who, runs):
    journal = SqliteJournal(path, Codec())
    await asyncio.gather(*(one(journal, f"{who}-{number}") for number in range(int(runs))))
    await journal.close()

asyncio.run(main(*sys.argv[1:]))
"""


def test_several_processes_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), f"p{who}", "50"]) for who in range(4)]
    assert [writer.wait(timeout=50) for writer in writers] == [0, 0, 0, 0]

    async def story() -> None:
        journal = SqliteJournal(path, Codec())
        runs = (await journal.runs(RunQuery(size=1000))).items
        assert sorted(info.run_id for info in runs) == sorted(f"p{who}-{n}" for who in range(4) for n in range(50))
        assert {info.length for info in runs} == {4}
        last = (await journal.read("p3-49"))[-1].event
        assert last == Heard(text="p3-49 3")
        assert await journal.verify() == []
        await journal.close()

    asyncio.run(story())


CLAIMER = """
import asyncio, sys
from ripstop.journals.sqlite.journal import SqliteJournal
from ripstop.kernel.codec import Codec
from ripstop.engine.ports import ALL
from ripstop.testing.journal_entries import NOW, OFFERS

async def main(path):
    journal = SqliteJournal(path, Codec())
    holder = await journal.enrol(NOW)
    print("ready", flush=True)
    sys.stdin.readline()
    taken = []
    while tasks := await journal.claim(holder, NOW, 3, ALL, OFFERS):
        taken += [task.run_id for task in tasks]
    print(*taken, flush=True)
    sys.stdin.readline()

asyncio.run(main(sys.argv[1]))
"""


def test_several_processes_claim_every_command_once(tmp_path: Path) -> None:
    path = tmp_path / "j.db"

    async def prepare() -> None:
        scribe = Scribe()
        journal = SqliteJournal(path, Codec())
        await asyncio.gather(*(journal.append(scribe.start(f"r{number}", TOOL)) for number in range(60)))
        await journal.close()

    asyncio.run(prepare())
    pipe = subprocess.PIPE
    claimers = [
        subprocess.Popen([sys.executable, "-c", CLAIMER, str(path)], stdin=pipe, stdout=pipe, text=True)
        for _ in range(3)
    ]
    for claimer in claimers:
        assert claimer.stdout is not None and claimer.stdout.readline() == "ready\n"
    for claimer in claimers:
        assert claimer.stdin is not None
        claimer.stdin.write("go\n")
        claimer.stdin.flush()
    taken = [claimer.stdout.readline().split() for claimer in claimers if claimer.stdout]
    for claimer in claimers:
        claimer.communicate("stop\n", timeout=30)
    assert [claimer.returncode for claimer in claimers] == [0, 0, 0]
    assert sorted(run_id for runs in taken for run_id in runs) == sorted(f"r{number}" for number in range(60))


def test_what_a_killed_process_held_is_free_at_once(tmp_path: Path) -> None:
    path = tmp_path / "j.db"

    async def prepare() -> None:
        scribe = Scribe()
        journal = SqliteJournal(path, Codec())
        await journal.append(scribe.start("a", TOOL))
        await journal.close()

    asyncio.run(prepare())
    pipe = subprocess.PIPE
    claimer = subprocess.Popen([sys.executable, "-c", CLAIMER, str(path)], stdin=pipe, stdout=pipe, text=True)
    assert claimer.stdin is not None and claimer.stdout is not None
    claimer.stdout.readline()
    claimer.stdin.write("go\n")
    claimer.stdin.flush()
    assert claimer.stdout.readline() == "a\n"

    async def story() -> None:
        journal = SqliteJournal(path, Codec())
        mine = await journal.enrol(NOW)
        assert await journal.claim(mine, NOW, 9, ALL, OFFERS) == [], "it lives"
        claimer.kill()
        claimer.communicate()
        assert [task.number for task in await journal.claim(mine, NOW, 9, ALL, OFFERS)] == [2], (
            "its lease has not run out"
        )
        await journal.leave(mine, NOW)
        await journal.close()
        assert [file.name for file in tmp_path.glob("*worker*")] == []

    asyncio.run(story())


@pytest.mark.parametrize("lost", ["j.db", "."])
def test_nothing_is_acknowledged_in_a_journal_that_was_removed(tmp_path: Path, lost: str) -> None:
    folder = tmp_path / "state"
    folder.mkdir()

    async def story() -> None:
        scribe, journal = Scribe(), SqliteJournal(folder / "j.db", Codec())
        await journal.append(scribe.start("a"))
        target = folder / lost
        shutil.rmtree(target) if target.is_dir() else target.unlink()
        with pytest.raises(JournalError, match="was replaced, or removed"):
            await journal.append(scribe.start("b"))
        await journal.close()

    asyncio.run(story())


def test_a_journal_that_was_named_from_another_folder_is_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        monkeypatch.chdir(tmp_path)
        journal = SqliteJournal("j.db", Codec())
        monkeypatch.chdir("/")  # as a tool can do it
        await journal.append(Scribe().start("a"))
        await journal.close()

    asyncio.run(story())


def test_what_a_worker_held_that_could_not_say_goodbye_is_free_at_once(tmp_path: Path) -> None:
    async def story() -> None:
        scribe = Scribe()
        gone, here = (SqliteJournal(tmp_path / "j.db", Codec()) for _ in range(2))
        await gone.append(scribe.start("a", TOOL))
        old, mine = await gone.enrol(NOW), await here.enrol(NOW)
        assert len(await gone.claim(old, NOW, 9, ALL, OFFERS)) == 1
        gone._writing.execute("PRAGMA query_only = ON")  # it cannot write any more, as on a full disk
        with pytest.raises(JournalError):
            await gone.leave(old, NOW)
        assert await here.workers(NOW) == [(old, False), (mine, True)]
        assert len(await here.claim(mine, NOW, 9, ALL, OFFERS)) == 1, "its lease has not run out"
        await gone.close()
        await here.leave(mine, NOW)
        assert await here.workers(NOW) == [] and list(tmp_path.glob("*-worker-*")) == []
        await here.close()

    asyncio.run(story())


def test_a_worker_stops_when_another_file_takes_the_journals_place(tmp_path: Path) -> None:
    async def story() -> None:
        journal, other = (SqliteJournal(tmp_path / name, Codec()) for name in ("j.db", "other.db"))
        worker_id = await journal.enrol(NOW)
        assert await journal.heartbeat(worker_id, NOW)
        await other.close()
        (tmp_path / "other.db").replace(tmp_path / "j.db")
        with pytest.raises(JournalError, match="was replaced"):
            await journal.heartbeat(worker_id, NOW)
        await journal.close()

    asyncio.run(story())
