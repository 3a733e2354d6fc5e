"""`verify` finds what somebody did to the file behind our back."""

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from ripstop.engine.ports import Damage
from ripstop.journals import hash_chain as chain
from ripstop.journals.sqlite.journal import SqliteJournal
from ripstop.journals.sqlite.verify import MOST_TOLD
from ripstop.kernel.codec import Codec
from ripstop.kernel.effects import AgentReplied, AskAgent, AskPerson, CallTool, SetTimer, StartRun, Usage
from ripstop.kernel.errors import JournalError
from ripstop.kernel.events import Answered, Asked, Doubted, Ended, Forked, Heard, Record, Withdrawn
from ripstop.kernel.run import DOUBT
from ripstop.testing.journal_entries import DIGEST, LATER, NOW, OFFERS, STARTED, Scribe, answer, task

Tamper = Callable[[sqlite3.Connection], object]


async def fill(journal: SqliteJournal, scribe: Scribe) -> None:
    await journal.append(scribe.start("a", CallTool(tool="t")))
    await journal.append(scribe.entry("a", answer(2, "first"), Heard(text="one"), after=2))
    await journal.append(scribe.entry("a", Heard(text="two"), after=4))
    await journal.append(scribe.entry("a", Heard(text="three"), after=5))
    await journal.append(scribe.start("b"))
    await journal.append(scribe.entry("b", Heard(text="b two"), after=1))
    await journal.append(scribe.entry("f", Forked(run="a", at=3), Heard(text="fork"), after=3, fork=("a", 3)))
    await journal.append(scribe.start("w", CallTool(tool="t"), AskPerson(question="?"), SetTimer(name="t", after=60)))
    await journal.append(scribe.entry("g", Forked(run="w", at=4), Heard(text="x"), after=4, fork=("w", 4)))
    await journal.append(scribe.entry("e", STARTED, Ended(outcome="stopped", because="enough")))
    await fill_outbox(journal, scribe)


async def fill_outbox(journal: SqliteJournal, scribe: Scribe) -> None:
    """Every way in which a command can be in the outbox, and a run that was forgotten."""
    worker_id, tool = await journal.enrol(LATER), CallTool(tool="hammer")
    child, named = StartRun(workflow="w"), StartRun(workflow="w", name="shared")
    await journal.append(scribe.start("p", AskAgent(agent="ada"), child, named, tool, tool, tool))
    tasks = await journal.claim(worker_id, NOW, 99, offers=OFFERS)
    assert {command.number for command in tasks if command.run_id == "p"} == set(range(2, 8))
    await journal.append(scribe.start("p.3", parent=("p", 3)))
    await journal.append(scribe.start("shared", child, parent=("p", 4)))
    await journal.park(task("p", 3), worker_id, NOW)
    await journal.park(task("p", 4), worker_id, NOW)
    reply = Answered(to=2, answer=AgentReplied(text="x", usage=Usage(5, 6, 0.5)))
    await journal.append(scribe.entry("p", reply, after=7, fence=(2, worker_id)))
    await journal.begin("p", 6, worker_id, 1, repeatable=False)
    ask = Asked(command=AskPerson(question="Did it?", purpose=DOUBT, about=(5,)))
    await journal.append(scribe.entry("p", Doubted(to=5, evidence="x"), ask, after=8, fence=(5, worker_id)))
    await journal.append(scribe.entry("p", Heard(text="x"), Withdrawn(number=7, because="late"), after=10))
    await journal.append(scribe.start("gone"))
    await journal.append(scribe.end("gone"))
    await journal.forget(["gone"], NOW)


def verified_after(folder: Path, *tampering: str | Tamper, only: str | None = None) -> list[Damage]:
    """Runs, `f` a fork of `a` inside a step, `g` one that shares open commands; then somebody with `sqlite3`."""
    path = folder / "j.db"

    async def write() -> None:
        journal = SqliteJournal(path, Codec())
        await fill(journal, Scribe())
        assert await journal.verify() == []
        for info in (await journal.runs()).items:
            assert await journal.verify(info.run_id) == []
        await journal.close()

    async def verify() -> list[Damage]:
        journal = SqliteJournal(path, Codec())
        found = await journal.verify(only)
        await journal.close()
        return found

    asyncio.run(write())
    db = sqlite3.connect(path)
    for act in tampering:
        assert db.execute(act).rowcount > 0 if isinstance(act, str) else act(db) is not False
    db.commit()
    db.close()
    return asyncio.run(verify())


