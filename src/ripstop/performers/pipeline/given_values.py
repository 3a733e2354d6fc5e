"""Values that agents give: checked before anything is read or written. What is wrong is said in words for the agent."""

import re
from collections.abc import Mapping
from typing import Any, get_origin, get_type_hints

from msgspec import Struct

from ripstop.kernel.plain import DEEPEST, is_plain, shown
from ripstop.performers.folders import parts_of
from ripstop.runtime.performers import Refused

from .models import CATEGORIES, PRIORITIES, STATUSES, InvalidData, choice

MAX_TEXT = 20_000
"""Characters of one text."""
MAX_LIST = 200
"""Texts in one list."""
MAX_DEPTH = 20
"""Levels of lists and objects in one value."""
MAX_LINE = 300
"""Characters of a title or a name."""
_LINES = ("title", "name", "component_type")
_CHOICES = {"status": STATUSES, "priority": PRIORITIES, "category": CATEGORIES}
_ACTING = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029]")


def cleaned(given: Mapping[str, Any], kind: type[Struct]) -> dict[str, Any]:
    """The values as they are written: one text for a list is a list of one. Raises `Refused`."""
    values: dict[str, Any] = {}
    lists = [name for name, hint in get_type_hints(kind).items() if get_origin(hint) is list]
    for name, value in given.items():
        if name in _CHOICES:
            values[name] = chosen(value, _CHOICES[name], name)
        elif name in lists:
            values[name] = _texts(name, [value] if isinstance(value, str) else list(value))
        elif name in _LINES:
            values[name] = line(value, name)
        else:
            values[name] = text(value, name)
    return values


def chosen(value: Any, valid: tuple[str, ...], name: str) -> str:
    try:
        return choice(value, valid, name)
    except InvalidData as error:
        raise Refused(f"{error}.", "agent") from error


def line(value: str, name: str) -> str:
    """A title or name: not empty, and one line."""
    found = text(value, name).strip()
    if not found or len(found) > MAX_LINE or "\n" in found or "\r" in found:
        raise Refused(f"{name} must be one line of 1 to {MAX_LINE} characters, not {shown(value)}.", "agent")
    return found


def text(value: str, name: str, most: int = MAX_TEXT) -> str:
    if len(value) > most:
        raise Refused(f"{name} is too long: {len(value):,} characters, at most {most:,}.", "agent")
    wrong = _ACTING.search(value)
    if wrong:
        raise Refused(
            f"{name} has the control character U+{ord(wrong[0]):04X} at {wrong.start()}; leave it out.", "agent"
        )
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise Refused(f"Character {error.start} of {name} cannot be written as UTF-8.", "agent") from error
    return value


def _texts(name: str, values: list[Any]) -> list[Any]:
    if len(values) > MAX_LIST:
        raise Refused(f"{name} has {len(values):,} entries; at most {MAX_LIST} are possible.", "agent")
    for number, one in enumerate(values):
        if not is_plain(one, DEEPEST - MAX_DEPTH) or len(repr(one)) > 2 * MAX_TEXT:
            raise Refused(f"{name}[{number}] is too long or nested more than {MAX_DEPTH} levels deep.", "agent")
        _check_texts(one, f"{name}[{number}]")
    if name == "files_to_create":
        for one in values:
            parts_of(one)
    return values


def _check_texts(value: Any, place: str) -> None:
    """Check every text in a value that is not too deep."""
    if isinstance(value, str):
        text(value, place)
    elif isinstance(value, list | dict):
        for one in value:
            _check_texts(one, place)
            if isinstance(value, dict):
                _check_texts(value[one], place)
