"""`verify` finds what somebody did to the file behind our back."""

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from ripstop.journals import chain
from ripstop.journals.sqlite import SqliteJournal
from ripstop.kernel.codec import Codec
from ripstop.kernel.effects import CallTool
from ripstop.kernel.events import Forked, Heard, Record
from ripstop.runtime.ports import Damage
from ripstop.testing.entries import answer, entry, start

Tamper = Callable[[sqlite3.Connection], object]


def verified_after(folder: Path, *tampering: str | Tamper, only: str | None = None) -> list[Damage]:
    """Three runs, `f` a fork of `a` in the middle of a step; then somebody with `sqlite3`; then `verify`."""
    path = folder / "j.db"

    async def write() -> None:
        journal = SqliteJournal(path, Codec())
        await journal.append(start("a", CallTool(tool="t")))
        await journal.append(entry("a", answer(2, "first"), Heard(text="one"), after=2))
        await journal.append(entry("a", Heard(text="two"), after=4))
        await journal.append(entry("a", Heard(text="three"), after=5))
        await journal.append(start("b"))
        await journal.append(entry("b", Heard(text="b two"), after=1))
        await journal.append(entry("f", Forked(run="a", at=3), Heard(text="fork"), after=3, fork=("a", 3)))
        assert await journal.verify() == []
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
    assert any("definition" in found.text and "changed" in found.text for found in damage)


def test_a_definition_that_was_removed(tmp_path: Path) -> None:
    assert verified_after(tmp_path, "DELETE FROM blobs")


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
