"""Errors as pages: a code, what is wrong, and what to do next; JSON for a program. Nothing is guessed or hidden.

| what happened                                             | status |
|-----------------------------------------------------------|--------|
| the door or a form refused it                             | its own |
| there is no such run, record, workflow or page            | 404    |
| it changed since the page was made; it was answered       | 409    |
| it cannot be done, or a field is wrong                    | 422    |
| the journal is locked or read-only                        | 423    |
| the journal is missing, damaged, or of a newer version    | 503    |
"""

import logging
import shlex
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ripstop.app.settings.settings_file import DEFAULT_STORE
from ripstop.faces.http.asgi import RequestRefused, Scope, Send, error_document, send_refusal
from ripstop.faces.next_steps import OF_RUNS, command_of
from ripstop.kernel.errors import (
    AlreadyAnswered,
    Conflict,
    DefinitionError,
    JournalError,
    MessageIdUsed,
    QuestionClosed,
    RecordNotFound,
    RipstopError,
    RunAlreadyStarted,
    RunNotFound,
    UntrustedFolder,
    UsageError,
)

from .rendering import address
from .site import JSON_TYPE, TYPED, Site, language_of, wants_json
from .words import word

if TYPE_CHECKING:
    from .application import WebFace

log = logging.getLogger("ripstop.web")

STATUSES: tuple[tuple[type[Exception], int], ...] = (
    (RunNotFound, 404),
    (RecordNotFound, 404),
    (QuestionClosed, 409),
    (RunAlreadyStarted, 409),
    (MessageIdUsed, 409),
    (Conflict, 409),
    (UsageError, 422),
    (DefinitionError, 422),
    (JournalError, 503),
    (RipstopError, 422),
)
"""By the first class that fits."""
NEXT = {
    400: "error.next.again",
    403: "error.next.again",
    404: "error.next.find",
    409: "error.next.moved",
    413: "error.next.shorter",
    422: "error.next.correct",
    423: "error.next.locked",
    503: "error.next.journal",
}


class PageOutdated(UsageError):
    """Raised for a form whose page shows an older state than the run has now."""


def status_of(error: Exception) -> int:
    if isinstance(error, RequestRefused):
        return error.status
    if isinstance(error, HTTPException):
        return error.status_code
    if isinstance(error, PageOutdated):
        return 409
    if isinstance(error, JournalError) and ("locked" in str(error) or "read-only" in str(error)):
        return 423
    return next((status for known, status in STATUSES if isinstance(error, known)), 500)


async def error_response(site: Site, request: Request, error: Exception, text: str = "") -> Response:
    """The answer to a request that failed. `text`: what the person had typed, if not what the form says."""
    status = status_of(error)
    if status == 500:
        log.exception("%s %s failed", request.method, request.url.path[:200], exc_info=error)
    lang = language_of(request)
    said = _said(error, lang)
    hint = error.hint if isinstance(error, RequestRefused) else ""
    if isinstance(error, UntrustedFolder):
        store = site.app.settings.store
        named = "" if store == DEFAULT_STORE else f"--store {shlex.quote(store)} "
        run, folder = error.run_id.partition(".")[0], shlex.quote(str(error.folder))
        hint = word(lang, "error.next.folder", store=named, run=run, folder=folder)
    headers = error.headers if isinstance(error, RequestRefused) else {}
    hint = hint or (word(lang, NEXT[status]) if status in NEXT else "")
    if wants_json(request):
        return Response(error_document(said, hint), status, headers, JSON_TYPE)
    if not site.by(request):  # somebody who is not signed in sees nothing of the journal
        return Response(site.bare_failure(request, status, said, hint), status, headers, "text/html")
    try:
        response = await site.render(
            request,
            "error.html",
            title=f"{status}",
            status=status,
            code=status,
            said=said,
            hint=hint,
            text=text or request.scope.get(TYPED, ""),
            given=error if isinstance(error, AlreadyAnswered) else None,
        )
    except JournalError:  # the navigation cannot be made, either
        response = Response(site.bare_failure(request, status, said, hint), status, media_type="text/html")
    response.headers.update(headers)
    return response


def _said(error: Exception, lang: str) -> str:
    if isinstance(error, RequestRefused):
        return error.error
    if isinstance(error, HTTPException):
        return word(lang, "error.no_page") if error.status_code == 404 else error.detail
    return said_of(error, lang) if isinstance(error, RipstopError) else word(lang, "error.ours")


def said_of(error: RipstopError, lang: str) -> str:
    """What an error says, and the command for a terminal if it names a step that cannot be taken here.

    The page of a run resumes and forks it.
    """
    command = next(filter(None, (command_of(step) for step in error.next_steps if step.action not in OF_RUNS)), "")
    if not command or isinstance(error, JournalError):  # the hint about journals names its commands
        return str(error)
    return f"{error} {word(lang, 'error.terminal', command=command)}"


def refuse_with_page(face: "WebFace") -> Callable[[Scope, Send, RequestRefused], Awaitable[None]]:
    """How the door refuses a request for a page: one that is not signed in is sent to do so."""

    async def refuse(scope: Scope, send: Send, refusal: RequestRefused) -> None:
        request = Request(scope)
        if wants_json(request) or refusal.status == 421:
            return await send_refusal(send, refusal)
        if refusal.status == 401 and request.method in ("GET", "HEAD") and "authorization" not in request.headers:
            here = address(request.url.path) + (f"?{request.url.query}" if request.url.query else "")
            response: Response = RedirectResponse(address("/login", next=here), 303, face.headers)
        else:
            html = face.bare_error(request, refusal)
            response = Response(html, refusal.status, {**face.headers, **refusal.headers}, "text/html")
        await response(scope, _nothing_more, send)

    return refuse


async def _nothing_more() -> dict[str, str]:
    return {"type": "http.disconnect"}
