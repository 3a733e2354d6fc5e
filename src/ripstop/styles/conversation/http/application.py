"""The routes of the HTTP face.

A workflow is one of those that the server was started with, by its name there. A path never comes from a request.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ripstop.engine.live import Appended, Live, LiveEvent, Token
from ripstop.engine.ports import text_in
from ripstop.faces.http.asgi import RequestRefused, error_document
from ripstop.faces.http.door import BY
from ripstop.faces.http.event_stream import ALIVE, HEARTBEAT, EventStreamResponse, StreamSlots, event_lines, with_pauses
from ripstop.faces.next_steps import in_commands
from ripstop.kernel.errors import (
    DefinitionError,
    JournalError,
    MessageIdUsed,
    RipstopError,
    RunForgotten,
    RunHasEnded,
    RunNotFound,
    UsageError,
)
from ripstop.kernel.events import Record

from ..bots import bot_warnings
from ..chats import Chats, run_of
from ..feed import DraftWords
from ..session_view import USER, AnsweredMessages, said_by_user, why_broken_off
from .openapi import Accepted, openapi_document
from .requests import JSON_TYPE, StreamPosition, as_json, new_message, seconds_to_wait, session_name, stream_position

if TYPE_CHECKING:
    from ripstop.app.application import App


# How an error becomes an answer.
#
# | error                                       | status |
# |---------------------------------------------|--------|
# | there is no such session                    | 404    |
# | the session has ended, or was forgotten     | 409    |
# | the id of a message is that of another one  | 409    |
# | anything else that the caller got wrong     | 422    |
# | the definition of the workflow is wrong     | 500    |
# | the store does not answer                   | 503    |


log = logging.getLogger("ripstop.http")
passes_log = logging.getLogger("ripstop.conversation")
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
        case MessageIdUsed():
            text = f"The id {error.id!r} was used for another message of this session. This one was not heard."
            return RequestRefused(409, text, "Send it with an id of its own.")
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


# A session as server-sent events: what is on record, each event once and in order, and words while they are written.
#
#     event: message
#     id: 12
#     data: {"id": "chat:shop:ann/12", "kind": "answer", "text": "It is on its way."}
#
# - The id is the number of the record. Of a record with several events the first has `12.0`, the next `12.1`, the last
#   `12`. So a client that comes back with `Last-Event-ID` misses nothing and gets nothing twice.
# - `token` events have no id. They are a draft that the message replaces: a higher `attempt` starts it again.
#   The status `typing` comes without an id when the words of an answer begin, and is on record with the answer.
# - A comment every 15 seconds shows that the connection is alive.


RETRY = 2000
"""Milliseconds after which a client comes back."""


class ShownEvent(NamedTuple):
    kind: str
    data: dict[str, Any]


async def session_events(
    happening: AsyncIterator[Record | LiveEvent],
    after: StreamPosition,
    events_of: Callable[[Record], Awaitable[list[ShownEvent]]],
    draft: DraftWords,
) -> AsyncGenerator[bytes, None]:
    """What happens to a session, as the lines of a stream; empty when nothing happens for a while."""
    yield f"retry: {RETRY}\n\n".encode()
    async with aclosing(with_pauses(happening, HEARTBEAT)) as items:
        async for one in items:
            if one is None:
                yield ALIVE
            elif isinstance(one, Record):
                events = await events_of(one)
                given = after.events if one.number == after.record else 0
                for index, event in enumerate(events[given:], given):
                    is_last = index == len(events) - 1
                    yield event_lines(event.kind, event.data, str(one.number) if is_last else f"{one.number}.{index}")
            elif isinstance(one, Token) and (words := draft.words(one)):
                if draft.begins:
                    yield event_lines("status", {"status": "typing"})
                yield event_lines("token", {"number": one.number, "attempt": one.attempt, "text": words})


# Which bots a server answers for, and what they are called in its addresses.


async def served_bots(chats: Chats, named: Mapping[str, str], paths: Sequence[str]) -> dict[str, str]:
    """Paths by name: those that the settings name, and others under the names that their bots have.

    All are read, so that a wrong one is named before the first message. The others are served all the same, and it is,
    too, once it is put right. Raises `UsageError`, and `DefinitionError` if none is right.
    """
    served, wrong = dict(named), dict[str, RipstopError]()
    for path in paths:
        name = await _name_of(chats, path, wrong)
        if served.setdefault(name, path) != path:
            raise UsageError(
                f"{served[name]} and {path} would both be served as {name!r}. Name them in [serve.workflows]."
            )
    if not served:
        raise UsageError("There is nothing to serve. Name a workflow:  ripstop serve WORKFLOW")
    bots: dict[str, str] = {}
    for path in served.values():
        bot = await _name_of(chats, path, wrong)
        if bots.setdefault(bot, path) != path:
            raise UsageError(
                f"{bots[bot]} and {path} are both called {bot!r}, and would share their sessions. Rename one."
            )
    if len(wrong) == len(served):
        raise next(iter(wrong.values()))
    for path, error in wrong.items():
        log.error("%s is not answered for until it is put right: %s", path, error)
    return served


async def _name_of(chats: Chats, path: str, wrong: dict[str, RipstopError]) -> str:
    """The name of a bot; of one that cannot be read, or is not there, the name that it would have."""
    try:
        return (await chats.bots.get(path)).bot.name
    except DefinitionError as error:
        wrong[path] = error
        return chats.bots.name_of(path)
    except UsageError as error:
        wrong[path] = error
        return Path(path).name


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
        number = await self._chats.heard_at(run.id, message.id)
        return _json(Accepted(run.id, session, f"{run.id}/{number}"), 202)

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

        answered = AnsweredMessages(engine, run_id)

        async def events_of(record: Record) -> list[ShownEvent]:
            shown = []
            answered.see(record)
            if (words := said_by_user(record)) is not None:
                shown.append(ShownEvent("message", {"id": f"{run_id}/{record.number}", "kind": USER, "text": words}))
            for notice in style.audience.public_events(record):
                data = {"id": f"{run_id}/{record.number}", **notice.data}
                kind = str(data.get("kind", ""))
                if notice.kind == "message" and (answers := await answered.by(record, kind)):
                    data["answers"] = list(answers)
                if notice.about:
                    data["text"] = text_in((await engine.journal.read(run_id, after=notice.about - 1, most=1))[0])
                shown.append(ShownEvent(notice.kind, data))
            return shown

        lines = session_events(self._app.follow(run_id, after), position, events_of, DraftWords())
        return EventStreamResponse(lines, self._slots, self.stopping)

    def _path(self, request: Request) -> Path | str:
        found = self._workflows.get(request.path_params["workflow"])
        if found is None:
            raise RequestRefused(404, "There is no such workflow here.", f"There are: {', '.join(self._workflows)}.")
        return found

    async def _run_id(self, request: Request) -> str:
        session = session_name(request)
        return run_of(await self._bot_name(request), session)

    async def _bot_name(self, request: Request) -> str:
        """The name of the bot. Raises `DefinitionError` if it cannot be read now, which is not the caller's fault."""
        path = self._path(request)
        try:
            return (await self._chats.bots.get(path)).bot.name
        except UsageError as error:
            raise DefinitionError(str(error)) from error


def log_broken_passes(live: Live) -> Callable[[], None]:
    """Log each pass that is broken off in this process; returns how to stop it.

    What users and models said is never in the log: the journal has that.
    """

    def see(event: LiveEvent) -> None:
        for record in event.records if isinstance(event, Appended) else ():
            if because := why_broken_off(record.event):
                cause = because.partition(":")[0]  # behind it are words of a model or a tool
                passes_log.warning("A pass of %s was broken off: %s; see `ripstop why`", event.run_id, cause)

    return live.watch(see)


async def open_face(app: "App", named: Mapping[str, str], paths: Sequence[str]) -> HttpFace:
    """A face for bots that the settings name, and for others. Raises `UsageError` or `DefinitionError`."""
    chats = Chats(app)
    served = await served_bots(chats, named, paths)
    for path in served.values():
        try:
            known = await chats.bots.get(path)
        except (DefinitionError, UsageError):  # `served_bots` has named it
            continue
        for warning in bot_warnings(app, known):
            log.warning("%s: %s", known.bot.name, in_commands(warning))
    log_broken_passes(app.live)
    return HttpFace(app, chats, served)


def _json(value: object, status: int = 200) -> Response:
    return Response(as_json(value), status, media_type=JSON_TYPE)
