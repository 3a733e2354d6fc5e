"""Sections `<name>_rules`: short keys for gates, whose meaning is in `rule_keys`.

A key means a gate or several. Where a gate says `$value`, the value of the key is put in; where none does, the key is a
switch. `false` and `null` switch a key off.
"""

from typing import TYPE_CHECKING

from ripstop.definitions.json_tree import JsonValue
from ripstop.definitions.problems import did_you_mean
from ripstop.definitions.yaml_tree import Value, YamlEntry
from ripstop.styles.blackboard.definition import Gate

from .checks import CheckReader, Placed
from .policy_files import RULES

if TYPE_CHECKING:
    from .policy_reader import PolicyReader

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
