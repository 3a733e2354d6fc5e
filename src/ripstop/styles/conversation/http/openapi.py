"""The OpenAPI document of the HTTP face: every path, with everything that it can answer."""

from collections.abc import Sequence
from typing import Any

import msgspec

from ripstop import __version__

from ..session_view import SessionView
from .requests import EVENT_ID, JSON_TYPE, LONGEST_WAIT, SESSION, NewMessage

ERRORS = {
    400: "This is not a valid HTTP request, or its body is not JSON.",
    401: "The token is missing or wrong.",
    403: "The request comes from a page of another origin.",
    404: "There is no such workflow or session.",
    405: "This method is not possible here.",
    408: "The body did not arrive in time.",
    409: "The session has ended, was forgotten, or does not have the event to continue after; or another message "
    "of it has this id.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    421: "The server does not answer under this name.",
    422: "Something in the request is not valid; the error says what.",
    429: "Too many requests or streams.",
    431: "The head of the request is too large.",
    500: "A bug, or a definition that is wrong.",
    503: "The journal or the worker does not answer.",
}
ANYWHERE = (400, 401, 403, 408, 413, 421, 429, 431, 500, 503)
"""What every path can answer."""
EVENTS = "message, status, action, action_failed, timer, taken, closed or token"
_REF = "#/components/schemas/{name}"


class Accepted(msgspec.Struct, frozen=True):
    """The message is on record, and is answered."""

    run: str
    session: str
    message: str
    """The id of the message; what answers it names this id."""


def openapi_document(workflows: Sequence[str]) -> dict[str, Any]:
    (message, view, accepted), schemas = msgspec.json.schema_components(
        [NewMessage, SessionView, Accepted], ref_template=_REF
    )
    schemas["Error"] = _object("What is wrong, and what to do next.", error={"type": "string"}, hint={"type": "string"})
    health = _object("The server answers, and its worker works.", status={"const": "ok"})
    health["properties"]["waiting"] = {
        "type": "object",
        "description": "Seconds for which no model of a provider is called, because it said that there were too many.",
        "additionalProperties": {"type": "integer"},
    }
    session = "/conversations/{workflow}/{session}"
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "ripstop",
            "version": __version__,
            "summary": "Conversations with workflows.",
        },
        "security": [{"bearer": []}],
        "paths": {
            "/healthz": {"get": _get("health", "Whether the server works", health)},
            "/openapi.json": {"get": _get("openapi", "This document", {"type": "object"})},
            session: {
                "parameters": _names(workflows),
                "get": _get("session", "A session as it is now", view, 404, 409, 422),
            },
            f"{session}/messages": {"parameters": _names(workflows), "post": _post(message, view, accepted)},
            f"{session}/events": {"parameters": _names(workflows), "get": _stream()},
        },
        "components": {
            "schemas": schemas,
            "responses": {str(status): _error(status) for status in ERRORS},
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def _object(description: str, **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "description": description,
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _json(description: str, schema: Any) -> dict[str, Any]:
    return {"description": description, "content": {JSON_TYPE: {"schema": schema}}}


def _error(status: int) -> dict[str, Any]:
    answer = _json(ERRORS[status], {"$ref": _REF.format(name="Error")})
    if status in (429, 503):
        answer["headers"] = {"Retry-After": {"description": "Seconds.", "schema": {"type": "string"}}}
    return answer


def _responses(good: dict[str, Any], *errors: int) -> dict[str, Any]:
    refs = {str(status): {"$ref": f"#/components/responses/{status}"} for status in sorted({*ANYWHERE, *errors})}
    return {**good, **refs}


def _get(name: str, summary: str, schema: Any, *errors: int) -> dict[str, Any]:
    return {
        "operationId": name,
        "summary": summary,
        "responses": _responses({"200": _json(summary, schema)}, *errors),
    }


def _names(workflows: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {
            "name": "workflow",
            "in": "path",
            "required": True,
            "description": "One of the workflows that the server was started with.",
            "schema": {"enum": list(workflows)},
        },
        {"name": "session", "in": "path", "required": True, "schema": {"type": "string", "pattern": SESSION}},
    ]


def _post(message: Any, view: Any, accepted: Any) -> dict[str, Any]:
    wait = {
        "name": "wait",
        "in": "query",
        "description": "Seconds to wait for the answer.",
        "schema": {"type": "integer", "minimum": 0, "maximum": LONGEST_WAIT},
    }
    answers = {
        "200": _json("The session, after it has answered; only with `wait`.", view),
        "202": _json("The message is on record, and the answer is still to come.", accepted),
    }
    return {
        "operationId": "message",
        "summary": "Send a message of the user; sent again with its id, it is heard once",
        "parameters": [wait],
        "requestBody": {"required": True, "content": {JSON_TYPE: {"schema": message}}},
        "responses": _responses(answers, 404, 409, 415, 422),
    }


def _stream() -> dict[str, Any]:
    last = {
        "name": "Last-Event-ID",
        "in": "header",
        "description": "The id of the last event that the client has; the stream continues after it.",
        "schema": {"type": "string", "pattern": f"^$|{EVENT_ID}"},
    }
    summary = "What happens to a session, as server-sent events"
    event = {
        "type": "object",
        "description": "An event. Its data is a JSON object.",
        "properties": {
            "event": {"type": "string", "description": EVENTS},
            "id": {"type": "string", "pattern": EVENT_ID},
            "data": {"type": "string", "contentMediaType": JSON_TYPE},
        },
        "required": ["event", "data"],
    }
    good = {"200": {"description": summary, "content": {"text/event-stream": {"schema": event}}}}
    return {
        "operationId": "events",
        "summary": summary,
        "parameters": [last],
        "responses": _responses(good, 404, 409, 422),
    }
