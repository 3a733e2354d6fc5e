"""`pipeline.yaml` is read whole, or refused with everything that is wrong and where."""

from pathlib import Path

import pytest

from ripstop.definitions.loading import find_all, locate
from ripstop.definitions.problems import WrongDefinition
from ripstop.definitions.reader import Environment, ModelProblem
from ripstop.styles.graph.reader import READER as GRAPHS
from ripstop.styles.pipeline.definition import Critic, Pipeline, PipelineStage
from ripstop.styles.pipeline.reader import READER
from tests.harness.workflows import WORKFLOWS
from tests.styles.pipeline.pipeline_definitions import RECIPE, RIGHT, changed, checked, read, said, write, wrong

READERS = (GRAPHS, READER)


def test_reads_all_that_a_stage_says(tmp_path: Path) -> None:
    path = write(tmp_path)
    pipeline = read(path)
    assert checked(path) == []
    assert (pipeline.name, pipeline.rate_limit, pipeline.max_reviews, pipeline.auto_goto) == ("bakery", 0.5, 3, False)
    assert pipeline.stages[1] == PipelineStage(
        name="recipe",
        title="The recipe",
        agent="baker",
        instructions="Write a recipe.",
        inputs=("artifacts/wish.md",),
        draft="artifacts/recipe.md",
        review=True,
        outputs=("data/recipe.json",),
        tools=("write_recipe",),
        critic=Critic("recipe_critic", "Taste it.", tools=("provide_feedback",)),
        max_iterations=2,
    )


def test_an_agent_has_the_name_of_its_stage_unless_a_workflow_works_alone(tmp_path: Path) -> None:
    agents = {stage.name: stage.agent for stage in read(write(tmp_path)).stages}
    assert agents == {"wish": "wish", "recipe": "baker", "oven": "", "taste": "taste", "serve": "serve"}


# Which files are pipelines


@pytest.mark.parametrize("text", WORKFLOWS.values(), ids=WORKFLOWS)
def test_leaves_graphs_to_the_graph(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, text, "any.yaml")
    assert locate(READERS, str(path)).reader is GRAPHS


@pytest.mark.parametrize(
    ("file", "text", "style"),
    [
        ("mine.yaml", RIGHT, "pipeline"),
        ("mine.yml", RIGHT.replace("stages:", '"stages" :'), "pipeline"),
        ("mine.yaml", RIGHT.replace("name: wish", "name: [wish"), "pipeline"),
        ("pipeline.yaml", "name: x\n", "pipeline"),
        ("workflow.yaml", RIGHT, "graph"),
        ("mine.yaml", "stages:\n  - build\n  - test\n", "graph"),
        ("mine.yaml", "name: x\nagents:\nstages:\n  - name: states, misspelt\n", "graph"),
        ("mine.yaml", "name: x\ntext: |\n stages:\n - name: y\n", "graph"),
    ],
)
def test_a_file_is_recognised_by_what_is_in_it(tmp_path: Path, file: str, text: str, style: str) -> None:
    assert locate(READERS, str(write(tmp_path, text, file))).reader.style == style


def test_finds_a_pipeline_in_its_folder_and_all_below_another(tmp_path: Path) -> None:
    path = write(tmp_path / "bakery")
    assert locate(READERS, "bakery", tmp_path).path == path
    assert [one.path for one in find_all(READERS, str(tmp_path))] == [path]
    write(tmp_path / "bakery", "name: x\n", "workflow.yaml")
    assert locate(READERS, "bakery", tmp_path).reader is GRAPHS


