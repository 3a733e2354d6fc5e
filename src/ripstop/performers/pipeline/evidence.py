"""What the engine itself finds in a project: its data, its code, and whether they fit together."""

from typing import Any

import msgspec
from msgspec import Struct

from ripstop.runtime.performers import Refused

from . import checks
from .checks import ProjectData
from .code_files import NO_CODE, CodeListing, list_code
from .data_files import BY_PATH, DESIGN, FEATURES, PLAN, REQUIREMENTS, DataFile, load, problems_in
from .store import COWORK, CoworkFolder

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
            "coverage": msgspec.to_builtins(checks.coverage(data)),
            "uncovered": checks.uncovered(data),
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
            problems += checks.feature_problems(data)
        if DESIGN.name in self.there:
            problems += checks.component_problems(data) if FEATURES.name in self.there else checks.size_problems(data)
            problems += checks.coverage_problems(data, "components")
        if PLAN.name in self.there:
            problems += checks.dependency_problems(data)
            problems += checks.coverage_problems(data, "tasks")
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
        problems += checks.feature_problems(data)
    if DESIGN.path in outputs and data.components:
        problems += checks.size_problems(data) if FEATURES.name not in found.there else checks.component_problems(data)
        problems += checks.coverage_problems(data, "components")
    if PLAN.path in outputs:
        problems += checks.dependency_problems(data)
        problems += checks.coverage_problems(data, "tasks")
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
