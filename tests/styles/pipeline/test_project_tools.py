"""The tools with which agents make and check a project's data."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripstop.engine.performers import Kind, Refused
from ripstop.kernel.effects import ToolReturned
from ripstop.styles.pipeline.agent_tools import agent_tools
from ripstop.tools.toolbox import Toolbox
from tests.styles.pipeline.projects import DESIGN, FEATURES, FEEDBACK, META, PLAN, REQUIREMENTS, ProjectDesk

TOOLBOX = Toolbox(agent_tools())
DEEP: list[Any] = []
for _ in range(90):
    DEEP = [DEEP]
NAMES = {one.name: one for one in agent_tools()}


class AgentDesk(ProjectDesk):
    def call(self, tool: str, agent: str = "pm", number: int = 0, attempt: int = 1, **arguments: Any) -> Any:
        self.number += not number
        request = self.request(tool, agent, arguments, number or self.number, attempt)
        return self._value(TOOLBOX.perform(request))

    def probe(self, tool: str, **arguments: Any) -> Any:
        return self._value(TOOLBOX.probe(self.request(tool, "pm", arguments, self.number)))

    def _value(self, awaitable: Any) -> Any:
        async def wait() -> Any:
            return await awaitable

        answer = asyncio.run(wait())
        assert answer is None or isinstance(answer, ToolReturned)
        return answer.value if answer else None

    def refused(self, tool: str, **arguments: Any) -> str:
        before = self.files() if self.cowork.is_dir() else {}
        with pytest.raises(Refused) as raised:
            self.call(tool, **arguments)
        assert (self.files() if self.cowork.is_dir() else {}) == before
        return str(raised.value)

    def fill(self) -> None:
        self.call("create_requirement", title="Notes", description="Keep notes.")
        self.call("create_feature", name="Add", description="x", requirement_ids="REQ-001")
        component: Any = {"component_type": "frontend_component", "responsibilities": ["show"], "technology": "HTML"}
        self.call("create_component", name="Page", related_features=["FEAT-001"], **component)
        self.call("create_component", name="Store", **component)
        self.call("create_task", title="Page", description="x", feature_id="FEAT-001", component_id="COMP-001")


@pytest.fixture
def desk(tmp_path: Path) -> AgentDesk:
    return AgentDesk(tmp_path)


@pytest.mark.req("S3-49", "S3-50", "S3-60", "S3-70", "S3-71", "S3-80")
def test_agents_make_the_data_of_all_stages(desk: AgentDesk) -> None:
    desk.fill()
    desk.call("add_feature", name="List", description="x", requirement_ids=["REQ-001"], completion_criteria="shown")
    found = desk.call("get_requirements", agent="critic")
    assert [one["id"] for one in found["requirements"]] == ["REQ-001"]
    assert found["requirements"][0]["related_features"] == ["FEAT-001", "FEAT-002"]
    assert [one["name"] for one in found["features"]] == ["Add", "List"]
    assert found["features"][0]["assigned_to_tasks"] == ["TASK-001"]
    assert found["features"][1]["completion_criteria"] == ["shown"]
    assert [one["id"] for one in desk.call("get_design")["components"]] == ["COMP-001", "COMP-002"]
    assert desk.call("get_plan")["tasks"][0]["status"] == "pending"
    assert set(desk.json(REQUIREMENTS)["requirements"][0]) == {
        *("id", "title", "description", "priority", "category", "acceptance_criteria", "related_features")
    }


def test_every_tool_says_what_it_takes_and_how_it_can_be_repeated() -> None:
    kinds = {name: one.kind for name, one in NAMES.items()}
    assert {kinds[name] for name in kinds if name.startswith(("create_", "add_"))} == {Kind.PROBEABLE}
    assert {kinds[name] for name in kinds if name.startswith(("update_", "delete_", "get_", "check_"))} == {Kind.PURE}
    assert kinds["provide_feedback"] is Kind.KEYED and kinds["goto_stage"] is Kind.PURE
    assert all(one.spec.description for one in NAMES.values())
    assert "context" not in str([one.spec.parameters["properties"] for one in NAMES.values()])
    assert NAMES["create_requirement"].spec.parameters["properties"]["priority"]["enum"] == ["high", "medium", "low"]
    assert len(NAMES) == 27


def test_a_second_title_is_refused_and_the_first_is_named(desk: AgentDesk) -> None:
    desk.fill()
    said = desk.refused("create_requirement", title=" NO TES ", description="other")
    assert "REQ-001 is a requirement with the title 'Notes' already" in said
    desk.call("create_requirement", title="Other", description="x")
    assert "REQ-001" in desk.refused("update_requirement", id="REQ-002", title="notes")


def test_a_create_that_was_killed_is_found_by_its_values(desk: AgentDesk) -> None:
    given: Any = {"name": "Add", "description": "x", "requirement_ids": ["REQ-001"]}
    desk.call("create_requirement", title="Notes", description="x")
    assert desk.probe("create_feature", **given) is None
    made = desk.call("create_feature", **given)
    requirements = desk.json(REQUIREMENTS)
    requirements["requirements"][0]["related_features"] = []  # killed between the two files
    desk.put(REQUIREMENTS, requirements)
    assert desk.probe("create_feature", **given) == made
    assert desk.json(REQUIREMENTS)["requirements"][0]["related_features"] == ["FEAT-001"]
    assert desk.probe("create_feature", **{**given, "description": "y"}) is None
    assert desk.call("create_feature", attempt=2, **given) == made


@pytest.mark.req("S3-68", "S3-69")
def test_a_status_changes_only_what_belongs_to_it(desk: AgentDesk) -> None:
    desk.fill()
    before = desk.json(PLAN)["tasks"][0]
    desk.call("update_task_status", task_id="TASK-001", new_status="InProgress")
    during = desk.json(PLAN)["tasks"][0]
    assert {name for name in before if before[name] != during[name]} == {"status", "started_at"}
    desk.call("update_task_status", task_id="TASK-001", new_status="completed")
    done = desk.text(PLAN)
    desk.call("update_task_status", task_id="TASK-001", new_status="completed")
    assert desk.text(PLAN) == done
    after = desk.json(PLAN)["tasks"][0]
    assert {name for name in during if during[name] != after[name]} == {"status", "completed_at"}
    desk.call("update_feature_status", feature_id="FEAT-001", new_status="blocked")
    assert desk.json(FEATURES)["features"][0]["status"] == "blocked"
    desk.call("update_task", id="TASK-001", status="pending")
    assert desk.json(PLAN)["tasks"][0]["completed_at"] is None


def test_an_update_moves_the_lists_that_name_the_entry(desk: AgentDesk) -> None:
    desk.fill()
    desk.call("create_feature", name="List", description="x")
    desk.call("update_task", id="TASK-001", feature_id="FEAT-002", files_to_create="list.js")
    assert [one["assigned_to_tasks"] for one in desk.json(FEATURES)["features"]] == [[], ["TASK-001"]]
    assert desk.json(PLAN)["tasks"][0]["files_to_create"] == ["list.js"]


def test_an_update_keeps_the_name_of_a_field_in_somebody_elses_file(desk: AgentDesk) -> None:
    desk.put(DESIGN, {"architecture": {"components": [{"id": "COMP-001", "name": "x", "type": "database", "note": 1}]}})
    desk.call("update_component", id="COMP-001", component_type="api_gateway")
    assert desk.json(DESIGN)["architecture"]["components"] == [
        {"id": "COMP-001", "name": "x", "type": "api_gateway", "note": 1}
    ]


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("update_task_status", {"task_id": "TASK-9", "new_status": "completed"}, "there are: TASK-001"),
        ("update_task_status", {"task_id": "TASK-001", "new_status": "cancelled"}, "pending, in_progress, completed"),
        ("update_task", {"id": "TASK-001"}, "Give at least one field to change: title"),
        ("update_task", {"id": "TASK-001", "dependencies": ["TASK-001"]}, "a cycle: TASK-001 → TASK-001"),
        ("create_feature", {"name": "x", "description": "x", "requirement_ids": ["REQ-9"]}, "there are: REQ-001"),
        ("create_requirement", {"title": "x", "description": "x", "priority": "urgent"}, "high, medium, low"),
        ("create_requirement", {"title": "x"}, "missing required field `description`"),
        ("create_requirement", {"title": "x", "description": 3}, "Expected `str`"),
        ("create_requirement", {"title": "x", "description": "x", "id": "REQ-7"}, "unknown field `id`"),
        ("create_requirement", {"title": "", "description": "x"}, "one line of 1 to 300"),
        ("create_requirement", {"title": "a\nb", "description": "x"}, "one line of 1 to 300"),
        ("create_requirement", {"title": "a\x1b[2J", "description": "x"}, "control character U+001B at 1"),
        ("create_requirement", {"title": "x", "description": "a\0"}, "control character U+0000"),
        ("create_requirement", {"title": "x", "description": "\ud800"}, "cannot be written as UTF-8"),
        ("create_requirement", {"title": "x", "description": "x" * 1_000_000}, "at most 20,000"),
        ("create_requirement", {"title": "x", "description": "x", "acceptance_criteria": ["x"] * 201}, "at most 200"),
        (
            "create_task",
            {
                "title": "x",
                "description": "x",
                "feature_id": "FEAT-001",
                "component_id": "COMP-001",
                "files_to_create": "../x",
            },
            "cannot be used as a path",
        ),
        ("update_task", {"id": "TASK-001", "files_to_create": [""]}, "'' cannot be used as a path"),
        ("update_task", {"id": "TASK-001", "files_to_create": [" "]}, "has ' ', and it names no file"),
        ("update_task", {"id": "TASK-001", "files_to_create": ["src/"]}, "has 'src/', and it names no file"),
        ("update_task", {"id": "TASK-001", "files_to_create": ["a.js", "src/*.py"]}, "'*' makes it a pattern"),
        ("update_task", {"id": "TASK-001", "files_to_create": "src/{a,b}.py"}, "'{a,b}' makes it a pattern"),
        ("update_task", {"id": "TASK-001", "files_to_create": "./.cowork/data/x.json"}, "the project's records"),
        ("update_task", {"id": "TASK-001", "files_to_create": ".Cowork./x.js"}, "the project's records"),
        ("update_component", {"id": "COMP-001", "interfaces": [{"x": DEEP}]}, "nested more than 20 levels deep"),
        ("update_component", {"id": "COMP-001", "interfaces": [{"__proto__": "\x00"}]}, "control character U+0000"),
        ("update_component", {"id": "COMP-001", "interfaces": [{"\ud800": 1}]}, "cannot be written as UTF-8"),
        ("update_component", {"id": "COMP-001", "interfaces": [{"x": ["y" * 50_000]}]}, "is too long"),
        ("check_data_format", {"data_type": "everything"}, "requirements, features, design, plan, code"),
        ("provide_feedback", {"feedback_type": "praise", "severity": "minor", "details": "x"}, "build_error, quality"),
        ("provide_feedback", {"feedback_type": "suggestion", "severity": "huge", "details": "x"}, "critical, major"),
        ("provide_feedback", {"feedback_type": "suggestion", "severity": "minor", "details": " "}, "must say what"),
        ("goto_stage", {"stage": "check", "reason": "x"}, "expected one of: prd, design, plan"),
        ("goto_stage", {"stage": "design", "reason": ""}, "must say why"),
        ("save_delivery_report", {"content": "x" * 20_001}, "at most 20,000"),
    ],
)
def test_a_wrong_call_is_answered_with_what_is_valid_and_changes_nothing(
    desk: AgentDesk, tool: str, arguments: dict[str, Any], said: str
) -> None:
    desk.fill()
    stages = ["idea", "prd", "design", "plan", "coding", "check", "delivery"]
    desk.put(META, {"current_stage": "coding", "stages": stages, "restartable": stages[1:5]})
    assert said in desk.refused(tool, **arguments)


@pytest.mark.parametrize("broken", ["{", '{"tasks": [{"id": 3}]}', "[]", '{"tasks": [], "x": "\\ud800"}', "\x00"])
def test_a_file_that_a_person_has_broken_is_named_and_never_overwritten(desk: AgentDesk, broken: str) -> None:
    desk.fill()
    desk.put(PLAN, broken)
    said = desk.refused("update_task_status", task_id="TASK-001", new_status="completed")
    assert said.startswith(".cowork/data/implementation_plan.json")
    assert "mend it" in said
    assert "implementation_plan.json" in desk.refused(
        "create_task", title="x", description="x", feature_id="FEAT-001", component_id="COMP-001"
    )
    assert not desk.call("check_data_format")["valid"]


@pytest.mark.parametrize("link", [".cowork", ".cowork/data", ".cowork/data/requirements.json"])
def test_tools_do_not_follow_links(desk: AgentDesk, link: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "x").write_text('{"requirements": []}')
    place = desk.project / link
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(outside / "x" if link.endswith("json") else outside)
    calls: list[tuple[str, dict[str, Any]]] = [
        ("get_requirements", {}),
        ("create_requirement", {"title": "x", "description": "x"}),
    ]
    for tool, arguments in calls:
        with pytest.raises(Refused, match=r"link"):
            desk.call(tool, **arguments)
    assert [path.name for path in outside.iterdir()] == ["x"] and len((outside / "x").read_text()) == 20


def test_the_501st_entry_is_refused(desk: AgentDesk) -> None:
    desk.put(REQUIREMENTS, {"requirements": [{"id": f"REQ-{n}", "title": f"t{n}"} for n in range(500)]})
    assert "at most 500 are possible" in desk.refused("create_requirement", title="x", description="x")


def test_ids_continue_after_the_largest(desk: AgentDesk) -> None:
    desk.put(REQUIREMENTS, {"requirements": [{"id": "REQ-041", "title": "a"}, {"id": "other", "title": "b"}]})
    assert desk.call("create_requirement", title="x", description="x")["id"] == "REQ-042"


def test_calls_at_the_same_time_do_not_undo_each_other(desk: AgentDesk) -> None:
    def create(number: int) -> None:
        AgentDesk(desk.project).call("create_requirement", title=f"t{number}", description="x")

    threads = [threading.Thread(target=create, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = desk.json(REQUIREMENTS)["requirements"]
    assert sorted(one["title"] for one in found) == sorted(f"t{number}" for number in range(8))
    assert len({one["id"] for one in found}) == 8


TEXT = st.text(max_size=40)


@given(title=TEXT, description=TEXT, criteria=st.lists(TEXT, max_size=3) | TEXT)
@settings(max_examples=40)
def test_any_text_is_kept_as_it_is_or_refused(
    tmp_path_factory: pytest.TempPathFactory, title: str, description: str, criteria: Any
) -> None:
    desk = AgentDesk(tmp_path_factory.mktemp("project"))
    try:
        desk.call("create_requirement", title=title, description=description, acceptance_criteria=criteria)
    except Refused:
        assert not desk.cowork.exists()
        return
    found = desk.call("get_requirements")["requirements"][0]
    assert (found["title"], found["description"]) == (title.strip(), description)
    assert found["acceptance_criteria"] == ([criteria] if isinstance(criteria, str) else criteria)
    assert desk.call("check_data_format")["valid"]


# Checks and control


@pytest.mark.req("S3-72", "S3-82")
def test_coverage_is_checked_as_far_as_there_are_files(desk: AgentDesk) -> None:
    desk.call("create_feature", name="Add", description="x")
    assert desk.call("check_feature_coverage")["covered"]
    desk.put(DESIGN, {"architecture": {"components": []}})
    found = desk.call("check_feature_coverage")
    assert not found["covered"] and found["message"].startswith("Some features are not covered: FEAT-001")


def test_dependencies_are_checked(desk: AgentDesk) -> None:
    desk.put_valid()
    assert desk.call("check_task_dependencies") == {"valid": True, "problems": []}
    plan = desk.json(PLAN)
    plan["tasks"][0]["dependencies"] = ["TASK-002"]
    desk.put(PLAN, plan)
    assert "cycle" in desk.call("check_task_dependencies")["problems"][0]


@pytest.mark.req("S3-38", "S3-39", "S3-40", "S3-100")
def test_feedback_is_stored_once_for_each_call(desk: AgentDesk) -> None:
    desk.put(META, {"current_stage": "check"})
    given: Any = {"feedback_type": "missing_requirement", "severity": "Major", "details": "no search"}
    for _ in range(2):
        desk.call("provide_feedback", agent="checker", number=7, **given)
    desk.call("provide_feedback", agent="checker", number=8, **given)
    entries = desk.json(FEEDBACK)["feedbacks"]
    assert [one["id"] for one in entries] == ["r/7", "r/8"]
    assert entries[0] | {"at": ""} == {
        "id": "r/7",
        "stage": "check",
        "feedback_type": "missing_requirement",
        "severity": "major",
        "details": "no search",
        "suggested_fix": None,
        "by": "checker",
        "source": "checker",
        "at": "",
    }


@pytest.mark.req("S3-54")
def test_goto_records_the_stage_and_the_reason_and_can_be_changed(desk: AgentDesk) -> None:
    stages = ["idea", "prd", "design", "plan", "coding", "check", "delivery"]
    marks = {name: {"products": {}, "at": ""} for name in stages[:5]}
    desk.put(META, {"current_stage": "check", "stages": stages, "restartable": stages[1:5], "completed": marks, "x": 1})
    desk.call("goto_stage", stage="design", reason="one component too many")
    meta = desk.json(META)
    assert (meta["current_stage"], meta["restart_reason"], meta["x"]) == ("design", "one component too many", 1)
    desk.call("goto_stage", stage="design", reason="one component too many")
    desk.call("goto_stage", stage="coding", reason="no: only the code")
    assert desk.json(META)["current_stage"] == "coding"
    assert "prd, design, plan, coding" in desk.refused("goto_stage", stage="idea", reason="x")


def test_long_texts_are_cut_where_agents_read_them(desk: AgentDesk) -> None:
    desk.call("create_requirement", title="x", description="x" * 20_000)
    assert desk.call("get_requirements")["requirements"][0]["description"].endswith("… (18,000 more characters)")


# Deleting


def test_what_is_too_many_can_be_deleted_and_nothing_names_it_any_more(desk: AgentDesk) -> None:
    desk.fill()
    task: Any = {"description": "x", "feature_id": "FEAT-001", "component_id": "COMP-001"}
    desk.call("create_task", title="Second", dependencies=["TASK-001"], **task)
    desk.call("delete_task", id="TASK-001")
    assert [(one["id"], one["dependencies"]) for one in desk.json(PLAN)["tasks"]] == [("TASK-002", [])]
    assert desk.json(FEATURES)["features"][0]["assigned_to_tasks"] == ["TASK-002"]
    desk.call("delete_component", id="COMP-001")
    assert [one["id"] for one in desk.json(DESIGN)["architecture"]["components"]] == ["COMP-002"]
    assert desk.json(PLAN)["tasks"][0]["component_id"] == ""
    desk.call("update_component", id="COMP-002", related_features=["FEAT-001"])
    desk.call("delete_feature", id="FEAT-001")
    assert desk.json(FEATURES)["features"] == []
    assert desk.json(REQUIREMENTS)["requirements"][0]["related_features"] == []
    assert desk.json(DESIGN)["architecture"]["components"][0]["related_features"] == []
    assert desk.json(PLAN)["tasks"][0]["feature_id"] == ""
    desk.call("create_feature", name="Again", description="x", requirement_ids=["REQ-001"])
    desk.call("delete_requirement", id="REQ-001")
    assert desk.json(REQUIREMENTS)["requirements"] == []
    assert desk.json(FEATURES)["features"][0]["requirement_ids"] == []


def test_a_delete_of_what_is_not_there_is_refused_with_what_is(desk: AgentDesk) -> None:
    desk.fill()
    said = desk.refused("delete_component", id="COMP-009")
    assert said == "There is no component 'COMP-009'; there are: COMP-001, COMP-002."


def test_a_delete_that_was_killed_is_completed_by_its_repeat(desk: AgentDesk) -> None:
    desk.fill()
    done = desk.call("delete_task", id="TASK-001")
    assert desk.call("delete_task", number=desk.number, attempt=2, id="TASK-001") == done
    plan, features = desk.json(PLAN), desk.json(FEATURES)
    assert (plan["tasks"], features["features"][0]["assigned_to_tasks"]) == ([], [])


def test_nothing_is_deleted_while_a_file_that_may_name_it_cannot_be_read(desk: AgentDesk) -> None:
    desk.fill()
    desk.put(PLAN, "{broken")
    assert "implementation_plan.json" in desk.refused("delete_component", id="COMP-001")
