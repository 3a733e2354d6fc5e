"""Reading a bot's configuration, which can have many shapes: what is not understood is kept, and said.

- A key in camelCase or with hyphens means the one in snake_case.
- One value can be where a list belongs, and a number where a text does.
- A field that nothing here reads is left to the planner: its path is noted, and its author is warned.
"""

import os
import re
from collections.abc import Collection, Iterator
from math import isfinite
from pathlib import Path
from typing import Any

from ripstop.definitions.loading import inside, refuse_link
from ripstop.definitions.options import OptionReader
from ripstop.definitions.problems import Position, Problem, WrongDefinition, nearest
from ripstop.definitions.references import Reference
from ripstop.definitions.yaml_tree import Value, YamlEntry

from .configuration import snake
from .default_texts import DefaultTexts
from .definition import HANDOFF_ROLE
from .schema import (
    LONGEST_MESSAGE,
    LONGEST_NAME,
    MOST_FAILED_PLANS,
    MOST_FIXED,
    MOST_ITERATIONS,
    MOST_PASSAGES,
    ON_NEW_MESSAGE,
    OPTIONS,
)

Fields = dict[str, YamlEntry]

KEPT = "it is kept, and passed to the planner"


class BotFields(OptionReader):
    def __init__(self, problems: list[Problem], in_json: bool = False) -> None:
        super().__init__(problems)
        if in_json:
            self.mapping_word, self.list_hint, self.field_hint = "an object", "write [ … ]", 'add "{key}": …'
        self.unknown: list[str] = []
        self.references: list[Reference] = []
        self.places: dict[tuple[str, str], Position] = {}
        """Where a tool, a skill, a flow or a timer is written, by its kind and its name."""

    def leave(self, place: Position, path: str, text: str = "", hint: str = "") -> None:
        """Leave a field to the planner."""
        if path not in self.unknown:
            self.unknown.append(path)
            said = text or f"{path!r} is not a field that ripstop knows"
            self.warn(place, f"{said}; {KEPT}", hint)

    def fields(self, value: Value, path: str, known: Collection[str]) -> Fields:
        """The fields of a mapping that are known, by their names in snake_case. Null is an empty mapping."""
        if value.value is None:
            return {}
        if not isinstance(value.value, dict):
            self.leave(value.place, path, f"{path!r} must be {self.mapping_word}, but this is {value.kind}")
            return {}
        found: Fields = {key: entry for key, entry in value.value.items() if key in known}
        for key, entry in value.value.items():
            meant = snake(key)
            if key in known:
                continue
            if meant in known and meant not in found:
                found[meant] = entry
                continue
            near = nearest(key, known)
            self.leave(entry.key, inner(path, key), hint=f"did you mean {near!r}?" if near else "")
        return found

    def items_in(self, entry: YamlEntry | None, path: str, of_one: Collection[str]) -> Iterator[tuple[str, str, Value]]:
        """The path, the name if it is a key, and the value of every item in a list, or in a mapping by name.

        A mapping that has a field of `of_one` item is that one, and a text is an item.
        """
        if entry is None or entry.value.value is None:
            return
        value = entry.value
        if isinstance(value.value, list):
            for number, item in enumerate(value.value):
                if item.value is not None:
                    yield f"{path}[{number}]", "", item
        elif isinstance(value.value, dict):
            if any(snake(key) in of_one for key in value.value):
                yield path, "", value
            else:
                for key, one in value.value.items():
                    yield inner(path, key), key, one.value
        elif isinstance(value.value, str):
            if value.value.strip():
                yield path, "", value
        else:
            self.leave(value.place, path, f"{path!r} must be a list, but this is {value.kind}")

    def text(self, fields: Fields, *keys: str, path: str) -> str:
        """The text of the first of these fields that is set. A list becomes lines."""
        for key in keys:
            if key in fields and fields[key].value.value is not None:
                value = fields[key].value
                found = as_text(value)
                if found is None:
                    self.leave(value.place, inner(path, key), f"{key!r} must be text, but this is {value.kind}")
                elif found.strip():
                    return found.strip()
        return ""

    def names(self, entry: YamlEntry | None, path: str) -> Iterator[Value]:
        """The names in a list. One alone, several with commas between them, and mappings with a `name` will do."""
        for item_path, key, item in self.items_in(entry, path, ("name",)):
            if key:
                yield Value(key, item.place)
            elif isinstance(item.value, dict):
                named = item.value.get("name")
                if named is not None and isinstance(named.value.value, str):
                    yield named.value
                else:
                    self.leave(item.place, item_path, "a name belongs here, but this has none")
            elif isinstance(item.value, str):
                for part in split_names(item.value):
                    yield Value(part, item.place)
            else:
                self.leave(item.place, item_path, f"a name belongs here, but this is {item.kind}")

    def within(self, items: list[Any], most: int, what: str, place: Position) -> bool:
        if len(items) > most:
            self.problem(place, f"there are {len(items)} {what}; at most {most} can be")
        return len(items) <= most

    def name(self, place: Position, name: str, what: str, longest: int) -> str:
        """A name as a model writes it: one line, and not too long."""
        if len(name) > longest or not name.isprintable():
            hint = f"use one line of at most {longest} characters"
            self.problem(place, f"{name[:60]!r} cannot be the name of {what}", hint)
            return name[:longest]
        return name

    def number(self, fields: Fields, key: str, default: float, least: float, most: float) -> float:
        """A number, which can be in quotes, above `least`."""
        if key not in fields or fields[key].value.value in (None, ""):
            return default
        value = fields[key].value
        amount = as_number(value.value)
        if amount is None or not least < amount <= most:
            text = f"{key!r} must be a number above {least:g} and at most {most:g}, but this is {value.kind}"
            self.problem(value.place, f"{text} ({value.value:.60})" if isinstance(value.value, str) else text)
            return default
        return amount


