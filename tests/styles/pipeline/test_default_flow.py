"""The flow that is shipped: seven stages from an idea to a delivery, in two languages."""

import re
from pathlib import Path

import pytest
import yaml

from ripstop.definitions.reader import Environment, write_example
from ripstop.kernel.errors import UsageError
from ripstop.styles.pipeline.parsing import default_flow, default_pipeline, is_chinese
from ripstop.styles.pipeline.reader import READER
from ripstop.styles.pipeline.schema import PIPELINE
from tests.styles.graph.test_graph_schema import accepts
from tests.styles.pipeline.pipeline_definitions import RIGHT, changed, checked, read, write

NAMES = ["idea", "prd", "design", "plan", "coding", "check", "delivery"]
REVIEWED = ["prd", "design", "plan", "coding"]
LOOKING = {"get_requirements", "get_features", "get_design", "get_plan"}
READING = {"read_file", "list_files", "search_files"}
CODE = {"write_file", "edit_file", "read_file", "list_files", "search_files", "run_command"}


def tools(stage: str) -> set[str]:
    found = default_pipeline().stage(stage)
    assert found is not None
    return {*found.tools}


def critic_tools(stage: str) -> set[str]:
    found = default_pipeline().stage(stage)
    assert found is not None and found.critic is not None
    return {*found.critic.tools}


@pytest.mark.req("S3-1", "S3-2", "S3-3", "S3-4", "S3-5", "S3-6", "S3-7", "S3-8", "S3-13")
def test_stages_read_and_make_the_files_of_a_project() -> None:
    stages = default_pipeline().stages
    assert [stage.name for stage in stages] == NAMES
    made = {stage.name: stage.products for stage in stages}
    assert made == {
        "idea": ("artifacts/idea.md",),
        "prd": ("artifacts/prd_draft.md", "data/requirements.json", "data/feature_list.json"),
        "design": ("artifacts/design_draft.md", "data/design_spec.json"),
        "plan": ("artifacts/plan_draft.md", "data/implementation_plan.json"),
        "coding": ("artifacts/coding_draft.md",),
        "check": ("artifacts/check_report.md",),
        "delivery": ("artifacts/delivery_report.md",),
    }
    inputs = {stage.name: stage.inputs for stage in stages[:5]}
    assert inputs == {
        "idea": (),
        "prd": ("artifacts/idea.md",),
        "design": ("data/requirements.json", "data/feature_list.json"),
        "plan": ("data/design_spec.json",),
        "coding": ("data/implementation_plan.json",),
    }
    assert [stage.name for stage in stages if stage.writes_code] == ["coding"]
    assert [(stage.name, stage.kind) for stage in stages if stage.kind != "work"] == [
        ("check", "check"),
        ("delivery", "delivery"),
    ]


@pytest.mark.req("S3-17", "S3-27", "S3-45", "S3-46")
def test_a_person_reviews_four_drafts_and_a_critic_checks_what_comes_of_them() -> None:
    pipeline = default_pipeline()
    assert [stage.name for stage in pipeline.stages if stage.review] == REVIEWED == [*pipeline.restartable]
    critics = {stage.name: stage.critic.agent for stage in pipeline.stages if stage.critic}
    assert critics == {name: f"{name}_critic" for name in REVIEWED}
    assert {stage.max_iterations for stage in pipeline.stages} == {1}
    assert [stage.agent for stage in pipeline.stages] == NAMES


@pytest.mark.req("S3-49", "S3-50", "S3-80", "S3-82", "S3-84", "S3-85")
def test_an_agent_has_the_tools_of_its_own_work_only() -> None:
    assert critic_tools("prd") == {"get_requirements", "provide_feedback"}
    assert tools("prd") >= {"create_requirement", "create_feature"} and tools("prd") & CODE == READING
    assert tools("design") >= {"create_component"} and tools("design") & CODE == READING
    assert critic_tools("design") >= {"check_feature_coverage", "provide_feedback"}
    assert tools("plan") >= {"create_task"} and tools("plan") & CODE == READING
    assert critic_tools("plan") >= {"check_task_dependencies"}
    assert tools("coding") == CODE | LOOKING | {"update_task_status", "update_feature_status"}
    assert critic_tools("coding") == {
        *("list_files", "read_file", "get_plan", "get_requirements", "get_design", "provide_feedback")
    }
    assert tools("check") >= LOOKING | {"goto_stage", "provide_feedback"} and "write_file" not in tools("check")
    assert tools("delivery") == LOOKING | {"list_files", "read_file", "save_delivery_report"}
    for name in NAMES:
        assert name == "check" or "goto_stage" not in tools(name)


def test_what_an_agent_can_make_it_can_delete() -> None:
    made = {"prd": ("requirement", "feature"), "design": ("component",), "plan": ("task",)}
    for stage, nouns in made.items():
        assert tools(stage) >= {f"{verb}_{noun}" for noun in nouns for verb in ("create", "update", "delete")}


