"""The tools with which agents check a project, say what is wrong with it, and ask for another start of a stage."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from ripstop.performers.tools.context import ToolContext
from ripstop.performers.tools.toolbox import tool
from ripstop.runtime.performers import Refused

from . import checks
from .data_files import DATA_FILES, DESIGN, PLAN, DataFile, Session, load, problems_in
from .feedback import add_feedback
from .given_values import text
from .models import FEEDBACK_TYPES, SEVERITIES, SessionMeta
from .project_files import changing, project_data
from .store import COWORK, CoworkFolder

TIMEOUT = 60.0

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
