"""Whether a project's data fits together: formats, dependencies, coverage. Pure functions of what the files hold."""

from collections.abc import Iterable, Sequence
from graphlib import CycleError, TopologicalSorter

from msgspec import Struct

from .models import DesignComponent, DevelopmentTask, Feature, Requirement

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
