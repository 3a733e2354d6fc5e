"""A graph hands a document to an office: one family of runs, through real processes."""

import asyncio
import json
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ripstop.app.settings.settings_file import Settings
from ripstop.app.stores import open_engine
from ripstop.engine.failpoints import FAILPOINTS
from ripstop.faces.cli.main import cli
from ripstop.kernel.effects import AgentReplied
from ripstop.kernel.events import Answered, Ended
from ripstop.styles.handoff.plugin import PLUGIN
from tests.app.plugins.installation import environment
from tests.walks.commands import ripstop
from tests.walks.test_command_line import EXAMPLES

pytestmark = pytest.mark.long

OFFICE = EXAMPLES / "office"
SCRIPT = ("--model", "script:office/script.jsonl")
LIMIT, WAITING = 3, 4
WAY = ["accept", "pass", "accept", "pass", "accept", "complete"]


WORKING = ("run", "resume", "cancel")
"""What a process of its own does; to look, this one does."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(OFFICE, tmp_path / "office")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def reply(agent: str, content: str, **decisions: Any) -> dict[str, str]:
    return {"agent": agent, "reply": json.dumps({"content": content, "decisions": decisions})}


def rewrite(folder: Path, *lines: dict[str, str], keep: int = 1) -> None:
    """Another script: the first lines of the old one, then these, then the rest."""
    script = folder / "office" / "script.jsonl"
    old = script.read_text().splitlines()
    script.write_text("\n".join([*old[:keep], *map(json.dumps, lines), *old[keep:]]) + "\n")


def as_json(folder: Path, *args: str, code: int = 0) -> Any:
    if args[0] in WORKING:
        done = ripstop(*args, "--json", cwd=folder)
        assert done.returncode == code, (done.stdout, done.stderr)
        return json.loads(done.stdout)
    return json.loads(looked(*args, "--json"))


def looked(*args: str) -> str:
    done = CliRunner().invoke(cli, list(args))
    assert done.exit_code == 0, done.output
    return done.stdout


def document(folder: Path) -> str:
    (file,) = (folder / "office" / "team" / ".workflows").glob("*.md")
    return file.read_text()


def test_the_office_completes_the_letter_and_the_graph_goes_on(folder: Path) -> None:
    done = as_json(folder, "run", "office", *SCRIPT)
    assert (done["outcome"], done["usage"]["calls"]) == ("completed", 4)
    run = done["run"]
    assert "Status: completed" in document(folder)
    child, parent = as_json(folder, "runs")[::-1]
    assert (child["parent"], child["root"], child["style"]) == (run, run, "handoff")
    log = [json.loads(line) for line in looked("log", run, "--family", "--json").splitlines()]
    assert [one["at"] for one in log] == sorted(one["at"] for one in log)
    assert {one["of_run"] for one in log} == {run, child["run"]}
    assert len(log) == parent["records"] + child["records"]
    assert child["run"] in looked("log", run, "--family")
    assert f"team#58; {child['run']}" in looked("graph", run)
    assert f"{child['run']} ended as completed" in looked("why", run)
    assert as_json(folder, "verify")["sound"]


def test_a_question_of_the_office_is_on_the_desk_with_its_family(folder: Path) -> None:
    rewrite(folder, *[{"agent": "clerk", "error": "refused"}] * 3)
    run = as_json(folder, "run", "office", *SCRIPT, code=WAITING)["run"]
    (question,) = as_json(folder, "desk")
    assert question["family"] == [f"{question['run']} (handoff)", f"{run} (graph)"]
    assert "clerk has failed 3 times" in question["question"]
    as_json(folder, "answer", question["id"], "again")
    assert as_json(folder, "resume", run)["outcome"] == "completed"


def test_cancelling_the_graph_terminates_the_document(folder: Path) -> None:
    rewrite(folder, *[{"agent": "clerk", "error": "refused"}] * 3)
    run = as_json(folder, "run", "office", *SCRIPT, code=WAITING)["run"]
    assert as_json(folder, "cancel", run)["outcome"] == "stopped"
    assert [one["status"] for one in as_json(folder, "runs")] == ["stopped", "stopped"]
    assert "Status: terminated" in document(folder)
    assert as_json(folder, "desk") == []


def test_a_document_that_cannot_be_terminated_asks_and_cancel_returns(folder: Path) -> None:
    rewrite(folder, *[{"agent": "clerk", "error": "refused"}] * 3)
    run = as_json(folder, "run", "office", *SCRIPT, code=WAITING)["run"]
    documents = folder / "office" / "team" / ".workflows"
    shutil.rmtree(documents)
    documents.write_text("in the way")
    assert as_json(folder, "cancel", run)["outcome"] == "stopped"
    (question,) = as_json(folder, "desk")
    assert question["family"][-1] == f"{run} (graph)" and "could not be written" in question["question"]
    documents.unlink()
    as_json(folder, "answer", question["id"], "retry")
    looked("work", "--until-idle")
    assert "Status: terminated" in document(folder)
    assert [one["status"] for one in as_json(folder, "runs")] == ["stopped", "stopped"]


def test_a_limit_holds_over_the_family_and_can_be_raised(folder: Path) -> None:
    stopped = as_json(folder, "run", "office", *SCRIPT, "--max-calls", "2", code=LIMIT)
    run = stopped["run"]
    assert (stopped["outcome"], stopped["usage"]["calls"]) == ("limit", 2)
    done = as_json(folder, "resume", run, "--raise", "calls=5")
    assert (done["outcome"], done["usage"]["calls"]) == ("completed", 4)
    assert "Status: completed" in document(folder)
    assert len(as_json(folder, "runs")) == 2


def test_why_names_the_child_that_failed(folder: Path) -> None:
    rewrite(folder, reply("clerk", "Nobody answers letters.", action="terminate", to="", next_action="", result=""))
    done = as_json(folder, "run", "office", *SCRIPT, code=1)
    child = as_json(folder, "runs")[-1]["run"]
    why = looked("why", done["run"])
    assert f"child     {child} ended as" in why and f"ripstop why {child}" in why
    (told,) = [one["child"] for one in as_json(folder, "why", done["run"]) if "child" in one]
    assert told["run"] == child and told["outcome"] != "completed"


def test_a_definition_cannot_name_a_folder_of_documents_elsewhere(folder: Path) -> None:
    shutil.move(folder / "office" / "team", folder / "elsewhere")
    (folder / "here").mkdir()
    workflow = folder / "office" / "workflow.yaml"
    workflow.write_text(workflow.read_text().replace("workflow: team", "workflow: ../elsewhere"))
    script = f"script:{folder / 'office' / 'script.jsonl'}"
    done = ripstop("run", "../office", "--model", script, cwd=folder / "here")
    assert done.returncode == 2 and "keeps documents in" in done.stderr, done.stderr
    assert not (folder / "elsewhere" / ".workflows").exists()
    assert as_json(folder, "run", "office", *SCRIPT)["outcome"] == "completed"


# Kills


def live(folder: Path, kill: random.Random | None) -> int:
    armed, moment = {}, None
    if kill and kill.random() < 0.7:
        name = kill.choice(FAILPOINTS + PLUGIN.failpoints)
        armed = {"RIPSTOP_FAILPOINT": f"{name}:{1 + int(kill.expovariate(0.2))}"}
    elif kill:
        moment = kill.uniform(0.3, 1.5)
    command = [sys.executable, "-m", "tests.walks.office_work", str(folder)]
    process = subprocess.Popen(command, env=environment(**armed), stderr=subprocess.PIPE, text=True)
    try:
        _, said = process.communicate(timeout=moment or 60)
    except subprocess.TimeoutExpired:
        assert moment, "a process hangs"
        process.kill()
        _, said = process.communicate()
    assert process.returncode in (0, -signal.SIGKILL), said
    return process.returncode


async def check_family(folder: Path) -> None:
    async with open_engine(Settings(store=f"sqlite:{folder / '.ripstop' / 'journal.db'}")) as engine:
        assert await engine.journal.verify() == []
        child, parent = (await engine.runs()).items
        assert (child.parent, parent.status, child.status) == (parent.run_id, "completed", "completed")
        replies, way = 0, []
        for info in (parent, child):
            events = [record.event for record in await engine.journal.read(info.run_id)]
            assert [event.outcome for event in events if isinstance(event, Ended)] == ["completed"]
            replies += sum(isinstance(e, Answered) and isinstance(e.answer, AgentReplied) for e in events)
            way += [getattr(event, "action", "") for event in events if type(event).__name__ == "TransitionMade"]
        assert (replies, way) == (4, WAY)
        assert (await engine.look(parent.run_id)).run.spent.calls == 4
    text = document(folder)
    assert "Status: completed" in text and text.count("Sent: Dear Ms Ito") == 1


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 8))])
def test_the_family_survives_kills_anywhere(seed: int, tmp_path: Path) -> None:
    kills, chains, chance = 0, 0, random.Random(seed)
    while kills < (8 if seed else 4):
        chains += 1
        folder = tmp_path / str(chains)
        shutil.copytree(OFFICE, folder / "office")
        for _ in range(12):
            if live(folder, chance) == 0:
                break
            kills += 1
        assert live(folder, None) == 0
        asyncio.run(check_family(folder))
