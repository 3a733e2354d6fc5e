"""Flows of stages in JSON mean a pipeline. What cannot be meant is said, with its place."""

import json
from pathlib import Path
from typing import Any

import pytest

from ripstop.definitions.loading import find_all, locate
from ripstop.definitions.problems import WrongDefinition
from ripstop.definitions.reader import Environment
from ripstop.styles.graph.reader import READER as GRAPHS
from ripstop.styles.pipeline.parsing import default_pipeline
from ripstop.styles.pipeline.reader import READER
from tests.styles.pipeline.pipeline_definitions import checked, flow, read, said, write

PRD = {
    "name": "Wishes",
    "stage_type": "actor_critic",
    "actor_critic": {"actor": "wisher", "critic": "doubter", "max_iterations": 3},
    "needs_confirmation": True,
    "artifacts": [
        {"path": "artifacts/wishes.md", "required": True},
        {"path": "data/requirements.json", "required": True},
        {"path": "data/feature_list.json", "required": False},
    ],
    "hooks": [],
    "tags": ["mine"],
}
POEM = {
    "name": "Poem",
    "description": "Writes a poem about the product",
    "agent": "poet",
    "artifacts": [{"path": "artifacts/poem.md", "required": True}],
}
AGENTS = "quick.json:3:2: warning: how agents work is not in a flow: instructions and tools are those of the default"


def ids(*names: str) -> list[dict[str, Any]]:
    return [{"stage_id": name} for name in names]


def chain(*names: str) -> list[dict[str, Any]]:
    following = zip(names, [*names[1:], None], strict=True)
    return [{"stage_id": name, "alias": None, "overrides": {}, "on_success": then} for name, then in following]


def refused(path: Path) -> list[str]:
    with pytest.raises(WrongDefinition) as raised:
        READER.read(path, Environment())
    assert READER.check(path, Environment()) == raised.value.problems
    return [one for one in said(raised.value.problems) if ": error: " in one]


def warned(path: Path) -> list[str]:
    found = checked(path)
    assert not [one for one in found if ": error: " in one], found
    return [one for one in found if not one.startswith(AGENTS)]


def test_a_stage_of_a_flow_has_what_its_file_says_and_the_rest_of_the_default_flow(tmp_path: Path) -> None:
    path = flow(tmp_path, chain("idea", "prd", "design"), {"prd": PRD}, start_stage="idea", description="Fast.")
    pipeline, ours = read(path), default_pipeline()
    assert (pipeline.name, pipeline.description) == ("quick", "Fast.")
    assert [stage.name for stage in pipeline.stages] == ["idea", "prd", "design"]
    prd, known = pipeline.stages[1], ours.stages[1]
    assert known.critic is not None and prd.critic is not None
    assert (prd.title, prd.agent, prd.critic.agent, prd.max_iterations) == ("Wishes", "wisher", "doubter", 3)
    assert (prd.draft, prd.review, prd.outputs) == ("artifacts/wishes.md", True, known.outputs)
    assert (prd.instructions, prd.tools, prd.inputs) == (known.instructions, known.tools, known.inputs)
    assert (prd.critic.instructions, prd.critic.tools) == (known.critic.instructions, known.critic.tools)
    assert pipeline.stages[2] == ours.stages[2]


def test_names_every_stage_that_it_takes_from_the_default_flow(tmp_path: Path) -> None:
    path = flow(tmp_path, chain("idea", "prd"), {"prd": PRD})
    assert warned(path) == [
        "quick.json:5:16: warning: there is no stages/idea.json, so the default flow's 'idea' is used",
        "prd.json:21:12: warning: 'data/feature_list.json' has to be there, though it is not required",
    ]
    assert checked(path)[0].startswith(AGENTS)


def test_a_stage_that_the_default_flow_does_not_have_works_by_its_description(tmp_path: Path) -> None:
    stages = read(flow(tmp_path, ids("idea", "poem"), {"poem": POEM})).stages
    assert (stages[1].agent, stages[1].draft, stages[1].inputs) == ("poet", "artifacts/poem.md", ("artifacts/idea.md",))
    assert stages[1].instructions.startswith("Writes a poem about the product.\n")