def test_every_stage_reads_the_files_and_the_data_that_its_work_rests_on() -> None:
    for stage in default_pipeline().stages:
        assert {*(stage.draft_tools or stage.tools)} >= {"read_file", "list_files"}, stage.name
        assert stage.writes_code or not {*stage.draft_tools, *stage.tools} & {"write_file", "edit_file"}, stage.name
    coding = default_pipeline().stage("coding")
    assert coding is not None and {*coding.draft_tools} >= LOOKING


@pytest.mark.req("S3-51", "S3-76", "S3-77", "S3-79", "S3-81", "S3-83")
def test_instructions_name_only_tools_that_the_agent_has() -> None:
    every = {tool for stage in default_pipeline().stages for tool in (*stage.tools, *stage.draft_tools)}
    for stage in default_pipeline().stages:
        had = {*stage.tools, *stage.draft_tools}
        assert {*re.findall(r"\w+", stage.instructions)} & every <= had, stage.name
        if stage.critic:
            named = {*re.findall(r"\w+", stage.critic.instructions)} & every
            assert named <= {*stage.critic.tools}, stage.name
            assert "provide_feedback" in stage.critic.instructions
        assert len(stage.instructions) < 2_500


@pytest.mark.parametrize("scenario", ["delivery", "delivery-zh"])
def test_a_copy_is_a_pipeline_with_nothing_wrong(tmp_path: Path, scenario: str) -> None:
    files = write_example(READER, tmp_path, scenario)
    assert files == [tmp_path / "pipeline.yaml"] and checked(files[0]) == []
    copy, shipped = read(files[0]), default_pipeline()
    assert copy.name == scenario and copy.restartable == shipped.restartable
    for mine, theirs in zip(copy.stages, shipped.stages, strict=True):
        assert (mine.name, mine.agent, mine.tools, mine.products) == (
            theirs.name,
            theirs.agent,
            theirs.tools,
            theirs.products,
        )
        assert (mine.inputs, mine.review, mine.kind) == (theirs.inputs, theirs.review, theirs.kind)


def test_the_first_example_is_the_default_flow(tmp_path: Path) -> None:
    assert READER.scenarios == ("delivery", "delivery-zh")
    [path] = write_example(READER, tmp_path / "mine")
    assert path.read_text(encoding="utf-8") == default_flow().read_text(encoding="utf-8")
    with pytest.raises(UsageError, match=r"There is a file .*pipeline\.yaml already"):
        write_example(READER, tmp_path / "mine")
    assert READER.read(default_flow(), Environment())[0] == "delivery"


# What editors know


@pytest.mark.parametrize("scenario", ["delivery", "delivery-zh"])
def test_the_schema_accepts_what_is_shipped(tmp_path: Path, scenario: str) -> None:
    [path] = write_example(READER, tmp_path, scenario)
    assert READER.schema() is PIPELINE
    assert accepts(PIPELINE, yaml.safe_load(path.read_text(encoding="utf-8")))
    assert accepts(PIPELINE, yaml.safe_load(RIGHT))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("max_reviews: 3", "max_reviews: 101"),
        ("max_reviews: 3", "max_review: 3"),
        ("rate_limit: 0.5", "rate_limit: 3601"),
        ("name: bakery", "name: The Bakery"),
        ("max_iterations: 2", "max_iterations: 0"),
        ("kind: check", "kind: chekc"),
        ("draft: artifacts/recipe.md", "draft: ../recipe.md"),
        ("draft: artifacts/recipe.md", "draft: recipe.md"),
        ("data/recipe.json]", "/etc/passwd]"),
        ("tools: [write_recipe]", "tools: [a, a]"),
        ("review: true", "review: 1"),
        ("instructions: Taste it.", "instructions: [Taste it.]"),
    ],
)
def test_the_schema_refuses_what_the_reader_refuses(tmp_path: Path, old: str, new: str) -> None:
    text = changed((old, new))
    assert not accepts(PIPELINE, yaml.safe_load(text))
    assert any("error" in one for one in checked(write(tmp_path, text)))


def test_the_page_shows_a_pipeline_that_is_right(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "pipeline.md").read_text(encoding="utf-8")
    [text] = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    write(tmp_path / "prompts", "Write.\n", "writer.md")
    assert checked(write(tmp_path, text)) == []
    rows = re.findall(r"^\| (`[^|]*) \|", page, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert named == {*PIPELINE["properties"]["stages"]["items"]["properties"]}


@pytest.mark.parametrize(
    ("idea", "is_zh"),
    [
        ("浏览器里的待办清单", True),
        ("做一个 todo list 网页应用", True),
        ("用 Python 写一个爬虫，抓取 example.com 的标题", True),
        ("a to-do list in the browser", False),
        ("a page that translates 你好", False),
        ("ブラウザで使う買い物リスト", False),
        ("브라우저에서 쓰는 할 일 목록", False),
        ("список дел в браузере", False),
        ("", False),
        ("123 …", False),
    ],
)
def test_the_language_of_an_idea_is_told_from_its_characters(idea: str, is_zh: bool) -> None:
    assert is_chinese(idea) is is_zh
    assert (default_flow(idea).parent.name == "delivery-zh") is is_zh
