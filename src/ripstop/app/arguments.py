"""What a program passes to the Python API: a wrong argument is a `UsageError` that names it and says what is expected.

Each check returns the value, so that it can be made where the value is used.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from ripstop.app.settings.number_ranges import NUMBERS
from ripstop.engine.engine import Attachment
from ripstop.engine.ports import All, DeskQuery, Nothing, Prefixed, Question, RunQuery, Scope, Tree
from ripstop.kernel.effects import Limits
from ripstop.kernel.errors import UsageError
from ripstop.kernel.run import Run
from ripstop.kernel.statuses import STATUSES
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


def fields(values: Any) -> dict[str, Any]:
    """What an answer or an action has besides words."""
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        raise wrong("fields", "a dict from a field's name to its value", values)
    return dict(values)


def amounts(values: Any) -> dict[str, float]:
    """By how much limits are raised; which of them exist, and how much is too much, the run knows."""
    if not isinstance(values, Mapping):
        raise wrong("raises", "a dict from a limit's name to a number", values)
    for name, value in values.items():
        text("raises: a name", name)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise wrong(f"raises[{name!r}]", "a number", value)
    return dict(values)


def attachments(values: Any) -> tuple[Attachment, ...]:
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise wrong("attachments", "a list of ripstop.Attachment(body, name)", values)
    found = tuple(values)
    for one in found:
        if not isinstance(one, Attachment) or not isinstance(one.body, bytes):
            raise wrong("attachments", "a list of ripstop.Attachment(body, name) with bytes", one)
    return found


def flag(argument: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise wrong(argument, "True or False", value)
    return value


def whole(argument: str, value: Any, least: int = 0) -> int:
    """A whole number, which `True` and `3.0` are not."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise wrong(argument, f"a whole number (int) from {least}", value)
    return value


def run_query(value: Any) -> RunQuery:
    """Which runs; statuses are those that people see."""
    if not isinstance(value, RunQuery):
        raise wrong("query", "ripstop.RunQuery(…)", value)
    for status in _texts("query.statuses", value.statuses):
        if status not in STATUSES:
            raise UsageError(f"query.statuses: there is no status {shown(status)}; there are: {', '.join(STATUSES)}.")
    _texts("query.styles", value.styles)
    if value.parent is not None:
        _run_id("query.parent", value.parent)
    whole("query.since", value.since)
    text("query.text", value.text)
    _paged(value)
    return value


def desk_query(value: Any) -> DeskQuery:
    if not isinstance(value, DeskQuery):
        raise wrong("query", "ripstop.DeskQuery(…)", value)
    if value.to is not None:
        text("query.to", value.to)
    text("query.purpose", value.purpose)
    text("query.kind", value.kind)
    _paged(value)
    return value


def _paged(query: RunQuery | DeskQuery) -> None:
    _run_id("query.root", query.root)
    text("query.cursor", query.cursor)
    whole("query.size", query.size, 1)


def _run_id(argument: str, value: Any) -> None:
    """In a query a run is named by its id: a query is data that a store gets as it is."""
    if isinstance(value, Run):
        raise UsageError(f"{argument} must be the id of a run (str), not the run: use run.id, here {value.id!r}.")
    text(argument, value)


def _texts(argument: str, values: Any) -> tuple[str, ...]:
    if not isinstance(values, tuple | list):
        raise wrong(argument, "a tuple of texts (str)", values)
    return tuple(text(argument, one) for one in values)


def settings_folder(named: str | Path | None) -> Path:
    """The folder whose settings apply: the one that is named, or that holds the file that is named."""
    if named is None:
        return Path.cwd()
    path = a_path("settings", named)
    if path.is_dir():
        return path
    if not path.is_file():
        raise UsageError(f"There is no settings file {str(named)!r}.")
    return path.parent
