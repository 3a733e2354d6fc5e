"""Reading a folder of hand-off documents: who works there, and by which rules.

- `handoff.yaml` can be left out, because all of it has defaults.
- Agents are the files `roles/NAME.md`. They are pinned with the definition, so a run is worked on as it was begun.
- The folder's own path is pinned, too: that is where the documents appear.
"""

import os
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ripstop.definitions.options import OptionReader
from ripstop.definitions.problems import Position, Problem, WrongDefinition, did_you_mean, in_order
from ripstop.definitions.yaml_tree import Value, YamlEntry, parse, read_text
from ripstop.styles.handoff.policy import Policy

from .roles import read_roles
from .schema import HANDOFF, LANGUAGES, MAX_ATTEMPTS, MAX_INTERACTIONS

FILE = "handoff.yaml"


def read_policy(folder: Path) -> Policy:
    """The definition that a folder is. Raises `WrongDefinition`."""
    file = folder / FILE
    problems: list[Problem] = []
    policy, models, first = Policy(), dict[str, str](), ""
    if os.path.lexists(file):
        text = read_text(file, str(file))
        if text.strip():
            tree, problems = parse(text, str(file))
            policy, models, first = _FileReader(problems).policy(tree)
    roles = read_roles(folder, {} if problems else models, FILE)
    if first and first not in roles:
        place = Position(str(file))
        problems.append(Problem(place, f"'first' names {first!r}, which is not a role", did_you_mean(first, roles)))
    if problems:
        raise WrongDefinition(in_order(problems))
    ordered = sorted(roles.values(), key=lambda role: role.name != first)  # the others stay in order
    return replace(policy, roles=tuple(ordered), folder=str(folder.resolve()))


class _FileReader(OptionReader):
    """Reads `handoff.yaml`."""

    def policy(self, tree: Value) -> tuple[Policy, dict[str, str], str]:
        top = self.mapping(tree, "a folder of documents", tuple(HANDOFF["properties"]))
        language: Any = self.one_of(top, "language", ("", *LANGUAGES), "")
        policy = Policy(
            max_interactions=self.whole(top, "max_interactions", 10, 1, MAX_INTERACTIONS),
            attempts=self.whole(top, "attempts", 3, 1, MAX_ATTEMPTS),
            language=language if language in LANGUAGES else "",
            guards=self.guards(top.get("guards")),
        )
        return policy, self._models(top.get("models")), self.field(top, "first", str, "")

    def _models(self, entry: YamlEntry | None) -> dict[str, str]:
        if entry is None or entry.value.value is None:
            return {}
        names = entry.value.value if isinstance(entry.value.value, dict) else {}
        fields = self.mapping(entry.value, "'models'", tuple(names))
        return {name: self.required(fields, name, entry.value, "'models'") for name in fields}
