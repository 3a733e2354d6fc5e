"""The desk shows everything that waits for a person, and answers that come too late or are wrong lose nothing."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from ripstop.app.plugins import BUILT_IN, Plugins
from ripstop.journals.sqlite.journal import SqliteJournal
from ripstop.kernel.desk_kinds import KINDS
from ripstop.kernel.effects import AskPerson
from ripstop.kernel.questions import kind_of
from ripstop.kernel.registry import Registry
from ripstop.kernel.run import DOUBT, GUARD
from ripstop.testing import ERRANDS, Errands
from ripstop.testing.commands import Done, command
from ripstop.text.differences import Hunk, apply_difference
from tests.app.plugins.installation import installed_packages
from tests.faces.cli import review_style
from tests.faces.cli.review_style import Drafts

FIRST, SECOND = "# Shop\n\nUsers can upload files.\n", "# Shop\n\nUsers can upload pictures.\n"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a run that waits for a review, and the style that it is of."""
    monkeypatch.chdir(tmp_path)
    environment = review_style.install(tmp_path)
    monkeypatch.setenv("PYTHONPATH", environment["PYTHONPATH"])
    review_style.start(tmp_path, "shop", Drafts((FIRST, SECOND)))
    with installed_packages(tmp_path / "packages"):
        yield tmp_path


def desk(*arguments: str) -> list[dict[str, Any]]:
    done = command("desk", *arguments, "--json")
    assert done.code == 0, done
    items: list[dict[str, Any]] = json.loads(done.out)
    return items


def refused(done: Done, *told: str) -> None:
    assert done.code == 2, done
    assert all(one in done.err for one in told), done.err


def errands(**runs: Errands) -> None:
    """Start runs of the stub style, which is not installed; one named `odd` is set aside."""

    async def write() -> None:
        from ripstop.app.application import now
        from ripstop.engine.engine import Engine

        registry = Registry((*Plugins(BUILT_IN).kits, ERRANDS))
        journal = SqliteJournal(Path(".ripstop/journal.db"), registry.codec)
        engine = Engine(journal, registry, now)
        for run, definition in runs.items():
            await engine.start(run, "errands", definition.content())
        if "odd" in runs:
            await journal.set_aside("odd", "its style 'errands' is not installed")
        await journal.close()

    asyncio.run(write())


def halted() -> None:
    """A run that is stuck, and one that is set aside."""
    errands(nowhere=Errands(outcome=""), odd=Errands(outcome=""))


# Looking


@pytest.mark.parametrize(
    ("ask", "kind"),
    [
        (review_style.REVIEW, "question"),
        (replace(review_style.REVIEW, document=2), "review"),
        (replace(review_style.REVIEW, document=2, edit=""), "review"),
        (AskPerson(question="?", purpose=GUARD), "guard"),
        (AskPerson(question="?", purpose=DOUBT), "doubt"),
        (AskPerson(question="?", purpose="handoff"), "handoff"),
    ],
)
def test_a_question_has_a_kind(ask: AskPerson, kind: str) -> None:
    assert kind_of(ask) == kind and kind in KINDS


@pytest.mark.req("S3-28", "S3-29")
def test_a_review_has_everything_that_is_needed_to_decide(shop: Path) -> None:
    (item,) = desk()
    assert (item["id"], item["kind"], item["draft"], item["document"]) == ("shop/3", "review", 2, FIRST)
    assert (item["title"], item["previous"], item["difference"]) == ("artifacts/prd_draft.md", None, None)
    assert item["labels"]["pass"] == "It is good" and item["fields"]["severity"]["allowed"][0] == "critical"
    told = command("desk", "shop/3").out
    assert FIRST in told and "Review the draft." in told and "field severity" in told


