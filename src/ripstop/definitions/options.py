"""Reading what definitions set: numbers within bounds, words from a list, guards and limits."""

from typing import Any

from ripstop.kernel.effects import Guards, Limits
from ripstop.kernel.errors import UsageError
from ripstop.kernel.limits import LIMITS
from ripstop.text.courtesy import check_phrases

from .fields import Reader
from .problems import did_you_mean
from .yaml_tree import Value, YamlEntry

# JSON Schemas of what the definitions of several styles set: guards and limits.


MOST_PATIENCE = 1000
MOST_TURN_CALLS = 10_000
MOST_LIMIT = 10**12
COURTESY = ("terminate", "ignore")
THEN = ("end", "ask")
TEXT = {"type": "string", "minLength": 1, "pattern": r"\S"}

_AMOUNT = {"type": ["integer", "null"], "minimum": 1, "maximum": MOST_LIMIT}
_FRACTION = {"type": ["number", "null"], "exclusiveMinimum": 0, "maximum": MOST_LIMIT}

LIMITS_SCHEMA: dict[str, Any] = {
    "type": ["object", "null"],
    "description": "What a workflow may spend at most, of what the run has left.",
    "properties": {
        limit.name: {**(_AMOUNT if limit.is_whole else _FRACTION), "description": limit.about} for limit in LIMITS
    },
    "additionalProperties": False,
}

GUARDS: dict[str, Any] = {
    "type": ["object", "null"],
    "description": "How the run is watched for loops and idle talk.",
    "properties": {
        "patience": {
            "type": ["integer", "null"],
            "minimum": 0,
            "maximum": MOST_PATIENCE,
            "default": 5,
            "description": "How often the same may be done with nothing changed, by one agent or by several in a "
            "circle; 0: for ever.",
        },
        "courtesy": {
            "enum": [*COURTESY, None],
            "default": "terminate",
            "description": "Whether two turns in a row of nothing but courtesies end the run.",
        },
        "phrases": {
            "type": ["array", "null"],
            "items": TEXT,
            "description": "Courtesies besides the built-in ones.",
        },
        "end_marker": {
            "type": ["string", "null"],
            "default": "",
            "description": "Words with which an agent ends the run, such as [WORKFLOW_END].",
        },
        "turn_calls": {
            "type": ["integer", "null"],
            "minimum": 0,
            "maximum": MOST_TURN_CALLS,
            "default": 40,
            "description": "Calls of the model in one turn of an agent; 0: as many as it takes.",
        },
        "then": {
            "enum": [*THEN, None],
            "default": "end",
            "description": "Whether a guard's verdict ends the run, or asks a person whether it may continue.",
        },
    },
    "additionalProperties": False,
}


def fields_of(schema: dict[str, Any]) -> tuple[str, ...]:
    """The fields that a mapping of this schema may have."""
    return tuple(schema["properties"])


class OptionReader(Reader):
    def whole(self, top: dict[str, YamlEntry], key: str, default: int, least: int, most: int) -> int:
        number = self.field(top, key, int, default)
        if not least <= number <= most:
            self.problem(top[key].value.place, f"{key!r} must be from {least} to {most}, but this is {number}")
        return number

    def one_of(self, entries: dict[str, YamlEntry], key: str, known: tuple[str, ...], default: str) -> str:
        value = self.field(entries, key, str, default)
        if value not in known:
            self.problem(entries[key].value.place, f"there is no {key} {value!r}", did_you_mean(value, known))
        return value

    def guards(self, entry: YamlEntry | None) -> dict[str, Any]:
        """Only the fields that are written: the others have their own defaults."""
        if entry is None or entry.value.value is None:
            return {}
        fields = self.mapping(entry.value, "'guards'", fields_of(GUARDS))
        read: dict[str, Any] = {
            "patience": self.whole(fields, "patience", 5, 0, MOST_PATIENCE),
            "courtesy": self.one_of(fields, "courtesy", COURTESY, "terminate"),
            "phrases": [item.value for item in self.items(fields.get("phrases"), "'phrases'") if self.phrase(item)],
            "end_marker": self.marker(fields),
            "turn_calls": self.whole(fields, "turn_calls", 40, 0, MOST_TURN_CALLS),
            "then": self.one_of(fields, "then", THEN, "end"),
        }
        return {key: value for key, value in read.items() if key in fields and fields[key].value.value is not None}

    def marker(self, fields: dict[str, YamlEntry]) -> str:
        marker = self.field(fields, "end_marker", str, "")
        if marker and not marker.strip():
            self.problem(fields["end_marker"].value.place, "'end_marker' is blank", "leave it out for none")
        return marker

    def phrase(self, item: Value) -> bool:
        if not isinstance(item.value, str):
            self.problem(item.place, f"a phrase must be text, but this is {item.kind}")
            return False
        try:
            check_phrases(Guards(phrases=(item.value,)))
        except UsageError as error:
            self.problem(item.place, str(error).rstrip("."))
            return False
        return True

    def limits(self, entry: YamlEntry | None) -> Limits | None:
        if entry is None or entry.value.value is None:
            return None
        fields = self.mapping(entry.value, "'limits'", fields_of(LIMITS_SCHEMA))
        by_name = {limit.name: limit for limit in LIMITS}
        read: dict[str, Any] = {}
        for name, field in fields.items():
            if name not in by_name or field.value.value is None:
                continue
            wanted: type[int] | type[float] = int if by_name[name].is_whole else float
            amount = self.field(fields, name, wanted, wanted(1))
            if not 0 < amount <= MOST_LIMIT:
                self.problem(field.value.place, f"{name!r} must be above 0 and at most {MOST_LIMIT}")
            read[name] = amount
        return Limits(**read)


class JsonOptionReader(OptionReader):
    """The same for JSON, in JSON's words."""

    mapping_word = "an object"
    list_hint = "write [ … ]"
    field_hint = 'add "{key}": …'
