"""Folders of hand-off documents as workflows: what ripstop asks of them, as of the definitions of any style.

A folder is one if it has `handoff.yaml`, `roles/` or `.workflows/`, and is not a workflow of another style
(`workflow.yaml`, `pipeline.yaml`).
"""

import os
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from ripstop.definitions.folders import WORKFLOW_FILES, files_named
from ripstop.definitions.problems import WARNING, Position, Problem, WrongDefinition
from ripstop.definitions.reader import Environment
from ripstop.definitions.yaml_tree import read_text
from ripstop.kernel.errors import UsageError
from ripstop.kernel.resuming import override_guards
from ripstop.styles.handoff.document import Malformed, read
from ripstop.styles.handoff.policy import WORKFLOWS, Policy, Role
from ripstop.styles.handoff.style import HandoffStyle

from .reader import FILE, read_policy
from .roles import FOLDER
from .schema import HANDOFF, MAX_ATTEMPTS, MAX_INTERACTIONS

MAX_DOCUMENTS = 1000
"""Documents that a check looks at."""


class DocumentFolders:
    style = "handoff"
    looks_like = "a folder with handoff.yaml, roles/ or .workflows/"
    greedy = False

    def find(self, path: Path) -> Path | None:
        """A folder with roles, documents or a `handoff.yaml`; or that file."""
        if path.name == FILE and os.path.isfile(path):
            return path.parent
        if any(os.path.lexists(path / name) for name in WORKFLOW_FILES):
            return None
        is_one = os.path.isfile(path / FILE) or any(os.path.isdir(path / name) for name in (FOLDER, WORKFLOWS))
        return path if is_one else None

    def find_all(self, folder: Path) -> list[Path]:
        """Those with a `handoff.yaml`: any folder can have `roles/`, whatever that is for."""
        return [path.parent for path in files_named(FILE, folder)]

    def read(self, path: Path, environment: Environment) -> tuple[str, bytes]:
        policy = read_policy(path)
        return path.resolve().name, msgspec.json.encode(policy, order="deterministic")

    def check(self, path: Path, environment: Environment) -> list[Problem]:
        try:
            policy = read_policy(path)
        except WrongDefinition as error:
            return error.problems
        return [*_role_problems(path, policy, environment), *_document_problems(path)]

    def check_pinned(self, definition: Policy) -> None:
        """Raise `WrongDefinition` unless a definition from a journal could have been read from a folder."""
        problems = []
        place = Position(definition.folder or WORKFLOWS)
        if not 1 <= definition.max_interactions <= MAX_INTERACTIONS or not 1 <= definition.attempts <= MAX_ATTEMPTS:
            problems.append(Problem(place, "its interactions or attempts are out of bounds"))
        if definition.folder and not os.path.isabs(definition.folder):
            problems.append(Problem(place, "its folder is not an absolute path"))
        try:
            override_guards(HandoffStyle.default_guards, definition.guards)
        except UsageError as error:
            problems.append(Problem(place, str(error).rstrip(".")))
        if problems:
            raise WrongDefinition(problems)

    def schema(self) -> dict[str, Any]:
        return HANDOFF

    def example(self, folder: Path) -> list[Path]:
        from .example import write_example

        return write_example(folder)


def _role_problems(folder: Path, policy: Policy, environment: Environment) -> list[Problem]:
    if not policy.roles:
        return [
            Problem(
                Position(str(folder)),
                "nobody works here",
                f"write {FOLDER}/NAME.md to say how an agent works",
                severity=WARNING,
            )
        ]
    return [problem for role in policy.roles for problem in _about_role(folder, role, environment)]


def _about_role(folder: Path, role: Role, environment: Environment) -> list[Problem]:
    file = str(folder / FOLDER / f"{role.name}.md")
    found = []
    if not role.prompt.strip():
        found.append(Problem(Position(file), "the role has no instructions", "say how it works", severity=WARNING))
    about = environment.about_model(role.model) if role.model and environment.about_model else None
    if about:
        severity = "error" if about.certain else WARNING
        found.append(Problem(Position(str(folder / FILE)), about.text, about.hint, severity=severity))
    return found


def _document_problems(folder: Path) -> list[Problem]:
    """Files among the documents that cannot be read as one; they do not keep a run from starting."""
    found = []
    for path in sorted((folder / WORKFLOWS).glob("*.md"))[:MAX_DOCUMENTS]:
        try:
            read(read_text(path, str(path)))
        except Malformed as error:
            found.append(Problem(Position(str(path), error.line), error.reason.rstrip("."), severity=WARNING))
        except WrongDefinition as error:
            found += [replace(problem, severity=WARNING) for problem in error.problems]
    return found


READER = DocumentFolders()
