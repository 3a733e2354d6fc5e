"""Where a project goes on, what a restart would remove, and how it is undone."""

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripstop.kernel.errors import UsageError
from ripstop.styles.pipeline.agent_tools import update_task_status
from ripstop.styles.pipeline.asking import stage_products
from ripstop.styles.pipeline.definition import Pipeline, PipelineStage
from ripstop.styles.pipeline.project import find_project, project_state, refuse_existing
from ripstop.styles.pipeline.project_runs import first_stage, plan_modify, undo_modify
from ripstop.styles.pipeline.stages import own_tools
from ripstop.tools.toolbox import ToolContext
from tests.styles.pipeline.projects import CODE, DESIGN, FEATURES, META, PLAN, REQUIREMENTS, ProjectDesk

FLOW = Pipeline(
    "delivery",
    (
        PipelineStage("idea", agent="a", draft="artifacts/idea.md"),
        PipelineStage(
            "prd",
            agent="a",
            draft="artifacts/prd_draft.md",
            inputs=("artifacts/idea.md",),
            outputs=(REQUIREMENTS, FEATURES),
        ),
        PipelineStage(
            "design", agent="a", draft="artifacts/design_draft.md", inputs=(REQUIREMENTS, FEATURES), outputs=(DESIGN,)
        ),
        PipelineStage("plan", agent="a", draft="artifacts/plan_draft.md", inputs=(DESIGN,), outputs=(PLAN,)),
        PipelineStage(
            "coding", agent="a", draft="artifacts/coding_draft.md", inputs=(PLAN,), outputs=(CODE,), writes_code=True
        ),
        PipelineStage("check", agent="a", kind="check"),
        PipelineStage("delivery", agent="a", kind="delivery"),
    ),
)
NAMES = [stage.name for stage in FLOW.stages]
OWN_FLOW = Pipeline(
    "letters",
    (
        PipelineStage("wish", agent="a", draft="artifacts/wish.md"),
        PipelineStage("outline", agent="a", outputs=("data/outline.json",)),
        PipelineStage("letter", agent="a", outputs=("artifacts/letter.md",)),
    ),
)


@pytest.fixture(autouse=True)
def _no_power_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def desk(tmp_path: Path) -> ProjectDesk:
    return ProjectDesk(tmp_path, tools=own_tools())


def opened(desk: ProjectDesk, mode: str = "new", stage: str = "idea", **more: Any) -> dict[str, Any]:
    given = {
        "stages": stage_products(FLOW),
        "restartable": FLOW.restartable,
        "mode": mode,
        "stage": stage,
        "idea": "notes",
        **more,
    }
    return desk.own("cowork_open", **given)


def finish(desk: ProjectDesk, *stages: str) -> None:
    for name in stages:
        stage = FLOW.stages[NAMES.index(name)]
        desk.own("cowork_finish", stage=name, products=stage.products, writes_code=stage.writes_code)


def worked(desk: ProjectDesk, until: str = "coding") -> None:
    """A project whose stages up to this one are finished, and on which no run works."""
    opened(desk)
    desk.put_valid()
    desk.code("index.html")
    for stage in FLOW.stages:
        if stage.draft:
            desk.put(stage.draft, stage.draft)
    finish(desk, *NAMES[: NAMES.index(until) + 1])
    desk.own("cowork_close", outcome="")


def said(function: Any, *arguments: Any) -> str:
    with pytest.raises(UsageError) as raised:
        function(*arguments)
    return str(raised.value)


# Whether there is one


@pytest.mark.req("S3-19")
def test_a_folder_without_a_project_is_refused(tmp_path: Path) -> None:
    assert find_project(tmp_path) is None
    refuse_existing(tmp_path)
    for refused in (
        said(first_stage, tmp_path, FLOW),
        said(plan_modify, tmp_path, FLOW, "design"),
        said(undo_modify, tmp_path),
        said(project_state, tmp_path),
    ):
        assert refused.startswith("No project found")
    assert list(tmp_path.iterdir()) == []