A, B = "(SELECT key FROM runs WHERE id = 'a')", "(SELECT key FROM runs WHERE id = 'b')"


def test_a_changed_record(tmp_path: Path) -> None:
    (damage,) = verified_after(
        tmp_path, f"UPDATE records SET body = replace(body, 'two', 'tow') WHERE run = {A} AND number = 5"
    )
    assert (damage.run_id, damage.number) == ("a", 5)
    assert "the record was changed" in damage.text


def test_a_changed_record_in_the_middle_of_a_step(tmp_path: Path) -> None:
    (damage,) = verified_after(
        tmp_path, f"UPDATE records SET body = replace(body, 'one', 'won') WHERE run = {A} AND number = 3"
    )
    assert (damage.run_id, damage.number) == ("a", 3)
    assert "records 3 to 4 were changed" in damage.text


def test_a_record_taken_out_of_a_step(tmp_path: Path) -> None:
    taken = f"UPDATE records SET body = json_remove(body, '$[1]') WHERE run = {A} AND number = 3"
    damage = verified_after(tmp_path, taken)
    texts = {found.number: found.text for found in damage if found.run_id == "a"}
    assert "changed" in texts[3]
    assert "missing" in texts[4]


@pytest.mark.parametrize("what", ["at = at + 1", "number = 9"])
def test_a_record_with_another_time_or_place(tmp_path: Path, what: str) -> None:
    damage = verified_after(tmp_path, f"UPDATE records SET {what} WHERE run = {B} AND number = 2")
    assert damage and {found.run_id for found in damage} == {"b"}


def test_a_changed_record_with_its_own_hash_put_right(tmp_path: Path) -> None:
    def forge(db: sqlite3.Connection) -> None:
        (before,) = db.execute(f"SELECT hash FROM records WHERE run = {A} AND number = 3").fetchone()
        (at,) = db.execute(f"SELECT at FROM records WHERE run = {A} AND number = 5").fetchone()
        body = b'[{"type":"heard","text":"forged"}]'
        digest = chain.link(bytes(before), 5, at, body)
        sql = f"UPDATE records SET body = ?, hash = ? WHERE run = {A} AND number = 5"
        db.execute(sql, (body.decode(), digest))

    (damage,) = verified_after(tmp_path, forge)
    assert (damage.run_id, damage.number) == ("a", 6), "the next one no longer fits"


def test_a_dropped_record(tmp_path: Path) -> None:
    damage = verified_after(tmp_path, f"DELETE FROM records WHERE run = {A} AND number = 5")
    assert any((found.run_id, found.number) == ("a", 5) and "missing" in found.text for found in damage)


def test_two_swapped_records(tmp_path: Path) -> None:
    swap = [
        f"UPDATE records SET number = {new} WHERE run = {A} AND number = {old}"
        for old, new in ((5, 99), (6, 5), (99, 6))
    ]
    damage = verified_after(tmp_path, *swap)
    assert {(found.run_id, found.number) for found in damage} >= {("a", 5), ("a", 6)}


def test_an_inserted_record(tmp_path: Path) -> None:
    columns = "(run, number, at, body, hash)"
    insert = f"INSERT INTO records {columns} SELECT run, 7, at, body, hash FROM records WHERE run = {A} AND number = 6"
    damage = verified_after(tmp_path, insert)
    assert any((found.run_id, found.number) == ("a", 7) for found in damage)


def test_an_inserted_record_that_continues_the_chain(tmp_path: Path) -> None:
    def forge(db: sqlite3.Connection) -> None:
        (before,) = db.execute(f"SELECT hash FROM records WHERE run = {A} AND number = 6").fetchone()
        body = b'[{"type":"heard","text":"x"}]'
        digest = chain.link(bytes(before), 7, 1, body)
        sql = f"INSERT INTO records (run, number, at, body, hash) VALUES ({A}, 7, 1, ?, ?)"
        db.execute(sql, (body.decode(), digest))

    damage = verified_after(tmp_path, forge)
    assert any(found.run_id == "a" and "added" in found.text for found in damage)