@pytest.mark.parametrize("name", ["a.json", "a.yaml"])
def test_odd_files_are_not_pipelines(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    assert READER.find(tmp_path / name) is None
    (tmp_path / f"b{name}").write_bytes(b"stages: \xff")
    assert READER.find(tmp_path / f"b{name}") is None
    (tmp_path / f"c{name}").symlink_to(tmp_path / "nowhere")
    assert READER.find(tmp_path / f"c{name}") is None


# What is wrong


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("max_reviews: 3", "max_review: 3", ":4:1: error: a pipeline has no field 'max_review'"),
        ("max_reviews: 3", "max_reviews: 101", ":4:14: error: 'max_reviews' must be from 1 to 100, but this is 101"),
        ("rate_limit: 0.5", "rate_limit: -1",
         ":3:13: error: 'rate_limit' must be from 0 to 3600 seconds, but this is -1"),
        ("rate_limit: 0.5", "rate_limit: fast",
         ":3:13: error: 'rate_limit' must be a number, but this is text ('fast')"),
        ("name: bakery", "name: ..", ":1:7: error: '..' cannot be the name of the pipeline"),
        ("name: wish", "name: Wish!", ":6:11: error: 'Wish!' cannot be the name of the stage"),
        ("name: wish", "named: wish", ":6:5: error: the stage has no 'name'"),
        ("name: oven", "name: wish", ":22:11: error: there is a stage 'wish' already, in line 6"),
        ("agent: baker", "agent: The Baker", ":11:12: error: 'The Baker' cannot be the name of an agent"),
        ("review: true", "review: maybe", ":15:13: error: 'review' must be true or false, but this is text ('maybe')"),
        ("max_iterations: 2", "max_iterations: 11",
         ":21:21: error: 'max_iterations' must be from 1 to 10, but this is 11"),
        ("kind: check", "kind: chekc", ":27:11: error: there is no kind 'chekc'"),
        ("tools: [write_recipe]", "tools: [a, a]", ":17:16: error: the tool 'a' is listed twice"),
        ("tools: [write_recipe]", "tools: a", ":17:12: error: 'tools' must be a list, but this is text"),
        ("      instructions: Taste it.\n", "", ":18:5: error: the critic has no instructions"),
        ("    instructions: Write a recipe.\n", "", ":9:5: error: the agent of 'recipe' has no instructions"),
    ],
)  # fmt: skip
def test_names_the_place_of_a_wrong_field(tmp_path: Path, old: str, new: str, expected: str) -> None:
    assert f"pipeline.yaml{expected}" in wrong(tmp_path, changed((old, new)))


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/etc/passwd", "it is not relative"),
        ("artifacts/../../x.md", "it leads out of the folder"),
        ("artifacts/.hidden", "one of its parts is empty, or begins with a dot"),
        ("artifacts//x.md", "one of its parts is empty, or begins with a dot"),
        ("x.md", "it is not in a folder"),
        ("session/meta.json", "the folder 'session' is the engine's own"),
        ("Logs/x.log", "the folder 'Logs' is the engine's own"),
        ("backups/x/y.md", "the folder 'backups' is the engine's own"),
        ("'artifacts\\x.md'", "a path has parts with / between them, and no other odd characters"),
    ],
)
@pytest.mark.req("S3-87", "S3-88")
def test_refuses_paths_that_are_not_its_own(tmp_path: Path, path: str, why: str) -> None:
    for old, new, key in (
        ("draft: artifacts/recipe.md", f"draft: {path}", "draft"),
        ("outputs: [data/recipe.json]", f"outputs: [{path}]", "outputs"),
        ("inputs: [artifacts/wish.md]", f"inputs: [{path}]", "inputs"),
    ):
        shown = path.strip("'")
        found = wrong(tmp_path / key, changed((old, new)))
        assert any(f"{shown!r} cannot be in '{key}': {why}" in one for one in found), found