def test_a_second_project_is_refused(desk: ProjectDesk) -> None:
    desk.put("artifacts/idea.md", "x")
    assert find_project(desk.project) == desk.cowork
    assert said(refuse_existing, desk.project).startswith("Project already initialized")


def test_a_link_in_its_place_is_refused(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    (tmp_path / ".cowork").symlink_to(tmp_path_factory.mktemp("outside"))
    assert "symbolic link" in said(find_project, tmp_path)


# Files alone


@pytest.mark.req("S3-21", "S3-22", "S3-23", "S3-24", "S3-25")
@pytest.mark.parametrize(
    ("files", "stage"),
    [
        ([], "prd"),
        ([REQUIREMENTS], "design"),
        ([REQUIREMENTS, FEATURES], "design"),
        ([REQUIREMENTS, FEATURES, DESIGN], "plan"),
        ([DESIGN], "plan"),
        ([REQUIREMENTS, FEATURES, DESIGN, PLAN], "coding"),
        ([PLAN], "coding"),
    ],
)
def test_a_project_without_marks_goes_on_after_its_last_product(
    desk: ProjectDesk, files: list[str], stage: str
) -> None:
    desk.put("artifacts/idea.md", "notes")
    if files:
        desk.put_valid(*files)
    found = first_stage(desk.project, FLOW)
    assert (found.stage, found.by) == (stage, "files")


@pytest.mark.req("S3-20")
def test_a_project_with_a_report_or_all_marks_is_completed(desk: ProjectDesk) -> None:
    desk.put("artifacts/delivery_report.md", "done")
    assert said(first_stage, desk.project, FLOW).startswith("Project already completed")


@pytest.mark.req("S3-23")
@pytest.mark.parametrize("half", ["", "{", '{"requirements": [{"id": "REQ-001"', '{"requirements": [{"id": 1}]}'])
def test_a_half_written_product_is_not_a_finished_stage(desk: ProjectDesk, half: str) -> None:
    desk.put("artifacts/idea.md", "notes")
    desk.put(REQUIREMENTS, half)
    found = first_stage(desk.project, FLOW)
    assert found.stage == "prd"
    assert ".cowork/data/requirements.json" in found.missing[0]


def test_code_metadata_alone_does_not_finish_coding(desk: ProjectDesk) -> None:
    desk.put_valid()
    desk.put(CODE, {"files": []})
    assert first_stage(desk.project, FLOW).stage == "coding"


def test_a_project_that_was_killed_before_its_idea_begins_with_it(desk: ProjectDesk) -> None:
    opened(desk)
    assert first_stage(desk.project, FLOW).stage == "idea"


def test_a_flow_of_its_own_goes_on_after_its_last_product(desk: ProjectDesk) -> None:
    desk.put("artifacts/wish.md", "x")
    assert first_stage(desk.project, OWN_FLOW).stage == "outline"
    desk.put("data/outline.json", "{}")
    assert first_stage(desk.project, OWN_FLOW).stage == "letter"
    desk.put("artifacts/letter.md", "\n")
    assert first_stage(desk.project, OWN_FLOW).missing == [".cowork/artifacts/letter.md is empty."]
    desk.put("artifacts/letter.md", "Dear all")
    assert said(first_stage, desk.project, OWN_FLOW).startswith("Project already completed")


FILES = [REQUIREMENTS, FEATURES, DESIGN, PLAN, "artifacts/delivery_report.md"]


@given(st.dictionaries(st.sampled_from(FILES), st.sampled_from(["valid", "{", "", "[]", "\x00"])))
@settings(max_examples=40)
def test_any_folder_has_a_first_stage_or_a_reason(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, str]
) -> None:
    desk = ProjectDesk(tmp_path_factory.mktemp("project"))
    desk.put("artifacts/idea.md", "x")
    for path, text in files.items():
        if text == "valid" and path != FILES[-1]:
            desk.put_valid(path)
        else:
            desk.put(path, text)
    valid = [path for path, text in files.items() if text == "valid"]
    try:
        found = first_stage(desk.project, FLOW).stage
    except UsageError:
        assert FILES[-1] in files
        return
    rule = {PLAN: "coding", DESIGN: "plan", REQUIREMENTS: "design"}
    broken_list = FEATURES in files and FEATURES not in valid
    wanted = next(
        (stage for path, stage in rule.items() if path in valid and not (stage == "design" and broken_list)), "prd"
    )
    assert found == wanted


