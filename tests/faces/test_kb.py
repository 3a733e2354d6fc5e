"""`ripstop kb search` shows what a question finds."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ripstop.faces.cli.main import cli


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


def test_passages_do_not_act_on_the_terminal(here: Path) -> None:
    (here / "knowledge" / "evil.md").write_text("# a\x1b[31m\n\nzebra \x1b]0;title\x07\u202e")
    done = kb("zebra")
    assert "\x1b" not in done.stdout and "\\x1b]0;title\\x07\\u202e" in done.stdout


@pytest.mark.parametrize("folder", ["missing", "knowledge/returns.md", ""])
def test_a_folder_that_is_not_there_is_a_usage_error(folder: str) -> None:
    done = kb("days", "--folder", folder)
    assert done.exit_code == 2 and done.stdout == ""
    assert folder.split("/", maxsplit=1)[0] in done.stderr


@pytest.mark.parametrize("most", ["0", "51", "x"])
def test_refuses_odd_numbers_of_passages(most: str) -> None:
    assert kb("days", "--most", most).exit_code == 2
