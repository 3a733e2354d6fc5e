"""The runs of a project: which one continues it, and which workflow a new one is of.

A run in the journal that has not ended, or can be resumed, is continued. Otherwise the project's marks and files choose
the first stage of a new run (below).
"""

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from msgspec import Struct

from ripstop.app.plugin import FoundWork, RestartPlan
from ripstop.app.settings.settings_file import Settings
from ripstop.app.start import CheckedStart, check_start, new_id, with_models_of
from ripstop.app.trust import Trust
from ripstop.definitions.loading import Workflow, find
from ripstop.definitions.reader import Environment
from ripstop.engine.engine import Engine, View
from ripstop.engine.ports import DeskQuery, RunQuery
from ripstop.history.runs import family_spent, shown_status
from ripstop.kernel.effects import Usage
from ripstop.kernel.errors import RunAlreadyStarted, RunNotFound, UsageError
from ripstop.kernel.parts import Rail, Stage
from ripstop.tools.shared_folder import FolderTaken

from .asking import stage_products
from .backups import UndoneBackup, code_paths, undo
from .data_files import BY_PATH, Session, problems_in
from .definition import DELIVERY_REPORT, Pipeline, PipelineStage
from .models import SessionMeta
from .parsing import default_flow, shipped_flow
from .project import ProjectState, existing_project, find_project, mark_states, project_state, session_of, usage_errors
from .stages import missing_inputs, products_from
from .store import COWORK, CoworkFolder, is_blank, project_locks

if TYPE_CHECKING:
    from ripstop.app.application import App
    from ripstop.app.plugins import Plugins
    from ripstop.engine.engine import Engine, View


# Restarting a stage of a project, and taking that back.


UNKNOWN_STAGE = "Unknown stage"
_UNDO = "undo"
"""What holds the project meanwhile, as another process is told."""


class ModifyPlan(Struct, frozen=True, kw_only=True):
    stage: str
    removed: list[str]
    """Products of the stage and of later ones; they are backed up first."""
    kept_code: list[str]
    """Code files, which stay."""
    rerun: list[str]
    """The stages that run again."""
    missing_inputs: list[str]
    """Inputs of the stage that are not there: it would fail at once."""


def plan_modify(folder: Path, pipeline: Pipeline, stage: str) -> ModifyPlan:
    """What `modify --from` would do; nothing is changed.

    Raises:
        UsageError: There is no project, or the stage cannot be restarted.
    """
    cowork = existing_project(folder)
    if stage not in pipeline.restartable:
        valid = ", ".join(pipeline.restartable)
        raise UsageError(f"{UNKNOWN_STAGE} {stage[:100]!r}; expected one of: {valid}.")
    start = pipeline.index(stage)
    with usage_errors():
        removed = [path for path in products_from(stage_products(pipeline), start) if cowork.read(path) is not None]
        return ModifyPlan(
            stage=stage,
            removed=sorted(removed),
            kept_code=code_paths(cowork),
            rerun=[one.name for one in pipeline.stages[start:]],
            missing_inputs=missing_inputs(cowork, pipeline.stages[start].inputs),
        )


def refuse_without_inputs(pipeline: Pipeline, plan: ModifyPlan) -> None:
    """Raise `UsageError` if the stage would fail at once, before a run is cancelled or a file is removed for it."""
    if not plan.missing_inputs:
        return
    missing = ", ".join(f"{COWORK}/{path}" for path in plan.missing_inputs)
    makers = [stage.name for stage in pipeline.stages if set(stage.products) & set(plan.missing_inputs)]
    first = next((name for name in makers if name in pipeline.restartable), "")
    way = f" Restart at {first!r}, which makes {'it' if len(plan.missing_inputs) == 1 else 'them'}." if first else ""
    raise UsageError(f"{plan.stage!r} cannot begin without {missing}. Nothing was changed.{way}")


def undo_modify(folder: Path, over: frozenset[str] = frozenset()) -> UndoneBackup:
    """Put back the files that the last `modify` removed. What is in their place now is kept in a backup of its own.

    A second undo undoes the `modify` before.

    Args:
        over: Runs that have ended, although this process may still hold the project for them.

    Raises:
        UsageError: There is no project or no backup, a copy was changed, or a run is at work.
    """
    cowork = existing_project(folder)
    locks = project_locks()
    with usage_errors():
        cowork.prepare_locks()
        try:
            with locks.working(folder, _UNDO, over):
                try:
                    return undo(cowork, Session(cowork))
                finally:
                    locks.release(folder)
        except FolderTaken as taken:
            raise UsageError(f"Nothing was undone. {taken}") from taken


