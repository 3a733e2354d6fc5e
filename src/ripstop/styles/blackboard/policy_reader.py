"""Reading a policy: how reports are read, what is checked, and how MAIN works.

Keys that are not known are warnings, because real policies have keys of their own. Whatever is known has to be right,
and what `report_rules` needs has to be there: nothing has a hidden default.
"""

import os
import re
from collections.abc import Collection, Mapping
from functools import cache
from importlib.resources import files as resources
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

from ripstop.definitions.json_tree import JsonValue, parse_json, plain
from ripstop.definitions.loading import inside, read_inside
from ripstop.definitions.options import JsonOptionReader
from ripstop.definitions.problems import Position, Problem, WrongDefinition, did_you_mean
from ripstop.definitions.yaml_tree import Value, YamlEntry, read_text

from ..key_lines import one_colon
from .definition import MEMORY, PLAN, PROMPTS, Evidence, EvidenceKind, Gate, ReportRules, VerificationPolicy
from .schema import EVIDENCE, GATES, MAIN_JSON, NUMBERS, ON_FAILURE, PICKS, POLICY_SCHEMA, REQUIRED_RULES, Fields

# Reading the checks of a policy: gates, and the evidence that a verdict has to show.


T = TypeVar("T")
MAX_CHECKS = 500
MAX_EXIT_CODE = 255
_SHA256 = re.compile(r"[0-9a-fA-F]{64}")


class Placed(Struct, Generic[T], frozen=True):
    """A part of a policy, and where it is."""

    it: T
    place: Position


