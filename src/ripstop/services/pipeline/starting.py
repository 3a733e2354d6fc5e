"""Where a project goes on: by a recorded restart, then by the marks of completed stages, then by its files.

The rule for files is for projects without marks, such as those of another system: it goes on after the last stage whose
output is there and valid. Files alone do not tell whether code is complete, so a stage that writes code is done again.
"""

from pathlib import Path
from typing import Literal

from msgspec import Struct

from ripstop.kernel.errors import UsageError
from ripstop.performers.pipeline.data_files import BY_PATH, Session, problems_in
from ripstop.performers.pipeline.models import SessionMeta
from ripstop.performers.pipeline.store import COWORK, CoworkFolder
from ripstop.styles.pipeline.definition import DELIVERY_REPORT, Pipeline, PipelineStage

from .project import existing_project, mark_states, usage_errors

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
        elif data is not None and not data.strip():
            problems.append(f"{COWORK}/{path} is empty.")
    return problems