def test_dots_inside_a_name_are_fine(tmp_path: Path) -> None:
    text = RIGHT.replace("data/recipe.json", "data/recipe..v2.json")
    assert read(write(tmp_path, text)).stages[1].outputs == ("data/recipe..v2.json",)


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ((("inputs: [artifacts/wish.md]", "inputs: [data/cake.json]"),),
         ":13:14: error: 'data/cake.json' is an input of 'recipe', but 'oven' makes it, which comes later"),
        ((("inputs: [artifacts/wish.md]", "inputs: [data/recipe.json]"),),
         ":13:14: error: 'data/recipe.json' is an input of 'recipe', which makes it itself"),
        ((("inputs: [artifacts/wish.md]", "inputs: [data/wish.json]"),),
         ":13:14: error: no stage before 'recipe' makes 'data/wish.json'"),
        ((("    draft: artifacts/wish.md", "    draft: artifacts/wish.md\n    inputs: [data/x.json]"),),
         ":9:14: error: 'wish' is the first stage, so nothing has made 'data/x.json'"),
        ((("outputs: [data/cake.json]", "outputs: [data/recipe.json]"),),
         ":25:15: error: two stages make 'data/recipe.json': 'recipe' and 'oven'"),
        ((("    draft: artifacts/recipe.md\n", ""),),
         ":14:13: error: 'recipe' has no draft that a person could review"),
        ((("outputs: [data/recipe.json]", "outputs: [data/recipe.json, artifacts/recipe.md]"),),
         ":16:33: error: 'artifacts/recipe.md' is the draft, which is kept as it is"),
        ((("    tools: [write_recipe]\n", ""),),
         ":16:15: error: 'recipe' has no tools that could make 'data/recipe.json'"),
        ((("    draft: artifacts/wish.md\n", ""), ("    inputs: [artifacts/wish.md]\n", "")),
         ":6:5: error: 'wish' makes nothing"),
        ((("    draft: artifacts/wish.md", "    draft: artifacts/wish.md\n    writes_code: true"),),
         ":9:18: error: 'wish' has no tools that could write code"),
        ((("    workflow: baking", "    workflow: baking\n    tools: [heat]"),),
         ":25:5: error: 'oven' has a workflow, which has its own tools"),
        ((("    workflow: baking", "    workflow: baking\n    model: big"),),
         ":25:5: error: a workflow does the work of 'oven', and nobody writes a draft"),
        ((("kind: check", "kind: delivery"),),
         ":27:11: error: a delivery is the last stage, and there is one after it"),
        ((("kind: check", "kind: check\n    draft: artifacts/t.md"),),
         ":28:5: error: a stage with `kind: check` cannot have 'draft'"),
        ((("kind: check", "kind: check\n    review: true"),),
         ":28:5: error: a stage with `kind: check` cannot have 'review'"),
        ((("kind: check", "kind: check\n    outputs: [artifacts/check_report.md]"),),
         ":28:15: error: 'artifacts/check_report.md' is written by the engine"),
        ((("outputs: [data/cake.json]", "outputs: [artifacts/delivery_report.md]"),),
         ":25:15: error: only a stage with `kind: delivery` makes 'artifacts/delivery_report.md'"),
        ((("outputs: [data/cake.json]", "outputs: [data/code_metadata.json]"),),
         ":25:15: error: 'data/code_metadata.json' is written by the engine, for a stage that writes code"),
        ((("      instructions: Taste it.", "      agent: baker\n      instructions: Taste it."),),
         ":19:14: error: 'baker' is the critic here, and the actor of 'recipe'"),
        ((("      instructions: Taste it.", "      agent: serve\n      instructions: Taste it."),),
         ":19:14: error: 'serve' is the critic here, and the actor of 'serve'"),
    ],
)  # fmt: skip
def test_stages_have_to_fit_one_another(tmp_path: Path, pairs: tuple[tuple[str, str], ...], expected: str) -> None:
    assert f"pipeline.yaml{expected}" in wrong(tmp_path, changed(*pairs))


def test_a_stage_that_writes_code_makes_the_list_of_its_files(tmp_path: Path) -> None:
    text = changed(
        ("    tools: [write_recipe]", "    tools: [write_file]\n    writes_code: true"),
        ("inputs: [data/cake.json]", "inputs: [data/code_metadata.json]"),
    )
    assert read(write(tmp_path, text)).stages[1].writes_code


