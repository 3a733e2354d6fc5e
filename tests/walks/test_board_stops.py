"""What stops a run on a board, as a person sees it: at once, with the reason, everything on record, and resumable."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ripstop.faces.cli.main import cli
from tests.styles.blackboard.board_definitions import RULES, board, policy

COOK = json.dumps({"next_agent": "COOK", "reason": "it is raw", "task": "Cook it."})
FINISH = json.dumps({"next_agent": "FINISH", "reason": "it is eaten"})
GOOD = "iteration: 1\nVerdict: GOOD\nBlockers: none"

SPOILING = """
from pathlib import Path
import ripstop

@ripstop.tool(kind="pure")
def spoil(path: str) -> str:
    "Write into a file."
    file = Path(path)
    file.write_text(file.read_text() + "spoilt\\n")
    return "done"
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def ripstop(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


def succeed(*arguments: str) -> str:
    done = ripstop(*arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


def log_of(run: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in succeed("log", run, "--json").splitlines()]


def script(folder: Path, *replies: tuple[str, str] | dict[str, Any]) -> str:
    lines = (one if isinstance(one, dict) else {"agent": one[0], "reply": one[1]} for one in replies)
    (folder / "script.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return f"script:{folder / 'script.jsonl'}"


def run(model: str, *options: str) -> tuple[int, dict[str, Any]]:
    done = ripstop("--json", *options, "run", "kitchen", "--model", model)
    return done.exit_code, json.loads(done.stdout)


@pytest.mark.req("S4-3", "S4-4", "S4-7", "S4-46", "S4-65", "S4-72", "S4-50", "S4-69", "S4-74")
@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("COOK should go on.", "MAIN 输出非 JSON"),
        ('{"next_agent": "BAKER", "reason": "hungry"}', "'BAKER', which is not one of: COOK, TASTER, FINISH, USER"),
        ('{"reason": "hungry"}', "the decision has no 'next_agent'; it has: 'reason'"),
    ],
)
def test_a_wrong_decision_stops_the_run_until_it_is_made_again(tmp_path: Path, wrong: str, told: str) -> None:
    board(tmp_path / "kitchen")
    model = script(tmp_path, ("MAIN", COOK), ("COOK", GOOD), ("MAIN", wrong), ("MAIN", FINISH))
    code, stopped = run(model)
    assert (code, stopped["outcome"]) == (1, "failed")
    assert told in stopped["because"] and "(MAIN, iteration 2, record" in stopped["because"]
    replies = [one["answer"]["text"] for one in log_of(stopped["run"]) if "text" in one.get("answer", {})]
    assert replies == [COOK, GOOD, wrong]
    assert (tmp_path / "kitchen/reports/report_cook.md").read_text().startswith(GOOD)
    succeed("resume", stopped["run"])
    history = (tmp_path / "kitchen/memory/project_history.md").read_text()
    assert history.count("## Iteration 2\n") == 1 and "next_agent: FINISH" in history


@pytest.mark.req("S4-21", "S4-26", "S4-36", "S4-74")
@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("Verdict: GOOD\nBlockers: none", "iteration: Report missing iteration (critical field)"),
        (
            GOOD.replace("GOOD", "FINE"),
            "verdict: the verdict 'FINE' is not allowed; allowed are GOOD, BAD (line 2: 'Verdict: FINE')",
        ),
        (
            GOOD.replace("1", "7"),
            "iteration: the report is of iteration 7, and the current one is 1 (line 1: 'iteration: 7')",
        ),
    ],
)
def test_a_wrong_report_stops_the_run_until_it_is_written_again(tmp_path: Path, wrong: str, told: str) -> None:
    board(tmp_path / "kitchen")
    model = script(tmp_path, ("MAIN", COOK), ("COOK", wrong), ("COOK", GOOD), ("MAIN", FINISH))
    code, stopped = run(model)
    assert (code, stopped["outcome"]) == (1, "failed")
    assert stopped["because"] == f"reports/report_cook.md of COOK in iteration 1 is refused: {told}"
    assert wrong in [one.get("answer", {}).get("text") for one in log_of(stopped["run"])]
    succeed("resume", stopped["run"])
    assert (tmp_path / "kitchen/reports/report_cook.md").read_text() == f"{GOOD}\n"


@pytest.mark.req("S4-1", "S4-15")
@pytest.mark.parametrize("accepted", [True, False])
def test_a_touched_board_stops_the_run_until_the_edit_is_accepted_or_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, accepted: bool
) -> None:
    root = board(tmp_path / "kitchen")
    prompt = root / "memory/prompts/subagent_prompt_cook.md"
    prompt.write_text("---\ntools: [spoil]\n---\nYou cook.\n")
    (tmp_path / "spoiling.py").write_text(SPOILING)
    plan = root / "memory/dev_plan.md"
    calls = {"agent": "COOK", "reply": "", "calls": [{"tool": "spoil", "args": {"path": str(plan)}}]}
    model = script(tmp_path, ("MAIN", COOK), calls, ("COOK", GOOD), ("MAIN", FINISH))
    monkeypatch.syspath_prepend(tmp_path)
    code, stopped = run(model, "--tools", "spoiling")
    assert (code, stopped["outcome"]) == (1, "failed")
    assert "memory/dev_plan.md (changed)" in stopped["because"]
    assert "+spoilt" in json.dumps(log_of(stopped["run"]))
    assert stopped["ways_on"] == [f"ripstop resume {stopped['run']} --accept-edits"]
    resume = ("--tools", "spoiling", "resume", stopped["run"])
    if accepted:
        succeed(*resume, "--accept-edits")
    else:
        refused = ripstop(*resume)
        assert refused.exit_code == 1 and "memory/dev_plan.md (changed)" in refused.stdout
        plan.write_text("# Plan\n")
        succeed(*resume)
    assert plan.read_text() == ("# Plan\nspoilt\n" if accepted else "# Plan\n")


