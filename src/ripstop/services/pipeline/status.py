"""How far a project is, for `status` and every other face: its stages, its data, its runs and what they cost."""

from pathlib import Path

from msgspec import Struct

from ripstop.kernel.effects import Usage
from ripstop.kernel.errors import RunNotFound, UsageError
from ripstop.kernel.parts import Rail, Stage
from ripstop.runtime.engine import Engine, View
from ripstop.runtime.family_spending import family_spent
from ripstop.runtime.ports import DeskQuery
from ripstop.styles.pipeline.definition import Pipeline

from .project import ProjectState, project_state, session_of
from .starting import first_stage


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
        run_status=last.status if last else "",
        waiting=[f"{one.run_id}/{one.number}" for one in questions],
        usage=usage,
        calls=calls,
    )


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
