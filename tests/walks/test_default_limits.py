"""A run has a budget even if nobody has set one."""

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ripstop.app.plugins import installed
from ripstop.app.settings.default_limits import describe_limits, how_to_raise, with_defaults
from ripstop.engine.performers import TimerPerformer
from ripstop.faces.cli.main import cli
from ripstop.kernel.effects import CallTool, Limits, SetTimer
from ripstop.kernel.style import StyleKit
from ripstop.tools.toolbox import Toolbox, tool
from tests.engine.world import a_world

ENDLESS = """\
name: endless
initial_message: go
max_turns: 1000000
agents: [{name: ada, type: ask}]
states:
  - name: think
    agent: ada
    start: true
    prompt: "{{COLLABORATION_GUIDE}} Decide: nonce."
    transitions: [{to: think}]
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "endless").mkdir()
    (tmp_path / "endless" / "workflow.yaml").write_text(ENDLESS, encoding="utf-8")
    replies = ({"content": "on", "decisions": {"nonce": number}} for number in range(230))
    script = "".join(json.dumps({"reply": json.dumps(reply)}) + "\n" for reply in replies)
    (tmp_path / "script.jsonl").write_text(script, encoding="utf-8")
    monkeypatch.chdir(tmp_path)


def run(*options: str) -> Result:
    return CliRunner().invoke(cli, ["--model", "script:script.jsonl", "run", "endless", *options])


def test_an_agent_that_changes_a_nonce_is_bounded_by_the_default_calls() -> None:
    result = json.loads(run("--json").stdout)
    shown = json.loads(CliRunner().invoke(cli, ["show", result["run"], "--json"]).stdout)
    assert shown["limits"] == {"calls": 200, "seconds": 3600.0, "depth": 8}
    assert (result["outcome"], result["guard"]["name"], result["usage"]["calls"]) == ("limit", "budget.calls", 200)


PARENT = """\
name: parent
initial_message: go
max_turns: 10
states:
  - name: delegate
    workflow: ../child
    start: true
    transitions: [{to: delegate, condition: "NOT done"}, {to: END, condition: done}]
"""
CHILD = """\
name: child
initial_message: go
agents: [{name: ada, type: ask}]
states:
  - {name: think, agent: ada, start: true, prompt: "{{COLLABORATION_GUIDE}} Decide: done.", transitions: [{to: END}]}
"""


def test_a_run_has_a_limit_of_the_runs_below_it_that_can_be_set_and_raised(tmp_path: Path) -> None:
    for name, text in (("parent", PARENT), ("child", CHILD)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "workflow.yaml").write_text(text, encoding="utf-8")
    replies = ({"content": f"turn {number}", "decisions": {"done": number == 3}} for number in range(4))
    script = "".join(json.dumps({"reply": json.dumps(reply)}) + "\n" for reply in replies)
    (tmp_path / "script.jsonl").write_text(script, encoding="utf-8")
    command = ("--json", "--model", "script:script.jsonl")
    result = json.loads(CliRunner().invoke(cli, [*command, "run", "parent", "--max-runs", "2"]).stdout)
    assert (result["outcome"], result["guard"]["name"]) == ("limit", "budget.runs")
    shown = json.loads(CliRunner().invoke(cli, ["show", result["run"], "--json"]).stdout)
    assert shown["limits"] == {"calls": 200, "seconds": 3600.0, "runs": 2, "depth": 8}
    resumed = CliRunner().invoke(cli, [*command, "resume", result["run"], "--raise", "runs=1"])
    assert json.loads(resumed.stdout)["guard"]["name"] == "budget.runs"
    (tmp_path / "ripstop.toml").write_text("[limits]\nruns = 3\n", encoding="utf-8")
    stopped = json.loads(CliRunner().invoke(cli, [*command, "run", "parent"]).stdout)
    assert stopped["because"].startswith("The next workflow would bring runs to 4; the limit is 3.")
    (tmp_path / "ripstop.toml").unlink()
    started = json.loads(CliRunner().invoke(cli, [*command, "run", "parent"]).stdout)
    shown = json.loads(CliRunner().invoke(cli, ["show", started["run"], "--json"]).stdout)
    assert shown["limits"] == {"calls": 200, "seconds": 3600.0, "runs": 500, "depth": 8}


def test_what_is_set_wins_over_a_default(tmp_path: Path) -> None:
    assert json.loads(run("--json", "--max-calls", "210").stdout)["usage"]["calls"] == 210
    (tmp_path / "ripstop.toml").write_text("[limits]\ncalls = 205\n", encoding="utf-8")
    assert json.loads(run("--json").stdout)["usage"]["calls"] == 205


def test_default_limits_can_be_switched_off(tmp_path: Path) -> None:
    assert "limits:" not in run("--no-default-limits").stderr
    (tmp_path / "ripstop.toml").write_text("default_limits = false\n", encoding="utf-8")
    assert "limits: 3 calls; raise" in run("--max-calls", "3").stderr


def test_the_limits_are_shown_at_the_start_of_a_run() -> None:
    assert "limits: 3 calls, 1 h at work; raise with --max-calls" in run("--max-calls", "3").stderr


@pytest.mark.parametrize("kit", installed().kits, ids=lambda kit: kit.name)
def test_defaults_fill_only_what_is_not_set(kit: StyleKit) -> None:
    mine = Limits(calls=7, tokens=9)
    filled = with_defaults(mine, kit.style.default_limits)
    assert (filled.calls, filled.tokens, filled.money) == (7, 9, None)
    assert filled.seconds == kit.style.default_limits.seconds
    assert with_defaults(mine, Limits()) == mine


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (Limits(), ""),
        (Limits(calls=200, seconds=3600), "200 calls, 1 h at work"),
        (Limits(turns=5, money=0.5, seconds=90), "5 turns, a cost of 0.5, 90 s at work"),
        (Limits(tokens=10, seconds=120), "10 tokens, 2 min at work"),
        (Limits(turns=1, calls=1), "1 turn, 1 call"),
    ],
)
def test_limits_are_described_in_words(limits: Limits, words: str) -> None:
    assert describe_limits(limits) == words


@pytest.mark.parametrize(
    ("limits", "ways"),
    [
        (Limits(calls=3), "raise with --max-calls N, or later with resume --raise calls=+N"),
        (Limits(tokens=9, money=2), "raise with --max-tokens N, --max-money N, or later with resume --raise LIMIT=+N"),
        (Limits(turns=5), "raise with `[limits] turns` in ripstop.toml, or later with resume --raise turns=+N"),
    ],
)
def test_advice_names_only_what_raises_the_limits_shown(limits: Limits, ways: str) -> None:
    assert how_to_raise(limits, is_new=True) == ways
    assert "--max" not in how_to_raise(limits, is_new=False), "resume has no such option"


def test_the_limits_are_shown_even_if_the_first_call_fails(tmp_path: Path) -> None:
    (tmp_path / "script.jsonl").write_text('{"agent": "somebody else", "reply": "x"}\n', encoding="utf-8")
    done = run()
    assert done.exit_code == 1
    assert done.stderr.splitlines()[1].startswith("limits: 200 calls, 1 h at work; raise with --max-calls N, --max-sec")


NESTED = """\
name: {name}
initial_message: go
states:
  - {{name: delegate, start: true, workflow: {below}.yaml, transitions: [{{to: END}}]}}