# Where a project goes on: by a recorded restart, then by the marks of completed stages, then by its files.
#
# The rule for files is for projects without marks, such as those of another system: it goes on after the last stage
# whose output is there and valid. Files alone do not tell whether code is complete, so a stage that writes code is done
# again.


COMPLETED = "Project already completed"


class StartingPoint(Struct, frozen=True, kw_only=True):
    stage: str
    by: Literal["restart", "marks", "files"]
    """What decided."""
    restart_reason: str = ""
    missing: list[str] = []
    """Products that are not there or not valid any more: the stage has to make them again."""
    changed: list[str] = []
    """Products that a person has changed; the run works with them as they are."""


def first_stage(folder: Path, pipeline: Pipeline) -> StartingPoint:
    """Where `resume` goes on.

    Raises:
        UsageError: There is no project, it is completed, or its session cannot be read.
    """
    cowork = existing_project(folder)
    with usage_errors():
        meta = Session(cowork).meta
        if meta.restart_reason and meta.current_stage and pipeline.stage(meta.current_stage):
            return StartingPoint(stage=meta.current_stage, by="restart", restart_reason=meta.restart_reason)
        if any(stage.name in meta.completed for stage in pipeline.stages):
            return _by_marks(cowork, pipeline)
        return _by_files(cowork, pipeline, meta)


def _by_marks(cowork: CoworkFolder, pipeline: Pipeline) -> StartingPoint:
    states = mark_states(cowork)
    changed: list[str] = []
    for stage in pipeline.stages:
        state = states.get(stage.name)
        if state is None or state.missing:
            missing = state.missing if state else []
            return StartingPoint(stage=stage.name, by="marks", missing=missing, changed=changed)
        changed += state.changed
    raise UsageError(f"{COMPLETED}: all {len(pipeline.stages)} stages are. Modify it from a stage to change it.")


def _by_files(cowork: CoworkFolder, pipeline: Pipeline, meta: SessionMeta) -> StartingPoint:
    if any(stage.kind == "delivery" for stage in pipeline.stages) and cowork.read(DELIVERY_REPORT) is not None:
        raise UsageError(f"{COMPLETED}: there is {COWORK}/{DELIVERY_REPORT}. Modify it from a stage to change it.")
    missing: list[str] = []
    for number, stage in reversed(list(enumerate(pipeline.stages))):
        if stage.kind != "work" or stage.writes_code or not stage.outputs:
            continue
        problems = _output_problems(cowork, stage)
        if problems is None:
            continue
        if not problems:
            if number + 1 == len(pipeline.stages):
                raise UsageError(f"{COMPLETED}: {stage.shown} is its last stage.")
            return StartingPoint(stage=pipeline.stages[number + 1].name, by="files", missing=missing)
        missing = [*problems, *missing]
    has_idea = any(cowork.read(path) is not None for path in pipeline.stages[0].products)
    at_first = len(pipeline.stages) == 1 or (not has_idea and bool(meta.idea))
    return StartingPoint(stage=pipeline.stages[0 if at_first else 1].name, by="files", missing=missing)


def _output_problems(cowork: CoworkFolder, stage: PipelineStage) -> list[str] | None:
    """What is wrong with the outputs of a stage that are there; `None` if the first of them is not.

    The first one decides: the original system goes on with requirements whether or not there is a list of features.
    """
    problems: list[str] = []
    for number, path in enumerate(stage.outputs):
        data = cowork.read(path)
        if data is None and number == 0:
            return None
        if path in BY_PATH:
            problems += problems_in(BY_PATH[path], data)
        elif data is not None and is_blank(data):
            problems.append(f"{COWORK}/{path} is empty.")
    return problems


STYLE = "pipeline"


class ProjectFlow:
    """The workflow of a project, and the pipeline in it."""

    def __init__(self, plugins: "Plugins", named: str = "", idea: str = "") -> None:
        """Args:
            named: A file or folder; empty: the flow that is shipped, in the language of the idea.

        Raises:
            UsageError: It is not a pipeline.
        """
        self.workflow: Workflow = find(plugins.readers, named or str(default_flow(idea)), Environment(goal="kept"))
        if self.workflow.style != STYLE:
            raise UsageError(f"{named} is a workflow of the style {self.workflow.style!r}, not a pipeline.")
        self.pipeline: Pipeline = plugins.registry.load(STYLE, self.workflow.content)

    def checked(
        self, app: "App", settings: Settings, folder: Path, values: dict[str, str], key: str = ""
    ) -> CheckedStart:
        """A run of it in a folder, which can be started. Raises `NotTrusted`, `UsageError` or `DefinitionError`."""
        return check_start(
            settings,
            app.plugins,
            Trust(settings),
            self.workflow,
            workspace=folder,
            values=values,
            key=key,
            definition=self.pipeline,
        )