def test_a_later_review_shows_what_has_changed_and_who_answered(shop: Path) -> None:
    command("answer", "shop/3", "Pictures only.", "--as", "ann", "--field", "severity=major")
    (item,) = desk()
    assert (item["previous"], item["document"]) == (FIRST, SECOND)
    (hunk,) = item["difference"]
    removed, added = hunk["lines"][2:4]
    assert removed["segments"][1] == ["removed", "files"] and added["segments"][1] == ["added", "pictures"]
    assert apply_difference(FIRST, msgspec.convert([hunk], list[Hunk])) == SECOND
    (given,) = item["answers"]
    assert (given["by"], given["choice"], given["text"]) == ("ann", "feedback", "Pictures only.")
    told = command("desk", item["id"]).out
    assert "ann answered at" in told and "3 - Users can upload files." in told
    assert "ann: feedback  Pictures only.  severity=major  (Review the draft.)" in command("show", "shop").out


def test_stuck_runs_and_those_set_aside_are_on_the_desk_with_what_to_do(shop: Path) -> None:
    halted()
    assert [(item["id"], item["kind"]) for item in desk()] == [
        ("shop/3", "review"),
        ("nowhere", "stuck"),
        ("odd", "set_aside"),
    ]
    told = command("desk").out
    assert "Nothing can move this run any more." in told and "ripstop fork nowhere --at N" in told
    assert "its style 'errands' is not installed" in told and "ripstop resume odd" in told
    (odd,) = desk("odd")
    assert (odd["number"], odd["ways"], odd["choices"]) == (0, [{"action": "resume"}], [])


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (("--kind", "review"), ["shop/3", "other/3"]),
        (("--kind", "stuck"), ["nowhere"]),
        (("--run", "other"), ["other/3"]),
        (("--run", "odd", "--kind", "review"), []),
        (("--to", "bob"), ["shop/3", "other/3", "nowhere", "odd"]),
    ],
)
def test_the_desk_can_be_narrowed(shop: Path, options: tuple[str, ...], found: list[str]) -> None:
    halted()
    review_style.start(shop, "other", Drafts((FIRST,), to="bob"))
    assert [item["id"] for item in desk(*options)] == found


def test_the_desk_says_who_answered_a_question_that_is_not_on_it_any_more(shop: Path) -> None:
    command("answer", "shop/3", "pass", "--as", "ann")
    refused(command("desk", "shop/3"), "shop/3 is not an open question any more: ann answered at 20", "pass")
    refused(command("desk", "--run", "nobody"), "There is no run 'nobody'")


# Answering


@pytest.mark.parametrize(("words", "choice"), [("PASS", "pass"), ("it is good", "pass"), ("", "pass")])
def test_a_choice_is_known_in_any_case(shop: Path, words: str, choice: str) -> None:
    assert command("answer", "shop/3", words).out.startswith(f"Answered: {choice}.")


@pytest.mark.req("S3-32", "S3-35")
def test_words_that_begin_with_a_choice_are_feedback(shop: Path) -> None:
    told = command("answer", "shop/3", "pass the tests first").out
    assert told.startswith('Answered: feedback ("pass the tests first").')


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda path: None, "cannot be read: No such file"),
        (lambda path: path.write_bytes(b""), "The file is empty"),
        (lambda path: path.write_bytes(b" \n"), "The file is empty"),
        (lambda path: path.write_bytes(b"good \xff"), "is not UTF-8 text (byte 6)"),
        (lambda path: path.write_bytes(b"x" * 4_000_001), "it has 4000001 bytes; at most 4000000"),
        (lambda path: path.write_bytes(b"x" * 1_000_001), "at most 1,000,000 characters"),
        (lambda path: path.mkdir(), "it is a folder, not a file"),
        (os.mkfifo, "it is a pipe, not a file"),
    ],
    ids=["missing", "empty", "blank", "not UTF-8", "huge", "long", "folder", "pipe"],
)
def test_a_file_that_cannot_be_the_document_leaves_the_question_open(shop: Path, make: Any, told: str) -> None:
    make(shop / "draft.md")
    refused(command("answer", "shop/3", "edit", "--file", "draft.md"), told)
    assert desk()[0]["id"] == "shop/3"


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read everything")
def test_a_file_without_permission_is_said(shop: Path) -> None:
    (shop / "draft.md").write_text("# New")
    (shop / "draft.md").chmod(0)
    refused(command("answer", "shop/3", "edit", "--file", "draft.md"), "Permission denied")


