"""Reading a policy: how reports are read, what is checked, and how MAIN works.

Keys that are not known are warnings, because real policies have keys of their own. Whatever is known has to be right,
and what `report_rules` needs has to be there: nothing has a hidden default.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ripstop.definitions.folders import inside
from ripstop.definitions.json_tree import plain
from ripstop.definitions.options import JsonOptionReader
from ripstop.definitions.problems import Position, Problem, WrongDefinition, did_you_mean
from ripstop.definitions.yaml_tree import Value, YamlEntry
from ripstop.styles.blackboard.definition import PLAN, Evidence, Gate, ReportRules, VerificationPolicy
from ripstop.styles.blackboard.report import one_colon

from .checks import CheckReader, Placed
from .policy_files import RULE_KEYS, RULES, PolicyTree, read_tree, shipped_rule_keys
from .rules import NOT_RULES, RULES_SUFFIX, gates_of_rules
from .schema import MAIN_JSON, NUMBERS, PICKS, POLICY_SCHEMA, REQUIRED_RULES

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
            prefix = one_colon(getattr(rules, name).strip())
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
