"""A delivery project from the command line: new, review, resume, modify, undo, status."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.harness.own_journal import own_journal
from tests.walks.delivery import (
    IDEA,
    SCRIPT,
    answer_of,
    artifact,
    data,
    deliver,
    lines,
    meta,
    pass_all,
    questions,
    ripstop,
    say,
    write_script,
)

STAGES = ["idea", "prd", "design", "plan", "coding", "check", "delivery"]
MODEL = f"script:{SCRIPT}"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def delivery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("delivered")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert deliver()[0] == 0
    return folder


@pytest.fixture
def delivered(delivery: Path, here: None) -> None:
    """A delivered project, in the current folder."""
    shutil.copytree(delivery, ".", dirs_exist_ok=True)
    own_journal(Path(".ripstop/journal.db"))


def files() -> set[str]:
    return {str(path.relative_to(".cowork")) for path in Path(".cowork").rglob("*") if path.is_file()}


PRODUCTS = {
    *("artifacts/idea.md", "artifacts/prd_draft.md", "artifacts/design_draft.md", "artifacts/plan_draft.md"),
    *("artifacts/coding_draft.md", "artifacts/check_report.md", "artifacts/delivery_report.md"),
    *("data/requirements.json", "data/feature_list.json", "data/design_spec.json"),
    *("data/implementation_plan.json", "data/code_metadata.json", "session/meta.json"),
}


@pytest.mark.req(
    *("S3-1", "S3-2", "S3-3", "S3-4", "S3-5", "S3-6", "S3-7", "S3-8", "S3-9", "S3-10", "S3-13", "S3-14", "S3-27"),
    *("S3-33", "S3-38", "S3-60", "S3-61", "S3-62", "S3-81", "S3-85", "S3-97", "S3-99", "S3-100", "S3-101"),
)
def test_seven_stages_with_feedback_twice_an_edit_and_passes_leave_every_file(tmp_path: Path) -> None:
    replies = lines()
    second = next(number for number, one in enumerate(replies) if one["agent"] == "prd") + 1
    replies.insert(second, {"agent": "prd", "reply": "# Still five"})
    model = write_script(tmp_path, replies)
    code, result = answer_of("--model", model, "new", IDEA)
    assert (code, result["outcome"]) == (4, "waiting")
    assert [one["title"] for one in result["waiting"]] == ["artifacts/prd_draft.md"]
    say("feedback", "Too many.", "--field", "severity=critical", "--field", "type=quality_issue", "--as", "ann")
    assert answer_of("resume")[0] == 4
    say("I said: too many", "--as", "ann")
    assert answer_of("resume")[0] == 4
    assert questions()[0]["previous"] == "# Still five"
    say("pass")
    assert answer_of("resume")[0] == 4
    mine = "# 我的设计\r\n\n  two parts, as I like them   \n\n"
    (tmp_path / "mine.md").write_bytes(mine.encode())
    say("edit", "--file", "mine.md")
    code, result = pass_all(*answer_of("resume"))
    assert (code, result["outcome"]) == (0, "completed"), result
    assert result["because"] == "Delivered. The report is .cowork/artifacts/delivery_report.md."
    assert files() - {"logs/engine.jsonl", "logs/coding_changes.diff"} == PRODUCTS | {"session/feedback_history.json"}
    assert Path(".cowork/artifacts/design_draft.md").read_bytes() == mine.encode(), "word for word"
    assert [one["id"] for one in data("requirements.json")["requirements"]] == ["REQ-001", "REQ-002", "REQ-003"]
    assert [one["id"] for one in data("feature_list.json")["features"]] == ["FEAT-001", "FEAT-002"]
    assert [one["id"] for one in data("design_spec.json")["architecture"]["components"]] == ["COMP-001", "COMP-002"]
    tasks = data("implementation_plan.json")["tasks"]
    assert [(one["id"], one["status"], one["dependencies"]) for one in tasks] == [
        ("TASK-001", "completed", []),
        ("TASK-002", "completed", ["TASK-001"]),
    ]
    assert [one["path"] for one in data("code_metadata.json")["files"]] == ["app.js", "index.html", "style.css"]
    history = json.loads(Path(".cowork/session/feedback_history.json").read_text())["feedbacks"]
    assert [(one["severity"], one["feedback_type"], one["details"], one["by"]) for one in history] == [
        ("critical", "quality_issue", "Too many.", "ann"),
        ("major", "suggestion", "I said: too many", "ann"),
    ]
    assert list(meta()["completed"]) == STAGES
    report = artifact("delivery_report.md")
    assert "| `index.html` |" in report and "Too many." in report and "design: edit by" in report
    assert Path("index.html").read_text().startswith("<!doctype html>")


@pytest.mark.req("S3-19")
@pytest.mark.parametrize("command", [("modify", "--from", "prd"), ("modify", "--undo"), ("status",)])
def test_without_a_project_commands_say_so(command: tuple[str, ...]) -> None:
    done = ripstop(*command)
    assert done.exit_code == 2 and "No project found" in done.output
    assert not list(Path().iterdir()), "and make nothing"


def test_a_bare_resume_without_project_and_journal_says_so() -> None:
    done = ripstop("resume")
    assert done.exit_code == 2 and "No project found" in done.output
    assert not list(Path().iterdir())


@pytest.mark.req("S3-17", "S3-18")
def test_a_project_restarts_only_at_the_stages_that_make_something(delivered: None) -> None:
    for stage in ("idea", "check", "delivery", "nowhere", "", "../prd"):
        done = ripstop("modify", f"--from={stage}", "--yes")
        assert done.exit_code == 2, done.output
        assert not stage or ("Unknown stage" in done.output and "prd, design, plan, coding" in done.output)


def test_a_second_project_in_the_same_folder_is_refused(delivered: None) -> None:
    done = ripstop("new", "another")
    assert done.exit_code == 2 and "Project already initialized" in done.output


@pytest.mark.req("S3-20")
def test_a_delivered_project_is_not_resumed(delivered: None) -> None:
    done = ripstop("resume")
    assert done.exit_code == 2 and "project already completed" in done.output.lower()


@pytest.mark.parametrize("idea", ["", "   "])
def test_an_empty_idea_is_refused_and_nothing_is_made(idea: str) -> None:
    done = ripstop("new", idea)
    assert done.exit_code == 2 and not list(Path().iterdir())


def test_a_draft_edited_in_its_file_is_what_the_output_is_made_from() -> None:
    answer_of("--model", MODEL, "new", IDEA)
    draft = Path(".cowork/artifacts/prd_draft.md")
    draft.write_text("# By hand 手写\n", encoding="utf-8")
    say("pass")
    code, result = answer_of("resume")
    assert code == 4 and any("was edited while its review waited" in one for one in result["warnings"])
    prompts = [json.loads(line) for line in ripstop("log", result["run"], "--json").stdout.splitlines()]
    asked = [one["command"]["prompt"] for one in prompts if one.get("command", {}).get("type") == "ask_agent"]
    assert any("# By hand 手写" in one for one in asked)
    assert draft.read_text(encoding="utf-8") == "# By hand 手写\n"


def test_a_draft_that_was_deleted_is_there_again() -> None:
    answer_of("--model", MODEL, "new", IDEA)
    draft = Path(".cowork/artifacts/prd_draft.md")
    before = draft.read_bytes()
    draft.unlink()
    say("pass")
    assert answer_of("resume")[0] == 4
    assert draft.read_bytes() == before


# Modify


@pytest.mark.req("S3-16", "S3-57", "S3-58", "S3-59")
def test_modify_removes_and_redoes_exactly_what_it_says(delivered: None, tmp_path: Path) -> None:
    before = {name: Path(".cowork", name).read_bytes() for name in PRODUCTS}
    told = ripstop("modify", "--from", "design", "one file only")
    assert told.exit_code == 2 and "Nothing was changed" in told.output
    removed = {line.split()[1].removeprefix(".cowork/") for line in told.output.splitlines() if line[:7] == "removes"}
    later = {
        name for name in PRODUCTS if not any(word in name for word in ("idea", "prd", "requ", "feature", "session"))
    }
    assert removed == later
    code, result = answer_of("--model", MODEL, "modify", "--from", "design", "one file only", "--yes")
    assert (code, result["path"]) == (4, ["design"])
    assert not files() & (later - {"artifacts/design_draft.md"}), "and nothing else was made yet"
    assert meta()["current_stage"] == "design" and list(meta()["completed"]) == ["idea", "prd"]
    prompts = [json.loads(line) for line in ripstop("log", result["run"], "--json").stdout.splitlines()]
    asked = [one["command"]["prompt"] for one in prompts if one.get("command", {}).get("type") == "ask_agent"]
    assert "one file only" in asked[0]
    code, result = pass_all(code, result)
    assert (code, result["outcome"]) == (0, "completed")
    for name in PRODUCTS - later - {"session/meta.json", "data/feature_list.json"}:  # whose tasks are others now
        assert Path(".cowork", name).read_bytes() == before[name], name
    assert later <= files()
    backup = Path(".cowork/backups", result["run"])
    assert all((backup / name).read_bytes() == before[name] for name in later), "what was removed is kept"


def test_undo_puts_back_what_modify_removed_to_the_byte(delivered: None) -> None:
    before = {name: Path(".cowork", name).read_bytes() for name in PRODUCTS - {"session/meta.json"}}
    code, result = answer_of("--model", MODEL, "modify", "--from", "prd", "--yes")
    assert code == 4
    refused = ripstop("modify", "--undo")
    assert refused.exit_code == 2 and f"ripstop cancel {result['run']}" in refused.output
    assert ripstop("cancel", result["run"]).exit_code == 0
    done = ripstop("modify", "--undo")
    assert done.exit_code == 0, done.output
    assert {name: Path(".cowork", name).read_bytes() for name in before} == before
    assert "project already completed" in ripstop("resume").output.lower()
    assert ripstop("modify", "--undo").exit_code == 2


def test_modify_ends_the_run_that_waits(tmp_path: Path) -> None:
    _, first = answer_of("--model", MODEL, "new", IDEA)
    code, second = answer_of("modify", "--from", "prd", "--yes", "--model", MODEL)
    assert code == 4 and second["run"] != first["run"]
    shown = json.loads(ripstop("--json", "show", first["run"]).stdout)
    assert shown["outcome"] == "stopped" and "restarted at prd" in shown["because"]


def test_modify_is_refused_before_the_run_that_waits_is_cancelled_if_an_input_is_missing(tmp_path: Path) -> None:
    _, first = answer_of("--model", MODEL, "new", IDEA)
    before = files()
    done = ripstop("modify", "--from", "design", "--yes", "--model", MODEL)
    assert done.exit_code == 2 and "'design' cannot begin without .cowork/data/requirements.json" in done.output
    assert "Nothing was changed. Restart at 'prd', which makes" in done.output
    assert (len(json.loads(ripstop("--json", "runs").stdout)), files()) == (1, before)
    shown = json.loads(ripstop("--json", "show", first["run"]).stdout)
    assert shown["outcome"] == "waiting", "it was not cancelled"


# Going back


def with_goto() -> list[dict[str, Any]]:
    call = {"tool": "goto_stage", "args": {"stage": "design", "reason": "the store has no limit"}}
    kept = [one for one in lines() if one["agent"] != "check"]
    return [*kept, {"agent": "check", "reply": "", "calls": [call]}, {"agent": "check", "reply": "Go back."}]


@pytest.mark.req("S3-52", "S3-54", "S3-55", "S3-56")
def test_a_check_that_goes_back_never_delivers_and_names_the_command(tmp_path: Path) -> None:
    code, result = deliver(write_script(tmp_path, with_goto()))
    assert (code, result["outcome"]) == (5, "restart")
    assert result["ways_on"] == ["ripstop modify --from design"]
    assert "artifacts/delivery_report.md" not in files() and "artifacts/check_report.md" in files()
    assert (meta()["current_stage"], meta()["restart_reason"]) == ("design", "the store has no limit")
    assert "check" not in meta()["completed"]
    assert "the store has no limit" in ripstop("status").output
    code, result = answer_of("resume", "--model", MODEL)
    assert (code, result["path"]) == (4, ["design"]), result
    assert meta()["restart_reason"] is None


def saying(agent: str, *words: str) -> list[dict[str, Any]]:
    """The script with other last words of an agent; several: one after the other, each with the coding before it."""
    replies = lines()
    last = max(index for index, one in enumerate(replies) if one["agent"] == agent)
    again = [one for one in replies if one["agent"] in ("coding", "coding_critic")]
    first, *others = words
    replies[last] = {"agent": agent, "reply": first}
    for more in others:
        replies += [*again, {"agent": agent, "reply": more}]
    return replies


@pytest.mark.req("S3-7")
def test_a_check_that_does_not_approve_ends_without_a_delivery(tmp_path: Path) -> None:
    words = "NOT APPROVED. Do not deliver."
    replies = [*saying("check", words), *({"agent": "check", "reply": words} for _ in range(2))]
    code, result = deliver(write_script(tmp_path, replies))
    assert code == 1 and "'check' gave no verdict" in result["because"], result
    assert not Path(".cowork/artifacts/delivery_report.md").exists()


@pytest.mark.req("S3-7")
def test_a_check_that_fails_has_the_code_mended_and_then_delivers(tmp_path: Path) -> None:
    fail = '{"verdict": "fail", "reasons": ["The list is lost when the tab is closed."]}'
    code, result = deliver(write_script(tmp_path, saying("check", fail, '{"verdict": "pass"}')))
    assert code == 0 and result["because"].startswith("Delivered."), result
    assert result["path"].count("check") == 2
    shown = " ".join(ripstop("show", result["run"]).output.split())
    assert "pass of check" in shown and "every file of the plan exists" in shown, shown


def test_a_check_that_fails_again_and_again_ends_the_run_with_its_list(tmp_path: Path) -> None:
    fail = '{"verdict": "fail", "reasons": ["The list is lost."]}'
    code, result = deliver(write_script(tmp_path, saying("check", fail, fail, fail)))
    assert code == 1 and result["outcome"] == "failed"
    assert result["because"].endswith("It was sent back 2 times. What keeps it back:\n- The list is lost."), result
    assert "| pass of check | fail | **no** |" in artifact("check_report.md")
    assert not Path(".cowork/artifacts/delivery_report.md").exists()


@pytest.mark.req("S3-73", "S3-75")
def test_half_a_product_is_not_delivered(tmp_path: Path) -> None:
    replies = saying("check", *['{"verdict": "pass"}'] * 3)
    for one in replies:
        calls = one.get("calls", [])
        one["calls"] = [call for call in calls if call.get("args", {}).get("path") != "app.js"]
    code, result = deliver(write_script(tmp_path, replies))
    assert code == 1 and "- app.js is in the plan, and there is no such file." in result["because"], result
    assert "1 of 2 tasks completed" in artifact("check_report.md")


@pytest.mark.req("S3-73", "S3-75")
def test_a_planned_file_of_blank_lines_is_half_a_product(tmp_path: Path) -> None:
    replies = saying("check", *['{"verdict": "pass"}'] * 3)
    for one in replies:
        for call in one.get("calls", []):
            if call.get("args", {}).get("path") == "app.js":
                call["args"]["content"] = "\n \n"
    code, result = deliver(write_script(tmp_path, replies))
    assert code == 1 and "- app.js is in the plan, and it is empty." in result["because"], result


@pytest.mark.req("S3-73", "S3-74", "S3-75")
def test_without_code_there_is_no_report_however_many_tasks_are_completed(tmp_path: Path) -> None:
    replies = lines()
    for one in replies:
        one["calls"] = [call for call in one.get("calls", []) if call["tool"] != "write_file"]
    code, result = deliver(write_script(tmp_path, replies))
    assert code == 1 and result["because"].startswith("❌ Project incomplete: No code files found")
    assert result["ways_on"] == ["ripstop modify --from coding", f"ripstop resume {result['run']}"]
    assert "artifacts/delivery_report.md" not in files()
    assert {one["status"] for one in data("implementation_plan.json")["tasks"]} == {"completed"}
    for name in ("index.html", "style.css", "app.js"):
        Path(name).write_text("<p>by hand</p>")
    code, result = answer_of("resume")
    assert (code, result["outcome"]) == (0, "completed"), "somebody has written them since"


# Resume by files

DESIGNED = {"data/requirements.json", "data/feature_list.json", "data/design_spec.json"}


@pytest.mark.req("S3-15", "S3-21", "S3-22", "S3-23", "S3-24", "S3-26")
@pytest.mark.parametrize(
    ("kept", "stage"),
    [
        ({"artifacts/idea.md"}, "prd"),
        ({"artifacts/idea.md", "data/requirements.json", "data/feature_list.json"}, "design"),
        (DESIGNED, "plan"),
        (DESIGNED | {"data/implementation_plan.json"}, "coding"),
    ],
)
def test_a_folder_without_marks_is_resumed_by_its_files(delivered: None, kept: set[str], stage: str) -> None:
    for name in files() - kept:
        Path(".cowork", name).unlink()
    for path in Path(".ripstop").rglob("journal.db*"):
        path.unlink()
    os.rename(".ripstop", ".old")
    code, result = answer_of("resume", "--model", MODEL)
    assert (code, result["path"][0]) == (4, stage)
    assert pass_all(code, result)[0] == 0


def test_a_half_written_file_is_not_a_finished_stage(delivered: None) -> None:
    for name in files() - {"artifacts/idea.md", "data/requirements.json", "data/feature_list.json"}:
        Path(".cowork", name).unlink()
    path = Path(".cowork/data/requirements.json")
    path.write_text(path.read_text()[:-40])
    done = ripstop("resume", "--model", MODEL)
    assert done.exit_code == 4
    assert "data/requirements.json" in done.output and "'prd'" in done.output


def test_a_product_that_is_gone_is_named_and_made_again(delivered: None) -> None:
    Path(".cowork/data/design_spec.json").unlink()
    done = ripstop("resume", "--model", MODEL)
    assert done.exit_code == 4 and "There is no .cowork/data/design_spec.json." in done.output
    assert "'design'" in done.output


@pytest.mark.req("S3-93", "S3-25")
def test_a_stage_whose_model_failed_is_continued_by_resume(tmp_path: Path) -> None:
    replies = lines()
    plan = next(number for number, one in enumerate(replies) if one["agent"] == "plan")
    broken = [*replies[:plan], {"agent": "plan", "error": "refused"}, *replies[plan:]]
    code, result = deliver(write_script(tmp_path, broken))
    assert code == 1 and "The stage 'plan' failed" in result["because"]
    code, result = pass_all(*answer_of("resume"))
    assert (code, result["outcome"]) == (0, "completed")


def test_a_project_that_was_moved_is_resumed_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()
    monkeypatch.chdir(before)
    answer_of("--model", MODEL, "new", IDEA)
    say("pass")
    before.rename(after)
    monkeypatch.chdir(after)
    assert "moved" in ripstop("resume").stderr
    assert ripstop("trust", "--yes").exit_code == 0
    code, result = answer_of("resume")
    assert code == 4, result
    assert pass_all(code, result)[0] == 0
    assert not before.exists() and Path("index.html").exists()


def test_a_run_whose_records_were_removed_is_found_in_the_journal() -> None:
    _, first = answer_of("--model", MODEL, "new", IDEA)
    Path(".cowork/session/meta.json").unlink()
    say("pass")
    code, result = answer_of("resume")
    assert (code, result["run"]) == (4, first["run"])


def test_an_answer_given_twice_changes_nothing_and_says_who_was_first() -> None:
    answer_of("--model", MODEL, "new", IDEA)
    (question,) = questions()
    assert ripstop("answer", question["id"], "pass", "--as", "ann").exit_code == 0
    second = ripstop("answer", question["id"], "feedback", "no!", "--as", "ben")
    assert second.exit_code == 2
    assert "ann" in second.output and "pass" in second.output


@pytest.mark.req("S3-38")
def test_the_status_counts_what_is_there(delivered: None) -> None:
    shown = ripstop("status").output
    for row in ("requirements  3", "features      2/2", "components    2", "tasks         2/2"):
        assert row in shown
    found = json.loads(ripstop("--json", "status").stdout)
    assert found["project"]["completed"] == STAGES and found["calls"] > 20


def test_features_of_a_delivery_before_are_not_completed_in_a_restarted_project(delivered: None) -> None:
    assert answer_of("--model", MODEL, "modify", "--from", "design", "--yes")[0] == 4
    shown = ripstop("status").output
    assert "features      0/2 completed; 2 more are marked so, without completed tasks" in shown
    assert "tasks         0/0 completed" in shown


def test_the_status_of_a_project_and_the_list_of_runs_agree_on_a_run_that_nobody_works_on() -> None:
    _, result = answer_of("--model", MODEL, "new", IDEA)
    (question,) = questions()
    assert ripstop("answer", question["id"], "feedback", "shorter").exit_code == 0
    (listed,) = json.loads(ripstop("--json", "runs").stdout)
    assert json.loads(ripstop("--json", "status").stdout)["run_status"] == listed["status"] == "interrupted"
    assert f"ripstop resume {result['run']}" in ripstop("status").output


def test_the_run_is_drawn_with_its_stages(delivered: None) -> None:
    run = json.loads(ripstop("--json", "runs").stdout)[0]["run"]
    drawn = ripstop("graph", run, "--format", "mermaid").output
    assert all(stage in drawn for stage in STAGES)


# Flows of one's own

OWN = """name: notes
stages:
  - name: outline
    instructions: Outline it.
    draft: artifacts/outline.md
  - name: page
    instructions: Write a page.
    inputs: [artifacts/outline.md]
    draft: artifacts/page_draft.md
    review: true
    tools: [write_file]
    writes_code: true
  - name: print
    instructions: Report.
    kind: delivery
    tools: [save_delivery_report]