# Marks and restarts


@pytest.mark.req("S3-25")
def test_marks_decide_where_there_are_some(desk: ProjectDesk) -> None:
    worked(desk)
    assert first_stage(desk.project, FLOW).stage == "check"
    worked_again = ProjectDesk(desk.project, "second", own_tools())
    opened(worked_again, "continue", "check")
    desk.put("artifacts/check_report.md", "fine")
    finish(worked_again, "check")
    assert first_stage(desk.project, FLOW).stage == "delivery"
    desk.put("artifacts/delivery_report.md", "done")
    finish(worked_again, "delivery")
    assert said(first_stage, desk.project, FLOW).startswith("Project already completed: all 7 stages are")


def test_a_missing_or_broken_product_takes_its_stage_back(desk: ProjectDesk) -> None:
    worked(desk)
    (desk.cowork / DESIGN).unlink()
    found = first_stage(desk.project, FLOW)
    assert (found.stage, found.missing) == ("design", ["There is no .cowork/data/design_spec.json."])
    desk.put(REQUIREMENTS, "{")
    found = first_stage(desk.project, FLOW)
    assert found.stage == "prd" and "it is not JSON" in found.missing[0]


def test_a_product_that_a_person_changed_is_named_but_not_one_that_a_tool_did(desk: ProjectDesk) -> None:
    worked(desk)
    context = ToolContext(run="r", agent="coder", workspace=desk.project, key="r/9", attempt=1)
    update_task_status(context, "TASK-001", "completed")
    assert first_stage(desk.project, FLOW).changed == []
    desk.put("artifacts/prd_draft.md", "edited")
    found = first_stage(desk.project, FLOW)
    assert (found.stage, found.changed) == ("check", [".cowork/artifacts/prd_draft.md"])
    assert project_state(desk.project).changed == [".cowork/artifacts/prd_draft.md"]


def test_a_recorded_restart_wins(desk: ProjectDesk) -> None:
    worked(desk)
    desk.put(META, {**desk.json(META), "current_stage": "design", "restart_reason": "too big"})
    found = first_stage(desk.project, FLOW)
    assert (found.stage, found.by, found.restart_reason) == ("design", "restart", "too big")


@pytest.mark.req("S3-60", "S3-61")
def test_the_state_has_counts_stages_and_what_is_wrong(desk: ProjectDesk) -> None:
    worked(desk)
    state = project_state(desk.project)
    assert (state.requirements, state.features, state.components, state.tasks) == (1, (0, 2), 2, (0, 2))
    assert (state.completed, state.code_files, state.idea) == (NAMES[:5], 1, "notes")
    desk.put(PLAN, "{")
    state = project_state(desk.project)
    assert "plan" not in state.completed and state.tasks == (0, 0)
    assert state.problems and state.missing


def test_a_project_of_another_system_has_a_state(desk: ProjectDesk) -> None:
    desk.put_valid(REQUIREMENTS)
    desk.put(META, {"session_id": "x", "created_at": "2026-01-01T00:00:00Z", "current_stage": "design"})
    state = project_state(desk.project)
    assert (state.current_stage, state.requirements, state.completed, state.run) == ("design", 1, [], "")


# Modify


@pytest.mark.req("S3-17", "S3-18")
def test_only_stages_that_make_something_can_be_restarted(desk: ProjectDesk) -> None:
    desk.put_valid()
    for stage in ("prd", "design", "plan", "coding"):
        assert plan_modify(desk.project, FLOW, stage).stage == stage
    for stage in ("idea", "check", "delivery", "", "Design", "x" * 1000):
        refused = said(plan_modify, desk.project, FLOW, stage)
        assert refused.startswith("Unknown stage")
        assert refused.endswith("expected one of: prd, design, plan, coding.") and len(refused) < 300


