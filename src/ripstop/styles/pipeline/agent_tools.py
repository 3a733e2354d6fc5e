"""The tools with which agents make a project's data: requirements, features, components, tasks.

They know nothing but the files, so each call reads what is on disk now. What a call got wrong is said in its error.
"""

from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from ripstop.engine.performers import Refused
from ripstop.tools.toolbox import Tool, ToolContext, tool

from . import checks, items
from .checks import changing, project_data
from .data_files import DATA_FILES, DESIGN, FEATURES, PLAN, REQUIREMENTS, DataFile, Session, load, problems_in, text
from .models import CATEGORIES, FEEDBACK_TYPES, PRIORITIES, SEVERITIES, STATUSES, SessionMeta
from .reports import add_feedback
from .store import COWORK, CoworkFolder

TIMEOUT = 60.0
"""Seconds that a call can take; it can have to wait for another one."""
MAX_SHOWN = 2_000
"""Characters of a text that `get_…` tools show."""

Texts = list[str] | str
Priority = Annotated[str, Meta(extra_json_schema={"enum": list(PRIORITIES)})]
Category = Annotated[str, Meta(extra_json_schema={"enum": list(CATEGORIES)})]
Status = Annotated[str, Meta(extra_json_schema={"enum": list(STATUSES)})]
Interfaces = list[str | dict[str, Any]] | str
NONE: list[Any] = []
"""The default of a list; the values of each call are its own."""


def _entries(context: ToolContext, file: DataFile) -> list[Any]:
    entries: list[Any] = msgspec.to_builtins(load(CoworkFolder(context.workspace), file).entries)
    return [_cut(entry) for entry in entries]


def _cut(value: Any) -> Any:
    if isinstance(value, str) and len(value) > MAX_SHOWN:
        return f"{value[:MAX_SHOWN]}… ({len(value) - MAX_SHOWN:,} more characters)"
    if isinstance(value, list):
        return [_cut(one) for one in value]
    return {name: _cut(one) for name, one in value.items()} if isinstance(value, dict) else value


def _created_by(function: Callable[..., Any], probe: Callable[..., Any], *names: str) -> list[Tool]:
    """A tool for each of the names, which all do the same: prompts of the original system use more than one."""

    def called(name: str) -> Callable[..., Any]:
        @wraps(function)
        def call(**given: Any) -> Any:
            return function(**given)

        call.__name__ = name
        return call

    return [tool("probeable", probe=probe, timeout=TIMEOUT)(called(name)) for name in names]


# Requirements


def _requirement_created(context: ToolContext, **given: Any) -> dict[str, Any] | None:
    return items.created(context, REQUIREMENTS, given)


@tool("probeable", probe=_requirement_created, timeout=TIMEOUT)
def create_requirement(
    context: ToolContext,
    title: str,
    description: str,
    priority: Priority = "medium",
    category: Category = "functional",
    acceptance_criteria: Texts = NONE,
) -> dict[str, Any]:
    """Add a requirement; the result has its id (REQ-001). Titles are unique."""
    given = {"title": title, "description": description, "priority": priority, "category": category}
    return items.create(context, REQUIREMENTS, {**given, "acceptance_criteria": acceptance_criteria})


@tool("pure", timeout=TIMEOUT)
def update_requirement(
    context: ToolContext,
    id: str,
    title: str | None = None,
    description: str | None = None,
    priority: Priority | None = None,
    category: Category | None = None,
    acceptance_criteria: Texts | None = None,
) -> dict[str, Any]:
    """Change fields of a requirement; those that you leave out stay as they are."""
    given = {"title": title, "description": description, "priority": priority, "category": category}
    return items.update(context, REQUIREMENTS, id, {**given, "acceptance_criteria": acceptance_criteria})


@tool("pure", timeout=TIMEOUT)
def delete_requirement(context: ToolContext, id: str) -> dict[str, Any]:
    """Remove a requirement that is too many. Features that name it no longer do."""
    return items.delete(context, REQUIREMENTS, id)


