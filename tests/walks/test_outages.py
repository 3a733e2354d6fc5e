"""Outages of model servers, through the command line: runs are paused, looked at, and retried under their own names."""

import contextlib
import json
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.outage_server import Mode, set_mode
from tests.walks.commands import log_of, ripstop, succeed
from tests.walks.matrix import GOAL, STYLES, WORDS, make_cell
from tests.walks.test_command_line import HAIKU
from tests.walks.test_family_lines import CHILD, PARENT
from tests.walks.test_lost_files import DELIVERS

pytestmark = pytest.mark.long


def script(folder: Path, *lines: object) -> str:
    path = folder / "script.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return f"script:{path}"


REPLIES_OF = [json.loads(line) for line in (HAIKU / "script.jsonl").read_text(encoding="utf-8").splitlines()]
AWAY = "openai:m"
NOBODY = ("--base-url", "http://127.0.0.1:9/v1")
PATIENCE = "attempts = 1\n"
DAWN = "2020-01-01"
SPOIL = """\
UPDATE records SET body = replace(body, '"started"', '"begun"')
WHERE run = (SELECT key FROM runs WHERE id = ?)"""


def paused(folder: Path, patience: str = PATIENCE) -> str:
    (folder / "ripstop.toml").write_text(patience, encoding="utf-8")
    done = ripstop("--json", "--model", AWAY, *NOBODY, "run", str(HAIKU), cwd=folder)
    assert done.returncode == 4, done.stderr
    result = json.loads(done.stdout)
    assert result["outcome"] == "paused"
    return str(result["run"])


def test_an_outage_pauses_a_run_and_it_is_on_the_desk_and_in_the_list(tmp_path: Path) -> None:
    run = paused(tmp_path)
    assert run in succeed("runs", "--status", "paused", cwd=tmp_path)
    (item,) = json.loads(succeed("desk", "--json", cwd=tmp_path))
    assert item["kind"] == "outage" and "127.0.0.1:9" in item["question"]
    assert item["evidence"][0]["text"].startswith("asked "), "no JSON"
    log = succeed("log", run, cwd=tmp_path)
    assert "refused" in log and re.search(r"again \d{4}-\d\d-\d\d \d\d:\d\d:\d\d", log), "not in microseconds"
    assert "paused" in succeed("show", run, cwd=tmp_path)
    assert succeed("verify", cwd=tmp_path)