# Order


def test_stages_are_in_the_order_of_on_success(tmp_path: Path) -> None:
    stages = [
        {"stage_id": "design"},
        {"stage_id": "idea", "on_success": "prd"},
        {"stage_id": "prd", "on_success": "design"},
    ]
    assert [one.name for one in read(flow(tmp_path, stages, start_stage="idea")).stages] == ["idea", "prd", "design"]


def test_stages_without_on_success_are_in_the_order_of_the_list(tmp_path: Path) -> None:
    path = flow(tmp_path, ids("check", "idea", "prd"), start_stage="idea")
    assert [one.name for one in read(path).stages] == ["idea", "prd"]
    assert "quick.json:5:16: warning: kept out: the stage 'check', which nothing leads to" in warned(path)


def test_an_alias_is_the_name_of_a_stage(tmp_path: Path) -> None:
    stages = [{"stage_id": "idea", "on_success": "first-wishes"}, {"stage_id": "prd", "alias": "first-wishes"}]
    assert [one.name for one in read(flow(tmp_path, stages)).stages] == ["idea", "first-wishes"]


@pytest.mark.parametrize(
    ("stages", "others", "expected"),
    [
        ([{"stage_id": "idea", "on_success": "prd"}, {"stage_id": "prd", "on_success": "idea"}], {},
         "quick.json:10:18: error: 'prd' leads back to 'idea', so the flow never ends"),
        ([{"stage_id": "idea", "on_success": "prdd"}, {"stage_id": "prd"}], {},
         "quick.json:6:18: error: the flow has no stage 'prdd'"),
        (ids("idea"), {"start_stage": "ideas"}, "quick.json:8:17: error: the flow has no stage 'ideas'"),
        ([{"stage_id": "idea", "on_success": ["prd", "design"]}], {},
         "quick.json:6:18: error: this must be the name of one stage, but it is a list"),
        ([{"stage_id": "idea", "on_failure": "idea"}], {},
         "quick.json:6:4: error: 'on_failure' is a branch, and the stages of a pipeline are in one order"),
        ([{"stage_id": "idea", "condition": "x"}], {},
         "quick.json:6:4: error: 'condition' is a branch, and the stages of a pipeline are in one order"),
        (ids("idea", "idea"), {}, "quick.json:8:16: error: there is a stage 'idea' already"),
        (ids("idea", "polish"), {},
         "quick.json:8:16: error: there is no stage 'polish', neither in stages/ nor in the default flow"),
        (ids("../../secret"), {"start_stage": None},
         "quick.json:5:16: error: there is no stage '../../secret', neither in stages/ nor in the default flow"),
        ([{"alias": "x"}], {}, "quick.json:4:3: error: a stage of a flow has no 'stage_id'"),
        ([{"stage_id": "idea", "alias": "My Idea"}], {},
         "quick.json:6:13: error: 'My Idea' cannot be the name of the stage"),
        (ids("idea", "delivery", "check"), {},
         "quick.json:8:16: error: a delivery is the last stage, and there is one after it"),
        (["idea"], {}, "quick.json:4:3: error: a stage of a flow must be an object, but this is text"),
        ([], {}, "quick.json:3:12: error: the pipeline has no stages"),
    ],
)  # fmt: skip
def test_refuses_what_is_not_one_order(
    tmp_path: Path, stages: list[Any], others: dict[str, Any], expected: str
) -> None:
    assert expected in refused(flow(tmp_path, stages, **({"start_stage": "idea"} | others)))


def test_a_flow_can_leave_stages_out(tmp_path: Path) -> None:
    """Inputs that nothing makes are left out; a stage without any reads what the one before it has made."""
    path = flow(tmp_path, chain("idea", "coding", "delivery"))
    stages = {one.name: one for one in read(path).stages}
    assert stages["coding"].inputs == ("artifacts/idea.md",)
    assert stages["delivery"].inputs == ("artifacts/idea.md", "data/code_metadata.json")
    expected = "kept out: inputs of 'coding' that no stage before it makes: data/implementation_plan.json"
    assert any(expected in one for one in warned(path))