@tool("pure", timeout=TIMEOUT)
def get_requirements(context: ToolContext) -> dict[str, Any]:
    """All requirements and all features."""
    return {"requirements": _entries(context, REQUIREMENTS), "features": _entries(context, FEATURES)}


# Features


def _feature_created(context: ToolContext, **given: Any) -> dict[str, Any] | None:
    return items.created(context, FEATURES, given)


def _create_feature(
    context: ToolContext,
    name: str,
    description: str,
    requirement_ids: Texts = NONE,
    completion_criteria: Texts = NONE,
) -> dict[str, Any]:
    """Add a feature that meets some requirements; the result has its id (FEAT-001). Names are unique."""
    given = {"name": name, "description": description, "requirement_ids": requirement_ids}
    return items.create(context, FEATURES, {**given, "completion_criteria": completion_criteria})


create_feature, add_feature = _created_by(_create_feature, _feature_created, "create_feature", "add_feature")


@tool("pure", timeout=TIMEOUT)
def update_feature(
    context: ToolContext,
    id: str,
    name: str | None = None,
    description: str | None = None,
    requirement_ids: Texts | None = None,
    completion_criteria: Texts | None = None,
    status: Status | None = None,
) -> dict[str, Any]:
    """Change fields of a feature; those that you leave out stay as they are."""
    given = {"name": name, "description": description, "requirement_ids": requirement_ids, "status": status}
    return items.update(context, FEATURES, id, {**given, "completion_criteria": completion_criteria})


@tool("pure", timeout=TIMEOUT)
def update_feature_status(context: ToolContext, feature_id: str, new_status: Status) -> dict[str, Any]:
    """Set the status of a feature: pending, in_progress, completed or blocked."""
    return items.update(context, FEATURES, feature_id, {"status": new_status})


@tool("pure", timeout=TIMEOUT)
def delete_feature(context: ToolContext, id: str) -> dict[str, Any]:
    """Remove a feature that is too many. Requirements, components and tasks that name it no longer do."""
    return items.delete(context, FEATURES, id)


@tool("pure", timeout=TIMEOUT)
def get_features(context: ToolContext) -> dict[str, Any]:
    """All features."""
    return {"features": _entries(context, FEATURES)}


# Design


def _component_created(context: ToolContext, **given: Any) -> dict[str, Any] | None:
    return items.created(context, DESIGN, given)


def _create_component(
    context: ToolContext,
    name: str,
    component_type: str,
    responsibilities: Texts,
    technology: str,
    related_features: Texts = NONE,
    interfaces: Interfaces = NONE,
) -> dict[str, Any]:
    """Add a component to the design, such as a frontend_component or a backend_service; the result has its id."""
    given = {"name": name, "component_type": component_type, "responsibilities": responsibilities}
    more = {"technology": technology, "related_features": related_features, "interfaces": interfaces}
    return items.create(context, DESIGN, {**given, **more})


create_component, create_design_component = _created_by(
    _create_component, _component_created, "create_component", "create_design_component"
)


@tool("pure", timeout=TIMEOUT)
def update_component(
    context: ToolContext,
    id: str,
    name: str | None = None,
    component_type: str | None = None,
    responsibilities: Texts | None = None,
    technology: str | None = None,
    related_features: Texts | None = None,
    interfaces: Interfaces | None = None,
) -> dict[str, Any]:
    """Change fields of a component; those that you leave out stay as they are."""
    given = {"name": name, "component_type": component_type, "responsibilities": responsibilities}
    more = {"technology": technology, "related_features": related_features, "interfaces": interfaces}
    return items.update(context, DESIGN, id, {**given, **more})


@tool("pure", timeout=TIMEOUT)
def delete_component(context: ToolContext, id: str) -> dict[str, Any]:
    """Remove a component that is too many. Tasks that name it no longer do."""
    return items.delete(context, DESIGN, id)