def split_names(text: str) -> list[str]:
    """The names in a text with commas between them."""
    return [part.strip() for part in re.split(r"[,，、]", text) if part.strip()]


def inner(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def first_of(fields: Fields, *keys: str) -> YamlEntry | None:
    """The first of these fields that is set."""
    return next((fields[key] for key in keys if key in fields and fields[key].value.value not in (None, "")), None)


def as_text(value: Value) -> str | None:
    """What is written where a text belongs; none if it cannot be one."""
    match value.value:
        case None:
            return ""
        case str(text):
            return text
        case bool(flag):
            return str(flag).lower()
        case int() | float():
            return f"{value.value}"
        case list(items) if all(not isinstance(item.value, list | dict) for item in items):
            return "\n".join(as_text(item) or "" for item in items)
    return None


def as_number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if isfinite(number) else None


# How the engine treats a bot: what can be set at the top of the file or under `options`.


SECTION = "options"
FIELDS = tuple(OPTIONS)
LONGEST_PATH = 200


def read_options(reader: BotFields, top: Fields, folder: Path | None, texts: DefaultTexts) -> dict[str, Any]:
    """What is set, by the names of a bot's fields.

    Args:
        folder: Where the file is; none if it is not known.
        texts: What the bot says where nothing is set.
    """
    fields = {key: entry for key, entry in top.items() if key in FIELDS}
    if SECTION in top:
        for key, entry in reader.fields(top[SECTION].value, SECTION, FIELDS).items():
            if key in fields:
                reader.problem(entry.key, f"{key!r} is at the top of the file as well", "keep one of them")
            fields[key] = entry
    for key in ("max_iterations", "max_failed_plans", "passages"):
        if key in fields:
            fields[key] = _unquoted(fields[key])
    found: dict[str, Any] = {
        "on_new_message": reader.one_of(fields, "on_new_message", ON_NEW_MESSAGE, ON_NEW_MESSAGE[0]),
        "max_iterations": reader.whole(fields, "max_iterations", 10, 1, MOST_ITERATIONS),
        "passages": reader.whole(fields, "passages", 4, 1, MOST_PASSAGES),
        "max_failed_plans": reader.whole(fields, "max_failed_plans", 3, 1, MOST_FAILED_PLANS),
        "apology": _message(reader, fields, "apology", texts.apology),
        "checking": _message(reader, fields, "checking", texts.checking),
        "handover": _message(reader, fields, "handover", texts.handover),
        "greet_once": reader.field(fields, "greet_once", bool, False),
        "fixed_variables": _fixed_variables(reader, fields),
        "handoff_to": _role(reader, fields),
        "knowledge": _knowledge(reader, fields, folder),
        "model": _model(reader, fields),
    }
    if found["on_new_message"] not in ON_NEW_MESSAGE:
        del found["on_new_message"]
    return found


def _unquoted(entry: YamlEntry) -> YamlEntry:
    """A number in quotes as the number."""
    number = as_number(entry.value.value) if isinstance(entry.value.value, str) else None
    if number is None or number != int(number):
        return entry
    return YamlEntry(entry.key, Value(int(number), entry.value.place))


def _message(reader: BotFields, fields: Fields, key: str, default: str) -> str:
    text = reader.text(fields, key, path="")
    if len(text) > LONGEST_MESSAGE:
        place = fields[key].value.place
        reader.problem(place, f"{key!r} has {len(text)} characters; at most {LONGEST_MESSAGE} can be")
    return text or default


def _role(reader: BotFields, fields: Fields) -> str:
    role = reader.text(fields, "handoff_to", path="")
    return reader.name(fields["handoff_to"].value.place, role, "a role", LONGEST_NAME) if role else HANDOFF_ROLE


def _fixed_variables(reader: BotFields, fields: Fields) -> tuple[str, ...]:
    named = list(reader.names(fields.get("fixed_variables"), "fixed_variables"))
    if named and not reader.within(named, MOST_FIXED, "fixed variables", fields["fixed_variables"].key):
        named = named[:MOST_FIXED]
    return tuple(reader.name(one.place, one.value, "a variable", LONGEST_NAME) for one in named)


def _model(reader: BotFields, fields: Fields) -> str:
    model = reader.text(fields, "model", path="")
    if model:
        reader.references.append(Reference("model", model, fields["model"].value.place))
    return model


def _knowledge(reader: BotFields, fields: Fields, folder: Path | None) -> str:
    """The folder of the knowledge base. Only one beside the file: its texts become part of prompts."""
    named = reader.text(fields, "knowledge", path="")
    if not named or folder is None:
        return ""
    place = fields["knowledge"].value.place
    if len(named) > LONGEST_PATH or "\n" in named:
        reader.leave(place, "knowledge", "'knowledge' must be the path of a folder, but this is longer than one")
        return ""
    path = named.removeprefix("./").rstrip("/")
    if path.startswith("/") or not inside(path):
        text = f"'knowledge' must be a folder beside this file, but this is {named!r}"
        reader.problem(place, text, "put the folder there, and write its name")
        return ""
    below = folder
    try:
        for part in path.split("/"):
            below /= part
            refuse_link(below)
    except WrongDefinition as error:
        reader.problem(place, error.problems[0].text, error.problems[0].hint)
        return ""
    if not os.path.isdir(below):
        reader.problem(place, f"there is no folder {named!r} beside this file")
        return ""
    return str(below.resolve())
