"""The crash harness is only worth something if it sees what is wrong: each test plants one wrong."""

import asyncio
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from ripstop.kernel.effects import AgentReplied, AskAgent, AskPerson, CallTool, PersonAnswered, ToolCall, ToolReturned
from ripstop.kernel.events import (
    FORMAT,
    Answered,
    Asked,
    CallRefused,
    Doubted,
    DoubtResolved,
    Ended,
    Event,
    Record,
    Repeated,
    Started,
)
from tests.harness.crash_checks import Found, canonical, look
from tests.harness.crash_work import Acknowledged, Effect


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal that one process has worked on until it had to wait for people."""
    folder = tmp_path_factory.mktemp("worked")
    environment = {name: value for name, value in os.environ.items() if name != "RIPSTOP_FAILPOINT"}
    command = [sys.executable, "-m", "tests.harness.crash_work", str(folder), "[]", "0"]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    return folder


@pytest.fixture
def folder(worked: Path, tmp_path: Path) -> Path:
    for name in ("journal.db", "effects.jsonl", "acknowledged.jsonl"):
        (tmp_path / name).write_bytes((worked / name).read_bytes())
    return tmp_path


def found_in(folder: Path) -> Found:
    return asyncio.run(look(folder))


def add_line(path: Path, line: msgspec.Struct) -> None:
    with path.open("ab") as file:
        file.write(msgspec.json.encode(line) + b"\n")


def an_effect(folder: Path, kind: str) -> Effect:
    lines = (folder / "effects.jsonl").read_bytes().splitlines()
    effects = [msgspec.json.decode(line, type=Effect) for line in lines]
    return next(effect for effect in effects if effect.kind == kind)


def test_finds_nothing_wrong_with_an_honest_journal(folder: Path) -> None:
    found = found_in(folder)
    assert (found.lost, found.silent, found.repeated, found.doubts) == ([], [], 0, 0)
    assert found.acknowledged == sum(len(records) for records in found.records.values())
    assert not found.ended
    assert sorted(question.run_id.split(".")[0] for question in found.desk) == [
        "asker",
        "chat",
        "doomed",
        "parent",
        "solo",
    ]


def test_sees_that_an_acknowledged_record_is_gone(folder: Path) -> None:
    add_line(folder / "acknowledged.jsonl", Acknowledged("solo", 999, "0" * 64))
    assert found_in(folder).lost == ["solo/999"]


def test_sees_that_an_acknowledged_record_was_changed(folder: Path) -> None:
    db = sqlite3.connect(folder / "journal.db")
    with db:
        db.execute("UPDATE records SET at = at + 1 WHERE number = 1 AND run = (SELECT key FROM runs WHERE id = 'solo')")
    db.close()
    lost = found_in(folder).lost
    assert "solo/2" in lost
    assert any(text.startswith("solo/1: ") for text in lost), "verify has not seen it"


def test_sees_that_the_whole_journal_is_gone(folder: Path) -> None:
    (folder / "journal.db").unlink()
    found = found_in(folder)
    assert len(found.lost) == found.acknowledged > 0


@pytest.mark.parametrize("kind", ["unsafe", "probeable", "keyed", "pure", "agent", "say"])
def test_sees_that_an_effect_was_repeated_without_a_word(folder: Path, kind: str) -> None:
    effect = an_effect(folder, kind)
    add_line(folder / "effects.jsonl", msgspec.structs.replace(effect, attempt=effect.attempt + 1))
    found = found_in(folder)
    assert found.repeated == 1
    assert [text.split(" was done")[0] for text in found.silent] == [f"{kind} {effect.key}"]


def test_sees_that_an_effect_is_answered_but_was_never_done(folder: Path) -> None:
    effect = an_effect(folder, "unsafe")
    lines = (folder / "effects.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "effects.jsonl").write_bytes(b"".join(line for line in lines if f'"{effect.key}"'.encode() not in line))
    assert found_in(folder).lost == [f"{effect.key} is answered, but was never done"]


def records(*events: Event) -> list[Record]:
    return [Record(number, number, event) for number, event in enumerate(events, 1)]


STARTED = Started(style="errands", definition="0", format=FORMAT)
ONE, TWO = Asked(command=CallTool(tool="ring")), Asked(command=CallTool(tool="pay"))
ENDED = Ended(outcome="completed", because="done")


def test_a_run_without_its_doubts_is_the_run_that_was_never_killed() -> None:
    question = Asked(command=AskPerson(question="Did this happen?", about=(2,)))
    doubted = records(
        STARTED,
        ONE,
        Doubted(to=2, evidence="gone"),
        question,
        Answered(to=4, answer=PersonAnswered(choice="again")),
        Repeated(number=2),
        Doubted(to=2, evidence="gone again"),
        question,
        Answered(to=8, answer=PersonAnswered(choice="happened", text="rung")),
        DoubtResolved(to=2, answer=ToolReturned(value="rung")),
        TWO,
        Answered(to=11, answer=ToolReturned(value="paid")),
        ENDED,
    )
    told, numbers = canonical(doubted)
    assert [(record.number, record.event) for record in told] == list(
        enumerate(
            [
                STARTED,
                ONE,
                Answered(to=2, answer=ToolReturned(value="rung")),
                TWO,
                Answered(to=4, answer=ToolReturned(value="paid")),
                ENDED,
            ],
            1,
        )
    )
    assert numbers[11] == 4


def test_the_order_of_simultaneous_answers_does_not_count() -> None:
    first, second = (Answered(to=n, answer=ToolReturned(value=n)) for n in (2, 3))
    one, _ = canonical(records(STARTED, ONE, TWO, first, second, ENDED))
    other, _ = canonical(records(STARTED, ONE, TWO, second, first, ENDED))
    assert [record.event for record in one] == [record.event for record in other]


def test_a_refusal_that_was_lost_with_its_process_does_not_count() -> None:
    def calling(number: int) -> Answered:
        call = ToolCall(id=f"call_{number}_0", tool="pay", arguments={})
        return Answered(to=number, answer=AgentReplied(calls=(call,)))

    asked = Asked(command=AskAgent(agent="writer"))
    refused, _ = canonical(records(STARTED, asked, CallRefused(to=2, reason="busy"), calling(2), asked, calling(5)))
    calm, _ = canonical(records(STARTED, asked, calling(2), asked, calling(4)))
    assert [record.event for record in refused] == [record.event for record in calm]