class CheckReader:
    def __init__(self, reader: "PolicyReader") -> None:
        self._reader = reader

    def gates(self, entry: YamlEntry | None) -> list[Placed[Gate]]:
        return [
            Placed(gate, item.place) for item in self._items(entry, "gates") if (gate := self.gate(item)) is not None
        ]

    def gate(self, value: Value, name: str = "") -> Gate | None:
        """One gate; none if it is wrong. `name`: what it is called if it does not say so."""
        fields = self._fields(value, "gate", GATES)
        if not fields:
            return None
        kind: Any = fields["gate"].value.value
        return Gate(
            gate=kind,
            name=self._reader.line_start(fields, "name", name or kind),
            agents=self._texts(fields, "agents"),
            verdicts=self._texts(fields, "verdicts"),
            prefix=self._reader.line_start(fields, "prefix"),
            allowed=self._texts(fields, "allowed"),
            number=self._reader.field(fields, "number", float, 0.0),
            required=self._reader.field(fields, "required", bool, False),
            first=self._reader.line_start(fields, "first"),
            then=self._reader.line_start(fields, "then"),
            marked=self._reader.field(fields, "marked", str, ""),
            if_reported=self._reader.field(fields, "if_reported", bool, False),
            on_failure=self._on_failure(fields, "stop"),
            also=self._texts(fields, "also"),
            per_task=self._reader.field(fields, "per_task", bool, kind == "before"),
            after=self._texts(fields, "after"),
            unless=self._texts(fields, "unless"),
            statuses=self._texts(fields, "statuses"),
        )

    def evidence(self, entry: YamlEntry | None) -> list[Placed[Evidence]]:
        found = []
        for item in self._items(entry, "evidence"):
            fields = self._fields(item, "evidence", EVIDENCE)
            if fields:
                found.append(Placed(self._evidence(fields, item), item.place))
        return found

    def _evidence(self, fields: dict[str, YamlEntry], item: Value) -> Evidence:
        kind, reader = EvidenceKind(fields["evidence"].value.value), self._reader
        read = Evidence(
            evidence=kind,
            name=reader.line_start(fields, "name", kind.value),
            agents=self._texts(fields, "agents"),
            verdicts=self._texts(fields, "verdicts"),
            path=reader.line_start(fields, "path"),
            line=reader.line_start(fields, "line"),
            sha256=reader.field(fields, "sha256", str, "").lower(),
            prefix=reader.line_start(fields, "prefix"),
            at_least=self._number(fields, "at_least"),
            at_most=self._number(fields, "at_most"),
            command=self._texts(fields, "command"),
            exit_code=reader.field(fields, "exit_code", int, 0),
            on_failure=self._on_failure(fields, "tell"),
        )
        if not 0 <= read.exit_code <= MAX_EXIT_CODE:
            reader.problem(fields["exit_code"].value.place, f"'exit_code' must be from 0 to {MAX_EXIT_CODE}")
        if kind is not EvidenceKind.COMMAND and not (read.path or read.line):
            reader.problem(item.place, f"evidence of a {kind} needs a 'path', or a 'line' that names the file")
        if read.path and not inside(read.path):
            place = fields["path"].value.place
            reader.problem(place, f"'path' must be a file in the workspace, but this is {read.path!r}")
        if read.sha256 and not _SHA256.fullmatch(read.sha256):
            reader.problem(fields["sha256"].value.place, "'sha256' must be 64 hexadecimal digits")
        if read.at_least is not None and read.at_most is not None and read.at_least > read.at_most:
            reader.problem(fields["at_least"].value.place, "'at_least' is more than 'at_most'")
        return read

    def _items(self, entry: YamlEntry | None, key: str) -> list[Value]:
        items = self._reader.items(entry, repr(key))
        if len(items) > MAX_CHECKS:
            self._reader.problem(items[MAX_CHECKS].place, f"{key!r} has {len(items)} entries; at most {MAX_CHECKS}")
        return items[:MAX_CHECKS]

    def _fields(self, value: Value, key: str, kinds: Mapping[str, Fields]) -> dict[str, YamlEntry]:
        """The fields of a check that is of a known kind and has all that it needs; else nothing."""
        reader, before = self._reader, len(self._reader.problems)
        if not isinstance(value.value, dict):
            reader.problem(value.place, f"a {key} must be an object, but this is {value.kind}")
            return {}
        kind = value.value.get(key)
        if kind is None:
            reader.problem(value.place, f"there is no {key!r} that says what is checked", f"one of {', '.join(kinds)}")
            return {}
        if not isinstance(kind.value.value, str) or kind.value.value not in kinds:
            named = str(kind.value.value)
            reader.problem(kind.value.place, f"there is no {key} {named[:60]!r}", did_you_mean(named, kinds))
            return {}
        needed, possible = kinds[kind.value.value]
        common = (key, "name", "on_failure")
        what = f"{'an' if key[0] == 'e' else 'a'} {key} {kind.value.value!r}"
        fields = reader.mapping(value, what, tuple(dict.fromkeys((*common, *needed, *possible))))
        for name in needed:
            if name not in fields or fields[name].value.value in (None, [], ""):
                reader.problem(value.place, f"{what} needs {name!r}")
        return fields if len(reader.problems) == before else {}

    def _texts(self, fields: dict[str, YamlEntry], key: str) -> tuple[str, ...]:
        return tuple(one.it for one in self._reader.texts(fields, key))

    def _number(self, fields: dict[str, YamlEntry], key: str) -> float | None:
        if key not in fields or fields[key].value.value is None:
            return None
        return self._reader.field(fields, key, float, 0.0)

    def _on_failure(self, fields: dict[str, YamlEntry], default: str) -> Any:
        return self._reader.one_of(fields, "on_failure", ON_FAILURE, default)


# Where the parts of a board are in its folder. History and reports have their places in the style.


POLICY_FILE = "verification_policy.json"
POLICY = f"{MEMORY}/{POLICY_FILE}"
PROMPT = "subagent_prompt_{}.md"
"""An agent's file in `PROMPTS`."""


def prompt_of(agent: str) -> str:
    """The prompt file that an agent of this name would have."""
    return f"{PROMPTS}/{PROMPT.format(agent.lower())}"


