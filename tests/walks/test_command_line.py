"""Whole stories through the command line, as a person or a script would live them."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
HAIKU = EXAMPLES / "haiku"
SCRIPT = f"script:{HAIKU / 'script.jsonl'}"


def ripstop(*args: str, cwd: Path, **more: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ripstop", *args]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=240, **more)


def succeed(*args: str, cwd: Path) -> str:
    done = ripstop(*args, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout


def a_run(cwd: Path) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(succeed("run", str(HAIKU), "--model", SCRIPT, "--json", cwd=cwd))
    return result


def log_of(run: str, cwd: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in succeed("log", run, "--json", cwd=cwd).splitlines()]


@pytest.mark.req("S1-20", "S1-29", "S1-32", "S1-57", "S1-67")
def test_a_scripted_run_takes_the_path_that_its_decisions_choose(tmp_path: Path) -> None:
    result = a_run(tmp_path)
    assert result["outcome"] == "completed"
    assert result["path"] == ["write", "judge", "write", "judge"]
    assert (result["turns"], result["style"], result["waiting"]) == (4, "graph", [])
    assert set(result) == {
        "run",
        "style",
        "outcome",
        "because",
        "turns",
        "path",
        "usage",
        "waiting",
        "warnings",
        "result",
    }
    assert result["result"]["decisions"] == {"approved": True}


@pytest.mark.req("S1-33", "S1-35", "S1-40")
def test_the_log_shows_every_prompt_as_it_was_sent(tmp_path: Path) -> None:
    log = log_of(a_run(tmp_path)["run"], tmp_path)
    prompts = [r["command"]["prompt"] for r in log if r.get("command", {}).get("type") == "ask_agent"]
    assert "Write three short lines about the sea at night." in prompts[0]
    assert "The critic said" not in prompts[0]
    assert "The dark water breathes" in prompts[1]
    assert "The critic said of your last try: The second line is lovely" in prompts[2]
    assert all(r["prompt_is_genuine"] for r in log if r.get("answer", {}).get("type") == "agent_replied")
    assert [r["number"] for r in log] == list(range(1, len(log) + 1))
    assert all(r["at"].endswith("Z") and r["type"] for r in log)


def test_why_shows_the_conditions_with_the_values_they_saw(tmp_path: Path) -> None:
    run = a_run(tmp_path)["run"]
    told = succeed("why", f"{run}@7", cwd=tmp_path)
    assert "✓ to write if NOT approved  (taken)  workflow.yaml:43" in told
    assert "approved = false" in told
    assert "✗ to END if approved  workflow.yaml:41" in told
    assert "completed" in succeed("why", run, cwd=tmp_path)


def test_runs_show_and_desk_speak_of_what_is_there(tmp_path: Path) -> None:
    assert "No runs yet" in succeed("runs", cwd=tmp_path)
    assert "Nothing waits for you." in succeed("desk", cwd=tmp_path)
    run = a_run(tmp_path)["run"]
    assert run in succeed("runs", cwd=tmp_path)
    assert "write → judge → write → judge" in succeed("show", run, cwd=tmp_path)
    (listed,) = json.loads(succeed("runs", "--json", cwd=tmp_path))
    assert (listed["run"], listed["status"]) == (run, "completed")


def test_a_person_sees_each_turn_and_the_result_without_a_terminal(tmp_path: Path) -> None:
    done = ripstop("run", str(HAIKU), "--model", SCRIPT, cwd=tmp_path)
    assert "judge critic" in done.stderr
    assert "The dark water breathes" in done.stderr
    assert "path    write → judge → write → judge" in done.stdout
    assert "\x1b[" not in done.stdout + done.stderr


def test_a_fork_at_an_answer_decides_anew_with_a_changed_definition(tmp_path: Path) -> None:
    run = a_run(tmp_path)["run"]
    changed = tmp_path / "easy.yaml"
    text = (HAIKU / "workflow.yaml").read_text(encoding="utf-8")
    changed.write_text(text.replace("condition: approved\n", "condition: always\n"), encoding="utf-8")
    forked = json.loads(succeed("fork", run, "--at", "7", "--definition", str(changed), "--json", cwd=tmp_path))
    assert forked["status"] == "completed"
    shown = json.loads(succeed("show", forked["run"], "--json", cwd=tmp_path))
    assert shown["path"] == ["write", "judge"]
    assert json.loads(succeed("show", run, "--json", cwd=tmp_path))["path"] == ["write", "judge", "write", "judge"]
    assert "Sound: 2 runs" in succeed("verify", cwd=tmp_path)


@pytest.mark.long
def test_a_fork_between_steps_asks_anew_and_can_be_resumed(tmp_path: Path) -> None:
    run = a_run(tmp_path)["run"]
    forked = json.loads(succeed("fork", run, "--at", "5", "--json", cwd=tmp_path))
    (listed,) = [one for one in json.loads(succeed("runs", "--json", cwd=tmp_path)) if one["run"] == forked["run"]]
    assert forked["status"] == listed["status"] == "interrupted"
    assert forked["workspace"] == str(tmp_path / ".ripstop" / "workspaces" / forked["run"])
    resumed = json.loads(succeed("resume", forked["run"], "--json", cwd=tmp_path))
    assert (resumed["run"], resumed["outcome"]) == (forked["run"], "completed")
    assert '"began": ' in succeed("log", forked["run"], "--json", cwd=tmp_path)
    assert "  began " not in succeed("log", forked["run"], cwd=tmp_path)
    told = succeed("fork", run, "--at", "5", "--workspace", "there", cwd=tmp_path)
    assert f"Files:  {tmp_path / 'there'}" in told
    first, *_, last = told.splitlines()
    new = last.rpartition(" ")[2]
    assert first == f"Forked {run} at record 6 as {new}.", "the step of record 5 ends there"
    assert last == f"Start it:  ripstop resume {new}"
    assert "begins as a copy of the old run's files" in succeed("fork", "--help", cwd=tmp_path)


@pytest.mark.parametrize("role", ["default", "strong"])
def test_a_wrong_model_in_the_settings_is_found_before_a_run_begins(tmp_path: Path, role: str) -> None:
    (tmp_path / "ripstop.toml").write_text(f'[models]\n{role} = "lcoal"\n', encoding="utf-8")
    done = ripstop("run", str(HAIKU), cwd=tmp_path)
    assert (done.returncode, "did you mean 'local'?" in done.stderr) == (2, True), done.stderr
    assert "No runs yet" in succeed("runs", cwd=tmp_path)


def test_a_wrong_model_of_an_agent_is_found_before_a_run_begins(tmp_path: Path) -> None:
    text = (HAIKU / "workflow.yaml").read_text(encoding="utf-8").replace("type: ask", "type: ask\n    model: lcoal", 1)
    (tmp_path / "poem.yaml").write_text(text, encoding="utf-8")
    done = ripstop("run", "poem.yaml", "--model", SCRIPT, cwd=tmp_path)
    assert (done.returncode, "did you mean 'local'?" in done.stderr) == (2, True), done.stderr
    assert "No runs yet" in succeed("runs", cwd=tmp_path)


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A run whose agent takes its time, under way in a process of its own."""
    lines = [
        {"agent": "poet", "reply": '{"content": "one", "decisions": {"done": true}}'},
        {"agent": "critic", "reply": '{"content": "fine", "decisions": {"approved": true}}', "delay": 600},
    ]
    script = tmp_path / "slow.jsonl"
    script.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    command = [sys.executable, "-m", "ripstop", "run", str(HAIKU), "--model", f"script:{script}"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    journal = tmp_path / ".ripstop" / "journal.db"
    deadline = time.monotonic() + 60
    while not (journal.exists() and _length(journal) >= 5):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.05)
    yield process
    if process.poll() is None:
        process.kill()
    process.communicate()