@pytest.mark.parametrize("first", [6, 5, 3, 1])
def test_a_run_whose_end_was_cut_off(tmp_path: Path, first: int) -> None:
    damage = verified_after(tmp_path, f"DELETE FROM records WHERE run = {A} AND number >= {first}")
    assert any((found.run_id, found.number) == ("a", first) and "cut off" in found.text for found in damage)


def test_an_end_cut_off_together_with_the_length(tmp_path: Path) -> None:
    damage = verified_after(
        tmp_path,
        f"DELETE FROM records WHERE run = {A} AND number = 6",
        "UPDATE runs SET length = 5 WHERE id = 'a'",
    )
    assert any(found.run_id == "a" for found in damage)


def test_a_whole_run_that_was_removed(tmp_path: Path) -> None:
    damage = verified_after(tmp_path, f"DELETE FROM records WHERE run = {B}", "DELETE FROM runs WHERE id = 'b'")
    assert any("some are missing" in found.text for found in damage)


def test_the_last_run_removed_with_all_its_records(tmp_path: Path) -> None:
    fork = "(SELECT key FROM runs WHERE id = 'f')"
    damage = verified_after(tmp_path, f"DELETE FROM records WHERE run = {fork}", "DELETE FROM runs WHERE id = 'f'")
    assert damage


def test_a_run_that_was_taken_off_the_list(tmp_path: Path) -> None:
    damage = verified_after(tmp_path, "DELETE FROM runs WHERE id = 'b'")
    assert any("not in the list" in found.text for found in damage)


def test_a_changed_definition(tmp_path: Path) -> None:
    damage = verified_after(tmp_path, "UPDATE blobs SET body = x'00'")
    assert any("the content" in found.text and "was changed" in found.text for found in damage)


def test_a_definition_that_was_removed(tmp_path: Path) -> None:
    damage = verified_after(tmp_path, "DELETE FROM blobs")
    assert ("a", 1) in {(found.run_id, found.number) for found in damage if DIGEST[:12] in found.text}


def test_a_tombstone_that_was_removed(tmp_path: Path) -> None:
    (damage,) = verified_after(tmp_path, "DELETE FROM tombstones")
    assert "some are missing or were added" in damage.text


def test_a_change_in_what_a_fork_shares_shows_in_the_run_that_owns_it(tmp_path: Path) -> None:
    damage = verified_after(
        tmp_path, f"UPDATE records SET body = replace(body, 'first', 'last') WHERE run = {A} AND number = 3"
    )
    assert ("a", 3) in {(found.run_id, found.number) for found in damage}


def test_a_run_that_was_given_another_name(tmp_path: Path) -> None:
    assert verified_after(tmp_path, "UPDATE runs SET id = 'c' WHERE id = 'b'")


def test_a_record_that_is_no_event(tmp_path: Path) -> None:
    damage = verified_after(
        tmp_path, f'UPDATE records SET body = \'{{"type":"melted"}}\' WHERE run = {B} AND number = 2'
    )
    assert any("cannot be read" in found.text for found in damage)


def test_one_run_can_be_verified_alone(tmp_path: Path) -> None:
    spoil = f"UPDATE records SET body = replace(body, 'b two', 'b too') WHERE run = {B} AND number = 2"
    assert verified_after(tmp_path, spoil, only="a") == []
    other = tmp_path / "other"
    other.mkdir()
    assert [found.run_id for found in verified_after(other, spoil, only="b")] == ["b"]


def test_a_chain_that_leads_in_a_circle_is_found_and_ends(tmp_path: Path) -> None:
    circle = f"UPDATE records SET before = (SELECT max(position) FROM records) WHERE run = {A} AND number = 3"
    damage = verified_after(tmp_path, circle)
    assert any((found.run_id, found.number) == ("a", 3) for found in damage)

    async def read() -> list[Record]:
        journal = SqliteJournal(tmp_path / "j.db", Codec())
        try:
            return await journal.read("a")
        finally:
            await journal.close()

    assert [record.number for record in asyncio.run(read())][-1] == 6


