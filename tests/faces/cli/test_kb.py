"""`ripstop kb search` shows what a question finds."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ripstop.faces.cli.main import cli
from ripstop.tools.knowledge import folder


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "knowledge").mkdir()
    (tmp_path / "knowledge" / "returns.md").write_text("# Returns\n\nWithin 30 days.\n\n## 退货\n\n七天内可以退货。\n")
    return tmp_path


def kb(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["kb", "search", *arguments])


def test_shows_source_and_passage() -> None:
    done = kb("How many days do I have?")
    assert (done.exit_code, done.stdout) == (0, "returns.md#Returns\nWithin 30 days.\n")
    assert kb("退货", "--most", "1").stdout == "returns.md#退货\n七天内可以退货。\n"


def test_programs_get_json() -> None:
    done = json.loads(kb("days", "--json").stdout)
    assert done == {
        "passages": [{"source": "returns.md#Returns", "text": "Within 30 days."}],
        "skipped": [],
        "files": 1,
    }


def test_says_that_nothing_was_found() -> None:
    done = kb("zebra")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "Nothing found in 1 file of knowledge.\n")


def test_says_which_files_are_not_searched(here: Path) -> None:
    (here / "knowledge" / "bad.md").write_bytes(b"\xff\xfe")
    done = kb("days")
    assert done.stderr == "bad.md is not searched: it is not UTF-8 text: byte 0 is wrong.\n"


def test_counts_files_that_are_not_searched_for_one_reason(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "MAX_FILES", 1)
    monkeypatch.setattr(folder, "MAX_FILE", 100)
    for number in range(30):
        (here / "knowledge" / f"z{number:02}.md").write_text("shoes")
    reason = "are not searched: there are more than 1 files."
    assert kb("days").stderr == f"30 files, such as z00.md, {reason}\n"
    for number in range(30):
        (here / "knowledge" / f"a{number:02}.md").write_bytes(b"x" * (101 + number))
    lines = kb("days").stderr.splitlines()
    assert len(lines) == 21 and lines[-1] == "… and 11 more lines like these; --json has every file."
    assert len(json.loads(kb("days", "--json").stdout)["skipped"]) == 60


def test_passages_do_not_act_on_the_terminal(here: Path) -> None:
    (here / "knowledge" / "evil.md").write_text("# a\x1b[31m\n\nzebra \x1b]0;title\x07\u202e")
    done = kb("zebra")
    assert "\x1b" not in done.stdout and "\\x1b]0;title\\x07\\u202e" in done.stdout


@pytest.mark.parametrize("name", ["missing", "knowledge/returns.md", ""])
def test_a_folder_that_is_not_there_is_a_usage_error(name: str) -> None:
    done = kb("days", "--folder", name)
    assert done.exit_code == 2 and done.stdout == ""
    assert name.split("/", maxsplit=1)[0] in done.stderr


@pytest.mark.parametrize("most", ["0", "51", "x"])
def test_refuses_odd_numbers_of_passages(most: str) -> None:
    assert kb("days", "--most", most).exit_code == 2