def hurry(folder: Path) -> None:
    """Have the agent of `slow` answer at once from now on."""
    script = folder / "slow.jsonl"
    script.write_text(script.read_text(encoding="utf-8").replace('"delay": 600', '"delay": 0'), encoding="utf-8")


def _length(journal: Path) -> int:
    db = sqlite3.connect(f"file:{journal}?mode=ro", uri=True)
    try:
        return int(db.execute("SELECT max(length) FROM runs").fetchone()[0] or 0)
    except sqlite3.OperationalError:
        return 0  # not created yet
    finally:
        db.close()


@pytest.mark.long
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_says_how_to_resume_and_does(
    slow: subprocess.Popen[str], tmp_path: Path, number: signal.Signals, code: int
) -> None:
    slow.send_signal(number)
    _, err = slow.communicate(timeout=30)
    assert slow.returncode == code, err
    assert "ripstop resume haiku-" in err
    hurry(tmp_path)
    resumed = json.loads(succeed("resume", "--json", cwd=tmp_path))
    assert (resumed["outcome"], resumed["path"]) == ("completed", ["write", "judge"])


@pytest.mark.long
def test_a_killed_run_is_resumed_at_once_without_waiting_for_its_lease(
    slow: subprocess.Popen[str], tmp_path: Path
) -> None:
    slow.kill()
    slow.communicate(timeout=30)
    hurry(tmp_path)
    resumed = json.loads(succeed("resume", "--json", cwd=tmp_path))
    assert (resumed["outcome"], resumed["path"]) == ("completed", ["write", "judge"])
    replies = [r for r in log_of(resumed["run"], tmp_path) if r.get("answer", {}).get("type") == "agent_replied"]
    assert [r.get("attempt", 1) for r in replies] == [1, 2], "the repeated call is on record"
    assert succeed("verify", cwd=tmp_path).startswith("Sound")
    assert not list((tmp_path / ".ripstop").glob("*-worker-*"))