def in_folder(path: Path, folder: Path) -> str:
    """A file as it is called from a folder; empty if it is elsewhere. Links are not followed."""
    found = os.path.relpath(path, folder)
    return "" if found.split(os.sep)[0] == os.pardir else Path(found).as_posix()


def leads_out(path: Path, folder: Path) -> bool:
    """Whether a file is outside of a folder once all links are followed."""
    return not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


# A policy and the policies that it extends, as one tree.
#
# - `extends` names a policy that ripstop ships, or a file relative to the policy's own folder. That file has to be in
#   the board's folder: MAIN sees it, and a board from elsewhere could name any file of the user.
# - An overlay wins. Sections are merged key by key; everything else, lists too, is replaced.
# - Settings can be written at the top or in a section `settings`, and `verdict_pick` at the top or in `report_rules`.
#   Both forms are one before policies are merged, so an overlay need not know which form the other file has.


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
    chain = _Chain(_folder_of(path))
    text = read_inside(path.parent, path.name, MAX_BYTES)
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
            text = read_text(path, str(path), MAX_BYTES, one_name=True) if path else _shipped_text(name)
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


# Sections `<name>_rules`: short keys for gates, whose meaning is in `rule_keys`.
#
# A key means a gate or several. Where a gate says `$value`, the value of the key is put in; where none does, the key is
# a switch. `false` and `null` switch a key off.


RULES_SUFFIX = "_rules"
NOT_RULES = (RULES, "parsing_rules")
"""Sections with such a name that are something else."""
VALUE = "$value"


def gates_of_rules(
    reader: "PolicyReader", name: str, section: Value, known: dict[str, YamlEntry], checks: CheckReader
) -> list[Placed[Gate]]:
    if section.value is None:
        return []
    if not isinstance(section.value, dict):
        reader.problem(section.place, f"{name!r} must be an object, but this is {section.kind}")
        return []
    found = []
    for key, entry in section.value.items():
        if key not in known:
            reader.warn(
                entry.key, f"no gate is known for {key!r} in {name!r}, so it is ignored", did_you_mean(key, known)
            )
        elif entry.value.value is not None and entry.value.value is not False:
            found += _gates_of_key(reader, key, entry, known[key].value, checks)
    return found


def _gates_of_key(
    reader: "PolicyReader", key: str, entry: YamlEntry, meaning: Value, checks: CheckReader
) -> list[Placed[Gate]]:
    if entry.value.value is not True and not _takes_value(meaning):
        reader.problem(entry.value.place, f"{key!r} must be true or false, but this is {entry.value.kind}")
        return []
    gates = meaning.value if isinstance(meaning.value, list) else [meaning]
    read = (checks.gate(_with_value(gate, entry.value), key) for gate in gates)
    return [Placed(gate, entry.key) for gate in read if gate is not None]


def _takes_value(meaning: Value) -> bool:
    if isinstance(meaning.value, dict):
        return any(_takes_value(entry.value) for entry in meaning.value.values())
    if isinstance(meaning.value, list):
        return any(_takes_value(item) for item in meaning.value)
    return bool(meaning.value == VALUE)


def _with_value(meaning: Value, value: Value) -> Value:
    if isinstance(meaning.value, dict):
        entries = {key: YamlEntry(one.key, _with_value(one.value, value)) for key, one in meaning.value.items()}
        return JsonValue(entries, meaning.place)
    if isinstance(meaning.value, list):
        return JsonValue([_with_value(item, value) for item in meaning.value], meaning.place)
    return value if meaning.value == VALUE else meaning


NO_RULES = ReportRules((), False, "", (), "", "")


class PolicyRead(Struct, frozen=True):
    """A policy, and where its parts are."""

    policy: VerificationPolicy
    text: str
    """For MAIN: as the file says it, or as it is with all that it extends."""
    files: tuple[Path, ...]
    plan: str
    plan_place: Position
    guards: dict[str, Any]
    apply_to: tuple[Placed[str], ...]
    gates: tuple[Placed[Gate], ...]
    evidence: tuple[Placed[Evidence], ...]
    warnings: tuple[Problem, ...]


