"""How an error becomes an answer.

| error                                       | status |
|---------------------------------------------|--------|
| there is no such session                    | 404    |
| the session has ended, or was forgotten     | 409    |
| anything else that the caller got wrong     | 422    |
| the definition of the workflow is wrong     | 500    |
| the store does not answer                   | 503    |
"""

import logging

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from ripstop.http.refusals import RequestRefused, error_document
from ripstop.kernel.errors import DefinitionError, JournalError, RunForgotten, RunHasEnded, RunNotFound, UsageError

log = logging.getLogger("ripstop.http")
RETRY_SECONDS = "2"
"""After which a client asks again when the store did not answer."""


async def answer_error(request: Request, error: Exception) -> Response:
    refusal = _refusal(request, error)
    return Response(
        error_document(refusal.error, refusal.hint), refusal.status, refusal.headers, media_type="application/json"
    )


def _refusal(request: Request, error: Exception) -> RequestRefused:
    match error:
        case RequestRefused():
            return error
        case HTTPException(status_code=405):
            headers = dict(error.headers or {})
            return RequestRefused(405, "This method is not possible here.", f"Send {headers.get('Allow')}.", headers)
        case HTTPException():
            return RequestRefused(error.status_code, "There is nothing here.", "/openapi.json lists what there is.")
        case RunForgotten():
            return RequestRefused(409, "This session was forgotten, and cannot begin again.", "Begin another session.")
        case RunNotFound():
            return RequestRefused(404, "There is no such session.", "It begins with its first message.")
        case RunHasEnded():
            return RequestRefused(409, "This session has ended.", "Begin another session.")
        case UsageError():
            return RequestRefused(422, str(error))
        case DefinitionError():
            log.error("The definition of %s is wrong: %s", request.path_params["workflow"], error)
            return RequestRefused(500, "The definition of this workflow is wrong.", "`ripstop check` says where.")
        case JournalError():
            log.error("The journal does not answer: %s", error)
            return RequestRefused(503, "The journal does not answer.", "Try again.", {"retry-after": RETRY_SECONDS})
        case _:
            raise error