@pytest.mark.long
def test_cancelling_from_another_process_ends_the_run(slow: subprocess.Popen[str], tmp_path: Path) -> None:
    (listed,) = json.loads(succeed("runs", "--json", cwd=tmp_path))
    assert "stopped" in succeed("cancel", listed["run"], cwd=tmp_path)
    slow.communicate(timeout=30)
    assert slow.returncode == 3
    assert "cancelled" in json.loads(succeed("show", listed["run"], "--json", cwd=tmp_path))["because"]


@pytest.mark.parametrize(
    ("option", "guard"),
    [(("--max-calls", "2"), "budget.calls"), (("--max-tokens", "60"), "budget.tokens")],
)
def test_a_budget_stops_the_run_with_the_reason_on_record(tmp_path: Path, option: tuple[str, str], guard: str) -> None:
    done = ripstop("run", str(HAIKU), "--model", SCRIPT, "--json", *option, cwd=tmp_path)
    result = json.loads(done.stdout)
    assert (done.returncode, result["outcome"]) == (3, "limit")
    assert guard in [r.get("guard") for r in log_of(result["run"], tmp_path)]


def test_running_out_of_script_fails_and_says_so(tmp_path: Path) -> None:
    script = tmp_path / "short.jsonl"
    script.write_text('{"agent": "poet", "reply": "{\\"decisions\\": {\\"done\\": true}}"}\n', encoding="utf-8")
    done = ripstop("run", str(HAIKU), "--model", f"script:{script}", "--json", cwd=tmp_path)
    assert done.returncode == 1
    assert "critic" in json.loads(done.stdout)["because"]


@pytest.mark.parametrize(
    ("reply", "why"), [("", "the reply is empty"), ("<think>Hm.</think>", "the reply has only thoughts")]
)
def test_a_run_that_got_empty_replies_says_so(tmp_path: Path, reply: str, why: str) -> None:
    script = tmp_path / "empty.jsonl"
    script.write_text(f"{json.dumps({'reply': reply})}\n" * 2, encoding="utf-8")
    done = ripstop("run", str(HAIKU), "--model", f"script:{script}", "--json", cwd=tmp_path)
    result = json.loads(done.stdout)
    assert (done.returncode, result["outcome"]) == (1, "failed")
    assert result["because"].endswith(f"broke the protocol: {why}")


def test_a_reply_without_json_is_asked_for_once_more_and_then_fails(tmp_path: Path) -> None:
    script = tmp_path / "prose.jsonl"
    script.write_text('{"reply": "All done!"}\n{"reply": "Really, all done."}\n', encoding="utf-8")
    done = ripstop("run", str(HAIKU), "--model", f"script:{script}", "--json", cwd=tmp_path)
    result = json.loads(done.stdout)
    assert (done.returncode, result["outcome"], result["path"]) == (1, "failed", ["write"])
    log = log_of(result["run"], tmp_path)
    (problem,) = [r["problem"] for r in log if r["type"] == "turn.corrected"]
    assert "there is no JSON object in it" in problem
    last = [r for r in log if r.get("command", {}).get("type") == "ask_agent"][-1]
    assert problem in [m["text"] for m in last["command"]["messages"]]


BAD = [
    ((), 0, "Usage"),
    (("run",), 2, "WORKFLOW"),
    (("run", "nowhere"), 2, "There is no workflow 'nowhere'"),
    (("run", "."), 2, "A graph is a YAML file, or a folder with workflow.yaml."),
    (("run", str(HAIKU), "--model", "magic"), 2, "'magic' names no model; it can be `local`"),
    (("run", str(HAIKU), "--model", "lcoal"), 2, "did you mean 'local'?"),
    (("run", str(HAIKU), "--model", "openai:"), 2, "did you mean 'openai:NAME'?"),
    (("run", str(HAIKU), "--model", ""), 2, "--model is empty"),
    (("resume", "nobody", "--model", "lcoal"), 2, "did you mean 'local'?"),
    (("run", str(HAIKU), "--model", "script:missing.jsonl"), 2, "missing.jsonl"),
    (("run", str(HAIKU), "--model", SCRIPT, "--workspace", str(HAIKU / "script.jsonl")), 2, "is a file"),
    (("run", str(HAIKU), "--model", SCRIPT, "--max-seconds", "nan"), 2, "not a number"),
    (("--store", "sqlite::memory:", "runs"), 2, "Name a file"),
    (("run", str(HAIKU), "--set", "nonsense"), 2, "KEY=VALUE"),
    (("run", str(HAIKU), "--max-calls", "0"), 2, "0"),
    (("show", "nobody"), 2, "There is no journal at"),
    (("log", "nobody"), 2, "There is no journal at"),
    (("why", "nobody@x"), 2, "RUN@N"),
    (("cancel", "nobody"), 2, "There is no journal at"),
    (("fork", "nobody"), 2, "There is no journal at"),
    (("verify", "nobody"), 2, "There is no journal at"),
    (("answer", "nobody", "yes"), 2, "RUN/NUMBER"),
    (("answer", "nobody/3", "yes"), 2, "There is no journal at"),
    (("resume",), 2, "There is no journal at"),
    (("--store", "paper:x", "runs"), 2, "sqlite:PATH"),
    (("--store", "sqlite:.", "runs"), 1, "folder"),
]