@pytest.mark.req("S4-6", "S4-39")
@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ({name: value for name, value in RULES.items() if name != "blocker_prefix"}, "'blocker_prefix'"),
        ({**RULES, "apply_to": ["COOK", "BAKER"]}, "'BAKER' is in 'apply_to', but has no prompt"),
    ],
)
def test_a_wrong_policy_is_found_before_a_run_begins(tmp_path: Path, rules: dict[str, Any], told: str) -> None:
    board(tmp_path / "kitchen", policy(report_rules=rules))
    done = ripstop("run", "kitchen", "--model", script(tmp_path, ("MAIN", FINISH)))
    assert done.exit_code == 2 and told in done.stderr
    assert "memory/verification_policy.json:" in done.stderr
    assert not (tmp_path / ".ripstop/journal.db").exists()
    assert not (tmp_path / "kitchen/memory/project_history.md").exists()


def test_one_of_two_processes_works_on_a_board_and_the_other_says_so(tmp_path: Path) -> None:
    board(tmp_path / "kitchen")
    slow = script(tmp_path, ("MAIN", COOK), {"agent": "COOK", "reply": GOOD, "delay": 600})
    command = [sys.executable, "-m", "ripstop", "run", "kitchen", "--model", slow]
    first = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        history = tmp_path / "kitchen/memory/project_history.md"
        deadline = time.monotonic() + 60
        while not history.exists() or "## Iteration 1" not in history.read_text():
            assert first.poll() is None and time.monotonic() < deadline
            time.sleep(0.02)
        (worker_id,) = json.loads(succeed("--json", "runs"))
        code, second = run(slow)
        assert (code, second["outcome"]) == (1, "failed")
        assert f"is being worked on by the run {worker_id['run']}" in second["because"]
        assert history.read_text().count("## Iteration") == 1
    finally:
        first.kill()
        first.communicate()


@pytest.mark.parametrize("another_plan", [False, True])
def test_a_definition_that_is_mended_before_the_board_was_opened_is_used(tmp_path: Path, another_plan: bool) -> None:
    root = board(tmp_path / "kitchen", agents=("main", "cook", "taster"))
    (root / "memory/link").symlink_to("dev_plan.md")
    code, stopped = run(script(tmp_path, ("MAIN", COOK), ("BAKER", GOOD), ("MAIN", FINISH)))
    assert (code, stopped["outcome"]) == (1, "failed") and "symbolic link" in stopped["because"]
    (root / "memory/link").unlink()
    plan = "memory/menu.md" if another_plan else "memory/dev_plan.md"
    (root / "memory/dev_plan.md").rename(root / plan)
    board(root, policy(plan=plan, report_rules={**RULES, "apply_to": ["BAKER"]}), ("baker",), Path(plan).name)
    script(tmp_path, ("MAIN", COOK.replace("COOK", "BAKER")), ("BAKER", GOOD), ("MAIN", FINISH))
    succeed("resume", stopped["run"])
    assert (root / "reports/report_baker.md").read_text().startswith(GOOD)
    log = log_of(stopped["run"])
    assert [one["type"] for one in log].count("redefined") == 1
    opened = [one["answer"]["value"] for one in log if "digest" in (one.get("answer", {}).get("value") or {})]
    assert opened[0]["plan"] == "# Plan\n" and opened[0]["iteration"] == 0


# A command as evidence


def command_board(folder: Path, on_failure: str, code: str) -> str:
    command = {"evidence": "command", "command": ["python3", "-c", code], "on_failure": on_failure}
    board(folder, policy(evidence=[command]))
    return script(folder, ("MAIN", COOK), ("COOK", GOOD), ("MAIN", FINISH))


def test_a_command_that_disagrees_with_a_claim_stops_the_run(tmp_path: Path) -> None:
    model = command_board(tmp_path / "kitchen", "stop", "print('2 tests failed'); raise SystemExit(1)")
    code, done = run(model)
    assert code == 1 and "exit code 1: 2 tests failed" in json.dumps(done)


def test_a_command_that_disagrees_with_a_claim_is_told(tmp_path: Path) -> None:
    model = command_board(tmp_path / "kitchen", "tell", "print('2 tests failed'); raise SystemExit(1)")
    code, done = run(model)
    assert code == 0
    assert "exit code 1: 2 tests failed" in succeed("show", done["run"])


def test_a_command_that_agrees_with_a_claim_lets_the_run_go_on(tmp_path: Path) -> None:
    model = command_board(tmp_path / "kitchen", "stop", "print('0 tests failed')")
    code, done = run(model)
    assert code == 0
    assert "exit code 0: 0 tests failed" in json.dumps(log_of(done["run"]))


def test_a_command_reads_the_board_but_cannot_change_it(tmp_path: Path) -> None:
    code = "print(open('kitchen/memory/dev_plan.md').read()); open('kitchen/memory/dev_plan.md', 'a').write('x')"
    model = command_board(tmp_path / "kitchen", "stop", code)
    done = ripstop("--json", "run", "kitchen", "--model", model, "--workspace", ".")
    assert done.exit_code == 1 and "# Plan" in done.stdout and "Error" in done.stdout
    assert (tmp_path / "kitchen/memory/dev_plan.md").read_text() == "# Plan\n"