def test_one_agent_can_work_in_two_stages(tmp_path: Path) -> None:
    stages = read(write(tmp_path, changed(("instructions: Judge.", "agent: baker\n    instructions: Judge.")))).stages
    assert [stage.name for stage in stages if stage.agent == "baker"] == ["recipe", "taste"]


def test_says_what_has_no_effect(tmp_path: Path) -> None:
    text = changed(
        ("    critic:\n      instructions: Taste it.\n      tools: [provide_feedback]\n", ""),
        ("outputs: [data/recipe.json]", "outputs: []"),
        ("inputs: [data/recipe.json]", "inputs: [artifacts/recipe.md]"),
    )
    assert checked(write(tmp_path, text)) == [
        "pipeline.yaml:17:12: warning: nothing shows whether 'recipe' has used its tools",
        "pipeline.yaml:18:21: warning: 'recipe' has no critic, so there is one iteration only",
    ]
    silent = changed(("      tools: [provide_feedback]\n", ""))
    expected = "pipeline.yaml:18:5: warning: the critic cannot report what it finds: it has no tool 'provide_feedback'"
    assert checked(write(tmp_path, silent)) == [expected]


def test_bounds_the_number_of_stages_paths_and_tools(tmp_path: Path) -> None:
    stages = "".join(f"  - {{name: s{n}, instructions: x, draft: artifacts/{n}.md}}\n" for n in range(51))
    assert wrong(tmp_path, f"name: many\nstages:\n{stages}") == [
        "pipeline.yaml:53:5: error: there are 51 stages; at most 50 can be"
    ]
    tools = ", ".join(f"t{n}" for n in range(201))
    assert any("201 tools" in one for one in wrong(tmp_path, changed(("[write_recipe]", f"[{tools}]"))))
    paths = ", ".join(f"data/{n}.json" for n in range(101))
    assert any("101 paths" in one for one in wrong(tmp_path, changed(("[data/recipe.json]", f"[{paths}]"))))
    long = changed(("Write a recipe.", f'"{"x" * 50_001}"'))
    assert any("50001 characters; at most 50000" in one for one in wrong(tmp_path, long))


@pytest.mark.parametrize(
    "text", ["[]", "name: x\n", "name: x\nstages: []\n", "name: x\nstages: {a: 1}\n", "- a\n- b\n"]
)
def test_needs_stages(tmp_path: Path, text: str) -> None:
    assert wrong(tmp_path, text)


def test_what_it_names_is_looked_up(tmp_path: Path) -> None:
    environment = Environment(
        about_model=lambda name: ModelProblem(f"there is no model {name}"),
        about_workflow=lambda name: f"There is no workflow {name!r}",
        tools=("write_recipes", "goto_stage", "save_delivery_report", "provide_feedback"),
    )
    path = write(tmp_path, changed(("agent: baker", "agent: baker\n    model: huge")))
    assert checked(path, environment) == [
        "pipeline.yaml:12:12: error: there is no model huge",
        "pipeline.yaml:25:15: error: There is no workflow 'baking'",
    ]
    found = checked(write(tmp_path), Environment(tools=environment.tools))
    assert found == ["pipeline.yaml:17:13: warning: there is no tool 'write_recipe' here"]
    cycle = Environment(cycle_through=lambda name: ("bakery", name, "bakery"))
    found = checked(write(tmp_path), cycle)
    assert found == ["pipeline.yaml:24:15: warning: the workflow 'bakery' reaches itself: bakery → baking → bakery"]


# Instructions in files


def with_file(root: Path, named: str) -> str:
    return changed(("instructions: Write a recipe.", f"instructions_file: {named}"))


def test_instructions_can_be_in_a_file(tmp_path: Path) -> None:
    write(tmp_path / "prompts", "Bake well.\n", "baker.md")
    pipeline = read(write(tmp_path, with_file(tmp_path, "prompts/baker.md")))
    assert pipeline.stages[1].instructions == "Bake well."