@tool("pure", timeout=TIMEOUT)
def get_design(context: ToolContext) -> dict[str, Any]:
    """All components of the design."""
    return {"components": _entries(context, DESIGN)}


# Plan


def _task_created(context: ToolContext, **given: Any) -> dict[str, Any] | None:
    return items.created(context, PLAN, given)


@tool("probeable", probe=_task_created, timeout=TIMEOUT)
def create_task(
    context: ToolContext,
    title: str,
    description: str,
    feature_id: str,
    component_id: str,
    dependencies: Texts = NONE,
    files_to_create: Texts = NONE,
    acceptance_criteria: Texts = NONE,
) -> dict[str, Any]:
    """Add a task for a feature and a component; the result has its id (TASK-001). Titles are unique.

    dependencies: ids of tasks that must be completed first. files_to_create: paths below the project's folder.
    """
    given = {"title": title, "description": description, "feature_id": feature_id, "component_id": component_id}
    more = {"dependencies": dependencies, "files_to_create": files_to_create}
    return items.create(context, PLAN, {**given, **more, "acceptance_criteria": acceptance_criteria})


@tool("pure", timeout=TIMEOUT)
def update_task(
    context: ToolContext,
    id: str,
    title: str | None = None,
    description: str | None = None,
    feature_id: str | None = None,
    component_id: str | None = None,
    dependencies: Texts | None = None,
    files_to_create: Texts | None = None,
    acceptance_criteria: Texts | None = None,
    status: Status | None = None,
) -> dict[str, Any]:
    """Change fields of a task; those that you leave out stay as they are."""
    given = {"title": title, "description": description, "feature_id": feature_id, "component_id": component_id}
    more = {"dependencies": dependencies, "files_to_create": files_to_create, "status": status}
    return items.update(context, PLAN, id, {**given, **more, "acceptance_criteria": acceptance_criteria})


@tool("pure", timeout=TIMEOUT)
def update_task_status(context: ToolContext, task_id: str, new_status: Status) -> dict[str, Any]:
    """Set the status of a task: pending, in_progress, completed or blocked."""
    return items.update(context, PLAN, task_id, {"status": new_status})


@tool("pure", timeout=TIMEOUT)
def delete_task(context: ToolContext, id: str) -> dict[str, Any]:
    """Remove a task that is too many. Features and tasks that name it no longer do."""
    return items.delete(context, PLAN, id)


@tool("pure", timeout=TIMEOUT)
def get_plan(context: ToolContext) -> dict[str, Any]:
    """All tasks of the plan."""
    return {"tasks": _entries(context, PLAN)}


def agent_tools() -> list[Tool]:
    """All tools for agents, those that check and control included."""
    return [one for one in globals().values() if isinstance(one, Tool)]


# The tools with which agents check a project, say what is wrong with it, and ask for another start of a stage.


FeedbackType = Annotated[str, Meta(extra_json_schema={"enum": list(FEEDBACK_TYPES)})]
Severity = Annotated[str, Meta(extra_json_schema={"enum": list(SEVERITIES)})]

# Checks


@tool("pure", timeout=TIMEOUT)
def check_data_format(context: ToolContext, data_type: str = "") -> dict[str, Any]:
    """Check whether data files are valid: requirements, features, design, plan or code; without a type, all of them."""
    folder = CoworkFolder(context.workspace)
    files = _files_named(data_type)
    found = {file.path: folder.read(file.path) for file in files}
    problems = [problem for file in files for problem in problems_in(file, found[file.path])]
    missing = [f"{COWORK}/{path}" for path, data in found.items() if data is None]
    return {"valid": not problems, "problems": problems, "missing": missing}


def _files_named(data_type: str) -> list[DataFile]:
    if not data_type.strip():
        return list(DATA_FILES)
    wanted = data_type.strip().casefold().rpartition("/")[2].removesuffix(".json")
    for file in DATA_FILES:
        if wanted in (file.name, file.path.rpartition("/")[2].removesuffix(".json")):
            return [file]
    valid = ", ".join(file.name for file in DATA_FILES)
    raise Refused(f"data_type is {data_type[:100]!r}; expected one of: {valid}.", "agent")