"""
NOTES = [
    {"agent": "outline", "reply": "# Outline"},
    {"agent": "page", "reply": "# One page"},
    {"agent": "page", "reply": "index.html\n```html\n<p>notes</p>\n```\n"},
    {"agent": "print", "reply": "Here it is."},
]


def own_flow(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "pipeline.yaml").write_text(OWN)


@pytest.mark.parametrize("place", ["workflows/notes", "../notes"])
def test_a_project_remembers_its_flow_and_its_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    own_flow(project / place)
    model = write_script(tmp_path, NOTES)
    code, result = pass_all(*answer_of("--model", model, "new", "notes", "--flow", place))
    assert (code, result["path"]) == (0, ["outline", "page", "page", "print"]), result
    assert "● print" in ripstop("status").output
    assert "expected one of: page" in ripstop("modify", "--from", "prd", "--yes").output
    code, result = answer_of("modify", "--from", "page", "--yes")
    assert (code, result["path"]) == (4, ["page"]), "with the same model, without a word about it"


def test_a_flow_outside_of_a_project_from_somebody_else_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_flow(tmp_path / "evil")
    project = tmp_path / "project"
    (project / ".cowork" / "session").mkdir(parents=True)
    (project / ".cowork" / "session" / "meta.json").write_text(json.dumps({"flow": "../evil/pipeline.yaml"}))
    monkeypatch.chdir(project)
    for command in (("resume",), ("status",), ("modify", "--from", "page", "--yes")):
        done = ripstop("--model", MODEL, *command)
        assert done.exit_code == 2 and "a flow outside of it" in done.output