def test_edit_needs_a_document_where_no_editor_can_be_opened(shop: Path) -> None:
    refused(command("answer", "shop/3", "edit"), "'edit' needs the edited document")


@pytest.mark.req("S3-33")
def test_an_edit_of_an_older_draft_is_refused_and_kept(shop: Path) -> None:
    command("answer", "shop/3", "Pictures only.", "--as", "bob")
    (shop / "draft.md").write_text("# My shop\n")
    done = command("answer", "shop/3", "edit", "--file", "draft.md", "--as", "ann")
    (item,) = desk()
    refused(done, "shop/3 was answered already, by bob", f"ripstop answer {item['id']} edit --file FILE")
    (kept,) = (shop / ".ripstop" / "kept").iterdir()
    assert str(kept.relative_to(shop)) in done.err
    assert kept.read_text() == "# My shop\n" and kept.stat().st_mode & 0o777 == 0o600
    assert item["document"] == SECOND
    assert command("answer", item["id"], "edit", "--file", str(kept)).code == 0


def test_texts_that_are_kept_do_not_replace_one_another_or_leave_the_folder(shop: Path) -> None:
    command("answer", "shop/3", "pass")
    for text in ("one", "two"):
        refused(command("answer", "shop/3", text), "`ripstop desk` lists what is open")
    kept = shop / ".ripstop" / "kept"
    assert sorted(path.read_text() for path in kept.iterdir()) == ["one", "two"]
    for path in kept.iterdir():
        path.unlink()
    kept.rmdir()
    kept.symlink_to(shop)
    refused(command("answer", "shop/3", "three"), "could not be kept", "symbolic link")
    assert not [path for path in shop.iterdir() if path.suffix == ".md"]


RACE = """
import sys
from ripstop.testing.commands import command
print("ready", flush=True)
for line in sys.stdin:
    done = command("answer", *line.split(), "--as", sys.argv[1])
    print(done.code, " ".join((done.out + done.err).split()), flush=True)
"""


@pytest.mark.long
def test_of_two_people_who_answer_at_once_one_is_told_who_was_first(shop: Path) -> None:
    """Two processes, and a question for each round."""
    rounds = [f"race-{number}" for number in range(40)]
    for run in rounds:
        review_style.start(shop, run, Drafts((FIRST,)))
    people = {
        name: subprocess.Popen(
            [sys.executable, "-c", RACE, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=shop
        )
        for name in ("ann", "bob")
    }
    for process in people.values():
        assert process.stdout and process.stdout.readline() == "ready\n"
    for run in rounds:
        for process in people.values():
            assert process.stdin
            process.stdin.write(f"{run}/3 pass\n")
            process.stdin.flush()
        told = {name: process.stdout.readline() for name, process in people.items() if process.stdout}
        (winner,) = [name for name, line in told.items() if line.startswith("0 Answered: pass.")]
        (loser,) = people.keys() - {winner}
        assert told[loser].startswith("2 ") and f"was answered already, by {winner}: 'pass'" in told[loser], told
    for process in people.values():
        process.communicate()


def test_a_call_that_is_to_be_allowed_is_shown_whole_and_folded_in_the_list(shop: Path) -> None:
    arguments = {"memo": "x" * 5_000, "lines": f"{'a' * 90}\nto: ann", "to": "eve\u202e"}
    ask = AskPerson(question="May it?", choices={"approve": "", "reject": ""}, arguments=arguments)
    errands(pay=Errands(rounds=((ask,),)))
    whole = command("desk", "pay/3").out
    assert "x" * 5_000 in whole and '    to: "eve\\u202e"\n' in whole
    assert f"    lines: (98 characters)\n        {'a' * 90}\n        to: ann\n" in whole, (
        "a line of a value is not a key"
    )
    listed = command("desk").out
    assert "x" * 100 not in listed and "(5,000 characters; all of them: ripstop desk pay/3)" in listed
    (item,) = desk("pay/3")
    assert item["arguments"] == arguments
