"""What the check and delivery agents are told about a project's code, and what its log says at the end."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.walks.delivery import (
    IDEA,
    SCRIPT,
    answer_of,
    artifact,
    deliver,
    lines,
    pass_all,
    questions,
    ripstop,
    say,
    write_script,
)

pytestmark = pytest.mark.long

MODEL = f"script:{SCRIPT}"
MADE = ["app.js", "index.html", "style.css"]
FOUND = "# What the engine found\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def facts_of(run: str) -> dict[str, dict[str, Any]]:
    """The facts in the prompts of a run's agents, by agent."""
    records = [json.loads(line) for line in ripstop("log", run, "--json").stdout.splitlines()]
    asked = [one["command"] for one in records if one.get("command", {}).get("type") == "ask_agent"]
    told = {one["agent"]: one["prompt"] for one in asked if FOUND in one["prompt"]}
    return {agent: json.JSONDecoder().raw_decode(text.partition(FOUND)[2])[0] for agent, text in told.items()}


def changed_files(run: str) -> dict[str, list[str]]:
    return {agent: facts["changed_files"] for agent, facts in facts_of(run).items()}


def both(*paths: str) -> dict[str, list[str]]:
    return {agent: list(paths) for agent in ("check", "delivery")}


def closings() -> list[str]:
    log = [json.loads(line) for line in Path(".cowork/logs/engine.jsonl").read_text().splitlines()]
    return [one["what"] for one in log if one["what"].startswith("close")]


def replies_with(agent: str, *replies: dict[str, Any]) -> list[dict[str, Any]]:
    """The script with other replies of one agent."""
    return [*(one for one in lines() if one["agent"] != agent), *({"agent": agent, **one} for one in replies)]