async def flow_of(engine: "Engine", folder: Path) -> str:
    """The file of the flow that a project was begun with; empty: the one that is shipped.

    A project can come from somebody else. So a flow outside of it counts only if the last run, in this journal, had it.
    Raises `UsageError`.
    """
    session = session_of(folder)
    if not session.flow:
        return ""
    if shipped := shipped_flow(session.flow):
        return str(shipped)
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


async def with_last_model(engine: "Engine", folder: Path, settings: Settings, base_url: str = "") -> Settings:
    """The settings with the models and the server of the last run of a project.

    A model or a `base_url` that is named now wins. The address comes from a journal, so `Trust` checks whether the user
    has agreed to it. Keys are in no journal.
    """
    view = await _run(engine, session_of(folder).run)
    return with_models_of(settings, view.run, settings.model_for_all, base_url) if view else settings


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
            values = {"mode": "modify", "stage": start.stage}
            plan = plan_modify(folder, flow.pipeline, start.stage)
            refuse_without_inputs(flow.pipeline, plan)
            removed = plan.removed
        settings = await with_last_model(app.engine, folder, app.settings)
        run = await app.start(flow.checked(app, settings, folder, values), state.idea)
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
        refuse_without_inputs(flow.pipeline, plan_modify(folder, flow.pipeline, stage))
        values = {"mode": "modify", "stage": stage, **({"change": change} if change else {})}
        idea, settings = session_of(folder).idea, await with_last_model(app.engine, folder, app.settings)
        checked = flow.checked(app, settings, folder, values, key)  # before the last run is ended for it
        await end_last_run(app.engine, folder, stage)
        with suppress(RunAlreadyStarted):  # another process was asked the same, with other words
            await app.start(checked, idea)
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
    return not run.ended or run.verdict is not None or app.engine.style(run).ending(run.state).is_resumable


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


# How far a project is, for `status` and every other face: its stages, its data, its runs and what they cost.


class ProjectStatus(Struct, frozen=True, kw_only=True):
    project: ProjectState
    rail: Rail
    run_status: str = ""
    """Of the run that worked on it last; empty if this journal does not have it."""
    waiting: list[str] = []
    """Ids of questions that wait for a person."""
    usage: Usage = Usage()
    """What all runs of the project that this journal knows have cost."""
    calls: int = 0


async def project_status(engine: Engine, folder: Path, pipeline: Pipeline) -> ProjectStatus:
    """Raises `UsageError` if there is no project."""
    state = project_state(folder)
    usage, calls = Usage(), 0
    last: View | None = None
    for run_id in session_of(folder).runs:
        view = await _view(engine, run_id)
        if view is None:
            continue
        spent = await family_spent(engine, view.run)
        usage, calls = usage.plus(spent.usage), calls + spent.calls
        last = view if run_id == state.run else last
    questions = (await engine.desk(DeskQuery(root=state.run))).items if last else []
    return ProjectStatus(
        project=state,
        rail=_rail(state, pipeline, last, state.completed or _finished_by_files(folder, pipeline)),
        run_status=await _seen_status(engine, last) if last else "",
        waiting=[f"{one.run_id}/{one.number}" for one in questions],
        usage=usage,
        calls=calls,
    )


async def _seen_status(engine: Engine, view: View) -> str:
    """With regard to whether anybody works on it, as in every list of runs."""
    return shown_status(view.status, await engine.has_workers(), view.run.id in await engine.left_waiting())


async def _view(engine: Engine, run_id: str) -> View | None:
    try:
        return await engine.look(run_id)
    except RunNotFound:
        return None


def _finished_by_files(folder: Path, pipeline: Pipeline) -> list[str]:
    """The stages that count as finished in a project without marks."""
    names = [stage.name for stage in pipeline.stages]
    try:
        return names[: pipeline.index(first_stage(folder, pipeline).stage)]
    except UsageError:  # it is completed
        return names


def _rail(state: ProjectState, pipeline: Pipeline, last: View | None, finished: list[str]) -> Rail:
    failed = last is not None and last.status in ("failed", "restart", "limit", "stopped")
    stages = []
    for one in pipeline.stages:
        if one.name in finished:
            stages.append(Stage(one.name, "done"))
        elif one.name == state.current_stage:
            stages.append(Stage(one.name, "failed" if failed else "now"))
        else:
            stages.append(Stage(one.name))
    return Rail(tuple(stages), pipeline.name)