# What ripstop does not have


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ({"config": {"stop_on_failure": False}}, "quick.json:9:3: warning: kept out: 'stop_on_failure': false"),
        ({"config": {"memory_scope": "merged"}}, "quick.json:9:3: warning: kept out: 'memory_scope'"),
        ({"config": {"inheritance": {"default_mode": "full"}}}, "quick.json:9:3: warning: kept out: 'inheritance'"),
        ({"config": {"max_total_time_secs": 60}}, "quick.json:9:3: warning: kept out: 'max_total_time_secs'"),
        ({"config": {"memory": 1}}, "quick.json:9:3: warning: kept out: 'config' has no field 'memory' here"),
        ({"colour": "red"}, "quick.json:8:2: warning: kept out: a flow has no field 'colour' here"),
        ({"global_hooks": [{"integration_id": "x", "blocking": False}]},
         "quick.json:9:3: warning: kept out: a hook, which nobody waits for"),
    ],
)  # fmt: skip
def test_names_what_it_keeps_out(tmp_path: Path, others: dict[str, Any], expected: str) -> None:
    assert expected in warned(flow(tmp_path, ids("idea"), **others))


def test_what_means_nothing_is_not_mentioned(tmp_path: Path) -> None:
    path = flow(
        tmp_path,
        ids("poem"),
        {"poem": {**POEM, "hooks": [], "timeout_secs": None, "tags": ["x"], "metadata": {"a": 1}, "version": "1"}},
        version="1.0.0",
        tags=["built-in"],
        metadata={"purpose": "x"},
        global_hooks=[],
        config={"stop_on_failure": True, "save_state_on_interrupt": True, "memory_scope": None},
    )
    assert warned(path) == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"hooks": [{"integration_id": "deploy", "point": "pre_execute", "blocking": True}]},
         "error: ripstop has no hooks, and the run would go on without waiting for this one"),
        ({"stage_type": "parallel"}, "error: there is no stage_type 'parallel'"),
        ({"stage_type": "actor_critic"}, "error: a stage of this type needs 'actor_critic'"),
        ({"needs_confirmation": True, "artifacts": []},
         "error: there is nothing that a person could confirm: the stage has no Markdown artifact"),
        ({"needs_confirmation": "yes"}, "error: 'needs_confirmation' must be true or false, but this is text ('yes')"),
        ({"artifacts": [{"path": "../poem.md"}]},
         "error: '../poem.md' cannot be in 'draft': it leads out of the folder"),
        ({"artifacts": [{"path": "artifacts/a.md"}, {"path": "data/a.json", "required": True}]},
         "error: nothing here can make 'data/a.json': only stages of the default flow have tools"),
        ({"artifacts": [{"required": True}]}, "error: the artifact has no 'path'"),
        ({"actor_critic": {"actor": "a", "critic": "b", "max_iterations": 11}},
         "error: 'max_iterations' must be from 1 to 10, but this is 11"),
        ({"actor_critic": {"actor": "a", "critic": "a"}}, "error: 'a' is the critic here, and the actor of 'poem'"),
    ],
)  # fmt: skip
def test_refuses_a_stage_that_would_do_something_else(tmp_path: Path, change: dict[str, Any], expected: str) -> None:
    path = flow(tmp_path, ids("idea", "poem"), {"poem": {**POEM, **change}})
    found = refused(path)
    assert any(one.startswith("poem.json:") and expected in one for one in found), found


