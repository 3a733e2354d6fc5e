"""Reading a folder of hand-off documents: who works there, and by which rules.

- `handoff.yaml` can be left out, because all of it has defaults.
- Agents are the files `roles/NAME.md`. They are pinned with the definition, so a run is worked on as it was begun.
- The folder's own path is pinned, too: that is where the documents appear.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ripstop.definitions.example_files import write_files
from ripstop.definitions.front_matter import split_front_matter
from ripstop.definitions.loading import WORKFLOW_FILES, files_named, read_inside, refuse_link
from ripstop.definitions.options import GUARDS, OptionReader
from ripstop.definitions.problems import WARNING, Position, Problem, WrongDefinition, did_you_mean, in_order
from ripstop.definitions.reader import Environment
from ripstop.definitions.references import Reference, check_references
from ripstop.definitions.yaml_tree import Value, YamlEntry, parse
from ripstop.kernel.errors import UsageError
from ripstop.kernel.resuming import override_guards

from .definition import WORKFLOWS, Policy, Role
from .document import Malformed, read
from .style import HandoffStyle

# The roles of a folder of documents: `roles/<name>.md` says how each agent is told to work.


__all__ = ["FOLDER", "MAX_ROLES", "Role", "read_roles", "role_files"]

FOLDER = "roles"
MAX_ROLES = 100


def role_files(root: Path) -> list[Path]:
    """The files of a folder's roles, in order. Raises `WrongDefinition` if the roles are behind a link."""
    refuse_link(root / FOLDER)
    return sorted((root / FOLDER).glob("*.md"))


def read_roles(root: Path, models: Mapping[str, str], named_in: str, default: str = "") -> dict[str, Role]:
    """Every role of a folder, with its own model or the default. Raises `WrongDefinition`.

    `named_in`: where `models` come from, for the message about one without a role.
    """
    files, problems, roles = role_files(root), list[Problem](), dict[str, Role]()
    if len(files) > MAX_ROLES:
        place = Position(str(root / FOLDER))
        raise WrongDefinition([Problem(place, f"there are {len(files)} roles; at most {MAX_ROLES} can be")])
    for path in files:
        try:
            prompt, workflow = _read_role(root, path)
            roles[path.stem] = Role(path.stem, prompt, models.get(path.stem, default), workflow)
        except WrongDefinition as error:
            problems += error.problems
    if problems:
        raise WrongDefinition(problems)
    unknown = sorted(set(models) - set(roles))
    if unknown and roles:
        text = f"{named_in} names {unknown[0]!r}, but there is no {FOLDER}/{unknown[0]}.md"
        raise WrongDefinition([Problem(Position(str(root / FOLDER)), text, did_you_mean(unknown[0], roles))])
    return roles


def _read_role(root: Path, path: Path) -> tuple[str, str]:
    """A role's prompt, and the workflow that works in its place: `workflow` in the part between lines `---`.

    Such a part without it belongs to the prompt: what an author tells an agent is the agent's to read.
    """
    text = read_inside(root, f"{FOLDER}/{path.name}")
    if not text.startswith("---"):
        return text, ""
    front, prompt = split_front_matter(text, str(path))
    tree, problems = parse(front, str(path)) if front[3:].strip() else (None, [])
    if tree is None or not isinstance(tree.value, dict) or "workflow" not in tree.value:
        return text, ""
    reader = OptionReader(problems)
    fields = reader.mapping(tree, "the beginning of a role", ("workflow",))
    workflow = reader.field(fields, "workflow", str, "").strip()
    if problems:
        raise WrongDefinition(in_order(problems))
    return prompt.strip("\r\n"), workflow


# A small folder of documents that is ready to work, with replies to work without a model.


SCRIPT = "script.jsonl"
POLICY = """\
# A writer writes, and an editor checks. Each works on the documents that it owns.

first: writer
max_interactions: 10
"""
WRITER = "You write short, clear paragraphs. When a paragraph is written, pass the document to the editor.\n"
EDITOR = "You check paragraphs. Complete the document if the paragraph is clear and correct; else pass it back.\n"
REPLIES = (
    {"action": "pass", "to": "editor", "next_action": "Check it", "result": "Rivers carry salt into the sea."},
    {"action": "complete", "to": "", "next_action": "", "result": "Rivers carry salt into the sea. It stays there."},
)


def write_example(folder: Path) -> list[Path]:
    """Write the folder's rules, its roles and a script. Raises `UsageError` if one of the files is there already."""
    lines = [json.dumps({"reply": json.dumps({"content": "Done.", "decisions": made})}) for made in REPLIES]
    files = {
        "handoff.yaml": POLICY,
        f"{FOLDER}/writer.md": WRITER,
        f"{FOLDER}/editor.md": EDITOR,
        SCRIPT: "\n".join(lines) + "\n",
    }
    return write_files(folder, files, (FOLDER, WORKFLOWS))


# The JSON Schema of `handoff.yaml`, for editors. The reader takes its fields and bounds from here.


LANGUAGES = ("en", "zh")
MAX_INTERACTIONS, MAX_ATTEMPTS = 1_000_000, 100