"""
LEAF = """\
name: c
initial_message: go
agents: [{name: ada, type: ask}]
states:
  - {name: think, agent: ada, start: true, prompt: Think., transitions: [{to: END}]}
"""


@pytest.mark.parametrize("most", [1, 2])
def test_a_limit_of_runs_that_a_descendant_reached_is_a_limit_and_can_be_raised(tmp_path: Path, most: int) -> None:
    for name, below in (("a", "b"), ("b", "b2"), ("b2", "c")):
        (tmp_path / f"{name}.yaml").write_text(NESTED.format(name=name, below=below), encoding="utf-8")
    (tmp_path / "c.yaml").write_text(LEAF, encoding="utf-8")

    def ripstop(*command: str) -> tuple[int, dict[str, Any]]:
        done = CliRunner().invoke(cli, ["--json", "--model", "script:script.jsonl", *command])
        return done.exit_code, json.loads(done.stdout)

    code, result = ripstop("run", "a.yaml", "--any-name", "--max-runs", str(most))
    assert (code, result["outcome"], result["guard"]["name"]) == (3, "limit", "budget.runs"), result
    code, again = ripstop("resume", result["run"], "--raise", "runs=+1")
    assert (code, again["outcome"]) == (3, "limit"), "all that was raised is used up by the child that is resumed"
    (hint,) = (way for way in again["guard"]["ways_on"] if "--raise" in way)
    code, last = ripstop(*hint.split()[1:])
    assert (code, last["outcome"]) == (0, "completed"), hint


def test_a_waiting_run_says_what_it_waits_for(tmp_path: Path) -> None:
    (tmp_path / "ripstop.toml").write_text('[guards]\nthen = "ask"\n', encoding="utf-8")
    done = run("--max-calls", "3")
    assert done.exit_code == 4
    assert "\nwaiting  for an answer\n" in done.stdout
    assert not [line for line in done.stdout.splitlines() if line != line.rstrip()]


def test_a_deadline_ends_a_run_whose_tool_blocks_a_thread(tmp_path: Path) -> None:
    """The tool never returns; neither the run nor the worker may wait for it."""
    blocked = threading.Event()

    @tool("unsafe")
    def hang() -> None:
        """Hang."""
        blocked.wait()

    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            worker = await world.work({CallTool: Toolbox([hang]), SetTimer: TimerPerformer()})
            await world.start("r", (CallTool(tool="hang"),), limits=Limits(seconds=0.05))
            view = await world.ended("r")
            assert view.run.ended is not None and view.run.ended.outcome == "limit"
            async with asyncio.timeout(30):
                await worker.stop(grace=0)

    try:
        asyncio.run(story())
    finally:
        blocked.set()
