"""Commands that only look make nothing: no folder, no file, no journal."""

import json
import os
from pathlib import Path

import pytest

from ripstop.testing.commands import command
from tests.walks.test_command_line import HAIKU, SCRIPT

LOOKING = (
    ("runs",),
    ("sessions",),
    ("sessions", "plans"),
    ("show", "nobody"),
    ("log", "nobody"),
    ("why", "nobody"),
    ("verify",),
    ("graph", "nobody"),
    ("desk",),
    ("answer", "nobody/1", "yes"),
    ("cancel", "nobody"),
    ("fork", "nobody"),
    ("resume",),
    ("docs", "list"),
    ("docs", "show", "nothing"),
    ("docs", "inbox"),
    ("docs", "accept", "nothing"),
    ("docs", "clean", "--dry-run"),
)

NEEDING_A_JOURNAL = [
    args
    for args in (*LOOKING, ("resume", "--all"), ("trust", "nobody"))
    if args[0] not in ("runs", "desk", "sessions", "docs", "graph")
]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def a_run(*more: str) -> str:
    done = command("run", str(HAIKU), "--model", SCRIPT, "--json", *more)
    assert done.code == 0, done
    return str(json.loads(done.out)["run"])


@pytest.mark.parametrize("args", LOOKING, ids=" ".join)
def test_a_missing_store_that_was_named_is_said_and_not_made(here: Path, args: tuple[str, ...]) -> None:
    done = command("--store", "sqlite:wrong/place.db", *args)
    assert (done.code, "wrong/place.db" in done.err) == (2, True), done
    assert os.listdir(here) == []


def test_a_missing_store_in_the_environment_or_settings_is_said(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("RIPSTOP_STORE", "sqlite:there.db")
        done = command("runs")
    assert (done.code, "There is no journal at there.db" in done.err) == (2, True)
    (here / "ripstop.toml").write_text('store = "sqlite:there.db"\n', encoding="utf-8")
    done = command("desk")
    assert (done.code, "ripstop run WORKFLOW" in done.err) == (2, True)
    assert os.listdir(here) == ["ripstop.toml"]


@pytest.mark.parametrize("args", LOOKING, ids=" ".join)
def test_looking_makes_nothing_in_a_fresh_folder(here: Path, args: tuple[str, ...]) -> None:
    command(*args)
    assert os.listdir(here) == []


def test_a_fresh_folder_has_no_runs(here: Path) -> None:
    assert "No runs yet" in command("runs").out
    assert command("desk").out == "Nothing waits for you. There is no journal at .ripstop/journal.db yet.\n"
    for args in (("runs",), ("desk",), ("docs", "inbox"), ("sessions",), ("sessions", "plans")):
        done = command(*args, "--json")
        assert (done.code, json.loads(done.out)) == (0, [])


@pytest.mark.parametrize("args", [*NEEDING_A_JOURNAL, ("verify", "nobody"), ("resume", "nobody")], ids=" ".join)
def test_a_command_on_a_missing_journal_names_its_path(here: Path, args: tuple[str, ...]) -> None:
    done = command(*args)
    assert (done.code, "There is no journal at .ripstop/journal.db yet" in done.err) == (2, True), done
    as_json = json.loads(command(*args, "--json").out)
    assert (as_json["kind"], "sound" in as_json) == ("usage", False)


def test_a_run_that_is_not_in_the_journal_is_named(here: Path) -> None:
    a_run()
    for args in NEEDING_A_JOURNAL:
        done = command(*args)
        if "nobody" in " ".join(args):
            assert (done.code, "There is no run 'nobody'" in done.err) == (2, True), done
    assert "Nothing is unfinished in this journal" in command("resume").err


def test_a_hint_that_is_a_question_ends_once(here: Path) -> None:
    (here / "workflows" / "brochure").mkdir(parents=True)
    (here / "workflows" / "brochure" / "workflow.yaml").touch()
    assert command("run", "brochur").err.endswith("did you mean 'brochure'?\n")
    assert command("run", "elsewhere").err.endswith("; the workflows in workflows/ are: brochure.\n")


def test_a_folder_without_workflows_is_not_said_to_be_missing(here: Path) -> None:
    assert command("run", "nope").err.endswith("and there is no folder workflows/ to look it up in.\n")
    (here / "workflows").mkdir()
    assert command("run", "nope").err.endswith("and workflows/ has no workflow in it.\n")


def test_an_empty_file_is_not_made_a_journal_by_looking(here: Path) -> None:
    (here / "j.db").touch()
    done = command("--store", "sqlite:j.db", "runs")
    assert (done.code, "j.db is empty: it does not hold a journal yet" in done.err) == (2, True)
    assert (here / "j.db").read_bytes() == b""


def test_looking_leaves_no_files_beside_the_journal(here: Path) -> None:
    run = a_run()
    before = sorted(os.listdir(here / ".ripstop"))
    for args in (("runs",), ("show", run), ("log", run), ("why", run), ("verify",), ("desk",)):
        assert command(*args).code == 0
    assert sorted(os.listdir(here / ".ripstop")) == before


def test_running_makes_a_private_folder_that_git_ignores(here: Path) -> None:
    before = os.umask(0)
    try:
        a_run()
    finally:
        os.umask(before)
    folder = here / ".ripstop"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / ".gitignore").read_text() == "*\n"
    assert [file for file in folder.iterdir() if file.is_file() and file.stat().st_mode & 0o077] == []


def test_a_folder_and_journal_of_an_earlier_version_are_closed_to_others(here: Path) -> None:
    a_run()
    folder, journal = here / ".ripstop", here / ".ripstop" / "journal.db"
    folder.chmod(0o755)
    journal.chmod(0o644)
    a_run()
    assert (folder.stat().st_mode & 0o777, journal.stat().st_mode & 0o777) == (0o700, 0o600)


def test_a_named_store_is_private_and_its_folder_stays_as_it_is(here: Path) -> None:
    (here / "shared").mkdir()
    (here / "shared").chmod(0o755)
    a_run("--store", "sqlite:shared/j.db")
    assert (here / "shared").stat().st_mode & 0o777 == 0o755
    assert (here / "shared" / "j.db").stat().st_mode & 0o777 == 0o600
