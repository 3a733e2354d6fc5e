"""A policy and the policies that it extends, as one tree.

- `extends` names a policy that ripstop ships, or a file relative to the policy's own folder. That file has to be in the
  board's folder: MAIN sees it, and a board from elsewhere could name any file of the user.
- An overlay wins. Sections are merged key by key; everything else, lists too, is replaced.
- Settings can be written at the top or in a section `settings`, and `verdict_pick` at the top or in `report_rules`.
  Both forms are one before policies are merged, so an overlay need not know which form the other file has.
"""

import os
from functools import cache
from importlib.resources import files as resources
from pathlib import Path

from msgspec import Struct

from ripstop.definitions.folders import refuse_link
from ripstop.definitions.json_tree import JsonValue, parse_json
from ripstop.definitions.problems import Position, Problem, WrongDefinition, did_you_mean
from ripstop.definitions.yaml_tree import Value, YamlEntry, read_text

from .layout import MEMORY, leads_out

EXTENDS, SETTINGS, RULES, RULE_KEYS = "extends", "settings", "report_rules", "rule_keys"
MAX_BYTES = 1_000_000
MAX_CHAIN = 10
VOCABULARY = "base"
"""The shipped policy whose `rule_keys` every policy knows."""
SUFFIX = ".json"
Entries = dict[str, YamlEntry]


class PolicyTree(Struct, frozen=True):
    tree: Value
    text: str
    """As the first file says it."""
    files: tuple[Path, ...]
    """The first file, and those that it extends; none that is shipped."""
    extends: bool
    problems: list[Problem]


def read_tree(path: Path) -> PolicyTree:
    """A policy with all that it extends. Raises `WrongDefinition` for a file that cannot be read at all."""
    refuse_link(path)
    chain = _Chain(_folder_of(path))
    text = read_text(path, str(path), MAX_BYTES)
    entries, place = chain.read(text, str(path), path)
    return PolicyTree(JsonValue(entries, place), text, tuple(chain.files), chain.count > 1, chain.problems)


def _folder_of(policy: Path) -> Path:
    """The folder whose files a policy can extend: the board's, or that of a policy which is on no board."""
    folder = Path(os.path.realpath(policy.parent))
    return folder.parent if folder.name == MEMORY else folder


@cache
def shipped_rule_keys() -> Entries:
    """What keys of rules mean if a policy does not say it. Not to be changed: it is read once."""
    entries, _ = _Chain(None).read(_shipped_text(VOCABULARY), VOCABULARY, None)
    found: Entries = entries[RULE_KEYS].value.value
    return found


def shipped() -> list[str]:
    """The names of the policies that ripstop brings."""
    folder = resources(__package__) / "policies"
    return sorted(one.name.removesuffix(SUFFIX) for one in folder.iterdir() if one.name.endswith(SUFFIX))


def _shipped_text(name: str) -> str:
    return (resources(__package__) / "policies" / f"{name}{SUFFIX}").read_text(encoding="utf-8")


class _Chain:
    def __init__(self, folder: Path | None) -> None:
        """`folder`: where files that are extended have to be."""
        self._folder = folder
        self.problems: list[Problem] = []
        self.files: list[Path] = []
        self._seen: list[str] = []

    @property
    def count(self) -> int:
        return len(self._seen)

    def read(self, text: str, shown: str, path: Path | None) -> tuple[Entries, Position]:
        """The entries of a policy over those that it extends. `path`: none for one that is shipped."""
        self._seen.append(os.path.realpath(path) if path else shown)
        if path:
            self.files.append(path)
        tree, problems = parse_json(text, shown)
        self.problems += problems
        if not isinstance(tree.value, dict):
            raise WrongDefinition([Problem(tree.place, f"a policy must be an object, but this is {tree.kind}")])
        entries = self._one_form(tree.value)
        named = entries.pop(EXTENDS, None)
        if named is None or named.value.value is None:
            return entries, tree.place
        return merged(self._extended(named.value, path), entries), tree.place

    def _extended(self, named: Value, beside: Path | None) -> Entries:
        if not isinstance(named.value, str) or not named.value.strip():
            return self._wrong(named, f"'extends' must be the name of a policy or a file, but this is {named.kind}")
        name = named.value
        if not name.isprintable():
            return self._wrong(named, f"'extends' has a character that no file's name should have: {name[:80]!r}")
        is_file = "/" in name or name.endswith(SUFFIX)
        path = beside.parent / name if is_file and beside else None
        if not is_file and name not in shipped():
            hint = did_you_mean(name, shipped())
            return self._wrong(named, f"there is no shipped policy {name!r}", f"{hint} (a file ends with {SUFFIX})")
        if (path is None and is_file) or Path(name).is_absolute():
            return self._wrong(named, "a policy can only extend a file relative to its own folder")
        if path and self._folder and leads_out(path, self._folder):
            text = f"{name!r} is outside of the folder {str(self._folder)!r}, so it cannot be extended"
            return self._wrong(named, text, "copy it into that folder")
        if (os.path.realpath(path) if path else name) in self._seen:
            return self._wrong(named, f"the policy extends itself, by way of {name!r}")
        if self.count >= MAX_CHAIN:
            return self._wrong(named, f"more than {MAX_CHAIN} policies extend one another")
        try:
            text = read_text(path, str(path), MAX_BYTES) if path else _shipped_text(name)
        except WrongDefinition as error:
            return self._wrong(named, f"the policy {name!r} cannot be extended: {error.problems[0].text}")
        return self.read(text, str(path or name), path)[0]

    def _wrong(self, value: Value, text: str, hint: str = "") -> Entries:
        self.problems.append(Problem(value.place, text, hint))
        return {}

    def _one_form(self, entries: Entries) -> Entries:
        """Settings at the top, and the pick of verdicts among the rules for reports."""
        found = {key: entry for key, entry in entries.items() if key != SETTINGS}
        settings = entries.get(SETTINGS)
        if settings is not None and isinstance(settings.value.value, dict):
            for key, entry in settings.value.value.items():
                if key in found:
                    self.problems.append(Problem(entry.key, f"{key!r} is also outside of 'settings'", "keep one"))
                found[key] = entry
        elif settings is not None and settings.value.value is not None:
            text = f"'settings' must be an object, but this is {settings.value.kind}"
            self.problems.append(Problem(settings.value.place, text))
        pick = found.pop("verdict_pick", None)
        if pick is None:
            return found
        rules = found.get(RULES)
        inner = rules.value.value if rules else {}
        if isinstance(inner, dict):
            if "verdict_pick" in inner:
                self.problems.append(Problem(pick.key, "'verdict_pick' is also in 'report_rules'", "keep one"))
            place = rules.value.place if rules else pick.key
            found[RULES] = YamlEntry(
                rules.key if rules else pick.key, JsonValue({**inner, "verdict_pick": pick}, place)
            )
        return found


def merged(base: Entries, over: Entries) -> Entries:
    found = dict(base)
    for key, entry in over.items():
        below = base.get(key)
        if below is not None and isinstance(below.value.value, dict) and isinstance(entry.value.value, dict):
            both = {**below.value.value, **entry.value.value}
            entry = YamlEntry(entry.key, JsonValue(both, entry.value.place))  # noqa: PLW2901
        found[key] = entry
    return found