# What is beside the records


W, P = "(SELECT key FROM runs WHERE id = 'w')", "(SELECT key FROM runs WHERE id = 'p')"


@pytest.mark.parametrize(
    ("run", "number"),
    [*((run, number) for run in "wg" for number in (2, 3, 4)), *(("p", number) for number in (3, 4, 5, 6, 10))],
)
def test_a_command_that_was_dropped_from_the_outbox(tmp_path: Path, run: str, number: int) -> None:
    key = f"(SELECT key FROM runs WHERE id = '{run}')"
    (damage,) = verified_after(tmp_path, f"DELETE FROM outbox WHERE run = {key} AND number = {number}")
    assert (damage.run_id, damage.number) == (run, number)
    assert "it would never be performed" in damage.text


@pytest.mark.parametrize("run", [A, "999"])
def test_a_command_that_was_put_into_the_outbox(tmp_path: Path, run: str) -> None:
    (damage,) = verified_after(
        tmp_path, f"INSERT INTO outbox (run, number, record, waits, due) VALUES ({run}, 2, 1, 'worker', 1)"
    )
    assert damage.number == 2 and "the outbox has a command" in damage.text


@pytest.mark.parametrize(
    ("number", "change"),
    [
        (2, "due = NULL"),
        (2, "due = due + 9000000000000"),
        (2, "due = 'soon', attempt = 1"),
        (2, "waits = 'person'"),
        (2, "record = record + 1"),
        (3, "due = 1"),
        (3, "holder = 1"),
        (4, "due = 1"),
        (4, "due = NULL"),
        (2, "needs = ''"),
        (2, "needs = 'tool:other'"),
        (2, "needs = x'00'"),
        (3, "needs = 'tool:t'"),
        (2, "awaits = 'a'"),
        (2, "awaits = 7"),
        (2, "state = 3"),
        (2, "state = 4"),
        (3, "state = 4"),
        (2, "holder = 99"),
        (4, "waits = 'worker'"),
    ],
)
def test_a_command_that_was_changed_in_the_outbox(tmp_path: Path, number: int, change: str) -> None:
    (damage,) = verified_after(tmp_path, f"UPDATE outbox SET {change} WHERE run = {W} AND number = {number}")
    assert (damage.run_id, damage.number) == ("w", number)
    assert "the outbox has the command, but" in damage.text


@pytest.mark.parametrize(
    ("number", "change"),
    [
        (3, "awaits = NULL"),
        (3, "awaits = 'shared'"),
        (4, "awaits = 'p.4'"),
        (4, "state = 4"),
        (5, "due = 1"),
        (5, "state = 0"),
        (5, "holder = 1"),
        (6, "holder = 99"),
        (6, "state = 4"),
        (7, "state = 2"),
        (7, "holder = 99"),
    ],
)
def test_an_unusual_command_that_was_changed_in_the_outbox(tmp_path: Path, number: int, change: str) -> None:
    """Parked, named, in doubt, begun and superseded ones."""
    (damage,) = verified_after(tmp_path, f"UPDATE outbox SET {change} WHERE run = {P} AND number = {number}")
    assert (damage.run_id, damage.number) == ("p", number)
    assert "the outbox has the command, but" in damage.text


def test_a_parent_that_was_never_woken(tmp_path: Path) -> None:
    """The child has ended, and whoever waits for it would wait for ever."""
    path = tmp_path / "j.db"

    async def write() -> None:
        journal, scribe = SqliteJournal(path, Codec()), Scribe()
        await fill(journal, scribe)
        await journal.append(scribe.end("p.3"))
        assert await journal.verify() == []
        await journal.close()

    asyncio.run(write())
    with sqlite3.connect(path) as db:
        assert db.execute(f"UPDATE outbox SET due = NULL WHERE run = {P} AND number = 3").rowcount == 1
    db.close()
    (damage,) = verified(path)
    assert (damage.run_id, damage.number) == ("p", 3) and "has ended" in damage.text


