"""The stream of a page: what happens in the runs that it shows, and on the desk."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from starlette.requests import Request
from starlette.responses import Response

from ripstop.http.asgi import Receive, Scope, Send
from ripstop.http.event_stream import EventStreamResponse
from ripstop.http.refusals import RequestRefused, too_many

from ..feed import StreamTopics
from ..sessions import SESSION
from ..site import Site

MOST_RUNS = 20
"""That one page can follow."""
LONGEST_CURSOR = 200


async def stream(site: Site, request: Request) -> Response:
    runs = frozenset(request.query_params.getlist("run"))
    if len(runs) > MOST_RUNS:
        raise RequestRefused(422, f"A stream follows at most {MOST_RUNS} runs.", "Open another stream.")
    if site.slots.is_full:
        raise too_many("There are too many streams.", 5)
    wanted = StreamTopics(runs, "desk" in request.query_params, "runs" in request.query_params)
    session = request.scope[SESSION]
    # a browser names the last event only when it comes back by itself, not after its tab was hidden
    after = (request.headers.get("last-event-id") or request.query_params.get("after", ""))[:LONGEST_CURSOR]
    return _StreamResponse(site, wanted, session.id if session else "", after)


class _StreamResponse(Response):
    """Subscribes when it is sent, so that a request which is never answered leaves no stream behind."""

    def __init__(self, site: Site, wanted: StreamTopics, owner: str, after: str) -> None:
        super().__init__()
        self._site, self._wanted, self._owner, self._after = site, wanted, owner, after

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await EventStreamResponse(self._lines(), self._site.slots, self._site.stopping)(scope, receive, send)

    async def _lines(self) -> AsyncGenerator[bytes, None]:
        feed = self._site.feed
        stream = await feed.subscribe(self._wanted, self._owner, self._after)
        try:
            async with aclosing(stream.lines()) as lines:
                async for line in lines:
                    yield line
        finally:
            feed.unsubscribe(stream)
