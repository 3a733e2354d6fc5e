"""What a server wants to know from a person, as a question on the desk; and the person's answer, as the server gets it.

The words are the server's: they are quoted, cleaned and bounded. An address is text; only a person opens it.
"""

import hashlib
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from ripstop.kernel.effects import AskPerson, Field, PersonAnswered
from ripstop.kernel.shown_calls import MOST_SHOWN, can_be_shown, digest_of_arguments, size_of_arguments
from ripstop.text.visible_text import without_hidden

from .card import ToolCard, clean

ACCEPT, DECLINE = "accept", "decline"
MOST_FIELDS = 30
MOST_VALUES = 200
LONGEST_MESSAGE = 4_000
LONGEST_LABEL = 300
_SIMPLE: dict[str, Literal["text", "number", "integer", "boolean"]] = {
    "string": "text",
    "number": "number",
    "integer": "integer",
    "boolean": "boolean",
}


class CannotAsk(Exception):
    """Raised for a form that cannot be shown to a person; says why."""


def approval(card: ToolCard, agent: str, arguments: Mapping[str, Any]) -> AskPerson:
    """May this call be made? The person sees all that is sent. Raises `CannotAsk` if it is too much for that."""
    if not can_be_shown(arguments):
        size = f"{size_of_arguments(arguments):,} bytes, and at most {MOST_SHOWN:,} can be shown"
        raise CannotAsk(f"its arguments have {size}")
    return AskPerson(
        question=f"{agent or 'The workflow'} wants to call {card.name} with the arguments that are shown. May it?",
        title=card.name,
        choices={"approve": "", "reject": ""},
        other="reject",
        arguments=dict(arguments),
        shown=digest_of_arguments(arguments),
    )


def form_question(card: ToolCard, message: str, schema: Mapping[str, Any], problem: str = "") -> AskPerson:
    """A question with the fields of a flat schema. Raises `CannotAsk`."""
    properties = schema.get("properties") or {}
    if not isinstance(properties, Mapping) or len(properties) > MOST_FIELDS:
        raise CannotAsk(f"it has more than {MOST_FIELDS} fields, or none that can be read")
    required = schema.get("required")
    wanted = set(map(str, required)) if isinstance(required, list) else set()
    fields = {_name(name): _field(one, name in wanted) for name, one in properties.items()}
    return _question(card, message, fields, f" The last answer was not valid: {problem}." if problem else "")


def url_question(card: ToolCard, message: str, url: str) -> AskPerson:
    """A question with an address for a person to open; they accept when they have done what is to be done there."""
    return _question(card, f"{message}\n{url}", {}, f" Open the address yourself, and {ACCEPT} when that is done.")


def key_of(question: AskPerson, time: int) -> str:
    """The same question has the same key, so that it is asked once; `time`: which time in one call it is."""
    content = msgspec.json.encode(question, order="deterministic")
    return f"mcp {hashlib.sha256(content).hexdigest()} {time}"


def elicit_content(answer: PersonAnswered) -> dict[str, Any] | None:
    """The values that a person gave; `None` if the person declined."""
    return dict(answer.fields) if answer.choice == ACCEPT else None


def _question(card: ToolCard, message: str, fields: dict[str, Field], more: str) -> AskPerson:
    return AskPerson(
        question=f"The MCP server {card.server!r} asks, for the call of {card.tool}: "
        f"{clean(message, LONGEST_MESSAGE)}{more}",
        title=card.name,
        choices={ACCEPT: "", DECLINE: ""},
        empty=DECLINE,
        fields=fields,
    )


def _name(name: Any) -> str:
    if not isinstance(name, str) or not name or len(name) > 100 or without_hidden(name) != name:
        raise CannotAsk("a field's name cannot be shown")
    return name


def _field(schema: Any, required: bool) -> Field:
    if not isinstance(schema, Mapping):
        raise CannotAsk("a field has no type")
    words = [schema.get(key) for key in ("title", "description")]
    label = ": ".join(clean(word, LONGEST_LABEL) for word in words if isinstance(word, str) and word)
    kind = schema.get("type")
    if kind == "array":
        allowed = _allowed(schema.get("items"))
        return Field(label=_with_titles(label, allowed), type="some_of", allowed=tuple(allowed), required=required)
    if kind == "string" and (allowed := _allowed(schema)):
        return Field(label=_with_titles(label, allowed), type="one_of", allowed=tuple(allowed), required=required)
    if not isinstance(kind, str) or kind not in _SIMPLE:
        raise CannotAsk("a field is neither text nor a number, yes or no, or a choice")
    return Field(label=label, type=_SIMPLE[kind], required=required)


def _allowed(schema: Any) -> dict[str, str]:
    """The values to choose from, each with a title that may be empty."""
    if not isinstance(schema, Mapping):
        return {}
    values: dict[str, str] = {}
    if isinstance(plain := schema.get("enum"), list):
        values = dict.fromkeys(map(str, plain), "")
    for key in ("oneOf", "anyOf"):
        if isinstance(titled := schema.get(key), list):
            values |= {str(one.get("const")): str(one.get("title", "")) for one in titled if isinstance(one, Mapping)}
    if len(values) > MOST_VALUES or any(without_hidden(value) != value for value in values):
        raise CannotAsk("a field has too many values, or some that cannot be shown")
    return values


def _with_titles(label: str, allowed: Mapping[str, str]) -> str:
    titles = ", ".join(f"{value} = {clean(title, 80)}" for value, title in allowed.items() if title and title != value)
    return clean(f"{label} ({titles})" if titles else label, 10 * LONGEST_LABEL).strip()
