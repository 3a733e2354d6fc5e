"""A folder of documents as a workflow: recognised, read, checked, pinned and shown by example."""

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given as for_all
from hypothesis import strategies

from ripstop.definitions.loading import find
from ripstop.definitions.problems import WrongDefinition
from ripstop.definitions.reader import DefinitionReader, Environment, ModelProblem
from ripstop.kernel.effects import AgentReplied, ToolReturned
from ripstop.kernel.registry import Registry
from ripstop.styles.graph.reader import READER as GRAPHS
from ripstop.styles.handoff.definition import Policy, Role
from ripstop.styles.handoff.kit import KIT
from ripstop.styles.handoff.reader import HANDOFF, READER, REPLIES, read_policy
from ripstop.testing import given

READERS: list[DefinitionReader] = [READER, GRAPHS]
DONE = ToolReturned(value={"file": "f.md", "done": "written"})


def folder(root: Path, policy: str = "", **roles: str) -> Path:
    (root / "roles").mkdir(parents=True)
    for name, prompt in roles.items():
        (root / "roles" / f"{name}.md").write_text(prompt, encoding="utf-8")
    if policy:
        (root / "handoff.yaml").write_text(policy, encoding="utf-8")
    return root


def wrong(root: Path) -> str:
    with pytest.raises(WrongDefinition) as raised:
        read_policy(root)
    return str(raised.value)


def test_a_folder_is_pinned_with_its_rules_its_roles_and_its_place(tmp_path: Path) -> None:
    root = folder(
        tmp_path / "office", "first: tess\nattempts: 2\nmodels:\n  tess: local\n", ann="You code.", tess="Test."
    )
    workflow = find(READERS, "office", beside=tmp_path)
    assert (workflow.style, workflow.name) == ("handoff", "office")
    policy = Registry([KIT]).load(KIT.name, workflow.content)
    assert policy == Policy(
        attempts=2, folder=str(root.resolve()), roles=(Role("tess", "Test.", "local"), Role("ann", "You code."))
    )
    READER.check_pinned(policy)


@pytest.mark.parametrize("has", ["roles", ".workflows"])
def test_a_folder_needs_no_file_to_be_one(tmp_path: Path, has: str) -> None:
    (tmp_path / has).mkdir()
    assert READER.find(tmp_path) == tmp_path
    assert read_policy(tmp_path).max_interactions == 10


def test_a_folder_of_another_style_is_left_to_it(tmp_path: Path) -> None:
    folder(tmp_path, ann="You code.")
    (tmp_path / "workflow.yaml").write_text("name: x", encoding="utf-8")
    assert READER.find(tmp_path) is None
    assert READER.find(tmp_path / "roles" / "ann.md") is None
    assert READER.find(tmp_path / "nowhere") is None


def test_its_file_means_the_folder(tmp_path: Path) -> None:
    root = folder(tmp_path / "office", "attempts: 1\n")
    assert find(READERS, "office/handoff.yaml", beside=tmp_path).path == root
    assert READER.find_all(tmp_path) == [root]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("max_interactions: 0", "handoff.yaml:1:19: error: 'max_interactions' must be from 1"),
        ("attempts: many", "must be a whole number"),
        ("language: fr", "there is no language 'fr'"),
        ("atempts: 1", "did you mean 'attempts'?"),
        ("first: eve", "'first' names 'eve', which is not a role"),
        ("models: {eve: local}", "handoff.yaml names 'eve', but there is no roles/eve.md"),
        ("models: [local]", "'models' must be a mapping"),
        ("models: {ann: 7}", "must be text"),
        ("guards: {patience: -1}", "'patience' must be from 0"),
        ("- 1", "must be a mapping"),
        ("a: [", "handoff.yaml:"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    assert said in wrong(folder(tmp_path, text, ann="You code."))


def test_a_role_that_is_not_text_is_named(tmp_path: Path) -> None:
    root = folder(tmp_path)
    (root / "roles" / "ann.md").write_bytes(b"\xff\xfe")
    assert "ann.md:1:1: error: this is not UTF-8 text" in wrong(root)


def test_a_check_names_roles_models_and_documents_that_look_wrong(tmp_path: Path) -> None:
    root = folder(tmp_path, "models: {ann: nonsense}", ann="You code.", bob=" ")
    (root / ".workflows").mkdir()
    (root / ".workflows" / "a.md").write_text("not one", encoding="utf-8")
    about = Environment(about_model=lambda model: ModelProblem(f"there is no model {model!r}"))
    found = [(problem.severity, problem.text.partition(":")[0]) for problem in READER.check(root, about)]
    assert found[0] == ("error", "there is no model 'nonsense'")
    assert found[1] == ("warning", "the role has no instructions")
    assert found[2][0] == "warning" and len(found) == 3
    empty = folder(tmp_path / "empty")
    assert [problem.text for problem in READER.check(empty, Environment())] == ["nobody works here"]


@pytest.mark.parametrize(
    "policy",
    [Policy(attempts=0), Policy(max_interactions=-1), Policy(folder="docs"), Policy(guards={"patience": "x"})],
)
def test_a_pinned_definition_that_no_folder_has_is_refused(policy: Policy) -> None:
    with pytest.raises(WrongDefinition):
        READER.check_pinned(policy)


def test_the_schema_has_the_fields_that_the_reader_knows(tmp_path: Path) -> None:
    defaults = {name: field["default"] for name, field in HANDOFF["properties"].items() if "default" in field}
    plain = msgspec.to_builtins(Policy()) | {"max_interactions": 10, "attempts": 3}
    assert {name: plain[name] for name in defaults} == defaults
    everything = "max_interactions: 5\nattempts: 1\nlanguage: zh\nfirst: ann\nmodels: {ann: local}\nguards: {}\n"
    assert {line.partition(":")[0] for line in everything.splitlines()} == set(HANDOFF["properties"])
    assert read_policy(folder(tmp_path, everything, ann="x")).language == "zh"


def test_the_example_runs_to_its_end_with_its_own_replies(tmp_path: Path) -> None:
    files = READER.example(tmp_path / "office")
    assert all(file.is_file() for file in files)
    assert READER.check(tmp_path / "office", Environment()) == []
    policy = read_policy(tmp_path / "office")
    replies = [AgentReplied(text=json.dumps({"content": "Done.", "decisions": made})) for made in REPLIES]
    story = given(KIT.style, policy, DONE, replies[0], DONE, replies[1], DONE, input="Why is the sea salty?")
    assert story.run is not None and story.run.ended is not None and story.run.ended.outcome == "completed"
    with pytest.raises(Exception, match="already"):
        READER.example(tmp_path / "office")


@for_all(strategies.text(max_size=200))
def test_any_text_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    root = tmp_path_factory.mktemp("any")
    (root / "handoff.yaml").write_text(text, encoding="utf-8", errors="replace")
    try:
        read_policy(root)
    except WrongDefinition as error:
        assert error.problems
