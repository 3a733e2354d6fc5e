"""Whose name the history of a document records, and that the help says so."""

import json
from pathlib import Path

import pytest

from ripstop.testing.commands import command


@pytest.mark.parametrize(("name", "recorded"), [((), "byuer"), (("--as", "ann"), "ann")])
def test_an_assignment_is_recorded_in_the_name_of_the_owner_unless_another_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: tuple[str, ...], recorded: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command("docs", "new", "Buy ink", "--to", "byuer", "--id", "ink").code == 0
    done = command("docs", "pass", "ink", "--to", "buyer", *name, "--json")
    last = json.loads(done.out)["history"][-1]
    assert (last["agent"], last["action"]) == (recorded, "assigned it to buyer")


@pytest.mark.parametrize("name", ["accept", "pass", "complete", "terminate"])
def test_the_help_says_whose_name_is_recorded(name: str) -> None:
    told = " ".join(command("docs", name, "--help").out.split())
    assert "Whose name the history records. Default: the document's owner." in told
    assert "the owner" in told.partition("Options:")[0] or "the document's owner" in told.partition("Options:")[0], told
