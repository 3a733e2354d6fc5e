"""A delivery project as it is on disk, read without changing anything."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from ripstop.engine.performers import Refused, TryAgain
from ripstop.kernel.errors import UsageError

from .checks import find
from .data_files import DATA_FILES, Session, problems_in
from .items import MarkState, mark_state
from .models import SessionMeta
from .stages import INITIALIZED
from .store import ARTIFACTS, COWORK, DATA, SESSION, CoworkFolder

MAX_NAMED = 1000
NO_PROJECT = "No project found"


class ProjectState(Struct, frozen=True, kw_only=True):
    """What `status` shows."""

    folder: str
    run: str
    """The run that worked on it last; empty if none of this system did."""
    idea: str
    stages: list[str]
    """Names in order; empty for a project of another system."""
    current_stage: str
    restart_reason: str
    completed: list[str]
    requirements: int
    features: tuple[int, int]
    """Completed with their tasks, and all."""
    features_marked: int
    """Those that are marked as completed; perhaps by an earlier delivery, whose tasks are not there any more."""
    components: int
    tasks: tuple[int, int]
    code_files: int
    missing: list[str]
    """Products of completed stages that are not there, or not valid any more."""
    changed: list[str]
    """Products that a person has changed since their stage was completed."""
    problems: list[str]
    """Data files that are not valid."""


@contextmanager
def usage_errors() -> Iterator[None]:
    """What a project's files refuse, as an error for the caller."""
    try:
        yield
    except (Refused, TryAgain) as error:
        raise UsageError(str(error)) from error


def find_project(folder: Path) -> Path | None:
    """The `.cowork` of a folder, or `None`. Raises `UsageError` if a link or a file is in its place."""
    with usage_errors():
        return folder / COWORK if CoworkFolder(folder).exists() else None


def existing_project(folder: Path) -> CoworkFolder:
    """Raises `UsageError` if there is none."""
    if find_project(folder) is None:
        raise UsageError(f"{NO_PROJECT} in {str(folder)!r}: it has no folder {COWORK}.")
    names = sorted(os.listdir(folder / COWORK))[:MAX_NAMED]
    if names and not {ARTIFACTS, DATA, SESSION} & {*names}:
        known = f"{ARTIFACTS}/, {DATA}/ and {SESSION}/"
        raise UsageError(f"{COWORK} has {', '.join(names)}, and none of {known}: it is not a project that can be read.")
    return CoworkFolder(folder)


def refuse_existing(folder: Path) -> None:
    """Raise `UsageError` if there is a project already."""
    if find_project(folder) is not None:
        raise UsageError(f"{INITIALIZED}: there is a {COWORK} folder in {str(folder)!r}. Resume or modify it.")


def session_of(folder: Path) -> SessionMeta:
    """What a project remembers about its runs. Raises `UsageError` if there is none, or it cannot be read."""
    cowork = existing_project(folder)
    with usage_errors():
        return Session(cowork).meta


def project_state(folder: Path) -> ProjectState:
    """Raises `UsageError` if there is no project, or its session cannot be read."""
    cowork = existing_project(folder)
    with usage_errors():
        meta = Session(cowork).meta
        states = mark_states(cowork)
        found = find(cowork)
        problems = [problem for file in DATA_FILES for problem in problems_in(file, cowork.read(file.path))]
    facts = found.facts
    order = [*meta.stages, *(name for name in meta.completed if name not in meta.stages)]
    return ProjectState(
        folder=str(folder),
        run=meta.run,
        idea=meta.idea,
        stages=meta.stages,
        current_stage=meta.current_stage or "",
        restart_reason=meta.restart_reason or "",
        completed=[name for name in order if name in states and not states[name].missing],
        requirements=facts.requirements,
        features=facts.features,
        features_marked=facts.features_marked or 0,
        components=facts.components,
        tasks=facts.tasks,
        code_files=facts.code_files,
        missing=[one for state in states.values() for one in state.missing],
        changed=[one for state in states.values() for one in state.changed],
        problems=problems,
    )


def mark_states(cowork: CoworkFolder) -> dict[str, MarkState]:
    """What became of the products of every stage that is marked as completed. Raises `Refused`."""
    logged = cowork.logged_hashes()
    return {name: mark_state(cowork, mark, logged) for name, mark in Session(cowork).meta.completed.items()}