HANDOFF: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "A folder of hand-off documents",
    "description": "The agents of the folder are in roles/NAME.md, a file for each. Every field has a default, and so "
    "has the whole file.",
    "type": ["object", "null"],
    "properties": {
        "max_interactions": {
            "type": ["integer", "null"],
            "minimum": 1,
            "maximum": MAX_INTERACTIONS,
            "default": 10,
            "description": "Acceptances, hand-overs and completions that are allowed for a document.",
        },
        "attempts": {
            "type": ["integer", "null"],
            "minimum": 1,
            "maximum": MAX_ATTEMPTS,
            "default": 3,
            "description": "How often an agent may fail at a document before a person is asked.",
        },
        "language": {
            "enum": [*LANGUAGES, None],
            "description": "The language of what is written into documents. Left out: that of the task.",
        },
        "first": {
            "type": ["string", "null"],
            "description": "The role that gets a document for which no owner is named. Left out: the first by name.",
        },
        "models": {
            "type": ["object", "null"],
            "additionalProperties": {"type": "string", "minLength": 1, "pattern": r"\S"},
            "description": "The model of a role, by its name. Left out: the default model.",
        },
        "guards": GUARDS,
    },
    "additionalProperties": False,
}


FILE = "handoff.yaml"


class FolderRules(Struct, frozen=True):
    """What `handoff.yaml` sets. What it leaves out is `None` or empty."""

    max_interactions: int | None = None
    attempts: int | None = None
    language: Literal["", "en", "zh"] = ""
    first: str = ""
    models: dict[str, str] = {}
    guards: dict[str, Any] = {}


def read_rules(folder: Path) -> FolderRules:
    """The rules of a folder, whose roles must be there if it names any. Raises `WrongDefinition`."""
    file = folder / FILE
    if not os.path.lexists(file):
        return FolderRules()
    text = read_inside(folder, FILE)
    if not text.strip():
        return FolderRules()
    tree, problems = parse(text, str(file))
    rules = _FileReader(problems).rules(tree, [path.stem for path in role_files(folder)])
    if problems:
        raise WrongDefinition(in_order(problems))
    return rules


def read_policy(folder: Path) -> Policy:
    """The definition that a folder is. Raises `WrongDefinition`."""
    rules, default = read_rules(folder), Policy()
    roles = read_roles(folder, rules.models, FILE)
    ordered = sorted(roles.values(), key=lambda role: role.name != rules.first)  # the others stay in order
    return Policy(
        max_interactions=rules.max_interactions or default.max_interactions,
        attempts=rules.attempts or default.attempts,
        language=rules.language,
        guards=rules.guards,
        folder=str(folder.resolve()),
        roles=tuple(ordered),
    )


class _FileReader(OptionReader):
    """Reads `handoff.yaml`."""

    def rules(self, tree: Value, roles: list[str]) -> FolderRules:
        top = self.mapping(tree, "a folder of documents", tuple(HANDOFF["properties"]))
        language: Any = self.one_of(top, "language", ("", *LANGUAGES), "")
        return FolderRules(
            max_interactions=self._whole(top, "max_interactions", MAX_INTERACTIONS),
            attempts=self._whole(top, "attempts", MAX_ATTEMPTS),
            language=language if language in LANGUAGES else "",
            first=self._first(top, roles),
            models=self._models(top.get("models"), roles),
            guards=self.guards(top.get("guards")),
        )

    def _whole(self, top: dict[str, YamlEntry], key: str, most: int) -> int | None:
        is_set = key in top and top[key].value.value is not None
        return self.whole(top, key, 1, 1, most) if is_set else None

    def _first(self, top: dict[str, YamlEntry], roles: list[str]) -> str:
        first = self.field(top, "first", str, "")
        if first and first not in roles:
            text = f"'first' names {first!r}, which is not a role"
            self.problem(top["first"].value.place, text, did_you_mean(first, roles))
        return first

    def _models(self, entry: YamlEntry | None, roles: list[str]) -> dict[str, str]:
        if entry is None or entry.value.value is None:
            return {}
        names = entry.value.value if isinstance(entry.value.value, dict) else {}
        fields = self.mapping(entry.value, "'models'", tuple(names))
        for name in fields:
            if roles and name not in roles:
                text = f"{FILE} names {name!r}, but there is no {FOLDER}/{name}.md"
                self.problem(fields[name].key, text, did_you_mean(name, roles))
        return {name: self.required(fields, name, entry.value, "'models'") for name in fields}


# Folders of hand-off documents as workflows: what ripstop asks of them, as of the definitions of any style.
#
# A folder is one if it has `handoff.yaml`, `roles/` or `.workflows/`, and is not a workflow of another style
# (`workflow.yaml`, `pipeline.yaml`).


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
    if not role.prompt.strip() and not role.workflow:
        found.append(Problem(Position(file), "the role has no instructions", "say how it works", severity=WARNING))
    about = environment.about_model(role.model) if role.model and environment.about_model else None
    if about:
        severity = "error" if about.certain else WARNING
        found.append(Problem(Position(str(folder / FILE)), about.text, about.hint, severity=severity))
    named = [Reference("workflow", role.workflow, Position(file))] if role.workflow else []
    return [*found, *check_references(named, environment)]


def _document_problems(folder: Path) -> list[Problem]:
    """Files among the documents that cannot be read as one; they do not keep a run from starting."""
    found = []
    for path in sorted((folder / WORKFLOWS).glob("*.md"))[:MAX_DOCUMENTS]:
        try:
            read(read_inside(folder, f"{WORKFLOWS}/{path.name}"))
        except Malformed as error:
            found.append(Problem(Position(str(path), error.line), error.reason.rstrip("."), severity=WARNING))
        except WrongDefinition as error:
            found += [replace(problem, severity=WARNING) for problem in error.problems]
    return found


READER = DocumentFolders()
