"""Taking a tree apart: fields with types, unknown keys, and every problem collected, none raised."""

from collections.abc import Collection
from typing import Any, TypeVar

from .problems import WARNING, Position, Problem, did_you_mean
from .yaml_tree import Value, YamlEntry

_YES_NO = dict.fromkeys(("yes", "on", "y", "true"), "true") | dict.fromkeys(("no", "off", "n", "false"), "false")

T = TypeVar("T", str, int, float, bool)

MOST_SHOWN = 60
_WANTED = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}


class Reader:
    """Reads one file's tree and collects what is wrong with it, and what its author should know."""

    mapping_word = "a mapping"
    """What a mapping is called in files of this kind …"""
    list_hint = "begin every item with `- `"
    """… how a list is written …"""
    field_hint = "add `{key}: …`"
    """… and how a field is."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        self.warnings: list[Problem] = []

    def problem(self, place: Position, text: str, hint: str = "", source: str = "") -> None:
        self.problems.append(Problem(place, text, hint, source=source))

    def warn(self, place: Position, text: str, hint: str = "") -> None:
        self.warnings.append(Problem(place, text, hint, WARNING))

    def mapping(self, value: Value, what: str, known: Collection[str]) -> dict[str, YamlEntry]:
        """The entries of a mapping; unknown keys are noted."""
        if not isinstance(value.value, dict):
            hint = f"with the fields {', '.join(known)}"
            self.problem(value.place, f"{what} must be {self.mapping_word}, but this is {value.kind}", hint)
            return {}
        entries: dict[str, YamlEntry] = value.value
        for key, entry in entries.items():
            if key not in known:
                self.unknown_key(entry.key, what, key, known)
        return entries

    def unknown_key(self, place: Position, what: str, key: str, known: Collection[str]) -> None:
        self.problem(place, f"{what} has no field {key!r}", did_you_mean(key, known))

    def items(self, entry: YamlEntry | None, what: str) -> list[Value]:
        """The items of a list; an absent or empty one has none."""
        if entry is None or entry.value.value is None:
            return []
        if not isinstance(entry.value.value, list):
            self.problem(entry.value.place, f"{what} must be a list, but this is {entry.value.kind}", self.list_hint)
            return []
        found: list[Value] = entry.value.value
        return found

    def field(self, entries: dict[str, YamlEntry], key: str, wanted: type[T], default: T) -> T:
        """An optional field of a type. A boolean is never taken for a number."""
        entry = entries.get(key)
        if entry is None or entry.value.value is None:
            return default
        value: Any = entry.value.value
        if wanted is float and type(value) is int:
            value = float(value)
        if type(value) is not wanted:
            text = f"{key!r} must be {_WANTED[wanted]}, but this is {entry.value.kind}{_shown(value)}"
            self.problem(entry.value.place, text, _instead(value, wanted))
            return default
        return value

    def required(self, entries: dict[str, YamlEntry], key: str, owner: Value, what: str) -> str:
        """A text that must be there and not be empty."""
        entry = entries.get(key)
        if entry is None:
            self.problem(owner.place, f"{what} has no {key!r}", self.field_hint.format(key=key))
            return ""
        text = self.field(entries, key, str, "")
        if not text.strip() and (entry.value.value is None or entry.value.value == text):
            self.problem(entry.value.place, f"{key!r} is empty", f"{what} needs one")
        return text


def _shown(value: Any) -> str:
    """A value as it is quoted in a message; only short and simple ones are."""
    if isinstance(value, bool):
        return f" ({str(value).lower()})"
    return f" ({value!r})" if isinstance(value, str | int | float) and len(str(value)) <= MOST_SHOWN else ""


def _instead(value: Any, wanted: type) -> str:
    """How the same thing is written right, if that can be guessed."""
    if wanted is str and isinstance(value, bool | int | float):
        return f'put it in quotes: "{str(value).lower()}"'
    if wanted is bool and isinstance(value, str) and value.lower() in _YES_NO:
        return f"write {_YES_NO[value.lower()]}"
    if wanted is int and isinstance(value, str) and value.strip().isdecimal():
        return "write it without quotes"
    return ""
