"""Whether a project's data fits together: formats, dependencies, coverage. Pure functions of what the files hold."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ripstop.engine.performers import Refused

from .code_files import NO_CODE, CodeListing, list_code
from .data_files import BY_PATH, DESIGN, FEATURES, PLAN, REQUIREMENTS, DataFile, entries_of, load, problems_in
from .models import DesignComponent, DevelopmentTask, Feature, Requirement
from .store import COWORK, CoworkFolder, project_locks

FEWEST_COMPONENTS, MOST_COMPONENTS = 2, 6
NOT_COVERED = "Some features are not covered"


class ProjectData(Struct, frozen=True):
    requirements: Sequence[Requirement] = ()
    features: Sequence[Feature] = ()
    components: Sequence[DesignComponent] = ()
    tasks: Sequence[DevelopmentTask] = ()


class FeatureCoverage(Struct, frozen=True):
    feature: str
    name: str
    components: list[str]
    tasks: list[str]
    status: str


def coverage(data: ProjectData) -> list[FeatureCoverage]:
    """For each feature the components and tasks that are about it."""
    return [
        FeatureCoverage(
            feature=feature.id,
            name=feature.name,
            components=[one.id for one in data.components if feature.id in one.related_features],
            tasks=[one.id for one in data.tasks if one.feature_id == feature.id],
            status=feature.status,
        )
        for feature in data.features
    ]


def uncovered(data: ProjectData, by: str = "") -> list[str]:
    """Features without a component (`by="components"`), without a task (`by="tasks"`), or without either of them."""
    return [
        row.feature
        for row in coverage(data)
        if (by != "tasks" and not row.components) or (by != "components" and not row.tasks)
    ]


def coverage_problems(data: ProjectData, by: str) -> list[str]:
    missing = uncovered(data, by)
    if not missing:
        return []
    what = {"components": "a component (related_features)", "tasks": "a task (feature_id)"}.get(by, "component or task")
    return [f"{NOT_COVERED}: {', '.join(missing)} without {what}."]


def size_problems(data: ProjectData) -> list[str]:
    """Whether the design has too few or too many components."""
    count = len(data.components)
    if FEWEST_COMPONENTS <= count <= MOST_COMPONENTS:
        return []
    noun = "component" if count == 1 else "components"
    return [f"The design has {count} {noun}; it must have {FEWEST_COMPONENTS} to {MOST_COMPONENTS}."]


def component_problems(data: ProjectData) -> list[str]:
    """What is wrong with the design, seen with the features."""
    known = [one.id for one in data.features]
    unknown = (
        problem
        for one in data.components
        for problem in _unknown(one.id, "related_features", one.related_features, known, "features")
    )
    return [*size_problems(data), *unknown]


def feature_problems(data: ProjectData) -> list[str]:
    known = [one.id for one in data.requirements]
    return [
        problem
        for one in data.features
        for problem in _unknown(one.id, "requirement_ids", one.requirement_ids, known, "requirements")
    ]


def dependency_problems(data: ProjectData) -> list[str]:
    """Unknown ids that tasks name, and the first cycle among their dependencies."""
    features, components = [one.id for one in data.features], [one.id for one in data.components]
    tasks = [one.id for one in data.tasks]
    problems = []
    for one in data.tasks:
        if not one.feature_id:
            problems.append(f"{one.id} has no feature_id.")
        else:
            problems += _unknown(one.id, "feature_id", [one.feature_id], features, "features")
        if one.component_id:
            problems += _unknown(one.id, "component_id", [one.component_id], components, "components")
        problems += _unknown(one.id, "dependencies", one.dependencies, tasks, "tasks")
    cycle = dependency_cycle(data.tasks)
    if cycle:
        problems.append(f"Tasks depend on each other in a cycle: {' → '.join(cycle)}.")
    return problems


def dependency_cycle(tasks: Iterable[DevelopmentTask]) -> list[str]:
    """The ids on the way round a cycle, the first also at the end; empty if there is none."""
    graph = {one.id: list(dict.fromkeys(one.dependencies)) for one in tasks}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


def _unknown(owner: str, field: str, named: Sequence[str], known: Sequence[str], what: str) -> list[str]:
    wrong = [one for one in dict.fromkeys(named) if one not in known]
    if not wrong:
        return []
    return [f"{owner}: {field} names {', '.join(map(repr, wrong))}; {what} are: {', '.join(known) or 'none'}."]


# What the engine itself finds in a project: its data, its code, and whether they fit together.


NOT_RUN = "Whether the code works: the engine compares files and data, and does not run the code."


class Findings(Struct, frozen=True):
    data: ProjectData
    code: CodeListing
    unchecked: list[str]
    there: frozenset[str]
    """The data files that exist and are valid, by name."""

    @property
    def facts(self) -> dict[str, Any]:
        data = self.data
        return {
            "files": msgspec.to_builtins(self.code.files),
            "coverage": msgspec.to_builtins(coverage(data)),
            "uncovered": uncovered(data),
            "requirements": len(data.requirements),
            "features": _done(data.features),
            "components": len(data.components),
            "tasks": _done(data.tasks),
            "unchecked": self.unchecked,
            "missing_files": self.code.missing,
            "code_files": self.code.count,
        }

    def inconsistencies(self) -> list[str]:
        """What does not fit together, as far as the files for it are there."""
        data, problems = self.data, []
        if {FEATURES.name, REQUIREMENTS.name} <= self.there:
            problems += feature_problems(data)
        if DESIGN.name in self.there:
            problems += component_problems(data) if FEATURES.name in self.there else size_problems(data)
            problems += coverage_problems(data, "components")
        if PLAN.name in self.there:
            problems += dependency_problems(data)
            problems += coverage_problems(data, "tasks")
        return problems + [
            f"{one.id} is {one.status}, but its file {path!r} is not there."
            for one in data.tasks
            for path in one.files_to_create
            if path in self.code.missing
        ]


def _done(entries: Any) -> list[int]:
    return [sum(one.status == "completed" for one in entries), len(entries)]


def find(folder: CoworkFolder) -> Findings:
    """Look at everything; what cannot be looked at is listed."""
    unchecked: list[str] = []
    there: list[str] = []

    def entries(file: DataFile) -> list[Any]:
        try:
            document = load(folder, file)
        except Refused as refusal:
            unchecked.append(str(refusal))
            return []
        if document.is_there:
            there.append(file.name)
        else:
            unchecked.append(f"There is no {COWORK}/{file.path}.")
        return document.entries

    data = ProjectData(*map(entries, (REQUIREMENTS, FEATURES, DESIGN, PLAN)))
    code = list_code(folder.project, data.tasks)
    return Findings(data, code, [*unchecked, *code.unchecked, NOT_RUN], frozenset(there))


def output_problems(folder: CoworkFolder, outputs: tuple[str, ...], found: Findings, needs_code: bool) -> list[str]:
    """Why the products of a stage are not valid."""
    problems = [problem for path in outputs for problem in _file_problems(folder, path)]
    if problems:
        return problems
    data = found.data
    for file, entries in (
        (REQUIREMENTS, data.requirements),
        (FEATURES, data.features),
        (DESIGN, data.components),
        (PLAN, data.tasks),
    ):
        if file.path in outputs and not entries:
            problems.append(f"{COWORK}/{file.path} has no {file.noun}s in it.")
    if FEATURES.path in outputs:
        problems += feature_problems(data)
    if DESIGN.path in outputs and data.components:
        problems += size_problems(data) if FEATURES.name not in found.there else component_problems(data)
        problems += coverage_problems(data, "components")
    if PLAN.path in outputs:
        problems += dependency_problems(data)
        problems += coverage_problems(data, "tasks")
    if needs_code and not found.code.count:
        empty = f" {len(found.code.files)} are empty." if found.code.files else ""
        problems.append(f"{NO_CODE} in the project's folder.{empty} Tasks alone do not count: write the files.")
    return problems


def _file_problems(folder: CoworkFolder, path: str) -> list[str]:
    try:
        data = folder.read(path)
    except Refused as refusal:
        return [str(refusal)]
    if data is None:
        return [f"There is no {COWORK}/{path}."]
    if path in BY_PATH:
        return problems_in(BY_PATH[path], data)
    return [] if data.strip() else [f"{COWORK}/{path} is empty."]


# The project that a tool's call is about, held for the time of the call so that two changes do not undo each other.


_LOCKS = project_locks()


@contextmanager
def changing(project: Path) -> Iterator[CoworkFolder]:
    """The project's files, for a call that changes them."""
    folder = CoworkFolder(project)
    folder.prepare_locks()
    with _LOCKS.alone(project):
        yield folder


def project_data(folder: CoworkFolder) -> ProjectData:
    """All four data files as they are now. Raises `Refused` for one that is not valid."""
    return ProjectData(*entries_of(folder, REQUIREMENTS, FEATURES, DESIGN, PLAN))
