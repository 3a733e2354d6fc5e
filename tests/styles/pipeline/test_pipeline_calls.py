"""What passes between the pipeline and its tools: each call is performed for real, and its answer goes to the style."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from msgspec import Struct

from ripstop.kernel.effects import Answer, CallTool, Failed, ToolReturned
from ripstop.kernel.events import ResumeRequested
from ripstop.kernel.style import arguments_for
from ripstop.styles.checks import Shown
from ripstop.styles.pipeline.agent_tools import agent_tools
from ripstop.styles.pipeline.calls import (
    BEGIN,
    CHECK,
    CLOSE,
    FINISH,
    OPEN,
    SHOW,
    WRITE,
    BegunStage,
    CheckedStage,
    ClosedProject,
    FinishedStage,
    OpenedProject,
    ProjectCall,
    ShownCode,
    WrittenFiles,
)
from ripstop.styles.pipeline.stages import own_tools
from ripstop.testing import Given
from ripstop.tools.toolbox import Toolbox
from tests.styles.pipeline.pipelines import (
    CLOSED,
    FINISHED,
    GOOD,
    PASS,
    WRITTEN,
    arguments,
    calls,
    ended,
    feedback,
    prompt,
    said,
    started,
    tell,
)
from tests.styles.pipeline.projects import ProjectDesk

ANSWERS: dict[str, type[Struct]] = {
    OPEN: OpenedProject,
    BEGIN: BegunStage,
    WRITE: WrittenFiles,
    CHECK: CheckedStage,
    SHOW: ShownCode,
    FINISH: FinishedStage,
    CLOSE: ClosedProject,
}


class RealProject:
    """A run of the style whose tools work in a real folder."""

    def __init__(self, project: Path, **given: Any) -> None:
        self.desk = ProjectDesk(project, "story", own_tools())
        self.story: Given = started(of=Given, **given)
        self.answers: dict[str, list[Any]] = {}

    def tell(self, *answers: Answer) -> None:
        """Tell them, each when the tools have nothing to do any more."""
        for answer in answers:
            self.work()
            self.story.tell(answer)
        self.work()

    def work(self) -> None:
        """Perform calls of tools until an agent or a person is asked, or the run has ended."""
        while call := self._open_call():
            number, command, state = call
            given = dict(arguments_for(self.story.style, state, command))
            performer: Any = Toolbox(agent_tools()) if command.agent else self.desk.tools[command.tool]
            request = self.desk.request(command.tool, command.agent, given, number)
            answer = asyncio.run(performer.perform(request))
            assert isinstance(answer, ToolReturned), answer
            self.answers.setdefault(command.tool, []).append(answer.value)
            self.story.tell(answer)

    def _open_call(self) -> tuple[int, CallTool, Any] | None:
        assert self.story.run is not None
        opened = self.story.run.open.items()
        return next(((n, o.command, o.state) for n, o in opened if isinstance(o.command, CallTool)), None)

    def facts(self) -> Any:
        return json.JSONDecoder().raw_decode(prompt(self.story).partition("# What the engine found\n")[2])[0]


def checked(tmp_path: Path) -> RealProject:
    """A project whose check agent is at work."""
    project = RealProject(tmp_path)
    project.desk.code("old.js")
    project.tell(said("# Idea"), said("# Draft"), feedback("Shorter."), said("# Short"), PASS)
    project.tell(calls("create_requirement", title="One", description="x"), said("Done."), said("Good."))
    project.tell(said("index.html"), PASS)
    project.desk.code("index.html")
    project.tell(said("Written."), PASS)
    return project


def test_each_call_is_performed_by_its_tool_and_each_answer_is_read_by_the_style(tmp_path: Path) -> None:
    project = checked(tmp_path)
    story, desk = project.story, project.desk
    assert project.facts()["changed_files"] == ["index.html"]
    assert [one["path"] for one in project.facts()["files"]] == ["index.html", "old.js"]
    assert "index.html (13 bytes)" in prompt(story) and "Shorter." in prompt(story)
    project.tell(said(GOOD), calls("save_delivery_report", content="A page."), said("Bye."))
    assert ended(story).outcome == "completed"
    assert story.run is not None and story.run.state.finished == ("idea", "prd", "coding", "check", "delivery")
    assert desk.text("artifacts/prd_draft.md") == "# Short\n"
    assert "A page." in desk.text("artifacts/delivery_report.md")
    assert "prd: feedback by ann" in desk.text("artifacts/delivery_report.md")
    assert '"what":"close: completed"' in desk.text("logs/engine.jsonl")
    for tool, kind in ANSWERS.items():
        for value in project.answers[tool]:
            assert msgspec.json.decode(msgspec.json.encode(msgspec.convert(value, kind))) == value, tool


def test_what_a_tool_finds_edited_is_the_draft_of_the_style(tmp_path: Path) -> None:
    project = RealProject(tmp_path)
    project.tell(said("# Idea"), said("# Draft"))
    project.desk.put("artifacts/prd_draft.md", "# By hand\n")
    project.tell(PASS)
    assert project.answers[WRITE][-2]["edited"] == {"artifacts/prd_draft.md": "# By hand\n"}
    assert "# By hand" in prompt(project.story)


def test_files_that_the_prompt_does_not_list_are_counted(tmp_path: Path) -> None:
    project = RealProject(tmp_path)
    for number in range(520):
        project.desk.code(f"page-{number:03}.html", "x")
    project.desk.put("artifacts/idea.md", "# Idea\n")
    other = RealProject(tmp_path, mode="continue", stage="coding")
    other.work()
    assert "page-199.html" in prompt(other.story) and "page-200.html" not in prompt(other.story)
    assert "… and 320 more" in prompt(other.story)


def test_a_call_has_no_field_that_a_style_could_forget() -> None:
    def structs(kind: Any) -> Iterator[type[Struct]]:
        if isinstance(kind, type) and issubclass(kind, Struct):
            yield kind
            for field in msgspec.structs.fields(kind):
                yield from structs(field.type)
        for inner in get_args(kind):
            yield from structs(inner)

    found = set(structs(ProjectCall))
    assert len(found) > len(get_args(ProjectCall))
    found.discard(Shown)  # it is in journals, too, where a new field has a default
    assert [(kind, one.name) for kind in found for one in msgspec.structs.fields(kind) if not one.required] == []


# Journals of before

FEEDBACK = {
    "id": "r/7",
    "stage": "prd",
    "feedback_type": "suggestion",
    "severity": "major",
    "details": "no login",
    "suggested_fix": None,
    "by": "ann",
    "source": "person",
    "at": "2026-01-01T00:00:00Z",
}
OLD_FACTS = {
    "files": [{"path": "index.html", "size": 3, "sha256": "a" * 64, "task_id": None}],
    "coverage": [{"feature": "FEAT-001", "name": "Add", "components": [], "tasks": [], "status": "pending"}],
    "uncovered": ["FEAT-001"],
    "requirements": 1,
    "features": [0, 1],
    "components": 0,
    "tasks": [0, 0],
    "unchecked": [],
    "missing_files": [],
    "code_files": 1,
    "changed_files": ["index.html"],
}


def old(**value: Any) -> ToolReturned:
    return ToolReturned(value=value)


def test_answers_that_were_recorded_before_a_field_was_added_are_read(tmp_path: Path) -> None:
    listed = [{"path": "index.html", "size": 3}]
    begun = old(inputs={}, missing=["artifacts/idea.md"], feedback=[FEEDBACK], files=listed, more_files=0)
    story = started(mode="continue", stage="check")
    tell(story, old(completed=["idea", "prd", "coding"], idea="a page", removed=[], kept_code=[]), begun)
    assert arguments(story)["code_before"] is None, "what was there is not known"
    found = ProjectDesk(tmp_path, tools=own_tools()).own(CHECK, **arguments(story))
    assert found["facts"]["changed_files"] is None, "so what was changed is not, either"
    story.tell(old(problems=[], facts=OLD_FACTS))
    shown = prompt(story).partition("# What the engine found\n")[2].partition("\n# ")[0]
    assert shown.strip() == json.dumps(
        {**OLD_FACTS, "files": [{"path": "index.html", "size": 3, "task_id": None}]}, indent=1
    )
    assert "no login" in prompt(story) and "index.html (3 bytes)" in prompt(story)
    tell(story, said(GOOD), old(products={}), begun, old(problems=[], facts=OLD_FACTS))
    tell(story, said("Bye."), FINISHED, old(closed=True))
    assert ended(story).outcome == "completed"


def test_the_facts_of_a_thousand_files_are_short_and_have_no_hashes() -> None:
    names = [f"src/module_{number}.js" for number in range(1090)]
    files = [{"path": name, "size": 3, "sha256": "a" * 64, "task_id": "TASK-001"} for name in names]
    facts = {**OLD_FACTS, "files": files, "changed_files": names, "missing_files": names, "code_files": 1090}
    story = started(mode="continue", stage="check")
    tell(story, old(), old(), old(facts=facts))
    said = prompt(story)
    assert "a" * 64 not in said and len(said) < 35_000
    found = json.JSONDecoder().raw_decode(said.partition("# What the engine found\n")[2])[0]
    assert found["files"][0] == {"path": names[0], "size": 3, "task_id": "TASK-001"} and found["code_files"] == 1090
    assert {found[name][-1] for name in ("files", "changed_files", "missing_files")} == {"… and 990 more"}


def test_a_finish_that_was_recorded_with_its_cost_is_asked_with_it() -> None:
    story = started(mode="continue", stage="check")
    tell(story, old(), old(), old(facts=OLD_FACTS), said(GOOD))
    assert story.run is not None
    (opened,) = story.run.open.values()
    recorded = {"cost": {"calls": 1, "input_tokens": 0, "output_tokens": 0, "money": 0.0}}
    assert isinstance(opened.command, CallTool) and opened.command.arguments == recorded
    assert arguments(story)["report"]["cost"] == recorded["cost"]


def test_a_restart_is_closed_as_such() -> None:
    story = started(mode="continue", stage="check")
    back = calls("goto_stage", stage="prd", reason="a requirement is missing")
    tell(story, old(), old(), old(facts=OLD_FACTS), back, WRITTEN, said("Back."), FINISHED)
    assert arguments(story) == {"outcome": "restart"}
    story.tell(CLOSED)
    assert ended(story).outcome == "restart"


# What a prompt rests on


@pytest.mark.req("S3-65", "S3-66")
def test_inputs_that_a_person_edits_while_a_review_waits_are_in_the_next_prompts(tmp_path: Path) -> None:
    project = RealProject(tmp_path)
    project.tell(said("# Idea"), said("# Draft"))
    project.desk.put("artifacts/idea.md", "# Another idea\n")
    project.tell(feedback("Shorter."))
    assert "# Another idea" in prompt(project.story), "of the next draft"
    project.tell(said("# Short"))
    project.desk.put("artifacts/idea.md", "# A third idea\n")
    project.tell(PASS)
    assert "# A third idea" in prompt(project.story) and "Another idea" not in prompt(project.story)
    project.tell(calls("create_requirement", title="One", description="x"), said("Done."))
    assert "# A third idea" in prompt(project.story), "of the critic"
    first, *others = [one for one in project.answers[BEGIN] if one["inputs"] or one["same"]]
    assert first["inputs"] == {"artifacts/idea.md": "# Idea\n"}
    assert [(one["inputs"], one["same"]) for one in others] == [
        ({"artifacts/idea.md": "# Another idea\n"}, []),
        ({"artifacts/idea.md": "# A third idea\n"}, []),
        ({}, ["artifacts/idea.md"]),
    ], "what was read is on record, and what is the same is recorded once"


def test_a_turn_that_is_taken_again_after_a_stop_reads_its_inputs_again(tmp_path: Path) -> None:
    project = RealProject(tmp_path)
    project.tell(said("# Idea"))
    project.tell(Failed(reason="the server is gone", fault="world"))
    project.desk.put("artifacts/idea.md", "# Another idea\n")
    project.story.tell(ResumeRequested())
    project.work()
    assert "# Another idea" in prompt(project.story)


@pytest.mark.req("S3-41")
def test_a_draft_is_written_again_with_all_feedback_of_the_stage_the_newest_last(tmp_path: Path) -> None:
    project = RealProject(tmp_path)
    project.tell(said("# Idea"), said("# Draft 0"))
    for number in range(1, 5):
        project.tell(feedback(f"Wish {number}."), said(f"# Draft {number}"))
    project.tell(feedback("Wish 5."))
    told = prompt(project.story)
    places = [told.index(f"Wish {number}.") for number in range(1, 6)]
    assert places == sorted(places) and "Wish 5.\n\nRevise the draft accordingly." in told


def test_of_too_much_feedback_the_oldest_is_left_out_and_that_is_said(tmp_path: Path) -> None:
    project = RealProject(tmp_path)
    project.tell(said("# Idea"), said("# Draft 0"))
    for number in range(1, 4):
        project.tell(feedback(f"Wish {number}. " + "x" * 18_000), said(f"# Draft {number}"))
    project.tell(feedback("Wish 4."))
    told = prompt(project.story)
    assert "Wish 1." not in told and "Wish 3." in told
    assert "(2 earlier entries are left out here.)" in told
    assert len(told) < 60_000


def test_every_stage_is_told_what_files_there_are_and_what_the_stages_before_have_made(tmp_path: Path) -> None:
    project = RealProject(tmp_path)
    project.desk.code("src/old.py", "print(1)\n")
    project.work()
    assert "# Files of the project\nsrc/old.py (9 bytes)" in prompt(project.story), "the first one as well"
    project.tell(said("# Idea"))
    assert "src/old.py" in prompt(project.story)
    project.tell(said("# Draft"), PASS)
    criteria = {"acceptance_criteria": ["it survives a restart"]}
    project.tell(calls("create_requirement", title="One", description="x", **criteria), said("Done."), said("Good."))
    told = prompt(project.story)
    assert "# File .cowork/data/requirements.json" in told and "it survives a restart" in told
    assert "# File .cowork/artifacts/idea.md\n# Idea" in told
    assert arguments_for_begin(project)["also"] == ["artifacts/idea.md", "data/requirements.json"]


def arguments_for_begin(project: RealProject) -> dict[str, Any]:
    """What the stage that is at work now is read with."""
    assert project.story.run is not None
    return dict(arguments_for(project.story.style, project.story.run.state, CallTool(tool=BEGIN)))


def test_of_many_files_those_in_the_highest_folders_are_listed(tmp_path: Path) -> None:
    project = RealProject(tmp_path)
    for number in range(250):
        project.desk.code(f"a/deep/{number:03}.txt", "x")
    project.desk.code("main.py", "1\n")
    project.work()
    told = prompt(project.story)
    assert "main.py (2 bytes)" in told and "… and 51 more" in told
