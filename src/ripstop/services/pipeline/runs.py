"""The runs of a project: which one continues it, and which workflow a new one is of.

A run in the journal that has not ended, or can be resumed, is continued. Otherwise the project's marks and files choose
the first stage of a new run (`starting.py`).
"""

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ripstop.app import new_id
from ripstop.definitions.loading import Workflow, find
from ripstop.definitions.pipeline.flows import default_flow
from ripstop.definitions.reader import Environment
from ripstop.kernel.errors import RunAlreadyStarted, RunNotFound, UsageError
from ripstop.performers.pipeline.store import COWORK
from ripstop.plugin_types import FoundWork, RestartPlan
from ripstop.runtime.ports import RunQuery
from ripstop.settings.settings_file import Settings
from ripstop.styles.pipeline.definition import Pipeline

from .modifying import plan_modify
from .project import find_project, project_state, session_of
from .starting import StartingPoint, first_stage

if TYPE_CHECKING:
    from ripstop.app import App
    from ripstop.plugins import Plugins
    from ripstop.runtime.engine import Engine, View

STYLE = "pipeline"


class ProjectFlow:
    """The workflow of a project, and the pipeline in it."""

    def __init__(self, plugins: "Plugins", named: str = "") -> None:
        """`named`: a file or folder; empty: the flow that is shipped. Raises `UsageError` if it is not a pipeline."""
        self.workflow: Workflow = find(plugins.readers, named or str(default_flow()), Environment(goal="kept"))
        if self.workflow.style != STYLE:
            raise UsageError(f"{named} is a workflow of the style {self.workflow.style!r}, not a pipeline.")
        self.pipeline: Pipeline = plugins.registry.load(STYLE, self.workflow.content)


async def flow_of(engine: "Engine", folder: Path) -> str:
    """The file of the flow that a project was begun with; empty: the one that is shipped.

    A project can come from somebody else. So a flow outside of it counts only if the last run, in this journal, had it.
    Raises `UsageError`.
    """
    session = session_of(folder)
    if not session.flow:
        return ""
    path, is_inside = _flow_file(folder, session.flow)
    view = await _run(engine, session.run)
    was_used = view is not None and getattr(engine.definition(view.run), "source", "") == path
    if not was_used and not is_inside:
        raise UsageError(f"This project names a flow outside of it. If it is meant, name it: --flow {path}")
    return path


def _flow_file(folder: Path, named: str) -> tuple[str, bool]:
    """The path of a flow, and whether it is in the project. Raises `UsageError` if there is no such file."""
    path = (folder / named).resolve()
    if not path.is_file():
        raise UsageError(f"The flow of this project, {path}, is not there any more. Name it: --flow PATH.")
    return str(path), path.is_relative_to(folder.resolve())


async def model_of(engine: "Engine", folder: Path, settings: Settings) -> str:
    """The model that the last run of a project was told to use for all agents; empty if it was not told.

    Raises `UsageError` if that was on another server than these settings name.
    """
    view = await _run(engine, session_of(folder).run)
    if view is None or settings.model_for_all or not view.run.settings.model_for_all:
        return ""
    before = view.run.settings
    if before.base_url != settings.models.base_url and before.model_for_all.startswith("openai:"):
        address = f" --base-url {before.base_url}" if before.base_url else ""
        how = f"--model {before.model_for_all}{address}"
        raise UsageError(f"The last run of this project used another server. Name it again: {how}")
    return before.model_for_all