@pytest.mark.parametrize(("args", "code", "text"), BAD, ids=lambda value: str(value)[-40:])
def test_bad_usage_gets_a_clear_word_and_no_traceback(
    tmp_path: Path, args: tuple[str, ...], code: int, text: str
) -> None:
    done = ripstop(*args, cwd=tmp_path)
    assert text in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    if args:
        assert done.returncode == code


@pytest.mark.req("S1-5", "S1-13", "S1-22", "S1-24", "S1-30", "S1-42", "S1-72")
def test_all_mistakes_of_a_definition_are_told_at_once_with_their_places(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(
        """\
name: wrong
initial_mesage: hello
max_turns: true
agents:
  - name: a
    type: codr
states:
  - name: one
    agent: b
    start: true
    prompt: "{{goal}}"
    transitions:
      - to: tow
        condition: "done AND"
  - name: two
    agent: a
    start: true
    prompt: |
      Well.
      {% for x in y %}
""",
        encoding="utf-8",
    )
    done = ripstop("run", str(wrong), cwd=tmp_path)
    assert done.returncode == 2
    told = done.stderr.splitlines()
    expected = {
        (2, 1): "did you mean 'initial_message'?",
        (3, 12): "must be a whole number",
        (6, 11): "did you mean 'coder'?",
        (9, 12): "there is no agent 'b'",
        (11, 14): "there is no variable 'goal'",
        (13, 13): "did you mean 'two'?",
        (14, 29): "the condition ends",
        (17, 12): "second start state",
        (20, 7): "is not supported",
    }
    for (line, column), text in expected.items():
        assert any(f"wrong.yaml:{line}:{column}:" in one and text in one for one in told), (line, column, text, told)


def test_every_command_has_help_with_an_example(tmp_path: Path) -> None:
    names = ["run", "resume", "runs", "show", "log", "why", "desk", "answer", "cancel", "fork", "verify"]
    for name in names:
        shown = succeed(name, "--help", cwd=tmp_path)
        assert f"ripstop {name}" in shown
        assert "Example" in shown


def test_a_reader_that_goes_away_does_no_harm(tmp_path: Path) -> None:
    run = a_run(tmp_path)["run"]
    command = f"{sys.executable} -m ripstop log {run} | head -1"
    done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert "started" in done.stdout
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="taking the network away needs root")
def test_a_run_with_no_network_at_all(tmp_path: Path) -> None:
    command = ["unshare", "-n", sys.executable, "-m", "ripstop", "run", str(HAIKU), "--model", SCRIPT, "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert json.loads(done.stdout)["outcome"] == "completed", done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("command", [["runs"], ["--json", "runs"], ["verify"], ["--help"], ["--json", "nonsense"]])
def test_output_that_cannot_be_written_is_one_line_and_exit_code_1(tmp_path: Path, command: list[str]) -> None:
    a_run(tmp_path)
    with Path("/dev/full").open("w") as full:
        called = [sys.executable, "-m", "ripstop", *command]
        done = subprocess.run(called, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, timeout=240)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "output cannot be written: No space left on device" in line


def test_why_a_guard_stopped_a_run_is_a_document_too(tmp_path: Path) -> None:
    repeated = [{"agent": "poet", "reply": '{"content": "same", "decisions": {"done": false}}'}] * 9
    (tmp_path / "same.jsonl").write_text("".join(json.dumps(line) + "\n" for line in repeated), encoding="utf-8")
    stopped = ripstop("--json", "--model", f"script:{tmp_path / 'same.jsonl'}", "run", str(HAIKU), cwd=tmp_path)
    run = json.loads(stopped.stdout)["run"]
    log = map(json.loads, succeed("--json", "log", run, cwd=tmp_path).splitlines())
    (guard,) = [one["number"] for one in log if one["type"] == "guard_tripped"]
    told = json.loads(succeed("--json", "why", f"{run}@{guard}", cwd=tmp_path))
    assert [one["text"] for entry in told for one in entry["evidence"]], "what the guard saw, as text"
