"""Taking a tree apart: fields with types, unknown keys, and every mistake noted, none thrown."""

from typing import Any, TypeVar

from .problems import Place, Problem, did_you_mean
from .tree import Entry, Value

T = TypeVar("T", str, int, float, bool)

_WANTED = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}


class Reader:
    """Reads one file's tree and collects what is wrong with it."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def problem(self, place: Place, text: str, hint: str = "") -> None:
        self.problems.append(Problem(place, text, hint))

    def mapping(self, value: Value, what: str, known: tuple[str, ...]) -> dict[str, Entry]:
        """The entries of a mapping; unknown keys are noted."""
        if not isinstance(value.value, dict):
            self.problem(value.place, f"{what} must be a mapping, but this is {value.kind}")
            return {}
        entries: dict[str, Entry] = value.value
        for key, entry in entries.items():
            if key not in known:
                self.problem(entry.key, f"{what} has no field {key!r}", did_you_mean(key, known))
        return entries

    def items(self, entry: Entry | None, what: str) -> list[Value]:
        """The items of a list; an absent or empty one has none."""
        if entry is None or entry.value.value is None:
            return []
        if not isinstance(entry.value.value, list):
            self.problem(entry.value.place, f"{what} must be a list, but this is {entry.value.kind}")
            return []
        found: list[Value] = entry.value.value
        return found

    def field(self, entries: dict[str, Entry], key: str, wanted: type[T], default: T) -> T:
        """An optional field of a type. A boolean is never taken for a number."""
        entry = entries.get(key)
        if entry is None or entry.value.value is None:
            return default
        value: Any = entry.value.value
        if wanted is float and type(value) is int:
            value = float(value)
        if type(value) is not wanted:
            self.problem(
                entry.value.place, f"{key!r} must be {_WANTED[wanted]}, but this is {entry.value.kind} ({value!r})"
            )
            return default
        return value

    def required(self, entries: dict[str, Entry], key: str, owner: Value, what: str) -> str:
        """A text that must be there and not be empty."""
        entry = entries.get(key)
        if entry is None:
            self.problem(owner.place, f"{what} has no {key!r}", f"add `{key}: …`")
            return ""
        text = self.field(entries, key, str, "")
        if not text.strip() and (entry.value.value is None or entry.value.value == text):
            self.problem(entry.value.place, f"{key!r} is empty")
        return text
