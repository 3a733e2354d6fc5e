"""How the engine treats a bot: what can be set at the top of the file or under `options`."""

import os
from pathlib import Path
from typing import Any

from ripstop.definitions.folders import inside, refuse_link
from ripstop.definitions.problems import WrongDefinition
from ripstop.definitions.references import Reference
from ripstop.definitions.yaml_tree import Value, YamlEntry
from ripstop.styles.conversation.definition import APOLOGY, CHECKING, HANDOFF_ROLE

from .bot_fields import BotFields, Fields, as_number
from .schema import LONGEST_MESSAGE, LONGEST_NAME, MOST_ITERATIONS, MOST_PASSAGES, ON_NEW_MESSAGE, OPTIONS

SECTION = "options"
FIELDS = tuple(OPTIONS)
LONGEST_PATH = 200


def read_options(reader: BotFields, top: Fields, folder: Path | None) -> dict[str, Any]:
    """What is set, by the names of a bot's fields. `folder` is where the file is; none if it is not known."""
    fields = {key: entry for key, entry in top.items() if key in FIELDS}
    if SECTION in top:
        for key, entry in reader.fields(top[SECTION].value, SECTION, FIELDS).items():
            if key in fields:
                reader.problem(entry.key, f"{key!r} is at the top of the file as well", "keep one of them")
            fields[key] = entry
    for key in ("max_iterations", "passages"):
        if key in fields:
            fields[key] = _unquoted(fields[key])
    found: dict[str, Any] = {
        "on_new_message": reader.one_of(fields, "on_new_message", ON_NEW_MESSAGE, ON_NEW_MESSAGE[0]),
        "max_iterations": reader.whole(fields, "max_iterations", 10, 1, MOST_ITERATIONS),
        "passages": reader.whole(fields, "passages", 4, 1, MOST_PASSAGES),
        "apology": _message(reader, fields, "apology", APOLOGY),
        "checking": _message(reader, fields, "checking", CHECKING),
        "greet_once": reader.field(fields, "greet_once", bool, False),
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
