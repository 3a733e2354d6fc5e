"""The routes of the HTTP face.

A workflow is one of those that the server was started with, by its name there. A path never comes from a request.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ripstop.http.admission import BY
from ripstop.http.event_stream import EventStreamResponse, StreamSlots
from ripstop.http.refusals import RequestRefused
from ripstop.kernel.errors import RipstopError, RunHasEnded, RunNotFound, UsageError
from ripstop.kernel.events import Record
from ripstop.runtime.words import text_in
from ripstop.services.conversation.bot_warnings import bot_warnings
from ripstop.services.conversation.broken_passes import log_broken_passes
from ripstop.services.conversation.chats import Chats
from ripstop.services.conversation.draft_words import DraftWords
from ripstop.services.conversation.session_names import run_of
from ripstop.services.conversation.session_view import USER, said_by_user

from .errors import answer_error
from .event_stream import ShownEvent, session_events
from .openapi import Accepted, openapi_document
from .requests import JSON_TYPE, as_json, new_message, seconds_to_wait, session_name, stream_position
from .served_bots import served_bots

if TYPE_CHECKING:
    from ripstop.app import App

log = logging.getLogger("ripstop.http")
SESSION_PATH = "/conversations/{workflow}/{session}"


class HttpFace:
    """Conversations with the workflows that are served."""

    def __init__(
        self, app: "App", chats: Chats, workflows: Mapping[str, Path | str], slots: StreamSlots | None = None
    ) -> None:
        """Args:
        workflows: The bots that are served, by the name that addresses have.
        """
        self._app = app
        self._chats = chats
        self._workflows = dict(workflows)
        self._slots = slots or StreamSlots()
        self._document = as_json(openapi_document(self.served))
        self.stopping = asyncio.Event()
        """Set when the server stops: streams end, and requests that wait are answered."""
        self.asgi = Starlette(
            routes=[
                Route("/healthz", self._health),
                Route("/openapi.json", self._openapi),
                Route(SESSION_PATH, self._session),
                Route(f"{SESSION_PATH}/messages", self._message, methods=["POST"]),
                Route(f"{SESSION_PATH}/events", self._events),
            ],
            exception_handlers=dict.fromkeys((RequestRefused, HTTPException, RipstopError), answer_error),
        )
        # a redirect would name the client's own idea of this server
        self.asgi.router.redirect_slashes = False

    @property
    def served(self) -> tuple[str, ...]:
        """The names of the bots in addresses."""
        return tuple(self._workflows)

    async def _health(self, request: Request) -> Response:
        if self._app.worker.failure:
            raise RequestRefused(503, "The worker has given up.", "The server's log has more.")
        waiting = self._app.worker.held()
        return _json({"status": "ok", "waiting": waiting} if waiting else {"status": "ok"})

    async def _openapi(self, request: Request) -> Response:
        return Response(self._document, media_type=JSON_TYPE)

    async def _session(self, request: Request) -> Response:
        return _json((await self._chats.look(await self._run_id(request))).for_users())

    async def _message(self, request: Request) -> Response:
        path, session, wait = self._path(request), session_name(request), seconds_to_wait(request)
        message = await new_message(request)
        by: str = request.scope[BY]
        try:
            run = await self._chats.tell(path, session, message.text, by=by, id=message.id, variables=message.variables)
        except UsageError:
            await self._check_open(await self._run_id(request))
            raise
        if wait and await self._settled(run.id, wait):
            session_view = await self._chats.look(run.id, await self._chats.heard_at(run.id, message.id))
            return _json(session_view.for_users())
        return _json(Accepted(run.id, session), 202)

    async def _check_open(self, run_id: str) -> None:
        """Raises `RunHasEnded`."""
        with suppress(RunNotFound):
            view = await self._app.engine.look(run_id)
            if view.run.ended:
                raise RunHasEnded(run_id, view.status)

    async def _settled(self, run_id: str, seconds: float) -> bool:
        """Whether the session has answered within this time; it has not if it waits for a tool that nobody brings."""
        settled = asyncio.ensure_future(self._app.wait(run_id))
        stopping = asyncio.ensure_future(self.stopping.wait())
        try:
            await asyncio.wait([settled, stopping], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            return settled.done() and settled.result().status != "working"
        finally:
            settled.cancel()
            stopping.cancel()
            await asyncio.gather(settled, stopping, return_exceptions=True)

    async def _events(self, request: Request) -> EventStreamResponse:
        run_id, position = await self._run_id(request), stream_position(request)
        engine = self._app.engine
        run = (await engine.look(run_id)).run
        style, after = engine.style(run), position.record - 1
        if after > run.length:
            raise RequestRefused(409, "`Last-Event-ID` is ahead of the session.", "Leave it out to begin at the start.")

        async def events_of(record: Record) -> list[ShownEvent]:
            shown = []
            if (words := said_by_user(record)) is not None:
                shown.append(ShownEvent("message", {"id": f"{run_id}/{record.number}", "kind": USER, "text": words}))
            for notice in style.notices(record):
                data = {"id": f"{run_id}/{record.number}", **notice.data}
                if notice.about:
                    data["text"] = text_in((await engine.journal.read(run_id, after=notice.about - 1, most=1))[0])
                shown.append(ShownEvent(notice.kind, data))
            return shown

        lines = session_events(self._app.follow(run_id, after), position, events_of, DraftWords(style.word_reader))
        return EventStreamResponse(lines, self._slots, self.stopping)

    def _path(self, request: Request) -> Path | str:
        found = self._workflows.get(request.path_params["workflow"])
        if found is None:
            raise RequestRefused(404, "There is no such workflow here.", f"There are: {', '.join(self._workflows)}.")
        return found

    async def _run_id(self, request: Request) -> str:
        path, session = self._path(request), session_name(request)
        return run_of((await self._chats.bots.get(path)).bot.name, session)


async def open_face(app: "App", named: Mapping[str, str], paths: Sequence[str]) -> HttpFace:
    """A face for bots that the settings name, and for others. Raises `UsageError` or `DefinitionError`."""
    chats = Chats(app)
    served = await served_bots(chats, named, paths)
    for path in served.values():
        known = await chats.bots.get(path)
        for warning in bot_warnings(app, known):
            log.warning("%s: %s", known.bot.name, warning)
    log_broken_passes(app.live)
    return HttpFace(app, chats, served)


def _json(value: object, status: int = 200) -> Response:
    return Response(as_json(value), status, media_type=JSON_TYPE)
