"""`--set KEY=VALUE`: values that a workflow declares reach its prompts, in every process that works on the run."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ripstop.faces.cli.main import cli

WORKFLOW = """\
name: letter
initial_message: an apology
max_turns: 3
values:
  tone: friendly
  customer:
agents:
  - name: writer
    type: ask
states:
  - name: write
    agent: writer
    start: true
    prompt: |
      {{COLLABORATION_GUIDE}}
      {{initial_message}}, {{tone}}, to {{customer}}; decide "done".
    transitions:
      - to: END
        condition: done
      - to: write
exit_conditions:
  - condition: max_turns_exceeded
    action: save_and_end
"""
NOT_DONE = '{"agent": "writer", "reply": "{\\"content\\": \\"no\\", \\"decisions\\": {\\"done\\": false}}"}\n'


def ripstop(*args: str) -> Result:
    return CliRunner().invoke(cli, list(args))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "letter").mkdir()
    (tmp_path / "letter" / "workflow.yaml").write_text(WORKFLOW, encoding="utf-8")
    (tmp_path / "script.jsonl").write_text(NOT_DONE * 9, encoding="utf-8")
    monkeypatch.chdir(tmp_path)


def prompts(run: str) -> set[str]:
    records = [json.loads(line) for line in ripstop("log", run, "--json").stdout.splitlines()]
    commands = [record["command"] for record in records if record["type"] == "asked"]
    return {command["prompt"].splitlines()[-1] for command in commands if command["type"] == "ask_agent"}


def test_values_reach_prompts_and_survive_resume_and_fork() -> None:
    done = ripstop("run", "letter", "--model", "script:script.jsonl", "--set", "customer={{tone}} Ito", "--json")
    assert done.exit_code == 3, done.stderr
    run = json.loads(done.stdout)["run"]
    assert ripstop("resume", run).exit_code == 3
    fork = json.loads(ripstop("fork", run, "--at", "3", "--json").stdout)["run"]
    assert prompts(run) == prompts(fork) == {'an apology, friendly, to {{tone}} Ito; decide "done".'}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (("--set", "tone=x"), "requires values that are not set: customer. Set them with --set customer=…"),
        (
            ("--set", "custmer=x"),
            "does not declare the value 'custmer'; it declares customer, tone. Did you mean 'customer'?",
        ),
        (("--set", "customer=x", "--set", "last_agent_name=x"), "does not declare the value 'last_agent_name'"),
        (("--set", "customer=\udcff"), "not UTF-8"),
        (("--set", "customer=x", "--set", "customer=y"), "--set sets 'customer' twice, to 'x' and to 'y'"),
        (("--set", "customer=x", "--input", ""), "--input is empty. Give a goal, or leave it out"),
        (("--set", "customer=x", "--input", " \n"), "--input is empty"),
    ],
)
def test_a_value_that_is_unknown_or_missing_is_said_before_the_run(values: tuple[str, ...], said: str) -> None:
    done = ripstop("run", "letter", "--model", "script:script.jsonl", *values)
    assert (done.exit_code, said in done.stderr) == (2, True), done.stderr
    assert "No runs yet" in ripstop("runs").stdout
