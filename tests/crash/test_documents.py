"""A short version of `make soak-docs`: processes that share a folder of documents are killed at random."""

import asyncio
import shutil
from pathlib import Path

import msgspec
import pytest

from ripstop.styles.handoff.folder import WORKFLOWS
from tests.harness import document_crash
from tests.harness.document_crash import Findings, Tally
from tests.harness.document_work import Declined, Line, Made, Moved, Saved, lines_in, log_of

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Tally]:
    root = tmp_path_factory.mktemp("documents")
    tally = document_crash.crash(
        processes=6, updates=600, seed=1, seconds=None, root=root, say=lambda _: None, per_kill=40
    )
    return root, tally


def test_loses_and_tears_nothing_when_those_who_work_are_killed(worked: tuple[Path, Tally]) -> None:
    _, tally = worked
    assert not tally.trouble, document_crash.table(tally)
    assert tally.updates >= 600
    assert tally.kills >= 10
    assert tally.documents
    assert tally.glances
    assert tally.declined
    assert tally.edits.total()


# The harness is only worth something if it sees what is wrong: each test below plants one wrong.


def findings(root: Path) -> list[str]:
    tally = Tally()
    asyncio.run(Findings(root, tally).look())
    return tally.trouble


@pytest.fixture
def root(worked: tuple[Path, Tally], tmp_path: Path) -> Path:
    copy = tmp_path / "copy"
    shutil.copytree(worked[0], copy)
    return copy


def logged(root: Path) -> list[Line]:
    return [line for log in (root / "logs").iterdir() for line in lines_in(log.read_bytes())]


def add(root: Path, line: Line) -> None:
    with log_of(root, 0).open("ab") as log:
        log.write(msgspec.json.encode(line) + b"\n")


def a_move(root: Path) -> Moved:
    return next(line for line in logged(root) if isinstance(line, Moved) and line.words)


def a_creation(root: Path) -> Made:
    return next(line for line in logged(root) if isinstance(line, Made) and line.file.startswith("workflow_task_"))


def test_sees_that_an_acknowledged_line_is_not_there(root: Path) -> None:
    move = a_move(root)
    add(root, Moved(move.run, "(never)", "- 2026-01-01 00:00:00 anna accepted it: (never) pending→in_progress"))
    assert any("(never)" in text and "0 times" in text for text in findings(root))


def test_sees_that_something_refused_was_made(root: Path) -> None:
    move = a_move(root)
    add(root, Declined(move.run, move.words))
    assert any(f"{move.words} was refused, but made" in text for text in findings(root))


def test_sees_that_two_were_told_of_one_document(root: Path) -> None:
    add(root, a_creation(root))
    assert sum("2 documents have the" in text for text in findings(root)) == 3


def test_sees_that_an_edit_is_gone(root: Path) -> None:
    add(root, Saved(a_creation(root).file, "(never)", "by renaming"))
    assert any("the edit (never) by renaming is unknown" in text for text in findings(root))


def test_sees_that_a_file_is_torn(root: Path) -> None:
    path = root / WORKFLOWS / a_creation(root).file
    assert document_crash.torn(path) == ""
    path.write_bytes(path.read_bytes()[:20])
    assert document_crash.torn(path)