@pytest.mark.parametrize(
    ("run", "change"),
    [
        ("a", "style = 'other'"),
        ("a", "created = created + 1"),
        ("f", "updated = updated - 1"),
        ("b", "parent = 'a', parent_number = 2"),
        ("e", "status = 'completed'"),
        ("e", "status = 'working'"),
        ("a", "status = 'completed'"),
        ("p", "tokens = tokens + 1"),
        ("p", "tokens = 0"),
        ("p", "money = 0.0"),
        ("p.3", "root = 'a'"),
        ("p.3", "root = 'p.3'"),
        ("p", "root = 'a'"),
        ("shared", "root = 'p'"),
        ("p.3", "parent_number = 4"),
        ("p.3", "parent = NULL, parent_number = NULL"),
    ],
)
def test_a_run_that_was_changed_in_the_list(tmp_path: Path, run: str, change: str) -> None:
    damage = verified_after(tmp_path, f"UPDATE runs SET {change} WHERE id = '{run}'")
    assert any(found.run_id == run and "the list of runs has" in found.text for found in damage)


@pytest.mark.parametrize("change", ["fork_of = 'b'", "fork_at = 2", "fork_of = 'f'", "fork_of = NULL, fork_at = 0"])
def test_a_fork_of_something_else(tmp_path: Path, change: str) -> None:
    damage = verified_after(tmp_path, f"UPDATE runs SET {change} WHERE id = 'f'")
    assert "f" in {found.run_id for found in damage}


@pytest.mark.parametrize("change", ["length = 'long'", "head = 'x'", "created = x'00'"])
def test_a_run_of_the_wrong_types(tmp_path: Path, change: str) -> None:
    damage = verified_after(tmp_path, f"UPDATE runs SET {change} WHERE id = 'a'")
    assert any("a row that is not a run: 'a'" in found.text for found in damage)


@pytest.mark.parametrize("change", ["number = 'x'", "hash = 'x'", "at = 'noon'", "body = x'ff'", "body = 7"])
def test_a_record_of_the_wrong_types(tmp_path: Path, change: str) -> None:
    damage = verified_after(tmp_path, f"UPDATE records SET {change} WHERE run = {A} AND number = 5")
    assert "a" in {found.run_id for found in damage}


def test_records_that_point_round_in_a_circle_are_found_and_do_not_hang(tmp_path: Path) -> None:
    damage = verified_after(tmp_path, f"UPDATE records SET before = position WHERE run = {A} AND number = 3")
    assert ("a", 3) in {(found.run_id, found.number) for found in damage}


# The file itself


PAGE = 4096


def is_schema(data: bytes, page: int) -> bool:
    """Whether a page describes the tables: without it the file cannot be opened."""
    return page == 0 or b"CREATE " in data[page * PAGE : (page + 1) * PAGE]


def verified(path: Path) -> list[Damage]:
    async def verify() -> list[Damage]:
        journal = SqliteJournal(path, Codec())
        try:
            return await journal.verify()
        finally:
            await journal.close()

    return asyncio.run(verify())


def test_every_page_of_zeros_is_found(tmp_path: Path) -> None:
    """Whichever page it is: found by `verify`, or the file cannot be opened at all and says so."""
    assert verified_after(tmp_path) == []
    path = tmp_path / "j.db"
    sound = path.read_bytes()
    for page in range(len(sound) // PAGE):
        path.write_bytes(sound[: page * PAGE] + bytes(PAGE) + sound[(page + 1) * PAGE :])
        try:
            assert verified(path), f"page {page + 1} is gone, and nobody noticed"
        except JournalError as error:
            assert is_schema(sound, page) and "verify" not in str(error)


def test_a_missing_table(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="the table 'outbox' is missing"):
        verified_after(tmp_path, lambda db: db.execute("DROP TABLE outbox"))


def test_a_file_of_which_little_is_left_has_not_thousands_of_complaints(tmp_path: Path) -> None:
    assert verified_after(tmp_path) == []
    path = tmp_path / "j.db"
    sound = path.read_bytes()
    pages = [sound[start : start + PAGE] for start in range(0, len(sound), PAGE)]
    left = [page if number < 2 or is_schema(sound, number) else b"\xaa" * PAGE for number, page in enumerate(pages)]
    path.write_bytes(b"".join(left))

    damage = verified(path)
    assert 0 < len(damage) < 2 * MOST_TOLD
