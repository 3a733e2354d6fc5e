"""Reading a folder of hand-off documents: who works there, and by which rules.

- `handoff.yaml` can be left out, because all of it has defaults.
- Agents are the files `roles/NAME.md`. They are pinned with the definition, so a run is worked on as it was begun.
- The folder's own path is pinned, too: that is where the documents appear.
"""

import os
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from ripstop.definitions.options import OptionReader
from ripstop.definitions.problems import WrongDefinition, did_you_mean, in_order
from ripstop.definitions.yaml_tree import Value, YamlEntry, parse, read_text
from ripstop.styles.handoff.policy import Policy

from .roles import FOLDER, read_roles, role_files
from .schema import HANDOFF, LANGUAGES, MAX_ATTEMPTS, MAX_INTERACTIONS

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
    text = read_text(file, str(file))
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
