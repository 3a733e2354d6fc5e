"""Plain data as a tree, as if it had been read from a file: for definitions that come from a journal."""

from typing import Any

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
