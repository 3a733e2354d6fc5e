"""`ripstop doctor` says what a machine has, and what to do about what is missing."""

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from ripstop.app.machine import Finding, _sqlite, is_enough, look_at_machine
from ripstop.app.settings.settings_file import Commands, Settings
from ripstop.faces.cli.main import cli
from ripstop.tools.commands.sandbox import Sandboxes

BWRAP = Sandboxes(bwrap="/usr/bin/bwrap", bwrap_version="0.8.0", landlock=7, seccomp=True, user_namespaces=True)
LANDLOCK = Sandboxes(bwrap_problem="it is not installed", landlock=3, seccomp=True)
NONE = Sandboxes(bwrap_problem="it is not installed")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def found(sandboxes: Sandboxes, settings: Settings = Settings(), **environment: str) -> dict[str, Finding]:
    return {one.name: one for one in look_at_machine(settings, environment, sandboxes)}


def test_says_everything_and_ends_with_0_here() -> None:
    done = CliRunner().invoke(cli, ["doctor"])
    assert done.exit_code == 0, done.output
    for name in (
        "Python",
        "SQLite",
        "journal",
        "local model",
        "bubblewrap",
        "Landlock",
        "seccomp",
        "run_command",
        "editor",
    ):
        assert f"\n{name} " in f"\n{done.stdout}"


def test_says_the_same_to_programs() -> None:
    done = json.loads(CliRunner().invoke(cli, ["--json", "doctor"]).stdout)
    assert done["ok"] is True
    assert {"name", "found", "ok", "necessary", "advice"} == set(done["findings"][0])


@pytest.mark.parametrize(
    ("sandboxes", "says"),
    [(BWRAP, "under bubblewrap"), (LANDLOCK, "under Landlock and seccomp"), (NONE, "refuses every command")],
)
def test_says_what_run_command_does(sandboxes: Sandboxes, says: str) -> None:
    assert says in found(sandboxes)["run_command"].found


def test_says_that_commands_run_without_a_sandbox() -> None:
    settings = Settings(commands=Commands(unconfined=True))
    assert "WITHOUT a sandbox" in found(NONE, settings)["run_command"].found
    assert "under bubblewrap" in found(BWRAP, settings)["run_command"].found


def test_an_old_landlock_or_no_seccomp_is_not_a_sandbox() -> None:
    assert Sandboxes(landlock=2, seccomp=True).kind == "none"
    assert Sandboxes(bwrap="/usr/bin/bwrap", landlock=7).kind == "none"


def test_a_missing_sandbox_is_not_an_error_but_sqlite_without_json_is() -> None:
    assert is_enough(look_at_machine(Settings(), {}, NONE))
    assert not is_enough([_sqlite(has_json=False)])


@pytest.mark.skipif(os.geteuid() == 0, reason="root can write everywhere")
def test_a_journal_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert not found(BWRAP)["journal"].ok


@pytest.mark.parametrize(
    ("environment", "ok", "says"),
    [
        ({"EDITOR": "cat -u"}, True, "cat -u (from EDITOR)"),
        ({"VISUAL": "cat", "EDITOR": "false"}, True, "cat (from VISUAL)"),
        ({"EDITOR": "no-such-editor"}, False, "there is no such program"),
        ({"EDITOR": "'"}, False, "there is no such program"),
    ],
)
def test_looks_for_the_editor(environment: dict[str, str], ok: bool, says: str) -> None:
    one = found(BWRAP, Settings(), **environment)["editor"]
    assert one.ok is ok and says in one.found


def test_an_editor_that_is_installed_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not found(BWRAP)["editor"].ok
    editor = tmp_path / "nano"
    editor.touch(0o755)
    one = found(BWRAP)["editor"]
    assert one.ok and one.found == f"{editor}; neither VISUAL nor EDITOR is set"