@tool("pure", timeout=TIMEOUT)
def check_feature_coverage(context: ToolContext) -> dict[str, Any]:
    """Check whether every feature has a component and, once there is a plan, a task."""
    folder = CoworkFolder(context.workspace)
    data = project_data(folder)
    problems = [
        problem
        for file, by in ((DESIGN, "components"), (PLAN, "tasks"))
        if load(folder, file).is_there
        for problem in checks.coverage_problems(data, by)
    ]
    rows = msgspec.to_builtins(checks.coverage(data))
    message = " ".join(problems) or f"All {len(rows)} features are covered."
    return {"covered": not problems, "message": message, "coverage": rows}


@tool("pure", timeout=TIMEOUT)
def check_task_dependencies(context: ToolContext) -> dict[str, Any]:
    """Check whether all ids that tasks name exist, and no tasks depend on each other in a cycle."""
    problems = checks.dependency_problems(project_data(CoworkFolder(context.workspace)))
    return {"valid": not problems, "problems": problems}


# Control


@tool("keyed", timeout=TIMEOUT)
def provide_feedback(
    context: ToolContext, feedback_type: FeedbackType, severity: Severity, details: str, suggested_fix: str = ""
) -> dict[str, Any]:
    """Record what is wrong with the work of a stage, for the agents that work on it next and for people.

    feedback_type: build_error, quality_issue, missing_requirement or suggestion. severity: critical, major or minor.
    """
    given = {"feedback_type": feedback_type, "severity": severity, "details": details, "suggested_fix": suggested_fix}
    with changing(context.workspace) as folder:
        stage = Session(folder).meta.current_stage or ""
        who = {"stage": stage, "by": context.agent, "source": context.agent}
        entry = add_feedback(folder, context.key, {**given, **who})
    return {"id": entry["id"], "stage": entry["stage"], "severity": entry["severity"]}


@tool("pure", timeout=TIMEOUT)
def goto_stage(context: ToolContext, stage: str, reason: str) -> dict[str, Any]:
    """Ask for another start at an earlier stage, because of a grave problem there. The run stops before delivery."""
    why = text(reason, "reason").strip()
    if not why:
        raise Refused("reason must say why the stage has to start again.", "agent")
    with changing(context.workspace) as folder:
        session = Session(folder)
        valid = _stages_before(session.meta)
        stage = next((name for name in valid if name.casefold() == stage.strip().casefold()), stage)
        if stage not in valid:
            raise Refused(
                f"The stage {stage[:100]!r} cannot be started again from here; expected one of: "
                f"{', '.join(valid) or 'none, because nothing was finished yet'}.",
                "agent",
            )
        session.change(stage, current_stage=stage, restart_reason=why)
    return {"stage": stage, "reason": why}


def _stages_before(meta: SessionMeta) -> list[str]:
    """The stages that can be started again. If that was asked for before, the files no longer say which one runs."""
    running = meta.current_stage
    if meta.restart_reason is not None:
        running = next((name for name in meta.stages if name not in meta.completed), None)
    if running not in meta.stages:
        return meta.restartable
    earlier = meta.stages[: meta.stages.index(running)]
    return [name for name in meta.restartable if name in earlier]


# Reports


@tool("pure", timeout=TIMEOUT)
def save_check_report(context: ToolContext, content: str) -> dict[str, Any]:  # noqa: ARG001
    """Hand in what you found, in Markdown. The engine writes the report, with the evidence that it has."""
    return {"content": text(content, "content")}


@tool("pure", timeout=TIMEOUT)
def save_delivery_report(context: ToolContext, content: str) -> dict[str, Any]:  # noqa: ARG001
    """Hand in what was built, in Markdown. The engine writes the report, with the evidence that it has."""
    return {"content": text(content, "content")}
