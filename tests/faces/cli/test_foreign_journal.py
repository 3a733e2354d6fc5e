"""A journal that came with a folder: commands that would act ask on a terminal, and `trust` shows what is open."""

import json
from pathlib import Path

import pytest

from ripstop.testing.commands import command
from tests.faces.cli.test_on_the_spot import Person
from tests.harness.foreign_folder import TOOLS, write_journal


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "clone"
    write_journal(folder / ".ripstop" / "journal.db", folder, tmp_path / "enemy")
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "bank.py").write_text(TOOLS)
    (tmp_path / "bank.txt").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("BANK", str(tmp_path / "bank.txt"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "tools"))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.chdir(folder)
    return folder


def paid(clone: Path) -> list[str]:
    return (clone.parent / "bank.txt").read_text().split()


def test_a_command_that_would_act_shows_what_is_open_and_asks(clone: Path) -> None:
    person = Person(clone, "--tools", "bank", "work", "--until-idle")
    assert b"9999" in person.sees(b"Do you agree?")
    person.types("n\n")
    code, shown = person.ends()
    assert (code, shown.count("Do you agree?"), paid(clone)) == (2, 1, [])
    person = Person(clone, "--tools", "bank", "work", "--until-idle")
    person.sees(b"Do you agree?")
    person.types("y\n")
    code, shown = person.ends()
    assert (code, paid(clone)) == (0, ["9999"]), shown


def test_a_command_that_asks_nothing_else_asks_too(clone: Path) -> None:
    (run,) = json.loads(command("runs", "--json").out)
    person = Person(clone, "cancel", run["run"])
    person.sees(b"Do you agree?")
    person.types("y\n")
    assert person.ends()[0] == 0 and paid(clone) == []


@pytest.mark.parametrize("named", [(), (".ripstop/journal.db",), ("sqlite:.ripstop/journal.db",)])
def test_trust_names_what_is_open_and_remembers_the_consent(clone: Path, named: tuple[str, ...]) -> None:
    refused = command("trust", *named)
    assert refused.code == 2 and "neither made nor agreed to" in refused.err
    assert 'pay  {"euros":9999}' in refused.err
    agreed = json.loads(command("trust", *named, "--yes", "--json").out)["agreed"]
    assert agreed == [{"kind": "journal", "content": f"{clone}/.ripstop/journal.db", "project": str(clone)}]
    (run,) = json.loads(command("runs", "--json").out)
    assert command("cancel", run["run"]).code == 0
    assert command("trust", "--revoke").code == 0
    assert command("cancel", run["run"]).code == 2


def test_an_error_as_json_says_it_once(clone: Path) -> None:
    done = command("work", "--until-idle", "--json")
    assert done.code == 2 and json.loads(done.out)["kind"] == "usage" and paid(clone) == []