class DeliveryProjects:
    def is_project(self, folder: Path) -> bool:
        return find_project(folder) is not None

    async def resume(self, app: "App", folder: Path) -> FoundWork:
        """The project's own run, if it can continue; else a new one, from the stage that its files say."""
        state = project_state(folder)
        view = await _run(app.engine, state.run) or await _unended_in(app.engine, folder)
        if view is not None and _continues(app, view):
            notes = _about_products(state.missing, state.changed)
            if _is_elsewhere(view.run.settings.workspace, folder):
                await app.use_workspace(view.run.id, folder)
                notes.insert(0, f"The project was in {view.run.settings.workspace}; it is here from now on.")
            return FoundWork(view.run.id, tuple(notes))
        flow = ProjectFlow(app.plugins, await flow_of(app.engine, folder))
        start = first_stage(folder, flow.pipeline)
        values, removed = {"mode": "continue", "stage": start.stage}, list[str]()
        if start.by == "restart":  # as `modify` would do it
            values = {"mode": "modify", "stage": start.stage, "change": start.restart_reason}
            removed = plan_modify(folder, flow.pipeline, start.stage).removed
        model = await model_of(app.engine, folder, app.settings)
        run = await app.start(flow.workflow, state.idea, workspace=folder, values=values, model=model)
        told = (f"removes  .cowork/{path}  (kept in .cowork/backups)" for path in removed)
        return FoundWork(run.id, (*_notes(start), *told))

    async def plan_restart(self, app: "App", folder: Path, stage: str) -> RestartPlan:
        flow = ProjectFlow(app.plugins, await flow_of(app.engine, folder))
        plan = plan_modify(folder, flow.pipeline, stage)
        removed, missing = ([f"{COWORK}/{path}" for path in paths] for paths in (plan.removed, plan.missing_inputs))
        return RestartPlan(stage, tuple(removed), tuple(plan.kept_code), tuple(plan.rerun), tuple(missing))

    async def restart(self, app: "App", folder: Path, stage: str, change: str, key: str) -> str:
        flow = ProjectFlow(app.plugins, await flow_of(app.engine, folder))
        run_id = new_id(flow.workflow.name, key)
        if await app.engine.journal.run(run_id) is not None:
            return run_id
        plan_modify(folder, flow.pipeline, stage)  # refuses what cannot be restarted
        await end_last_run(app.engine, folder, stage)
        values = {"mode": "modify", "stage": stage, **({"change": change} if change else {})}
        idea, model = session_of(folder).idea, await model_of(app.engine, folder, app.settings)
        with suppress(RunAlreadyStarted):  # another process was asked the same, with other words
            await app.start(flow.workflow, idea, workspace=folder, values=values, key=key, model=model)
        return run_id


class LastRun(NamedTuple):
    """The run that worked on a project last, as far as this journal knows it."""

    run_id: str = ""
    has_ended: bool = False


async def last_run(engine: "Engine", folder: Path) -> LastRun:
    view = await _run(engine, session_of(folder).run)
    return LastRun(view.run.id, bool(view.run.ended)) if view is not None else LastRun()


async def end_last_run(engine: "Engine", folder: Path, stage: str) -> str:
    """Cancel the run that works on a project, because the project is restarted; returns it, or empty for none."""
    last = await last_run(engine, folder)
    if not last.run_id or last.has_ended:
        return ""
    await engine.cancel(last.run_id, because=f"the project is restarted at {stage}")
    return last.run_id


async def _run(engine: "Engine", run_id: str) -> "View | None":
    if not run_id:
        return None
    try:
        return await engine.look(run_id)
    except RunNotFound:
        return None


async def _unended_in(engine: "Engine", folder: Path) -> "View | None":
    """The run that works in a folder whose records do not name it: a person may have removed them."""
    found = await engine.runs(RunQuery(statuses=("working", "waiting"), styles=(STYLE,), parent=""))
    for info in found.items:
        view = await engine.look(info.run_id)
        if not _is_elsewhere(view.run.settings.workspace, folder):
            return view
    return None


def _is_elsewhere(workspace: str, folder: Path) -> bool:
    return Path(workspace).resolve() != folder.resolve()


def _continues(app: "App", view: "View") -> bool:
    run = view.run
    return not run.ended or run.verdict is not None or app.engine.style(run).resumable(run.state)


def _notes(start: StartingPoint) -> list[str]:
    how = {
        "restart": f"A restart was asked for: {start.restart_reason}",
        "marks": "The stages before it are marked as finished.",
        "files": "The project has no marks; its files say so.",
    }
    return [f"Begins at the stage {start.stage!r}. {how[start.by]}", *_about_products(start.missing, start.changed)]


def _about_products(missing: list[str], changed: list[str]) -> list[str]:
    """What a person should know before a project goes on."""
    return [*missing, *(f"{path} was changed since its stage was finished; it counts as it is." for path in changed)]


PROJECTS = DeliveryProjects()
