"""What a request may say, checked: names in the path, a body as JSON, and the position in a stream.

Names are bounded and of few characters, because they become part of run ids, file names and log lines:
- a session: 1 to 100 of `A-Z a-z 0-9 _ @ + - = . :`, of which the last three are not the first;
- a message id: 1 to 200 printable ASCII characters, no blanks.
"""

import re
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta, Struct
from starlette.requests import Request

from ripstop.faces.http.asgi import RequestRefused
from ripstop.kernel.text_limits import LONGEST_MESSAGE, is_message

from ..chats import LONGEST_VARIABLE, MOST_VARIABLES

SESSION = "^[A-Za-z0-9_@+-][A-Za-z0-9_@+=.:-]{0,99}$"
MESSAGE_ID = "^[!-~]{1,200}$"
VARIABLE = "^[A-Za-z_][A-Za-z0-9_.-]{0,63}$"
EVENT_ID = "^[0-9]{1,12}(\\.[0-9]{1,4})?$"
LONGEST_WAIT = 120
"""Seconds."""
JSON_TYPE = "application/json"


class NewMessage(Struct, frozen=True, forbid_unknown_fields=True):
    """A message of the user."""

    text: Annotated[str, Meta(min_length=1, max_length=LONGEST_MESSAGE)]
    id: Annotated[str, Meta(pattern=MESSAGE_ID, description="The sender's id of the message.")]
    variables: Annotated[
        dict[Annotated[str, Meta(pattern=VARIABLE)], Annotated[str, Meta(max_length=LONGEST_VARIABLE)]],
        Meta(max_length=MOST_VARIABLES, description="What is known of the user, for tools and flows."),
    ] = {}


_decode = msgspec.json.Decoder(NewMessage).decode


async def new_message(request: Request) -> NewMessage:
    """The message in a body. Raises `RequestRefused`."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != JSON_TYPE:
        raise RequestRefused(415, "The body is not JSON.", f"Send the header `Content-Type: {JSON_TYPE}`.")
    try:
        message = _decode(await request.body())
    except msgspec.ValidationError as error:
        raise RequestRefused(422, f"The message is not valid: {error}.", "/openapi.json describes it.") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if "surrogate" in str(error):  # JSON allows such an escape, but it is not text
            half = r"A text in the body has half of a character, such as `\ud800` without its other half."
            raise RequestRefused(422, half, "Send whole characters, in UTF-8 or as a pair of escapes.") from error
        raise RequestRefused(400, "The body is not JSON.", "Send a JSON object in UTF-8.") from error
    if not is_message(message.text):
        raise RequestRefused(422, "The text of the message is empty.")
    # `$` of a pattern also matches before a last newline
    if any("\n" in name for name in (message.id, *message.variables)):
        raise RequestRefused(422, "The id of the message, or the name of a variable, has a line break in it.")
    return message


def session_name(request: Request) -> str:
    name: str = request.path_params["session"]
    if not re.fullmatch(SESSION[1:-1], name):
        allowed = "1 to 100 of the characters A-Z a-z 0-9 _ @ + - and, not at first, = . :"
        raise RequestRefused(422, "This cannot be the name of a session.", f"Expected {allowed}.")
    return name


def seconds_to_wait(request: Request) -> float:
    """What `?wait=` says; 0 without it."""
    unknown = [name for name in request.query_params if name != "wait"]
    given = request.query_params.getlist("wait")
    if unknown or len(given) > 1:
        raise RequestRefused(422, "The query has parameters that are not known here.", "Only `wait` is, once.")
    if not given:
        return 0.0
    if not re.fullmatch("[0-9]{1,3}", given[0], re.ASCII) or int(given[0]) > LONGEST_WAIT:
        raise RequestRefused(422, "`wait` is not a time.", f"Expected seconds, from 0 to {LONGEST_WAIT}.")
    return float(given[0])


class StreamPosition(NamedTuple):
    """How much of a stream a client has: all records before this one, and some events of it."""

    record: int = 1
    events: int = 0


def stream_position(request: Request) -> StreamPosition:
    """Where `Last-Event-ID` continues: `12` is after record 12, `12.0` after the first event of record 12."""
    last = request.headers.get("last-event-id", "")
    if not last:
        return StreamPosition()
    if not re.fullmatch(EVENT_ID[1:-1], last, re.ASCII):
        raise RequestRefused(422, "`Last-Event-ID` is not the id of an event.", "Leave it out to begin at the start.")
    number, dot, index = last.partition(".")
    return StreamPosition(int(number), int(index) + 1) if dot else StreamPosition(int(number) + 1)


def as_json(value: Any) -> bytes:
    return msgspec.json.encode(value)
