"""What a run does with a project: open, begin, write, check, finish, close; and what it refuses."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ripstop.engine.performers import Refused, TryAgain
from ripstop.styles.pipeline import code_files
from ripstop.styles.pipeline.backups import undo
from ripstop.styles.pipeline.data_files import Session
from ripstop.styles.pipeline.stages import own_tools
from ripstop.styles.pipeline.store import CoworkFolder
from tests.styles.pipeline.cowork_kills import OPEN, STAGES
from tests.styles.pipeline.projects import (
    CODE,
    DESIGN,
    FEATURES,
    FEEDBACK,
    META,
    PLAN,
    REQUIREMENTS,
    ProjectDesk,
    valid_data,
)

ALL = ["idea", "prd", "design", "plan", "coding", "delivery"]


@pytest.fixture
def desk(tmp_path: Path) -> ProjectDesk:
    return ProjectDesk(tmp_path, tools=own_tools())


def opened(
    desk: ProjectDesk, mode: str = "new", stage: str = "idea", again: bool = False, **more: Any
) -> dict[str, Any]:
    return desk.own("cowork_open", again=again, **{**OPEN, "mode": mode, "stage": stage, "idea": "notes", **more})


def refused(desk: ProjectDesk, tool: str, **arguments: Any) -> str:
    with pytest.raises(Refused) as raised:
        desk.own(tool, **arguments)
    return str(raised.value)


def finish(desk: ProjectDesk, stage: str, **more: Any) -> dict[str, Any]:
    found = next(one for one in STAGES if one["name"] == stage)
    writes_code = bool(found.get("writes_code"))
    return desk.own("cowork_finish", stage=stage, products=found["products"], writes_code=writes_code, **more)


def complete(desk: ProjectDesk) -> None:
    """A project that is finished but for the report."""
    opened(desk)
    desk.put_valid()
    desk.code("index.html")
    for path in ("idea.md", "prd_draft.md", "design_draft.md", "plan_draft.md", "coding_draft.md"):
        desk.put(f"artifacts/{path}", path)
    for stage in ALL[:-1]:
        finish(desk, stage)


# Opening


@pytest.mark.req("S3-9", "S3-61", "S3-62", "S3-99")
def test_opening_a_new_project_makes_its_folders_and_session(desk: ProjectDesk) -> None:
    nothing: dict[str, Any] = {"removed": [], "kept_code": [], "code_before": {}, "code_at_start": None, "change": None}
    assert opened(desk) == {"completed": [], "idea": "notes", **nothing}
    assert {path.name for path in desk.cowork.iterdir()} == {"artifacts", "data", "session", "logs", "backups"}
    meta = desk.json(META)
    assert (meta["current_stage"], meta["restart_reason"], meta["run"], meta["stages"]) == ("idea", None, "r", ALL)
    before = desk.files()
    assert opened(desk, again=True)["idea"] == "notes"
    assert desk.files() == before


def test_a_project_that_is_there_is_not_opened_as_new(desk: ProjectDesk) -> None:
    desk.put("artifacts/idea.md", "mine")
    with pytest.raises(Refused, match="Project already initialized"):
        opened(desk)
    assert sorted(path.name for path in desk.cowork.rglob("*")) == ["artifacts", "idea.md"]


def test_a_broken_session_is_named_and_left_as_it_is(desk: ProjectDesk) -> None:
    desk.put(META, "{")
    with pytest.raises(Refused, match=r"\.cowork/session/meta\.json: it is not JSON"):
        opened(desk, "continue", "prd")
    assert desk.text(META) == "{"


def test_a_second_run_is_told_which_run_works_here(desk: ProjectDesk) -> None:
    opened(desk)
    other = ProjectDesk(desk.project, "other", desk.tools)
    with pytest.raises(Refused, match="is being worked on by the run r"):
        opened(other, "continue", "prd")
    script = (
        "import sys; from pathlib import Path; from tests.styles.pipeline.projects import ProjectDesk\n"
        "from ripstop.styles.pipeline.stages import own_tools\n"
        "ProjectDesk(Path(sys.argv[1]), 'third', own_tools()).own('cowork_begin', stage='idea')"
    )
    done = subprocess.run([sys.executable, "-c", script, str(desk.project)], capture_output=True, text=True)
    assert "is being worked on by the run r" in done.stderr
    desk.own("cowork_close", outcome="completed")
    opened(other, "continue", "prd")


def test_a_run_that_is_over_gives_way(desk: ProjectDesk) -> None:
    opened(desk)

    async def is_over(run_id: str) -> bool:
        return run_id == "r"

    other = ProjectDesk(desk.project, "other", desk.tools)
    other.own("cowork_begin", stage="idea", of={"is_over": is_over})


@pytest.mark.parametrize("link", [".cowork", ".cowork/data", ".cowork/session/meta.json", ".ripstop"])
def test_links_in_a_project_are_refused(desk: ProjectDesk, link: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    opened(desk)
    desk.own("cowork_close", outcome="")
    outside = tmp_path_factory.mktemp("outside")
    place = desk.project / link
    if place.is_dir():
        shutil.rmtree(place)
    else:
        place.unlink()
    place.symlink_to(outside / "meta.json" if link.endswith("json") else outside)
    with pytest.raises(Refused, match=r"link|cannot be used"):
        opened(desk, "continue", "prd")
    assert list(outside.iterdir()) == []


# Continuing somebody else's project


def test_stages_before_the_first_one_count_as_finished_as_they_are(desk: ProjectDesk) -> None:
    desk.put_valid()
    desk.put("artifacts/idea.md", "from elsewhere")
    desk.put(META, {"session_id": "s"})
    found = opened(desk, "continue", "plan", idea="")
    assert found["completed"] == ["idea", "prd", "design"]
    assert found["idea"] == "from elsewhere"
    marks = desk.json(META)["completed"]
    assert set(marks["prd"]["products"]) == {REQUIREMENTS, FEATURES}
    assert desk.json(META)["session_id"] == "s"


# Modifying


@pytest.mark.req("S3-16", "S3-57", "S3-58")
def test_modify_backs_up_then_removes_the_products_of_the_stage_and_later_ones(desk: ProjectDesk) -> None:
    complete(desk)
    before = {path: desk.text(path) for path in (DESIGN, PLAN, CODE, REQUIREMENTS)}
    desk.own("cowork_close", outcome="")
    again = ProjectDesk(desk.project, "flow/two", desk.tools)
    found = opened(again, "modify", "design")
    assert found["removed"] == [
        *("artifacts/coding_draft.md", "artifacts/design_draft.md", "artifacts/plan_draft.md"),
        *(CODE, DESIGN, PLAN),
    ]
    assert found["kept_code"] == ["index.html"] and (desk.project / "index.html").exists()
    assert found["completed"] == ["idea", "prd"]
    assert desk.text(REQUIREMENTS) == before[REQUIREMENTS]
    assert not any((desk.cowork / path).exists() for path in found["removed"])
    backup = "backups/flow-two"
    assert {path: desk.text(f"{backup}/{path}") for path in (DESIGN, PLAN, CODE)} == {
        path: before[path] for path in (DESIGN, PLAN, CODE)
    }
    assert desk.json(f"{backup}/manifest.json")["state"] == "saved"
    meta = desk.json(META)
    assert (meta["current_stage"], meta["restart_reason"]) == ("design", None)
    assert opened(again, "modify", "design", again=True) == found


def test_a_change_outlives_its_run_until_it_is_delivered_undone_or_another_takes_its_place(desk: ProjectDesk) -> None:
    def asked(mode: str = "modify", **more: Any) -> tuple[str | None, list[str]]:
        found = opened(desk, mode, "coding", **more)
        code = found["code_before"] if found["code_at_start"] is None else found["code_at_start"]
        return found["change"], sorted(code)

    complete(desk)
    assert asked(change="red") == asked(change="red", again=True) == ("red", ["index.html"])
    desk.code("red.js")
    assert asked("continue") == asked(change="") == ("red", ["index.html"]), "the code when it was asked for"
    assert asked(change="red, because") == ("red, because", ["index.html"])
    assert asked(change="blue") == ("blue", ["index.html", "red.js"])
    finish(desk, "delivery")
    assert desk.json(META)["change"] == "blue", "it has left no trace"
    finish(desk, "coding")
    desk.put("artifacts/delivery_report.md", "now it has")
    finish(desk, "delivery", ends_change=True)
    assert (desk.json(META)["change"], desk.json(META)["code_at_change"]) == (None, None)
    assert asked(change="") == ("", ["index.html", "red.js"])
    assert asked(change="green")[0] == "green"
    undo(CoworkFolder(desk.project), Session(CoworkFolder(desk.project)))
    assert asked("continue")[0] == ""


# Beginning


@pytest.mark.req("S3-9", "S3-12", "S3-13", "S3-65", "S3-100")
def test_a_stage_reads_what_the_ones_before_have_written(desk: ProjectDesk) -> None:
    opened(desk)
    entry = {"feedback_type": "suggestion", "severity": "major", "details": "shorter", "by": "ann", "record": 7}
    desk.own("cowork_write", stage="idea", files={"artifacts/idea.md": "notes\n"}, feedback=entry)
    desk.code("src/main.py", "x = 1\n")
    found = desk.own("cowork_begin", stage="prd", inputs=["artifacts/idea.md"], files=True)
    assert found["inputs"] == {"artifacts/idea.md": "notes\n"}
    assert [one["details"] for one in found["feedback"]] == ["shorter"]
    assert found["files"] == [{"path": "src/main.py", "size": 6}]
    assert desk.json(META)["current_stage"] == "prd"


@pytest.mark.req("S3-11", "S3-86")
def test_a_missing_input_keeps_a_stage_from_beginning(desk: ProjectDesk) -> None:
    opened(desk)
    said = refused(desk, "cowork_begin", stage="prd", inputs=["artifacts/idea.md"])
    assert said == "Failed to read file .cowork/artifacts/idea.md: No such file or directory"
    assert desk.json(META)["current_stage"] == "idea"


def test_an_invalid_input_is_refused_with_its_place_and_a_long_one_is_cut(desk: ProjectDesk) -> None:
    opened(desk)
    desk.put(REQUIREMENTS, {"requirements": [{"id": "REQ-001", "title": 3}]})
    said = refused(desk, "cowork_begin", stage="design", inputs=[REQUIREMENTS])
    assert said.startswith(".cowork/data/requirements.json, at requirements[0].title: Expected `str`, got `int`")
    desk.put("artifacts/idea.md", "x" * 70_000)
    found = desk.own("cowork_begin", stage="prd", inputs=["artifacts/idea.md"])["inputs"]["artifacts/idea.md"]
    assert found.endswith("(cut here: 70,000 characters, the first 60,000 are shown)")


def test_the_list_of_code_is_given_without_hashes_and_in_bounds(desk: ProjectDesk) -> None:
    def given() -> list[str]:
        text: str = desk.own("cowork_begin", stage="delivery", inputs=[CODE])["inputs"][CODE]
        return text.splitlines()

    complete(desk)
    assert given() == ["index.html (13 bytes, TASK-001)"]
    files = [{"path": f"{number}.js", "size": number, "sha256": "5" * 64} for number in range(1093)]
    desk.put(CODE, {"files": files})
    assert (given()[0], given()[-1], len(given())) == ("0.js (0 bytes)", "… and 893 more", 201)
    desk.put(CODE, {"files": []})
    assert given() == ["There are no code files."]
    desk.put(CODE, {"files": [{"path": 3}]})
    assert "files[0].path" in refused(desk, "cowork_begin", stage="delivery", inputs=[CODE])


def test_a_feature_list_that_is_not_there_is_empty_beside_requirements(desk: ProjectDesk) -> None:
    opened(desk)
    desk.put_valid(REQUIREMENTS)
    found = desk.own("cowork_begin", stage="design", inputs=[REQUIREMENTS, FEATURES])["inputs"]
    assert json.loads(found[FEATURES]) == {"features": []}
    assert "feature_list.json" in refused(desk, "cowork_begin", stage="design", inputs=[FEATURES])


# Writing


@pytest.mark.req("S3-10", "S3-38")
def test_drafts_are_written_and_feedback_is_added_once(desk: ProjectDesk) -> None:
    opened(desk)
    draft: dict[str, Any] = {
        "stage": "prd",
        "files": {"artifacts/prd_draft.md": "one\n"},
        "feedback": {"details": "no", "record": 7},
    }
    first = desk.own("cowork_write", **draft)
    assert desk.own("cowork_write", again=True, **draft) == first
    assert [(one["id"], one["stage"], one["details"]) for one in desk.json(FEEDBACK)["feedbacks"]] == [
        ("r/7", "prd", "no")
    ]
    desk.put(DESIGN, "{")
    found = desk.own("cowork_write", stage="prd", reset=[DESIGN, PLAN])
    assert found == {"written": {}, "removed": [DESIGN, PLAN]} and not (desk.cowork / DESIGN).exists()


def test_features_do_not_keep_the_ids_of_tasks_that_are_removed(desk: ProjectDesk) -> None:
    """Neither when a stage makes its output again nor after a `modify`; an undo brings them back."""
    complete(desk)
    features = desk.json(FEATURES)
    features["features"][0]["assigned_to_tasks"] = ["TASK-001"]
    desk.put(FEATURES, features)
    desk.own("cowork_close", outcome="completed")
    again = ProjectDesk(desk.project, "flow/two", desk.tools)
    opened(again, "modify", "plan")
    assert desk.json(FEATURES)["features"][0]["assigned_to_tasks"] == []
    again.own("cowork_close", outcome="completed")
    folder = CoworkFolder(desk.project)
    undo(folder, Session(folder))
    assert desk.json(FEATURES)["features"][0]["assigned_to_tasks"] == ["TASK-001"]
    again.own("cowork_write", stage="plan", reset=[PLAN])
    assert desk.json(FEATURES)["features"][0]["assigned_to_tasks"] == []


@pytest.mark.parametrize("path", ["../x", "/x", "session/meta.json", "x.md", "backups/r/manifest.json", "data/../x"])
def test_a_stage_writes_only_drafts_and_data(desk: ProjectDesk, path: str) -> None:
    opened(desk)
    before = desk.files()
    assert refused(desk, "cowork_write", stage="prd", files={path: "x"})
    assert refused(desk, "cowork_write", stage="prd", reset=[path])
    assert desk.files() == before


def test_invalid_data_is_not_written(desk: ProjectDesk) -> None:
    opened(desk)
    assert "it has no 'tasks'" in refused(desk, "cowork_write", stage="plan", files={PLAN: "{}"})
    assert "cannot be written as UTF-8" in refused(desk, "cowork_write", stage="p", files={"artifacts/x.md": "\ud800"})


# Checking


def problems(desk: ProjectDesk, *outputs: str, **more: Any) -> list[str]:
    found: list[str] = desk.own("cowork_check", stage="x", outputs=outputs, **more)["problems"]
    return found


def test_products_that_fit_together_have_no_problems(desk: ProjectDesk) -> None:
    complete(desk)
    assert problems(desk, REQUIREMENTS, FEATURES, DESIGN, PLAN, CODE, "artifacts/idea.md", writes_code=True) == []


@pytest.mark.req("S3-67", "S3-81", "S3-82")
def test_products_that_do_not_are_named(desk: ProjectDesk) -> None:
    opened(desk)
    assert problems(desk, DESIGN) == ["There is no .cowork/data/design_spec.json."]
    data = valid_data()
    one = data[DESIGN]["architecture"]["components"].pop()
    desk.put_valid(FEATURES)
    desk.put(DESIGN, data[DESIGN])
    assert problems(desk, DESIGN) == ["The design has 1 component; it must have 2 to 6."]
    components = [{**one, "id": f"COMP-{number}", "related_features": []} for number in range(7)]
    desk.put(DESIGN, {"architecture": {"components": components}})
    assert "7 components" in problems(desk, DESIGN)[0]
    assert "Some features are not covered: FEAT-001, FEAT-002" in problems(desk, DESIGN)[1]
    tasks = data[PLAN]["tasks"]
    tasks[0]["dependencies"] = ["TASK-002"]
    tasks[1]["feature_id"] = "FEAT-001"
    desk.put(PLAN, data[PLAN])
    assert ["cycle" in one or "FEAT-002 without a task" in one for one in problems(desk, PLAN)] == [True, True]
    desk.put(PLAN, "[")
    assert "it is not JSON" in problems(desk, PLAN)[0]
    desk.put("artifacts/idea.md", " \n")
    assert problems(desk, "artifacts/idea.md") == [".cowork/artifacts/idea.md is empty."]


@pytest.mark.req("S3-73", "S3-74", "S3-75", "S3-84")
def test_completed_tasks_without_files_are_not_a_delivery(desk: ProjectDesk) -> None:
    opened(desk)
    data = valid_data()
    for task in data[PLAN]["tasks"]:
        task["status"] = "completed"
    for path, content in data.items():
        desk.put(path, content)
    for name in ("package.json", "README.md", ".hidden.py", "node_modules/x.js", "vite.config.ts", "Cargo.lock"):
        desk.code(name)
    desk.code("index.html", "")
    found = desk.own("cowork_check", stage="delivery", kind="delivery")
    assert found["problems"][0].startswith("❌ Project incomplete: No code files found")
    assert found["facts"]["code_files"] == 0 and found["facts"]["tasks"] == [1, 2]
    assert found["facts"]["tasks_marked"] == 2, "a task counts as completed only if its files are there"
    assert found["facts"]["tasks_without_files"] == 1
    report = {"path": "artifacts/delivery_report.md", "prose": "done", "title": "x"}
    said = refused(desk, "cowork_finish", stage="delivery", products=[report["path"]], report=report)
    assert said.startswith("❌ Project incomplete: No code files found")
    assert not (desk.cowork / report["path"]).exists() and "delivery" not in desk.json(META)["completed"]


@pytest.mark.req("S3-78")
def test_the_facts_come_from_the_files(desk: ProjectDesk) -> None:
    complete(desk)
    desk.code("app.js")
    (desk.project / "link.py").symlink_to("app.js")
    before = {"index.html": next(iter(desk.json(CODE)["files"]))["sha256"]}
    facts = desk.own("cowork_check", stage="check", kind="check", code_before=before)["facts"]
    assert [(one["path"], one["task_id"]) for one in facts["files"]] == [("app.js", None), ("index.html", "TASK-001")]
    assert facts["changed_files"] == ["app.js"]
    assert facts["coverage"][1] == {
        "feature": "FEAT-002",
        "name": "List",
        "components": ["COMP-001"],
        "tasks": ["TASK-002"],
        "status": "pending",
    }
    assert (facts["requirements"], facts["features"], facts["components"], facts["tasks"]) == (1, [0, 2], 2, [0, 2])
    assert any("link.py" in one for one in facts["unchecked"])
    assert facts["uncovered"] == facts["missing_files"] == []
    (desk.project / "index.html").unlink()
    assert desk.own("cowork_check", stage="x")["facts"]["missing_files"] == ["index.html"]


def changed(desk: ProjectDesk, before: dict[str, str]) -> list[str]:
    found: list[str] = desk.own("cowork_check", kind="check", code_before=before)["facts"]["changed_files"]
    return found


@pytest.mark.req("S3-78")
def test_code_has_changed_if_it_is_new_different_or_gone(desk: ProjectDesk) -> None:
    for name in ("same.py", "other.py", "gone.py", "picture.png", "notes.md"):
        desk.code(name)
    before = opened(desk)["code_before"]
    assert sorted(before) == ["gone.py", "other.py", "picture.png", "same.py"], "whatever a plan could count as code"
    assert changed(desk, before) == []
    desk.code("other.py", "x = 2\n")
    desk.code("new.py")
    for name in ("gone.py", "picture.png", "notes.md"):
        (desk.project / name).unlink()
    assert changed(desk, before) == ["gone.py", "new.py", "other.py"]


def test_code_that_was_not_read_is_not_said_to_have_changed(desk: ProjectDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.code("large.py", "x" * 30)
    monkeypatch.setattr(code_files, "MAX_HASHED", 20)
    before = opened(desk)["code_before"]
    desk.code("large.py", "y" * 40)
    assert changed(desk, before) == []
    monkeypatch.setattr(code_files, "MAX_HASHED", 50)
    assert changed(desk, before) == []


def test_what_was_there_before_is_kept_until_the_delivery_is_finished(desk: ProjectDesk) -> None:
    def names(mode: str, stage: str) -> list[str]:
        return sorted(opened(desk, mode, stage)["code_before"])

    desk.code("old.js")
    assert names("new", "idea") == ["old.js"]
    desk.put_valid()
    desk.code("index.html")
    finish(desk, "coding")
    assert names("continue", "coding") == names("modify", "design") == ["old.js"], "the same delivery"
    finish(desk, "delivery")
    assert names("modify", "coding") == ["index.html", "old.js"], "another one"
    desk.code("app.js")
    assert names("modify", "design") == ["index.html", "old.js"]


def test_broken_data_does_not_keep_a_check_from_looking(desk: ProjectDesk) -> None:
    opened(desk)
    desk.put(PLAN, "{")
    found = desk.own("cowork_check", stage="check", kind="check")
    assert found["problems"] == []
    assert any("implementation_plan.json" in one for one in found["facts"]["unchecked"])


def test_a_file_of_the_plan_is_code_whatever_its_suffix(desk: ProjectDesk) -> None:
    opened(desk)
    data = valid_data()
    data[PLAN]["tasks"][0]["files_to_create"] = ["Dockerfile", "../out", "cfg/.env"]
    desk.put(PLAN, data[PLAN])
    desk.code("Dockerfile", "FROM x\n")
    desk.code("cfg/.env", "x")
    facts = desk.own("cowork_check", stage="x")["facts"]
    assert facts["code_files"] == 1 and facts["missing_files"] == ["../out"], "no such file can be there"
    assert any("'../out'" in one for one in facts["unchecked"])


def test_empty_files_of_the_plan_are_named_and_a_folder_counts_by_what_is_in_it(desk: ProjectDesk) -> None:
    opened(desk)
    data = valid_data()
    data[PLAN]["tasks"][0] |= {"files_to_create": ["src/", "empty.md", ".hidden"], "status": "completed"}
    desk.put(PLAN, data[PLAN])
    desk.code("src/a.py", "x = 1\n")
    desk.code("empty.md", "")
    desk.code(".hidden", "")
    facts = desk.own("cowork_check", stage="x")["facts"]
    assert facts["missing_files"] == [] and facts["empty_files"] == ["empty.md", ".hidden"]
    assert (facts["planned_files"], facts["tasks"], facts["tasks_marked"]) == (3, [0, 2], 1)


def test_the_records_of_a_project_are_no_files_of_its_plan(desk: ProjectDesk) -> None:
    opened(desk)
    data = valid_data()
    data[PLAN]["tasks"][0] |= {"files_to_create": [".cowork/data/requirements.json"], "status": "completed"}
    desk.put(PLAN, data[PLAN])
    desk.put_valid(REQUIREMENTS)
    facts = desk.own("cowork_check", stage="x")["facts"]
    assert facts["missing_files"] == [".cowork/data/requirements.json"] and facts["tasks"] == [0, 2]
    assert any("cannot be the path of a file" in one for one in facts["unchecked"])


@pytest.mark.parametrize("nothing", ["\n \n", "\u200b", "\ufeff\n", "\u3000\u2060 "])
def test_a_file_in_which_a_person_sees_nothing_is_empty(desk: ProjectDesk, nothing: str) -> None:
    opened(desk)
    data = valid_data()
    data[PLAN]["tasks"][0]["files_to_create"] = ["app.js"]
    desk.put(PLAN, data[PLAN])
    desk.code("app.js", nothing)
    desk.put("artifacts/notes.md", nothing)
    found = desk.own("cowork_check", stage="x", outputs=["artifacts/notes.md"])
    assert (found["facts"]["empty_files"], found["facts"]["code_files"]) == (["app.js"], 0)
    assert found["problems"] == [".cowork/artifacts/notes.md is empty."]


def test_a_folder_with_the_name_of_a_file_of_the_plan_is_not_that_file(desk: ProjectDesk) -> None:
    opened(desk)
    data = valid_data()
    data[PLAN]["tasks"][0]["files_to_create"] = ["app.js"]
    desk.put(PLAN, data[PLAN])
    desk.code("app.js/notes.txt", "Later.\n")
    desk.code("index.html")
    assert desk.own("cowork_check", stage="x")["facts"]["missing_files"] == ["app.js"]


# Finishing


@pytest.mark.req("S3-9", "S3-10", "S3-101")
def test_finishing_marks_the_stage_with_its_products(desk: ProjectDesk) -> None:
    complete(desk)
    marks = desk.json(META)["completed"]
    assert list(marks) == ALL[:-1]
    assert set(marks["coding"]["products"]) == {"artifacts/coding_draft.md", CODE}
    assert desk.json(CODE)["files"][0]["path"] == "index.html"
    before = desk.files()
    assert finish(desk, "coding")["products"] == marks["coding"]["products"]
    assert desk.files() == before


@pytest.mark.req("S3-98", "S3-103")
def test_the_delivery_report_has_all_the_evidence_and_the_prose_around_it(desk: ProjectDesk) -> None:
    complete(desk)
    entry = {"feedback_type": "suggestion", "severity": "minor", "details": "more | colours", "by": "ann", "record": 7}
    desk.own("cowork_write", stage="prd", feedback=entry)
    decisions = [{"stage": "prd", "choice": "feedback", "by": "ann", "text": "shorter", "at": 1767225600000000}]
    cost = {"calls": 12, "input_tokens": 3456, "output_tokens": 789, "money": 0.12}
    prose = "A page.\n\n## Files\n\n| fake | 1 |\n\nCost\n====\n\n<!-- hidden\n\n```js\n# not a heading"
    report = {
        "path": "artifacts/delivery_report.md",
        "prose": prose,
        "title": "Notes",
        "cost": cost,
        "decisions": decisions,
    }
    finish(desk, "delivery", report=report)
    text = desk.text("artifacts/delivery_report.md")
    lines = [line for line in text.splitlines() if line != "# not a heading"]
    sections = [line for line in lines if line.startswith(("# ", "## "))]
    assert (
        sections
        == [
            *("# Delivery report: Notes", "## Files", "## Coverage", "## Consistency"),
            *(
                "## What was built, in the agent's words",
                "## Feedback and decisions",
                "## What could not be checked",
                "## Cost",
            ),
        ]
        or sections[2] == "# not a heading"
    )
    assert "#### Files" in text and "&lt;!-- hidden" in text and "Cost\n\n====" in text
    assert text.index("\n## Files\n") < text.index("# not a heading\n```") < text.index("\n## Feedback")
    sha = desk.json(CODE)["files"][0]["sha256"]
    assert f"| `index.html` | 13 | `{sha[:12]}` | TASK-001 |" in text
    assert "| REQ-001 Notes | FEAT-001 Add<br>FEAT-002 List | COMP-001, COMP-002 | TASK-001, TASK-002 |" in text
    assert "more \\| colours" in text and "prd: feedback by ann (2026-01-01 00:00 UTC): shorter" in text
    assert "| Input tokens | 3,456 |" in text and "does not run the code" in text
    assert "delivery" in desk.json(META)["completed"]


def test_a_disk_that_is_full_loses_nothing(desk: ProjectDesk, tmp_path_factory: pytest.TempPathFactory) -> None:
    place = tmp_path_factory.mktemp("small")
    if (
        os.geteuid()
        or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", place], capture_output=True).returncode
    ):
        pytest.skip("no small file system can be mounted here")
    try:
        small = ProjectDesk(place, tools=own_tools())
        opened(small)
        large = "x" * 20_000
        small.own("cowork_write", stage="prd", files={"artifacts/prd_draft.md": f"first {large}"})
        with pytest.raises(TryAgain, match="Make room on the disk"):
            small.own("cowork_write", stage="prd", files={f"artifacts/{name}.md": large for name in "abcd"})
        assert small.text("artifacts/prd_draft.md") == f"first {large}"
        assert small.json(META)["current_stage"] == "idea"
        (small.cowork / "artifacts/a.md").unlink()
        small.own("cowork_close", outcome="failed")
    finally:
        subprocess.run(["umount", place], check=True)