@pytest.mark.parametrize(
    ("named", "why"),
    [
        ("../secret.md", "'instructions_file' must be a path in the folder of this file, but this is '../secret.md'"),
        ("/etc/passwd", "'instructions_file' must be a path in the folder of this file, but this is '/etc/passwd'"),
        ("link.md", "'link.md' cannot be read: 'link.md' is a symbolic link, and links are not followed here"),
        (
            "linked/secret.md",
            "'linked/secret.md' cannot be read: 'linked' is a symbolic link, and links are not followed",
        ),
        ("none.md", "'none.md' cannot be read: there is no such file"),
        ("empty.md", "'empty.md' is empty"),
        ("[a]", "'instructions_file' must be a path in the folder of this file"),
    ],
)
def test_refuses_instructions_from_elsewhere(tmp_path: Path, named: str, why: str) -> None:
    write(tmp_path, "A secret.\n", "secret.md")
    root = tmp_path / "bakery"
    write(root, " \n", "empty.md")
    (root / "link.md").symlink_to(tmp_path / "secret.md")
    (root / "linked").symlink_to(tmp_path)
    found = wrong(root, with_file(root, named))
    assert any(one.startswith(f"pipeline.yaml:12:24: error: {why}") for one in found), found


def test_instructions_are_in_one_place_only(tmp_path: Path) -> None:
    write(tmp_path, "Bake.\n", "baker.md")
    text = changed(("    instructions: Write a recipe.", "    instructions: x\n    instructions_file: baker.md"))
    expected = "pipeline.yaml:13:5: error: there are both 'instructions' and 'instructions_file'"
    assert wrong(tmp_path, text) == [expected]


# From a journal


@pytest.mark.parametrize(
    ("stage", "why"),
    [
        (PipelineStage("../x", agent="x", instructions="x", draft="artifacts/x.md"), "cannot be the name of the stage"),
        (PipelineStage("x", agent="x", instructions="x", draft="../x.md"), "cannot be in 'draft'"),
        (PipelineStage("x", agent="x", instructions="x", draft="session/meta.json"), "the engine's own"),
        (PipelineStage("x", agent="x", instructions="x", draft="artifacts/x.md", max_iterations=99), "from 1 to 10"),
        (PipelineStage("x", agent="x", instructions="x", review=True), "no draft that a person could review"),
        (PipelineStage("x", kind="check", agent="x", instructions="x", review=True), "cannot have 'review'"),
        (PipelineStage("x", agent="x", draft="artifacts/x.md"), "has no instructions"),
    ],
)
def test_a_pipeline_from_a_journal_keeps_the_rules_of_files(stage: PipelineStage, why: str) -> None:
    with pytest.raises(WrongDefinition, match=why):
        READER.check_pinned(Pipeline("x", (stage,)))


def test_a_pipeline_from_a_journal_has_bounds() -> None:
    stage = PipelineStage("x", agent="x", instructions="x", draft="artifacts/x.md")
    READER.check_pinned(Pipeline("x", (stage,)))
    for pipeline in (
        Pipeline("x", (stage,), rate_limit=-1),
        Pipeline("x", (stage,), max_reviews=0),
        Pipeline("x", (stage,), guards={"patience": -1}),
        Pipeline("x", ()),
    ):
        with pytest.raises(WrongDefinition):
            READER.check_pinned(pipeline)


def test_problems_are_all_told_at_once(tmp_path: Path) -> None:
    text = changed(("rate_limit: 0.5", "rate_limit: 9999"), (RECIPE, RECIPE.replace("draft:", "daft:")))
    with pytest.raises(WrongDefinition) as raised:
        READER.read(write(tmp_path, text), Environment())
    assert said(raised.value.problems) == [
        "pipeline.yaml:3:13: error: 'rate_limit' must be from 0 to 3600 seconds, but this is 9999",
        "pipeline.yaml:14:5: error: a stage has no field 'daft'",
        "pipeline.yaml:15:13: error: 'recipe' has no draft that a person could review",
    ]
    assert raised.value.problems[1].hint == "did you mean 'draft'?"
