"""What a program passes to the Python API: a wrong argument is a `UsageError` that names it and says what is expected.

Each check returns the value, so that it can be made where the value is used.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from ripstop.app.settings.number_ranges import NUMBERS
from ripstop.engine.engine import Attachment
from ripstop.engine.ports import All, DeskQuery, Nothing, Prefixed, Question, Scope, Tree
from ripstop.kernel.effects import Limits
from ripstop.kernel.errors import UsageError
from ripstop.kernel.text_limits import shown
from ripstop.tools.toolbox import Tool


def wrong(argument: str, expected: str, value: object) -> UsageError:
    return UsageError(f"{argument} must be {expected}, not {shown(value)}.")


def text(argument: str, value: Any) -> str:
    """A text that can be recorded."""
    if not isinstance(value, str):
        raise wrong(argument, "a text (str)", value)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise wrong(argument, "text that UTF-8 can write", value) from None
    return value


def a_path(argument: str, value: Any) -> Path:
    if not isinstance(value, str | Path) or not str(value):
        raise wrong(argument, "a path (str or Path)", value)
    return Path(value)


def tools(values: Any) -> list[Tool]:
    """The tools that a program brings: functions that were made tools."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise wrong("tools", "a list of functions with @ripstop.tool", values)
    found = list(values)
    for one in found:
        if not isinstance(one, Tool):
            raise UsageError(f"tools: {shown(one)} is not a tool. Make the function one with @ripstop.tool.")
    return found


def channels(values: Any) -> dict[str, Any]:
    """How messages are delivered, by the channel's name."""
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        raise wrong("channels", "a dict from a channel's name to an async function", values)
    for name, deliver in values.items():
        text("channels: a channel's name", name)
        if not callable(deliver):
            raise wrong(f"channels[{name!r}]", "an async function that takes a message", deliver)
    return dict(values)


def scope(value: Any) -> Scope | None:
    if value is not None and not isinstance(value, All | Nothing | Tree | Prefixed):
        raise wrong("scope", "ALL, NOTHING, Tree(run), Prefixed(prefix) or None", value)
    return value


def pairs(values: Any) -> Mapping[str, str]:
    """Values for a workflow, as `--set` takes them."""
    if not isinstance(values, Mapping):
        raise wrong("values", "a dict from names to texts", values)
    for name, value in values.items():
        text("values: a name", name)
        text(f"values[{name!r}]", value)
    return values


def limits(value: Any) -> Limits:
    """Limits whose numbers are in the same ranges as those of a settings file."""
    if not isinstance(value, Limits):
        raise wrong("limits", "ripstop.Limits(calls=…, tokens=…)", value)
    for field in msgspec.structs.fields(value):
        number, range_ = getattr(value, field.name), NUMBERS["limits", field.name]
        if number is None and field.default is None:
            continue
        whole = range_.least == 1
        is_number = isinstance(number, int if whole else int | float) and not isinstance(number, bool)
        if not is_number or not range_.holds(number):
            raise wrong(f"limits.{field.name}", f"a {'whole ' if whole else ''}number {range_}", number)
    return value


def question(value: Any) -> tuple[str, int]:
    """The run and the number of a question: one from the desk, or its id."""
    if isinstance(value, Question):
        return value.run_id, value.number
    run_id, _, number = value.rpartition("/") if isinstance(value, str) else ("", "", "")
    if not run_id or not (number.isascii() and number.isdigit() and len(number) <= 18):
        raise wrong("question", "a question from app.desk(), or its id 'RUN/NUMBER'", value)
    return run_id, int(number)


def answer_parts(parts: Mapping[str, Any]) -> dict[str, Any]:
    """What an answer has besides words."""
    for name, value in parts.items():
        if name not in ("choice", "document", "fields"):
            raise UsageError(f"An answer has no {name!r}; it has words, by, choice, document and fields.")
        if name == "choice" or (name == "document" and value is not None):
            text(name, value)
        if name == "fields" and not (value is None or isinstance(value, Mapping)):
            raise wrong("fields", "a dict from a field's name to its value", value)
    return dict(parts)


def attachments(values: Any) -> tuple[Attachment, ...]:
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise wrong("attachments", "a list of ripstop.Attachment(body, name)", values)
    found = tuple(values)
    for one in found:
        if not isinstance(one, Attachment) or not isinstance(one.body, bytes):
            raise wrong("attachments", "a list of ripstop.Attachment(body, name) with bytes", one)
    return found


def desk_query(value: Any) -> DeskQuery:
    if not isinstance(value, DeskQuery):
        raise wrong("query", "ripstop.DeskQuery(…)", value)
    return value