def coding(*calls: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """The script with a coder that does nothing but these calls."""
    made = [{"tool": tool, "args": arguments} for tool, arguments in calls]
    return replies_with("coding", {"reply": "# What is written"}, {"reply": "", "calls": made}, {"reply": "Written."})


def going_back() -> list[dict[str, Any]]:
    """The script with a check that asks for a restart at the coding stage."""
    back = {"tool": "goto_stage", "args": {"stage": "coding", "reason": "a typing error"}}
    return replies_with("check", {"reply": "", "calls": [back]}, {"reply": "Go back."})


# What was changed


@pytest.mark.req("S3-78")
def test_a_first_delivery_has_changed_what_it_made_and_nothing_that_was_there(tmp_path: Path) -> None:
    Path("lib").mkdir()
    Path("lib/old.js").write_text("1\n")
    Path("style.css").write_text("body {}\n")
    code, result = deliver()
    assert code == 0
    told = facts_of(result["run"])
    assert changed_files(result["run"]) == both(*MADE), "also the one that was there, and is another now"
    assert [one["path"] for one in told["check"]["files"]] == ["app.js", "index.html", "lib/old.js", "style.css"]


def test_a_file_that_the_plan_makes_code_has_not_changed_by_that(tmp_path: Path) -> None:
    Path("Makefile").write_text("all:\n")
    replies = lines()
    for one in replies:
        for call in one.get("calls", []):
            if call["tool"] == "create_task":
                call["args"]["files_to_create"].append("Makefile")
    code, result = deliver(write_script(tmp_path, replies))
    assert code == 0
    assert changed_files(result["run"]) == both(*MADE)
    assert "Makefile" in [one["path"] for one in facts_of(result["run"])["check"]["files"]]


@pytest.mark.req("S3-78", "S3-16")
def test_a_modify_has_changed_only_what_is_another_or_gone_since(tmp_path: Path) -> None:
    assert deliver()[0] == 0
    Path("by_hand.js").write_text("1\n")
    Path("old.js").write_text("1\n")
    same = ("write_file", {"path": "index.html", "content": Path("index.html").read_text()})
    other = ("write_file", {"path": "app.js", "content": "// shorter\n"})
    model = write_script(tmp_path, coding(same, other))
    waiting = answer_of("--model", model, "modify", "--from", "coding", "shorter", "--yes")
    Path("old.js").unlink()
    code, result = pass_all(*waiting)
    assert (code, result["outcome"]) == (0, "completed"), result
    assert changed_files(result["run"]) == both("app.js", "old.js")


def test_a_modify_that_changes_nothing_is_not_called_delivered(tmp_path: Path) -> None:
    assert deliver()[0] == 0
    same = ("write_file", {"path": "index.html", "content": Path("index.html").read_text()})
    model = write_script(tmp_path, coding(same))
    code, result = pass_all(*answer_of("--model", model, "modify", "--from", "coding", "shorter", "--yes"))
    assert code == 0 and result["because"].startswith("Nothing was changed:"), result
    assert "| the change is made: shorter | no code file differs | **no** |" in artifact("delivery_report.md")


def test_a_modify_of_what_was_never_delivered_is_compared_with_what_it_found(tmp_path: Path) -> None:
    bad = {"reply": '{"verdict": "fail", "reasons": ["no colour"]}'}
    assert deliver(write_script(tmp_path, replies_with("check", bad)))[0] == 1
    same = ("write_file", {"path": "index.html", "content": Path("index.html").read_text()})
    model = write_script(tmp_path, coding(same), "second.jsonl")
    code, result = pass_all(*answer_of("--model", model, "modify", "--from", "coding", "red", "--yes"))
    assert code == 0 and result["because"].startswith("Nothing was changed:"), result
    assert "| the change is made: red | no code file differs | **no** |" in artifact("delivery_report.md")
    assert changed_files(result["run"]) == both(*MADE), "for the delivery as a whole all of them are new"


def prompts_of(run: str) -> list[str]:
    records = [json.loads(line) for line in ripstop("log", run, "--json").stdout.splitlines()]
    return [one["command"]["prompt"] for one in records if one.get("command", {}).get("type") == "ask_agent"]


@pytest.mark.parametrize("way", [("resume",), ("modify", "--from", "coding", "--yes")], ids=["resume", "modify"])
def test_a_change_is_not_lost_where_a_stage_asks_for_a_restart(tmp_path: Path, way: tuple[str, ...]) -> None:
    assert deliver()[0] == 0
    back = write_script(tmp_path, going_back(), "back.jsonl")
    code, result = pass_all(*answer_of("--model", back, "modify", "--from", "coding", "make it red", "--yes"))
    assert (code, result["ways_on"]) == (5, ["ripstop modify --from coding"])
    model = write_script(tmp_path, coding(("write_file", {"path": "style.css", "content": "body { color: red }\n"})))
    code, result = pass_all(*answer_of("--model", model, *way))
    assert code == 0, result
    told = prompts_of(result["run"])
    assert told and all("make it red" in one and "a typing error" in one for one in told)
    assert "| the change is made: make it red | 1 code file differs: style.css | not checked |" in artifact(
        "delivery_report.md"
    )


def test_a_change_is_not_lost_when_its_run_is_cancelled(tmp_path: Path) -> None:
    assert deliver()[0] == 0
    same = ("write_file", {"path": "index.html", "content": Path("index.html").read_text()})
    model = write_script(tmp_path, coding(same))
    _, first = answer_of("--model", model, "modify", "--from", "coding", "make it red", "--yes")
    assert ripstop("cancel", first["run"]).exit_code == 0
    code, result = pass_all(*answer_of("--model", model, "resume"))
    assert code == 0 and result["run"] != first["run"]
    assert result["because"].startswith("Nothing was changed:"), result
    assert all("make it red" in one for one in prompts_of(result["run"]))
    assert "| the change is made: make it red | no code file differs | **no** |" in artifact("delivery_report.md")


def test_a_modify_that_changes_only_documents_has_changed_something(tmp_path: Path) -> None:
    assert deliver()[0] == 0
    model = write_script(tmp_path, coding(("write_file", {"path": "README.md", "content": "# How to use it\n"})))
    code, result = pass_all(*answer_of("--model", model, "modify", "--from", "coding", "write a README", "--yes"))
    found = "no code file differs, but 1 other file does: README.md"
    assert code == 0, result
    assert result["because"].startswith(f"Delivered. Since the change was asked for, {found}. The report is ")
    assert f"| the change is made: write a README | {found} | not checked |" in artifact("delivery_report.md")


def test_a_modify_that_changes_only_white_space_says_so(tmp_path: Path) -> None:
    assert deliver()[0] == 0
    blank = ("write_file", {"path": "app.js", "content": Path("app.js").read_text().replace("\n", " \n", 1)})
    model = write_script(tmp_path, coding(blank))
    code, result = pass_all(*answer_of("--model", model, "modify", "--from", "coding", "make it black", "--yes"))
    found = "1 code file differs, in white space only: app.js"
    assert code == 0 and f"Since the change was asked for, {found}." in result["because"], result
    assert f"| the change is made: make it black | {found} | not checked |" in artifact("delivery_report.md")


def test_white_space_in_a_file_that_an_earlier_run_has_changed_is_not_all_that_differs(tmp_path: Path) -> None:
    assert deliver()[0] == 0
    changed = ("write_file", {"path": "app.js", "content": "// black\n"})
    model = write_script(tmp_path, [*coding(changed)], "first.jsonl")
    _, first = answer_of("--model", model, "modify", "--from", "coding", "make it black", "--yes")
    Path("app.js").write_text("// black\n")
    assert ripstop("cancel", first["run"]).exit_code == 0
    blank = ("write_file", {"path": "app.js", "content": "//  black\n"})
    code, result = pass_all(*answer_of("--model", write_script(tmp_path, coding(blank)), "resume"))
    assert code == 0 and "Since the change was asked for, 1 code file differs: app.js." in result["because"], result


def test_a_delivery_that_was_sent_back_has_changed_what_it_wrote_before_and_after(tmp_path: Path) -> None:
    Path("old.js").write_text("1\n")
    code, result = deliver(write_script(tmp_path, going_back()))
    assert (code, result["outcome"]) == (5, "restart")
    model = write_script(tmp_path, coding(("write_file", {"path": "app.js", "content": "// right\n"})), "second.jsonl")
    code, result = pass_all(*answer_of("--model", model, "resume"))
    assert (code, result["outcome"]) == (0, "completed"), result
    assert changed_files(result["run"]) == both(*MADE)


@pytest.mark.parametrize("journal", ["kept", "lost"])
def test_a_resumed_project_has_changed_what_was_written_before_it_was_resumed(tmp_path: Path, journal: str) -> None:
    Path("old.js").write_text("1\n")
    code, result = deliver(write_script(tmp_path, replies_with("check", {"error": "refused"})))
    assert code == 1 and "The stage 'check' failed" in result["because"]
    if journal == "lost":
        shutil.rmtree(".ripstop")
    code, resumed = pass_all(*answer_of("--model", MODEL, "resume"))
    assert (code, resumed["outcome"], resumed["run"] == result["run"]) == (0, "completed", journal == "kept"), resumed
    assert changed_files(resumed["run"]) == both(*MADE)


# The log


def test_no_line_of_the_log_has_an_empty_field(tmp_path: Path) -> None:
    assert deliver()[0] == 0
    log = [json.loads(line) for line in Path(".cowork/logs/engine.jsonl").read_text().splitlines()]
    assert len(log) > 20 and all(all(one.values()) for one in log)
    assert log[-1]["what"] == "close: completed" and log[-1]["stage"] == "delivery"


@pytest.mark.req("S3-97")
def test_the_log_says_how_each_run_ended(tmp_path: Path) -> None:
    code, _ = deliver(write_script(tmp_path, going_back()))
    assert code == 5 and closings() == ["close: restart"]
    code, _ = pass_all(*answer_of("--model", MODEL, "resume"))
    assert code == 0 and closings() == ["close: restart", "close: completed"]


# The code


def at_code_review(model: str) -> dict[str, Any]:
    """A project whose code waits for its review; returns the question."""
    code, _ = answer_of("--model", model, "new", IDEA)
    while code == 4:
        (question,) = questions()
        if question["purpose"].endswith(".code"):
            return question
        say("pass")
        code, _ = answer_of("resume")
    raise AssertionError("nobody was shown the code")


@pytest.mark.req("S3-27", "S3-28", "S3-29")
def test_code_is_shown_before_it_is_delivered_and_is_changed_as_the_person_says(tmp_path: Path) -> None:
    Path("style.css").write_text("body { color: red }\n")
    replies = lines()
    last = max(number for number, one in enumerate(replies) if one["agent"] == "coding")
    mended = {"tool": "write_file", "args": {"path": "app.js", "content": "// without eval\n"}}
    again: list[dict[str, Any]] = [
        {"agent": "coding", "reply": "", "calls": [mended]},
        {"agent": "coding", "reply": "Changed."},
    ]
    critic = {"agent": "coding_critic", "reply": "Fine."}
    question = at_code_review(write_script(tmp_path, [*replies[: last + 1], *again, *replies[last + 1 :], critic]))
    assert (question["kind"], question["question"]) == ("review", "Review the code of the stage 'Coding'.")
    document = question["document"]
    assert "## index.html (new, " in document and "+<!doctype html>" in document.lower()
    assert "## style.css (changed, " in document and "-body { color: red }" in document
    shown = ripstop("desk", question["id"]).output
    assert "-body { color: red }" in shown and "style.css" in shown
    say("feedback", "No eval, please.")
    assert answer_of("resume")[0] == 4
    (second,) = questions()
    assert "+// without eval" in second["document"] and second["previous"] == document
    code, result = pass_all(4, {})
    assert (code, result["outcome"]) == (0, "completed"), result
    assert Path("app.js").read_text() == "// without eval\n"
    report = artifact("delivery_report.md")
    assert "No eval, please." in report and "coding (the code): pass" in report


# What was run


def test_the_end_of_the_tests_that_the_coder_ran_is_told_to_the_check_and_is_in_both_reports(tmp_path: Path) -> None:
    page = ("write_file", {"path": "index.html", "content": "<p>x</p>\n"})
    rest = [("write_file", {"path": path, "content": "1\n"}) for path in ("app.js", "style.css")]
    tests = ("run_command", {"command": ["python3", "-c", "raise SystemExit(3)"]})
    code, result = deliver(write_script(tmp_path, coding(page, *rest, tests)))
    assert (code, result["outcome"]) == (0, "completed"), result
    records = [json.loads(line) for line in ripstop("log", result["run"], "--json").stdout.splitlines()]
    asked = [one["command"] for one in records if one.get("command", {}).get("type") == "ask_agent"]
    told = {one["agent"]: one["prompt"] for one in asked}
    claim = "claimed coding: `python3 -c raise SystemExit(3)` ends with 0; shown: exit code 3"
    assert claim in told["check"] and claim in told["delivery"]
    row = "| coding: \\`python3 -c raise SystemExit(3)\\` ends with 0 | exit code 3 | **no** |"
    assert row in artifact("check_report.md") and row in artifact("delivery_report.md")
