"""What a posted form says, checked.

- Only `application/x-www-form-urlencoded`, or JSON from a program, of at most so many fields; each name once.
- A form of a page carries the CSRF value of its session. A program has no session and needs none.
- `intent` is made anew with each page: it becomes the key or id under which an action is recorded, so the same form
  sent twice acts once.
"""

import re
import secrets
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import msgspec
from starlette.requests import Request

from ripstop.faces.http.asgi import RequestRefused

from .sessions import SESSION, WebSession, WebSessions

MOST_FIELDS = 200
_INTENT = re.compile(r"[A-Za-z0-9_-]{16,64}")


class Form:
    """The fields of a posted form."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        self.fields = dict(fields)

    def text(self, name: str) -> str:
        """A field, with the line breaks that people type; empty if it is missing."""
        return self.fields.get(name, "").replace("\r\n", "\n")

    def number(self, name: str) -> int | None:
        """A whole number; `None` if it is missing. Raises `RequestRefused`."""
        given = self.text(name).strip()
        if not given:
            return None
        if not re.fullmatch(r"[0-9]{1,18}", given, re.ASCII):
            raise RequestRefused(422, f"The field {name!r} is not a whole number.", "Open the page again.")
        return int(given)

    def amount(self, name: str) -> float | None:
        """A number above 0; `None` if it is missing. Raises `RequestRefused`."""
        given = self.text(name).strip()
        if not given:
            return None
        if not re.fullmatch(r"[0-9]{1,12}(\.[0-9]{1,6})?", given, re.ASCII) or not float(given):
            raise RequestRefused(422, f"The field {name!r} is not a number above 0.", "Correct it, then send it again.")
        return float(given)

    def starting(self, prefix: str) -> dict[str, str]:
        """The fields whose names begin so, without the beginning."""
        return {name.removeprefix(prefix): self.text(name) for name in self.fields if name.startswith(prefix)}

    @property
    def intent(self) -> str:
        """What makes a repeat of this form harmless. Raises `RequestRefused`."""
        given = self.text("intent")
        if not _INTENT.fullmatch(given):
            raise RequestRefused(422, "This form has no valid intent.", "Open the page again, then send it.")
        return given


def new_intent() -> str:
    return secrets.token_urlsafe(16)


async def read_form(request: Request, sessions: WebSessions) -> Form:
    """The form in a request. Raises `RequestRefused`."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = await request.body()
    if kind == "application/json":
        fields = _from_json(body)
    elif kind == "application/x-www-form-urlencoded":
        fields = _from_form(body)
    else:
        raise RequestRefused(415, "This is not a form.", "Send application/x-www-form-urlencoded or JSON.")
    form = Form(fields)
    session: WebSession | None = request.scope.get(SESSION)
    if session is not None and not sessions.is_form_token(session, form.text("csrf")):
        raise RequestRefused(403, "This form does not belong to your session.", "Open the page again, then send it.")
    return form


def _from_form(body: bytes) -> dict[str, str]:
    try:
        pairs = parse_qsl(body.decode("utf-8"), keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict")
    except (UnicodeDecodeError, ValueError) as error:
        hint = f"Send UTF-8 and at most {MOST_FIELDS} fields."
        raise RequestRefused(400, "The form cannot be read.", hint) from error
    fields: dict[str, str] = {}
    for name, value in pairs:
        # boxes that are ticked in one group share a name
        fields[name] = f"{fields[name]},{value}" if name in fields else value
    return fields


def _from_json(body: bytes) -> dict[str, str]:
    try:
        given: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestRefused(400, "The body is not JSON.", "Send a JSON object in UTF-8.") from error
    if not isinstance(given, dict) or len(given) > MOST_FIELDS:
        raise RequestRefused(422, "The body is not a JSON object of a few fields.", "Send the fields of the form.")
    if not all(isinstance(value, str | int | float) for value in given.values()):
        raise RequestRefused(422, "A field is not a text or a number.", "Send the fields of the form.")
    return {str(name): value if isinstance(value, str) else f"{value:g}" for name, value in given.items()}


# The keys of the desk, as one table: the page `/keys` shows it, and `keys.js` obeys it.
#
# No single key decides anything: keys open, move and focus. They are off in fields and with Ctrl, Alt or Meta, except
# Ctrl or ⌘ with Enter, which sends the form that has the focus. `/look` turns all single keys off.


class KeyHint(NamedTuple):
    keys: str
    """As they are typed; several ways with a blank between them, one after the other with `then`."""
    word: str
    """The key of its words."""


KEYS: tuple[tuple[str, tuple[KeyHint, ...]], ...] = (
    (
        "keys.anywhere",
        (
            KeyHint("?", "keys.help"),
            KeyHint("/", "keys.find"),
            KeyHint("g then d", "keys.to_desk"),
            KeyHint("g then r", "keys.to_runs"),
            KeyHint("g then c", "keys.to_chats"),
            KeyHint("g then o", "keys.to_documents"),
            KeyHint("g then w", "keys.to_workflows"),
            KeyHint("n", "keys.new_run"),
            KeyHint("u Esc", "keys.back"),
            KeyHint("Ctrl+Enter", "keys.send"),
        ),
    ),
    ("keys.in_lists", (KeyHint("j", "keys.next"), KeyHint("k", "keys.previous"), KeyHint("Enter o", "keys.open"))),
    (
        "keys.in_reviews",
        (
            KeyHint("c", "keys.changes"),
            KeyHint("v", "keys.preview"),
            KeyHint("e", "keys.edit"),
            KeyHint("Shift+P", "keys.pass"),
            KeyHint("Shift+F", "keys.feedback"),
        ),
    ),
    (
        "keys.in_runs",
        (
            KeyHint("[", "keys.turn_before"),
            KeyHint("]", "keys.turn_after"),
            KeyHint("w", "keys.why"),
            KeyHint("x", "keys.records"),
            KeyHint("f", "keys.fork"),
            KeyHint("l", "keys.follow"),
        ),
    ),
)
