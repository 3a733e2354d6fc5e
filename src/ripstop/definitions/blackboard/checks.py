"""Reading the checks of a policy: gates, and the evidence that a verdict has to show."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from msgspec import Struct

from ripstop.definitions.folders import inside
from ripstop.definitions.problems import Position, did_you_mean
from ripstop.definitions.yaml_tree import Value, YamlEntry
from ripstop.styles.blackboard.definition import Evidence, Gate

from .schema import EVIDENCE, GATES, ON_FAILURE

if TYPE_CHECKING:
    from .policy_reader import PolicyReader

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
        )

    def evidence(self, entry: YamlEntry | None) -> list[Placed[Evidence]]:
        found = []
        for item in self._items(entry, "evidence"):
            fields = self._fields(item, "evidence", EVIDENCE)
            if fields:
                found.append(Placed(self._evidence(fields, item), item.place))
        return found

    def _evidence(self, fields: dict[str, YamlEntry], item: Value) -> Evidence:
        kind: Any = fields["evidence"].value.value
        reader = self._reader
        read = Evidence(
            evidence=kind,
            name=reader.line_start(fields, "name", kind),
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
        if kind != "command" and not (read.path or read.line):
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

    def _fields(
        self, value: Value, key: str, kinds: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]
    ) -> dict[str, YamlEntry]:
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
        common = (key, "name", "agents", "verdicts", "on_failure")
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