@pytest.mark.parametrize(("stage", "artifact"), [("check", "check_report"), ("delivery", "delivery_report")])
def test_reports_are_written_by_the_engine_whatever_the_file_says(tmp_path: Path, stage: str, artifact: str) -> None:
    file = {
        "agent": f"{stage}_agent",
        "needs_confirmation": False,
        "artifacts": [{"path": f"artifacts/{artifact}.md", "required": True}],
    }
    path = flow(tmp_path, ids("idea", stage), {stage: file})
    found = read(path).stages[1]
    assert (found.agent, found.kind, found.outputs) == (f"{stage}_agent", stage, ())
    assert found.products == (f"artifacts/{artifact}.md",)
    asked = flow(tmp_path, ids("idea", stage), {stage: {**file, "needs_confirmation": True}})
    assert any("there is nothing that a person could confirm" in one for one in refused(asked))


def test_a_folder_among_the_artifacts_is_code(tmp_path: Path) -> None:
    file = {"agent": "coder", "needs_confirmation": True, "artifacts": [{"path": "workspace/", "required": True}]}
    coding = read(flow(tmp_path, ids("idea", "coding"), {"coding": file})).stages[1]
    assert (coding.writes_code, coding.draft, coding.review) == (True, "artifacts/coding_draft.md", True)
    assert coding.critic is None and coding.agent == "coder"


def test_a_flow_overrides_its_stages(tmp_path: Path) -> None:
    stages = [
        {"stage_id": "idea", "overrides": {"needs_confirmation": True}},
        {"stage_id": "prd", "overrides": {"needs_confirmation": False, "max_iterations": 5, "timeout_secs": 3}},
    ]
    path = flow(tmp_path, stages, {"prd": PRD})
    idea, prd = read(path).stages
    assert (idea.review, prd.review, prd.max_iterations) == (True, False, 5)
    assert any("warning: kept out: 'timeout_secs'" in one for one in warned(path))


def test_a_stage_file_that_cannot_be_read_is_a_problem_of_the_flow(tmp_path: Path) -> None:
    path = flow(tmp_path, ids("idea", "poem"), {"poem": '{"id": "poem",}'})
    assert refused(path) == ["poem.json:1:15: error: a key must be a text in double quotes"]
    (tmp_path / "stages" / "poem.json").unlink()
    (tmp_path / "stages" / "poem.json").symlink_to(tmp_path / "flows" / "quick.json")
    assert refused(path) == ["poem.json:1:1: error: 'poem.json' is a symbolic link, and links are not followed here"]


# Which files are flows


def test_a_stage_is_checked_as_what_it_is(tmp_path: Path) -> None:
    flow(tmp_path, ids("prd"), {"prd": PRD, "poem": {**POEM, "stage_type": "simpel"}})
    path = tmp_path / "stages" / "prd.json"
    assert checked(path) == [
        "prd.json:1:1: warning: this is one stage of a flow, and cannot run by itself",
        "prd.json:21:12: warning: 'data/feature_list.json' has to be there, though it is not required",
    ]
    with pytest.raises(WrongDefinition, match="this is one stage of a flow, and cannot run by itself"):
        READER.read(path, Environment())
    found = checked(tmp_path / "stages" / "poem.json")
    assert found == ["poem.json:12:16: error: there is no stage_type 'simpel'"]


def test_a_folder_is_searched_for_flows(tmp_path: Path) -> None:
    path = flow(tmp_path / "config", ids("idea"))
    write(tmp_path / "config" / "flows", '{"name": "not a flow"}', "other.json")
    assert [one.path for one in find_all((GRAPHS, READER), str(tmp_path))] == [path]
    assert locate((GRAPHS, READER), str(path)).reader is READER
    assert READER.find(tmp_path / "config" / "flows" / "other.json") is None


def test_a_flow_is_found_from_its_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = flow(tmp_path, ids("idea", "poem"), {"poem": POEM})
    monkeypatch.chdir(path.parent)
    assert [one.name for one in read(Path("quick.json")).stages] == ["idea", "poem"]


def test_a_flow_has_the_name_of_its_file_if_it_says_none(tmp_path: Path) -> None:
    path = flow(tmp_path, ids("idea"), id=None)
    assert read(path).name == "quick"
    path.write_text(json.dumps({"id": "No name", "stages": ids("idea")}))
    assert refused(path) == ["quick.json:1:8: error: 'No name' cannot be the name of the pipeline"]
