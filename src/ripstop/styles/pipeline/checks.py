"""What the engine itself finds in a project: its data, its code, and whether they fit together.

Formats, dependencies and coverage are functions of what the files hold. What cannot be looked at is listed.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

from msgspec import Struct

from ripstop.engine.performers import Refused

from .calls import NO_CODE, FeatureCoverage, ProjectFacts
from .code_files import CodeListing, list_code, planned_path
from .data_files import BY_PATH, DESIGN, FEATURES, PLAN, REQUIREMENTS, DataFile, entries_of, load, problems_in
from .models import DesignComponent, DevelopmentTask, Feature, Requirement
from .store import COWORK, CoworkFolder, is_blank, project_locks

FEWEST_COMPONENTS, MOST_COMPONENTS = 2, 6
NOT_COVERED = "Some features are not covered"
NOT_RUN = "Whether the code works: the engine compares files and data, and does not run the code."
_LOCKS = project_locks()


class ProjectData(Struct, frozen=True):
    requirements: Sequence[Requirement] = ()
    features: Sequence[Feature] = ()
    components: Sequence[DesignComponent] = ()
    tasks: Sequence[DevelopmentTask] = ()


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


# All that is found


class Findings(Struct, frozen=True):
    data: ProjectData
    code: CodeListing
    unchecked: list[str]
    there: frozenset[str]
    """The data files that exist and are valid, by name."""

    @property
    def facts(self) -> ProjectFacts:
        """All but what was changed, which needs to know what was there before."""
        data = self.data
        return ProjectFacts(
            files=tuple(self.code.files),
            coverage=tuple(coverage(data)),
            uncovered=tuple(uncovered(data)),
            requirements=len(data.requirements),
            features=(sum(map(self.is_feature_completed, data.features)), len(data.features)),
            components=len(data.components),
            tasks=(sum(map(self.is_completed, data.tasks)), len(data.tasks)),
            unchecked=tuple(self.unchecked),
            missing_files=tuple(self.code.missing),
            code_files=self.code.count,
            empty_files=tuple(self.code.empty),
            planned_files=len(self.code.planned),
            tasks_marked=_marked(data.tasks),
            tasks_without_files=sum(map(self.is_only_claimed, data.tasks)),
            features_marked=_marked(data.features),
        )

    def is_completed(self, task: DevelopmentTask) -> bool:
        """Whether it is marked as completed, and all its files are there and not empty."""
        return task.status == "completed" and not self.lacks(task)

    def is_only_claimed(self, task: DevelopmentTask) -> bool:
        """Whether it counts as completed and names no file, so that nothing can be looked at for it."""
        return not task.files_to_create and self.is_completed(task)

    def is_feature_completed(self, feature: Feature) -> bool:
        """Whether it is marked as completed, and so are its tasks. Marks outlive the tasks that a restart removes."""
        tasks = [one for one in self.data.tasks if one.feature_id == feature.id]
        return feature.status == "completed" and bool(tasks) and all(map(self.is_completed, tasks))

    def lacks(self, task: DevelopmentTask) -> list[str]:
        """The files of a task that are missing or empty."""
        wrong = {*self.code.missing, *self.code.empty}
        return [path for path in task.files_to_create if (planned_path(path) or path) in wrong]

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
            f"{one.id} is {one.status}, but its file {path!r} is "
            + ("empty." if (planned_path(path) or path) in self.code.empty else "not there.")
            for one in data.tasks
            for path in self.lacks(one)
        ]


def _marked(entries: Sequence[Feature] | Sequence[DevelopmentTask]) -> int:
    return sum(one.status == "completed" for one in entries)


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
    return [f"{COWORK}/{path} is empty."] if is_blank(data) else []


# The project of a tool's call


@contextmanager
def changing(project: Path) -> Iterator[CoworkFolder]:
    """The project's files, held for the time of a call so that two changes do not undo each other."""
    folder = CoworkFolder(project)
    folder.prepare_locks()
    with _LOCKS.alone(project):
        yield folder


def project_data(folder: CoworkFolder) -> ProjectData:
    """All four data files as they are now. Raises `Refused` for one that is not valid."""
    return ProjectData(*entries_of(folder, REQUIREMENTS, FEATURES, DESIGN, PLAN))
