"""Data files: what is certain is read, what is not is refused with its place, and unknown keys survive."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripstop.engine.performers import Refused
from ripstop.styles.pipeline import data_files as files
from ripstop.styles.pipeline.checks import (
    ProjectData,
    component_problems,
    coverage,
    coverage_problems,
    dependency_cycle,
    dependency_problems,
    feature_problems,
    uncovered,
)
from ripstop.styles.pipeline.models import DesignComponent, DevelopmentTask, Feature, InvalidData, Requirement
from ripstop.styles.pipeline.store import CoworkFolder
from tests.styles.pipeline.projects import REQUIREMENTS, ProjectDesk, valid_data


def document(file: files.DataFile, value: Any) -> files.DataDocument:
    return files.document_of(file, json.dumps(value).encode())


def wrong(file: files.DataFile, value: Any) -> str:
    with pytest.raises(InvalidData) as raised:
        document(file, value)
    return str(raised.value)


@pytest.mark.req("S3-60", "S3-67", "S3-101")
def test_the_four_data_files_are_read() -> None:
    data = valid_data()
    found = [document(file, data[file.path]).entries for file in files.DATA_FILES[:4]]
    assert [type(one[0]) for one in found] == [Requirement, Feature, DesignComponent, DevelopmentTask]
    assert [one.id for one in found[3]] == ["TASK-001", "TASK-002"]


def test_files_of_the_original_system_are_read_as_they_are() -> None:
    component = {
        "id": "COMP-001",
        "name": "Shell",
        "type": {"other": "cli"},
        "responsibilities": ["x"],
        "technology": "Rust",
        "interfaces": [{"name": "run", "inputs": [], "outputs": []}],
        "related_features": ["FEAT-001"],
    }
    design = {
        "schema_version": "1.0",
        "architecture": {"style": "monolith", "components": [component], "data_models": []},
        "technology_stack": {},
        "deployment": {"architecture": ""},
    }
    assert document(files.DESIGN, design).entries[0].component_type == "cli"
    feedback = {"feedbacks": [{"stage": "prd", "feedback_type": "task_scope_issue", "details": "x", "timestamp": "t"}]}
    assert document(files.FEEDBACK, feedback).entries[0].at == "t"
    code = {"schema_version": "1.0", "files": [{"path": "a.py", "task_id": "TASK-001", "lines_of_code": 3}]}
    assert document(files.CODE, code).entries[0].path == "a.py"


@pytest.mark.parametrize(
    "written", ["in_progress", "InProgress", "In Progress", "IN-PROGRESS", "inProgress", "inprogress"]
)
def test_a_status_is_known_in_every_spelling(written: str) -> None:
    one = {"id": "TASK-001", "title": "x", "status": written, "dependencies": None, "files_to_create": "a.py"}
    entry = document(files.PLAN, {"tasks": [one]}).entries[0]
    assert entry.status == "in_progress"
    assert entry.dependencies == [] and entry.files_to_create == ["a.py"]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([], "must be an object with 'requirements' in it"),
        ({}, "it has no 'requirements'"),
        ({"requirements": {}}, "requirements: is {}, but must be a list"),
        ({"requirements": ["x"]}, "requirements[0]: is 'x', but must be an object"),
        ({"requirements": [{"title": "x"}]}, "requirements[0]: Object missing required field `id`"),
        ({"requirements": [{"id": 1, "title": "x"}]}, "requirements[0].id: Expected `str`, got `int`"),
        ({"requirements": [{"id": "a\nb", "title": "x"}]}, "an id is one line of at most 100 characters"),
        (
            {"requirements": [{"id": "R", "title": "x", "priority": "urgent"}]},
            "requirements[0].priority: is 'urgent'; expected one of: high, medium, low",
        ),
        (
            {"requirements": [{"id": "R", "title": "x"}, {"id": "R", "title": "y"}]},
            "requirements[1].id: is 'R', which requirements[0] has already",
        ),
        ({"requirements": [{"id": "R", "title": "x", "acceptance_criteria": [1]}]}, "acceptance_criteria[0]"),
    ],
)
@pytest.mark.req("S3-67")
def test_what_is_invalid_is_refused_with_its_place(value: Any, said: str) -> None:
    assert said in wrong(files.REQUIREMENTS, value)


@pytest.mark.parametrize(
    "data", [b"", b"{", b'{"requirements": [', b"[" * 100_000, b"\xff", b'{"a": ' * 200 + b"1" + b"}" * 200]
)
def test_broken_files_are_named_and_left_as_they_are(tmp_path: Path, data: bytes) -> None:
    desk = ProjectDesk(tmp_path)
    desk.put(REQUIREMENTS, "").write_bytes(data)
    with pytest.raises(Refused, match=r"^\.cowork/data/requirements\.json") as raised:
        files.load(CoworkFolder(tmp_path), files.REQUIREMENTS)
    assert len(str(raised.value)) < 400
    assert (desk.cowork / REQUIREMENTS).read_bytes() == data


def test_unknown_keys_survive_a_rewrite(tmp_path: Path) -> None:
    desk = ProjectDesk(tmp_path)
    one = {"id": "REQ-001", "title": "x", "owner": {"name": "Ann"}}
    desk.put(REQUIREMENTS, {"schema_version": "0.9", "requirements": [one], "__proto__": 1})
    folder = CoworkFolder(tmp_path)
    loaded = files.load(folder, files.REQUIREMENTS)
    loaded.raw[0]["title"] = "y"
    files.save(folder, loaded)
    assert desk.json(REQUIREMENTS) == {
        "schema_version": "0.9",
        "requirements": [{"id": "REQ-001", "title": "y", "owner": {"name": "Ann"}}],
        "__proto__": 1,
    }


@pytest.mark.req("S3-61", "S3-99")
def test_the_session_keeps_its_stage_its_reason_and_keys_of_others(tmp_path: Path) -> None:
    desk = ProjectDesk(tmp_path)
    desk.put("session/meta.json", {"session_id": "s", "current_stage": None})
    session = files.Session(CoworkFolder(tmp_path))
    session.change(current_stage="design", restart_reason="too big")
    found = desk.json("session/meta.json")
    assert (found["session_id"], found["current_stage"], found["restart_reason"]) == ("s", "design", "too big")
    assert files.Session(CoworkFolder(tmp_path)).meta.restart_reason == "too big"


JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "title", "name", "status", "tasks", "features", "x"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@given(st.sampled_from(files.ALL_FILES), JSON)
@settings(max_examples=50)
def test_any_json_is_read_or_refused(file: files.DataFile, value: Any) -> None:
    for content in (value, {file.keys[0]: value}, {file.keys[0]: [value]}, {"architecture": {"components": [value]}}):
        try:
            document(file, content)
        except InvalidData as error:
            assert str(error)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    assert isinstance(files.problems_in(files.PLAN, data), list)


# Whether it fits together


def plan(graph: dict[str, list[str]]) -> list[DevelopmentTask]:
    return [DevelopmentTask(id=one, title=one, feature_id="F", dependencies=others) for one, others in graph.items()]


@given(st.dictionaries(st.sampled_from("abcdef"), st.lists(st.sampled_from("abcdef"), max_size=3), max_size=6))
def test_a_cycle_is_found_exactly_if_a_task_reaches_itself(graph: dict[str, list[str]]) -> None:
    def reached(start: str) -> set[str]:
        found: set[str] = set()
        pending = list(graph.get(start, ()))
        while pending:
            one = pending.pop()
            if one not in found:
                found.add(one)
                pending += graph.get(one, ())
        return found

    cycle = dependency_cycle(plan(graph))
    assert bool(cycle) == any(one in reached(one) for one in graph)
    assert all(after in graph[before] for before, after in itertools.pairwise(cycle))
    assert cycle[:1] == cycle[-1:]


IDS = st.sampled_from(["F1", "F2", "F3"])


@given(st.lists(IDS, unique=True), st.lists(st.lists(IDS), max_size=4), st.lists(IDS, max_size=4))
@settings(max_examples=50)
def test_coverage_has_a_row_for_every_feature(known: list[str], designed: list[list[str]], planned: list[str]) -> None:
    data = ProjectData(
        features=[Feature(id=one, name=one) for one in known],
        components=[
            DesignComponent(id=f"C{number}", name="x", related_features=one) for number, one in enumerate(designed)
        ],
        tasks=[DevelopmentTask(id=f"T{number}", title="x", feature_id=one) for number, one in enumerate(planned)],
    )
    rows = coverage(data)
    assert [row.feature for row in rows] == known
    assert set(uncovered(data)) == {
        one for one in known if one not in planned or all(one not in ids for ids in designed)
    }
    assert set(uncovered(data)) == set(uncovered(data, "components")) | set(uncovered(data, "tasks"))


@pytest.mark.req("S3-72", "S3-78", "S3-82")
def test_features_without_component_or_task_are_named() -> None:
    data = ProjectData(features=[Feature(id="FEAT-001", name="Add")])
    assert coverage_problems(data, "components") == [
        "Some features are not covered: FEAT-001 without a component (related_features)."
    ]
    assert "a task" in coverage_problems(data, "tasks")[0]


@pytest.mark.req("S3-81")
@pytest.mark.parametrize(("count", "is_right"), [(0, False), (1, False), (2, True), (6, True), (7, False)])
def test_a_design_has_two_to_six_components(count: int, is_right: bool) -> None:
    components = [DesignComponent(id=f"C{number}", name="x") for number in range(count)]
    assert bool(component_problems(ProjectData(components=components))) is not is_right


def test_unknown_ids_are_named_with_those_that_there_are() -> None:
    data = ProjectData(
        requirements=[Requirement(id="REQ-001", title="x")],
        features=[Feature(id="FEAT-001", name="x", requirement_ids=["REQ-9"])],
        components=[DesignComponent(id="COMP-001", name="x", related_features=["FEAT-9"])],
        tasks=[DevelopmentTask(id="TASK-001", title="x", feature_id="FEAT-9", component_id="C", dependencies=["T"])],
    )
    assert feature_problems(data) == ["FEAT-001: requirement_ids names 'REQ-9'; requirements are: REQ-001."]
    assert "features are: FEAT-001" in component_problems(data)[1]
    assert [problem.split()[1] for problem in dependency_problems(data)] == [
        "feature_id",
        "component_id",
        "dependencies",
    ]