@pytest.mark.req("S3-16", "S3-57")
def test_a_plan_of_a_restart_says_what_goes_what_stays_and_what_runs(desk: ProjectDesk) -> None:
    worked(desk)
    before = desk.files()
    found = plan_modify(desk.project, FLOW, "plan")
    assert found.removed == ["artifacts/coding_draft.md", "artifacts/plan_draft.md", CODE, PLAN]
    assert (found.kept_code, found.rerun) == (["index.html"], NAMES[3:])
    assert found.missing_inputs == [] and desk.files() == before
    assert opened(ProjectDesk(desk.project, "two", own_tools()), "modify", "plan")["removed"] == found.removed


def test_a_stage_without_its_inputs_is_named(desk: ProjectDesk) -> None:
    desk.put_valid(REQUIREMENTS)
    assert plan_modify(desk.project, FLOW, "plan").missing_inputs == [DESIGN]
    assert plan_modify(desk.project, FLOW, "design").missing_inputs == [], "features that are not there count as none"


# Undo


def modified(desk: ProjectDesk, run: str, stage: str) -> None:
    other = ProjectDesk(desk.project, run, own_tools())
    opened(other, "modify", stage)
    other.own("cowork_close", outcome="")


def test_an_undo_puts_files_and_session_back_and_keeps_what_was_there(desk: ProjectDesk) -> None:
    worked(desk)
    before = {path: text for path, text in desk.files().items() if not path.startswith("session/")}
    meta = desk.json(META)
    modified(desk, "two", "design")
    desk.put(DESIGN, "new design")
    desk.put("artifacts/check_report.md", "new report")
    done = undo_modify(desk.project)
    assert (done.backup, done.stage, done.removed) == ("two", "design", ["artifacts/check_report.md"])
    assert DESIGN in done.restored and CODE in done.restored
    now = desk.files()
    assert {path: now[path] for path in before} == before
    assert not (desk.cowork / "artifacts/check_report.md").exists()
    assert desk.text(f"backups/{done.kept_in}/{DESIGN}") == "new design"
    assert desk.text(f"backups/{done.kept_in}/artifacts/check_report.md") == "new report"
    assert {name: desk.json(META)[name] for name in ("completed", "current_stage")} == {
        name: meta[name] for name in ("completed", "current_stage")
    }
    assert first_stage(desk.project, FLOW).stage == "check"


def test_a_second_undo_undoes_the_one_before(desk: ProjectDesk) -> None:
    worked(desk)
    before = desk.text(PLAN)
    modified(desk, "two", "coding")
    modified(desk, "three", "plan")
    assert undo_modify(desk.project).backup == "three"
    assert desk.text(PLAN) == before and not (desk.cowork / CODE).exists()
    assert undo_modify(desk.project).backup == "two"
    assert (desk.cowork / CODE).exists()
    assert "There is no backup to put back" in said(undo_modify, desk.project)


def test_nothing_is_undone_while_a_run_works(desk: ProjectDesk) -> None:
    worked(desk)
    other = ProjectDesk(desk.project, "two", own_tools())
    opened(other, "modify", "plan")
    before = desk.files()
    assert "is being worked on by the run two" in said(undo_modify, desk.project)
    assert desk.files() == before
    other.own("cowork_close", outcome="")
    undo_modify(desk.project)
    opened(ProjectDesk(desk.project, "three", own_tools()), "continue", "check")


@pytest.mark.parametrize("change", ["changed", None])
def test_a_copy_that_was_changed_is_not_put_back(desk: ProjectDesk, change: str | None) -> None:
    worked(desk)
    modified(desk, "two", "plan")
    copy = desk.cowork / "backups/two" / PLAN
    copy.unlink() if change is None else copy.write_text(change)
    before = desk.files()
    assert "so nothing is put back" in said(undo_modify, desk.project)
    assert desk.files() == before
