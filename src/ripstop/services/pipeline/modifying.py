"""Restarting a stage of a project, and taking that back."""

from pathlib import Path

from msgspec import Struct

from ripstop.kernel.errors import UsageError
from ripstop.performers.folder_locks import FolderTaken
from ripstop.performers.pipeline.backups import UndoneBackup, code_paths, undo
from ripstop.performers.pipeline.data_files import Session
from ripstop.performers.pipeline.stages import StageCall, products_from
from ripstop.performers.pipeline.store import project_locks
from ripstop.styles.pipeline.definition import Pipeline

from .project import existing_project, usage_errors

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
    calls = tuple(
        StageCall(name=one.name, products=one.products, kind=one.kind, writes_code=one.writes_code)
        for one in pipeline.stages
    )
    with usage_errors():
        removed = [path for path in products_from(calls, start) if cowork.read(path) is not None]
        missing = [path for path in pipeline.stages[start].inputs if cowork.read(path) is None]
        return ModifyPlan(
            stage=stage,
            removed=sorted(removed),
            kept_code=code_paths(cowork),
            rerun=[one.name for one in pipeline.stages[start:]],
            missing_inputs=[path for path in missing if path not in removed],
        )


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
