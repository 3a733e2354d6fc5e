"""Plain data as a tree, as if it had been read from a file: for definitions that come from a journal."""

from typing import Any

from msgspec import Struct
from msgspec.structs import fields

from .problems import Position
from .yaml_positions import Span
from .yaml_tree import Value, YamlEntry


def tree_of(thing: Any, place: Position) -> Value:
    """Every value is at the same place."""
    if isinstance(thing, dict):
        return Value({str(key): YamlEntry(place, tree_of(one, place)) for key, one in thing.items()}, place)
    if isinstance(thing, (list, tuple)):
        return Value([tree_of(one, place) for one in thing], place)
    text = str(thing)
    return Value(thing, place, Span(text, 0, len(text), ""))


def set_fields(thing: Struct, always: tuple[str, ...] = ()) -> dict[str, Any]:
    """What differs from its default, and what is `always` written."""
    values = {field.name: (getattr(thing, field.name), field.default) for field in fields(thing)}
    return {name: value for name, (value, default) in values.items() if name in always or value != default}