def test_a_retried_run_keeps_its_name_and_completes_with_another_model(tmp_path: Path) -> None:
    run = paused(tmp_path)
    done = ripstop("--json", "--model", script(tmp_path, *REPLIES_OF), "retry", run, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (result,) = json.loads(done.stdout)["runs"]
    assert (result["run"], result["outcome"]) == (run, "completed")
    assert json.loads(succeed("desk", "--json", cwd=tmp_path)) == []


def test_every_face_says_who_refused_how_often_since_when_and_what_is_next(tmp_path: Path) -> None:
    run = paused(tmp_path, "attempts = 2\n")
    (listed,) = json.loads(succeed("runs", "--json", cwd=tmp_path))
    (outage,) = listed["outages"]
    assert (outage["by"], outage["run"], outage["call"]) == ("openai", run, 2)
    records = [json.loads(line) for line in succeed("log", run, "--json", cwd=tmp_path).splitlines()]
    refused = [one for one in records if one["type"] == "call_refused"]
    assert outage["refusals"] == len(refused) and outage["since"] == refused[0]["at"]
    assert outage["next_attempt"] > refused[-1]["at"] and "127.0.0.1:9" in outage["reason"]
    assert json.loads(succeed("desk", "--json", cwd=tmp_path))[0]["outage"] == outage
    (waiting,) = json.loads(succeed("show", run, "--json", cwd=tmp_path))["waiting"]
    assert waiting["outage"] == outage
    for command in (("runs",), ("desk",), ("show", run)):
        said = " ".join(succeed(*command, cwd=tmp_path).split())
        assert f"refused {len(refused)} times since" in said
        assert "no worker is running: `ripstop work` tries again from" in said
        assert f"ripstop retry {run}" in said


def test_resume_retries_a_paused_run_too(tmp_path: Path) -> None:
    run = paused(tmp_path)
    done = ripstop("--model", script(tmp_path, *REPLIES_OF), "resume", run, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_run_that_a_refused_call_ended_is_retried_and_one_that_completed_is_not(tmp_path: Path) -> None:
    spec = script(tmp_path, {"error": "refused"}, *REPLIES_OF)
    done = ripstop("--json", "--model", spec, "run", str(HAIKU), cwd=tmp_path)
    assert done.returncode == 1
    run = json.loads(done.stdout)["run"]
    assert ripstop("retry", run, cwd=tmp_path).returncode == 0
    again = ripstop("retry", run, cwd=tmp_path)
    assert again.returncode == 2 and "completed" in again.stderr


def test_retry_says_what_it_needs_and_when_there_is_nothing_to_do(tmp_path: Path) -> None:
    paused(tmp_path)
    assert "--failed-since" in ripstop("retry", cwd=tmp_path).stderr
    assert ripstop("retry", "nobody-x1x1x", cwd=tmp_path).returncode == 2
    empty = tmp_path / "empty"
    empty.mkdir()
    succeed("run", str(HAIKU), "--model", script(empty, *REPLIES_OF), cwd=empty)
    assert "Nothing is paused." in succeed("retry", "--all", cwd=empty)
    assert json.loads(succeed("--json", "retry", "--all", "--failed-since", DAWN, cwd=empty)) == {"runs": []}


def test_failed_since_means_failed_runs_and_says_how_paused_ones_are_retried(tmp_path: Path) -> None:
    run = paused(tmp_path)
    said = succeed("retry", "--failed-since", DAWN, cwd=tmp_path)
    assert "No run has failed since 2020-01-01" in said and "ripstop retry --all" in said
    both = ripstop("--json", *NOBODY, "retry", "--all", "--failed-since", DAWN, cwd=tmp_path)
    assert [one["run"] for one in json.loads(both.stdout)["runs"]] == [run]


def test_a_family_that_failed_with_a_refused_call_is_named_with_the_reason(tmp_path: Path) -> None:
    for name, text in (("parent", PARENT), ("child", CHILD)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "workflow.yaml").write_text(text, encoding="utf-8")
    plan = {"agent": "boss", "reply": json.dumps({"content": "x", "decisions": {"planned": True}})}
    spec = script(tmp_path, plan, {"agent": "clerk", "error": "refused"})
    root = json.loads(ripstop("--json", "--model", spec, "run", "parent", cwd=tmp_path).stdout)["run"]
    done = ripstop("retry", "--failed-since", DAWN, cwd=tmp_path)
    assert done.returncode == 2
    assert f"{root}.6 cannot be retried" in done.stderr and f"Fork {root} instead" in done.stderr


def test_retry_says_which_tools_a_run_waits_for(tmp_path: Path) -> None:
    (tmp_path / "delivers.yaml").write_text(DELIVERS, encoding="utf-8")
    spec = script(tmp_path, {"agent": "w", "calls": [{"tool": "deliver", "args": {}}]})
    first = ripstop("--json", "--model", spec, "run", "delivers.yaml", "--any-name", cwd=tmp_path)
    run = json.loads(first.stdout)["run"]
    done = ripstop("retry", run, cwd=tmp_path)
    assert done.returncode == 4, done.stderr
    assert f"{run} waits for a worker that has the tool 'deliver'." in done.stderr and "--tools MODULE" in done.stderr
    assert json.loads(ripstop("--json", "retry", run, cwd=tmp_path).stdout)["runs"][0]["needs"] == ["tool:deliver"]


def test_a_run_that_was_paused_when_it_was_restored_goes_on_by_the_commands_that_are_named(tmp_path: Path) -> None:
    run = paused(tmp_path)
    succeed("backup", "copy.db", cwd=tmp_path)
    succeed("restore", "copy.db", cwd=tmp_path)
    refused = ripstop("retry", "--all", cwd=tmp_path)
    assert refused.returncode == 2 and "ripstop answer --all restored" in refused.stderr
    assert "ripstop resume --all" in succeed("answer", "--all", "restored", "continue", cwd=tmp_path)
    done = ripstop("--json", "--model", script(tmp_path, *REPLIES_OF), "resume", "--all", cwd=tmp_path)
    assert [(one["run"], one["outcome"]) for one in json.loads(done.stdout)["runs"]] == [(run, "completed")]


def test_a_cancelled_run_is_not_paused_any_more_and_leaves_the_desk(tmp_path: Path) -> None:
    run = paused(tmp_path)
    assert "stopped" in succeed("cancel", run, cwd=tmp_path)
    assert json.loads(succeed("desk", "--json", cwd=tmp_path)) == []
    assert json.loads(succeed("runs", "--status", "paused", "--json", cwd=tmp_path)) == []
    again = ripstop("retry", run, cwd=tmp_path)
    assert again.returncode == 2 and "stopped" in again.stderr


def test_after_a_call_was_given_up_the_fork_that_is_advised_asks_its_agent_again(tmp_path: Path) -> None:
    run = paused(tmp_path)
    (item,) = json.loads(succeed("desk", "--json", cwd=tmp_path))
    succeed("answer", item["id"], "give up", cwd=tmp_path)
    ended = json.loads(succeed("show", run, "--json", cwd=tmp_path))
    assert ended["outcome"] == "failed" and f"ripstop fork {run}" in succeed("why", run, cwd=tmp_path)
    forked = succeed("fork", run, cwd=tmp_path)
    assert "failed" not in forked and "resume" in forked
    fork = json.loads(succeed("fork", run, "--json", cwd=tmp_path))["run"]
    done = ripstop("--json", "--model", script(tmp_path, *REPLIES_OF), "resume", fork, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_fork_of_a_paused_run_continues_with_another_model(tmp_path: Path) -> None:
    run = paused(tmp_path)
    fork = json.loads(succeed("fork", run, "--json", cwd=tmp_path))["run"]
    done = ripstop("--model", script(tmp_path, *REPLIES_OF), "resume", fork, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert run in succeed("runs", "--status", "paused", cwd=tmp_path), "the old run stays as it is"


# Many at once


TWO = """\
name: two
initial_message: Look.
agents: [{name: clerk, type: ask}, {name: dee, type: ask, model: "script:script.jsonl"}]
states:
  - name: look
    agent: clerk
    start: true
    prompt: "{{COLLABORATION_GUIDE}}"
    transitions: [{to: close, condition: always}]
  - name: close
    agent: dee
    prompt: "{{COLLABORATION_GUIDE}}"
    transitions: [{to: END, condition: always}]
"""


def listed(folder: Path) -> dict[str, str]:
    return {one["run"]: one["status"] for one in json.loads(succeed("runs", "--json", cwd=folder))}


def test_one_run_that_cannot_be_retried_does_not_keep_the_others_from_it(tmp_path: Path) -> None:
    """A retry of all runs after an outage would otherwise end at the first whose model or folder is gone."""
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "workflow.yaml").write_text(TWO, encoding="utf-8")
    second = script(tmp_path, REPLIES_OF[0]).removeprefix("script:")
    (tmp_path / "ripstop.toml").write_text(f'{PATIENCE}[models]\ndefault = "{AWAY}"\n', encoding="utf-8")
    flows = (str(HAIKU), "two", str(HAIKU))
    told = [ripstop("--json", *NOBODY, "run", flow, cwd=tmp_path).stdout for flow in flows]
    first, gone, last = (json.loads(one)["run"] for one in told)
    Path(second).unlink()
    done = ripstop("--json", *NOBODY, "retry", "--all", cwd=tmp_path)
    assert f"{gone} is not retried: " in done.stderr
    assert {one["run"] for one in json.loads(done.stdout)["runs"]} == {first, last}
    assert listed(tmp_path) == dict.fromkeys((first, gone, last), "paused")
    refusals = {run: [one["type"] for one in log_of(run, tmp_path)].count("call_refused") for run in (first, last)}
    assert refusals == {first: 2, last: 2}
    assert done.returncode == 4


def test_a_failed_run_that_cannot_be_read_does_not_hide_the_others(tmp_path: Path) -> None:
    spec = script(tmp_path, {"error": "refused"})
    runs = [json.loads(ripstop("--json", "--model", spec, "run", str(HAIKU), cwd=tmp_path).stdout)["run"] for _ in "ab"]
    (journal,) = tmp_path.rglob("journal.db")
    with contextlib.closing(sqlite3.connect(journal)) as opened, opened:
        opened.execute(SPOIL, (runs[0],))
    done = ripstop("--json", "--model", script(tmp_path, *REPLIES_OF), "retry", "--failed-since", DAWN, cwd=tmp_path)
    assert [one["run"] for one in json.loads(done.stdout)["runs"]] == [runs[1]], done.stderr


# Another server


ASK = """\
name: ask
initial_message: Look at ORDER-1-graph.
agents: [{name: clerk, type: ask}]
states:
  - name: look
    agent: clerk
    prompt: "{{COLLABORATION_GUIDE}} {{initial_message}} Decide: done."
    transitions: [{to: END, condition: done}]
"""


@pytest.fixture
def another_server(tmp_path: Path) -> Iterator[str]:
    """The address of a server that answers."""
    folder = tmp_path / "server"
    folder.mkdir()
    set_mode(folder, Mode())
    command = [sys.executable, "-m", "tests.harness.outage_server", str(folder), "0"]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        server.kill()


@pytest.mark.parametrize("command", ["retry", "resume"])
def test_a_paused_run_continues_at_another_address(tmp_path: Path, another_server: str, command: str) -> None:
    (tmp_path / "ripstop.toml").write_text(PATIENCE, encoding="utf-8")
    (tmp_path / "ask").mkdir()
    (tmp_path / "ask" / "workflow.yaml").write_text(ASK, encoding="utf-8")
    done = ripstop("--json", "--model", AWAY, *NOBODY, "run", "ask", cwd=tmp_path)
    assert done.returncode == 4, done.stderr
    run = json.loads(done.stdout)["run"]
    done = ripstop("--base-url", another_server, command, run, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [one["type"] for one in log_of(run, tmp_path)].count("settings_changed") == 1
    served = (tmp_path / "server" / "served.jsonl").read_text(encoding="utf-8")
    assert served.count("answered") == 1


# A child that is paused


def paused_child(folder: Path, parent: str) -> str:
    """A run that has started one whose agent has a model of its own, at an address where nobody listens."""
    make_cell(folder, parent, "graph")
    child = folder / "child" / "workflow.yaml"
    child.write_text(child.read_text().replace("type: ask}", f"type: ask, model: '{AWAY}'}}"))
    (folder / "ripstop.toml").write_text(f'{PATIENCE}[models]\ndefault = "script:s.jsonl"\n', encoding="utf-8")
    done = ripstop("--json", *NOBODY, "run", "parent", "--input", GOAL, cwd=folder)
    assert done.returncode == 4, done.stderr
    result = json.loads(done.stdout)
    assert result["outcome"] == "waiting"
    return str(result["run"])


@pytest.mark.parametrize("by", ["root", "child"])
@pytest.mark.parametrize("parent", STYLES)
def test_a_run_says_that_it_waits_for_a_paused_child(tmp_path: Path, parent: str, by: str) -> None:
    """The family goes on as a whole, whichever of its runs is retried; the hints name the one at the top."""
    root = paused_child(tmp_path, parent)
    (item,) = json.loads(succeed("desk", "--json", cwd=tmp_path))
    assert item["kind"] == "outage" and item["run"].startswith(f"{root}.")
    assert item["outage"]["root"] == root
    ways = f"ripstop retry {root}   ·   ripstop answer {item['id']} 'give up'\n"
    for command in (("show", root), ("show", item["run"]), ("desk",)):
        assert ways in succeed(*command, cwd=tmp_path)
    assert "cannot be reached" in succeed("show", root, cwd=tmp_path)
    assert f"  ripstop retry {root}\n" in succeed("runs", cwd=tmp_path)
    (listed,) = json.loads(succeed("runs", "--status", "paused", "--json", cwd=tmp_path))
    assert (listed["run"], listed["outages"]) == (item["run"], [item["outage"]])
    done = ripstop("--json", "--model", "script:s.jsonl", "retry", root if by == "root" else item["run"], cwd=tmp_path)
    (told,) = json.loads(done.stdout)["runs"]
    assert (told["run"], told["outcome"]) == (root, "completed")
    assert json.loads(succeed("desk", "--json", cwd=tmp_path)) == []
    statuses = {one["run"]: one["status"] for one in json.loads(succeed("runs", "--json", cwd=tmp_path))}
    assert statuses[item["run"]] == "completed", statuses


def own_model_removed(folder: Path) -> str:
    """Have the agents of a board that is a child use the run's model; returns what answers for them all."""
    own = folder / "child" / "own.jsonl"
    if not own.exists():
        return "script:s.jsonl"
    for prompt in (folder / "child").rglob("*.md"):
        prompt.write_text(prompt.read_text().replace(f"---\nmodel: script:{folder}/child/own.jsonl\n---\n", ""))
    return f"script:{own}"


@pytest.mark.parametrize("child", STYLES)
def test_a_child_of_any_style_is_paused_and_goes_on_with_its_parent(tmp_path: Path, child: str) -> None:
    """An outage is no verdict about the work of a bot either, if nobody but a workflow waits for its answer."""
    make_cell(tmp_path, "graph", child)
    model = own_model_removed(tmp_path)
    (tmp_path / "ripstop.toml").write_text(f'{PATIENCE}[models]\ndefault = "{AWAY}"\n', encoding="utf-8")
    done = ripstop("--json", *NOBODY, "run", "parent", "--input", GOAL, cwd=tmp_path)
    assert done.returncode == 4, done.stderr
    result = json.loads(done.stdout)
    assert result["outcome"] == "waiting"
    (item,) = json.loads(succeed("desk", "--json", cwd=tmp_path))
    assert (item["kind"], item["outage"]["root"]) == ("outage", result["run"])
    done = ripstop("--json", "--model", model, "retry", result["run"], cwd=tmp_path)
    (told,) = json.loads(done.stdout)["runs"]
    assert (told["run"], told["outcome"]) == (result["run"], "completed"), done.stderr
    assert WORDS in succeed("show", result["run"], cwd=tmp_path)
    assert json.loads(succeed("desk", "--json", cwd=tmp_path)) == []


@pytest.mark.parametrize("sop", ["sop: Answer.\n", ""])
def test_a_bot_that_answers_one_message_is_paused_and_plans_when_it_goes_on(tmp_path: Path, sop: str) -> None:
    make_cell(tmp_path, "graph", "conversation")
    bot = tmp_path / "child" / "bot.yaml"
    bot.write_text(bot.read_text().replace("sop: Answer.\n", sop) + "skills: {swim: Swim.}\n")
    (tmp_path / "ripstop.toml").write_text(PATIENCE, encoding="utf-8")
    done = ripstop("--json", "--model", AWAY, *NOBODY, "run", "child", "--input", GOAL, cwd=tmp_path)
    assert done.returncode == 4, done.stderr
    run = json.loads(done.stdout)["run"]
    done = ripstop("--json", "--model", "script:s.jsonl", "retry", "--all", cwd=tmp_path)
    assert [(one["run"], one["outcome"]) for one in json.loads(done.stdout)["runs"]] == [(run, "completed")], done
    assert WORDS in succeed("show", run, cwd=tmp_path)
    assert "plan_missing" not in {one["type"].rpartition(".")[2] for one in log_of(run, tmp_path)}


def test_a_retry_is_refused_if_a_child_would_use_an_address_that_nobody_agreed_to(tmp_path: Path) -> None:
    """It would fail the child for good."""
    root = paused_child(tmp_path, "graph")
    with (tmp_path / "ripstop.toml").open("a", encoding="utf-8") as file:
        file.write('base_url = "http://127.0.0.1:9/v1"\n')
    for command in ("retry", "resume"):
        done = ripstop(command, root, cwd=tmp_path)
        assert done.returncode == 2 and "not agreed" in done.stderr, done.stderr
    assert len(json.loads(succeed("runs", "--status", "paused", "--json", cwd=tmp_path))) == 1