def read_policy(path: Path) -> PolicyRead:
    """The policy in a file. Raises `WrongDefinition`."""
    found = read_tree(path)
    read, problems = policy_of(found)
    if problems:
        raise WrongDefinition([*problems, *read.warnings])
    return read


def policy_of(found: PolicyTree) -> tuple[PolicyRead, list[Problem]]:
    reader = PolicyReader(list(found.problems))
    return reader.policy(found), reader.problems


class PolicyReader(JsonOptionReader):
    def unknown_key(self, place: Position, what: str, key: str, known: Collection[str]) -> None:
        self.warn(place, f"{what} has no field {key!r}, so it is ignored", did_you_mean(key, known))

    def policy(self, found: PolicyTree) -> PolicyRead:
        top: dict[str, YamlEntry] = found.tree.value
        sections = [key for key in top if key.endswith(RULES_SUFFIX) and key not in NOT_RULES]
        known = [*(name for name in POLICY_SCHEMA["properties"] if name != "settings"), *sections]
        for key, entry in top.items():
            if key in NOT_RULES and key != RULES:
                self.warn(entry.key, f"{key!r} is ignored", f"reports are read by {RULES!r}, and nothing has a default")
            elif key not in known:
                self.unknown_key(entry.key, "the policy", key, known)
        if "version" in top and not isinstance(top["version"].value.value, int | str | None):
            self.problem(top["version"].value.place, "'version' must be a number or a text")
        self.field(top, "description", str, "")
        checks = CheckReader(self)
        gates = [*checks.gates(top.get("gates")), *self._rule_gates(top, sections, checks)]
        evidence = checks.evidence(top.get("evidence"))
        rules, apply_to = self._report_rules(top.get(RULES), found.tree)
        settings: dict[str, Any] = {name: self.whole(top, name, *bounds[:3]) for name, bounds in NUMBERS.items()}
        settings["main_json"] = self.one_of(top, "main_json", MAIN_JSON, "strict")
        settings["finish_override"] = self.field(top, "finish_override", bool, True)
        done = tuple(one.it for one in self.texts(top, "done_statuses"))
        settings |= {"done_statuses": done} if done else {}
        plan, plan_place = self._plan(top, found.tree)
        return PolicyRead(
            policy=VerificationPolicy(
                rules,
                tuple(one.it for one in gates),
                tuple(one.it for one in evidence),
                **settings,
            ),
            text=_text(found),
            files=found.files,
            plan=plan,
            plan_place=plan_place,
            guards=self.guards(top.get("guards")),
            apply_to=apply_to,
            gates=tuple(gates),
            evidence=tuple(evidence),
            warnings=tuple(self.warnings),
        )

    def _rule_gates(self, top: dict[str, YamlEntry], sections: list[str], checks: CheckReader) -> list[Placed[Gate]]:
        own = top.get(RULE_KEYS)
        known = shipped_rule_keys()
        if own is not None and own.value.value is not None:
            if isinstance(own.value.value, dict):
                known = {**known, **own.value.value}
            else:
                self.problem(own.value.place, f"'rule_keys' must be an object, but this is {own.value.kind}")
        return [gate for name in sections for gate in gates_of_rules(self, name, top[name].value, known, checks)]

    # How reports are read

    def _report_rules(self, entry: YamlEntry | None, owner: Value) -> tuple[ReportRules, tuple[Placed[str], ...]]:
        if entry is None or entry.value.value is None:
            missing = ", ".join(REQUIRED_RULES)
            self.problem(owner.place, f"the policy has no {RULES!r}", f"it needs {missing}")
            return NO_RULES, ()
        before = len(self.problems)
        fields = self.mapping(entry.value, f"{RULES!r}", tuple(POLICY_SCHEMA["properties"][RULES]["properties"]))
        if len(self.problems) > before:
            return NO_RULES, ()
        for name in REQUIRED_RULES:
            if name not in fields or fields[name].value.value is None:
                hint = f'add "{name}": …, or "extends" with a policy that has it'
                self.problem(entry.value.place, f"{RULES!r} has no {name!r}", hint)
        pick: Any = self.one_of(fields, "verdict_pick", PICKS, "one")
        names = self.texts(fields, "apply_to")
        rules = ReportRules(
            apply_to=tuple(one.it for one in names),
            require_verdict=self.field(fields, "require_verdict", bool, False),
            verdict_prefix=self.line_start(fields, "verdict_prefix"),
            verdict_allowed=tuple(one.it for one in self.texts(fields, "verdict_allowed", at_least_one=True)),
            blocker_prefix=self.line_start(fields, "blocker_prefix"),
            blocker_clear_value=self.line_start(fields, "blocker_clear_value", may_be_spaced=False),
            verdict_pick=pick,
            iteration_prefix=self.line_start(fields, "iteration_prefix", NO_RULES.iteration_prefix),
        )
        self._tell_apart(fields, rules)
        return rules, tuple(names)

    def _tell_apart(self, fields: dict[str, YamlEntry], rules: ReportRules) -> None:
        seen: dict[str, str] = {}
        for name in ("iteration_prefix", "verdict_prefix", "blocker_prefix"):
            prefix = one_colon(getattr(rules, name).strip()).casefold()
            if prefix and prefix in seen:
                place = fields[name].value.place
                self.problem(place, f"{name!r} and {seen[prefix]!r} are the same", "no line could be told apart")
            seen[prefix] = name

    # Kinds of fields

    def texts(self, fields: dict[str, YamlEntry], key: str, at_least_one: bool = False) -> list[Placed[str]]:
        """A list of texts, each of which is in one line and not blank."""
        entry, before = fields.get(key), len(self.problems)
        found = [Placed(item.value, item.place) for item in self.items(entry, repr(key)) if self._one_line(item, key)]
        if at_least_one and entry is not None and entry.value.value == [] and len(self.problems) == before:
            self.problem(entry.value.place, f"{key!r} is empty", "name at least one")
        return found

    def line_start(self, fields: dict[str, YamlEntry], key: str, default: str = "", may_be_spaced: bool = True) -> str:
        """A text in one line, or the default if it is not there."""
        entry = fields.get(key)
        if entry is None or entry.value.value is None:
            return default
        return str(entry.value.value) if self._one_line(entry.value, key, may_be_spaced) else default

    def _one_line(self, value: Value, key: str, may_be_spaced: bool = False) -> bool:
        text = value.value
        if not isinstance(text, str):
            self.problem(value.place, f"{key!r} must hold text, but this is {value.kind}")
        elif not text.strip():
            self.problem(value.place, f"{key!r} holds a blank text")
        elif len(text.splitlines()) > 1 or "\n" in text:
            self.problem(value.place, f"{key!r} holds a text of several lines, and no line is like it")
        elif text != text.strip() and not may_be_spaced:
            self.problem(value.place, f"{key!r} holds {text!r}", "remove the blanks around it")
        else:
            return True
        return False

    def _plan(self, top: dict[str, YamlEntry], owner: Value) -> tuple[str, Position]:
        plan = self.field(top, "plan", str, PLAN)
        place = top["plan"].value.place if "plan" in top else owner.place
        if not inside(plan):
            self.problem(place, f"'plan' must be a path in the board's folder, but this is {plan!r}")
        return plan, place


def _text(found: PolicyTree) -> str:
    if not found.extends:
        return found.text
    whole = {key: value for key, value in plain(found.tree).items() if key != RULE_KEYS}
    return msgspec.json.format(msgspec.json.encode(whole), indent=2).decode()
