"""A style from outside does all that a built-in one does: nothing in ripstop knows it."""

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from ripstop.app.application import App
from ripstop.app.plugins import BUILT_IN, Plugins
from ripstop.app.settings.settings_file import Models, Settings
from tests.app.plugins.installation import (
    MODEL,
    REPLIES,
    TOY,
    as_json,
    install,
    installed_packages,
    process,
    ripstop,
    uninstalled_packages,
)
from tests.toy_style import PLUGIN
from tests.toy_style.tools import CALLS

WAITING = 4
LIST = "agent: helper\nchore: sweep the floor\nchore: wash the windows\n"


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packages")
    install(folder, "toy", TOY)
    return folder


@pytest.fixture
def toy(tmp_path: Path, packages: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The toy style is installed, and the current folder has a list of chores and what the agent replies."""
    monkeypatch.chdir(tmp_path)
    Path("home.chores").write_text(LIST)
    Path("replies.jsonl").write_text(REPLIES)
    with installed_packages(packages):
        yield tmp_path


def started(*options: str) -> str:
    """A run that waits for a person."""
    run = as_json("run", "home.chores", *MODEL, *options, code=WAITING)["run"]
    assert isinstance(run, str)
    return run


# In a program


def test_it_runs_in_a_program_that_plugs_it_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("home.chores").write_text(LIST)
    Path("replies.jsonl").write_text(REPLIES)
    asyncio.run(_program(Settings(models=Models(default="script:replies.jsonl"))))


async def _program(settings: Settings) -> None:
    async with App(settings, plugins=Plugins([*BUILT_IN, PLUGIN])) as app:
        run = await app.start("home.chores", values={"person": "ann"})
        view = await app.wait(run)
        (question,) = await app.desk()
        assert (view.status, question.command.to, question.style) == ("waiting", "ann", "chores")
        await app.answer(question, "It is clean", by="ann")
        assert (await app.wait(run)).status == "completed"
        assert await app.result(run) == {"reports": ["Done, 1.", "Done, 2."]}
        assert await app.engine.journal.verify() == []


# On the command line, installed


def test_it_is_listed_with_its_command(toy: Path) -> None:
    (listed,) = [one for one in as_json("styles") if one["style"] == "chores"]
    assert (listed["plugin"], listed["init"], listed["commands"]) == ("chores", True, ["chores"])
    assert "Show what is done of a list of chores." in ripstop("--help").stdout


def test_its_example_checks_clean_and_runs(toy: Path) -> None:
    (file,) = as_json("init", "chores", "flat")["files"]
    assert as_json("check", "flat") == {"ok": True, "problems": []}
    as_json("run", "flat", *MODEL, code=WAITING)
    assert ripstop("work", "--until-idle").exit_code == 0  # its timer is due
    assert [one["purpose"] for one in as_json("desk")] == ["chores.clean"]
    assert "There is a file" in ripstop("init", "chores", "flat").stderr
    assert file == "flat/saturday.chores"


def test_its_errors_have_a_position(toy: Path) -> None:
    (toy / "wrong.chores").write_text("agent: helper\n pause:  soon\nchoer: sweep\n")
    done = ripstop("check", "wrong.chores")
    assert done.exit_code == 2
    assert "wrong.chores:2:10: error: 'pause' must be a number, but this is 'soon'" in done.stdout
    assert "wrong.chores:3:1: error: there is no field 'choer'; did you mean 'chore'?" in done.stdout
    assert ripstop("run", "wrong.chores").exit_code == 2


def test_its_schema_is_printed(toy: Path) -> None:
    assert "chores" in as_json("schema", "chores")["$defs"]["Chores"]["properties"]


def test_its_definition_and_its_run_are_drawn(toy: Path) -> None:
    run = started()
    for format in ("mermaid", "svg", "dot"):
        for what in ("home.chores", run):
            drawn = ripstop("graph", what, "--format", format)
            assert drawn.exit_code == 0 and "wash the windows" in drawn.stdout, drawn.stderr
    assert run in ripstop("graph", run, "--format", "svg").stdout


def test_a_run_shows_its_parts_its_gist_and_its_actions(toy: Path) -> None:
    run = started("--set", "rounds=2")
    shown = as_json("show", run)
    tasks, facts = shown["parts"]
    assert [task["state"] for task in tasks["tasks"]] == ["done", "done"]
    assert facts["rows"] == [["round", 1], ["wish", ""]]
    assert [action["name"] for action in shown["actions"]] == ["add"]
    assert "Add a chore" in ripstop("show", run).stdout
    assert [one["gist"] for one in as_json("runs")] == ["2 of 2 chores"]


def test_wrong_start_arguments_are_refused(toy: Path) -> None:
    for option, reason in (("rounds=many", "arguments are wrong"), ("colour=red", "no argument 'colour'")):
        done = ripstop("run", "home.chores", *MODEL, "--set", option)
        assert (done.exit_code, reason in done.stderr) == (2, True), done.stderr
    assert not (toy / ".ripstop").exists()


def test_an_action_becomes_its_own_fact_and_leads_on(toy: Path) -> None:
    run = started()
    assert ripstop("act", run, "add").exit_code == 2
    assert as_json("act", run, "add", "--field", "what=feed the cat", "--as", "ann")["status"] == "interrupted"
    assert as_json("desk") == []
    as_json("resume", run, code=WAITING)
    kinds = [json.loads(line)["type"] for line in ripstop("log", run, "--json").stdout.splitlines()]
    assert kinds.count("chores.added") == 1 and kinds.count("chores.finished") == 3
    assert "feed the cat" in ripstop("log", run).stdout


def test_resuming_all_runs_shows_what_goes_on_in_each(toy: Path) -> None:
    run = started()
    as_json("act", run, "add", "--field", "what=feed the cat")
    done = ripstop("resume", "--all")
    assert done.exit_code == WAITING
    assert f"{run}  helper is at work" in done.stderr and f"{run}  a person is asked" in done.stderr


def test_a_person_answers_at_the_desk_and_it_ends(toy: Path) -> None:
    run = started("--set", "person=ann")
    (question,) = as_json("desk", "--to", "ann")
    assert (question["purpose"], question["other"]) == ("chores.clean", "no")
    as_json("answer", question["id"], "Corners!")
    as_json("resume", run, code=WAITING)
    (question,) = as_json("desk")
    assert as_json("answer", question["id"], "yes", "--as", "ann")["status"] == "completed"
    done = as_json("show", run)
    assert done["because"] == "ann is content" and len(done["result"]["reports"]) == 2
    assert as_json("verify")["sound"]
    why = ripstop("why", f"{run}@{_record(run, 'chores.round_began', 1)}").stdout
    assert "the person was not content: Corners!" in why
    assert ripstop("why", run).exit_code == 0


def test_its_documents_and_its_command_tell_the_same(toy: Path) -> None:
    run = started()
    assert ripstop("chores", run).stdout == "home, round 1: 2 of 2\n"
    connection = sqlite3.connect(toy / ".ripstop" / "journal.db")
    ((key, body),) = connection.execute("SELECT key, body FROM documents WHERE collection = 'chores'").fetchall()
    connection.close()
    assert (key, json.loads(body)["done"]) == (run, ["Done, 1.", "Done, 2."])
    assert "There are no chores" in ripstop("chores", "nobody").stderr


def test_a_fork_goes_on_from_any_record(toy: Path) -> None:
    run = started()
    for at in range(1, as_json("show", run)["records"] + 1):
        fork = as_json("fork", run, "--at", str(at))["run"]
        assert as_json("resume", fork, code=WAITING)["waiting"], at
        reports = toy / ".ripstop" / "workspaces" / fork
        assert {path.name for path in reports.iterdir()} >= {"1-0.txt", "1-1.txt"}
    assert as_json("verify")["sound"]


def test_runs_of_a_style_that_is_gone_are_set_aside(toy: Path, packages: Path) -> None:
    run = started()
    as_json("act", run, "add", "--field", "what=feed the cat")
    with uninstalled_packages(packages):
        assert [one["run"] for one in as_json("runs")] == [run]
        done = ripstop("show", run)
        assert done.exit_code == 1 and "chores" in done.stderr and "Traceback" not in done.stderr
        assert ripstop("work", "--until-idle").exit_code == 0
        ((status, why),) = [(one["status"], one["set_aside"]) for one in as_json("runs")]
        assert status == "set_aside" and "chores" in why
    as_json("resume", run, code=WAITING)
    assert [one["status"] for one in as_json("runs")] == ["waiting"]


def test_a_process_of_its_own_finds_the_entry_point(toy: Path, packages: Path) -> None:
    assert "chores" in process(toy, packages, "styles").stdout
    done = process(toy, packages, "run", "home.chores", *MODEL, "--json")
    assert done.returncode == WAITING, done.stderr
    assert json.loads(done.stdout)["style"] == "chores"


def test_its_own_tool_files_each_report_once(toy: Path) -> None:
    run = started()
    folder = toy / ".ripstop" / "workspaces" / run
    calls = (folder / CALLS).read_text().splitlines()
    assert len(calls) == len(set(calls)) == 2


def _record(run: str, kind: str, index: int) -> int:
    records = [json.loads(line) for line in ripstop("log", run, "--json").stdout.splitlines()]
    number = [record["number"] for record in records if record["type"] == kind][index]
    assert isinstance(number, int)
    return number
