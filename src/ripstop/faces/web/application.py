"""The routes of the web desk, as one table, and the headers of every answer."""

import asyncio
import gzip
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from ripstop.app.settings.settings_file import store_path
from ripstop.engine.ports import Damage
from ripstop.faces.http.asgi import Receive, RequestRefused, Scope, Send, too_many
from ripstop.faces.http.event_stream import EventStreamResponse
from ripstop.faces.web.pages import (
    answers,
    chats,
    compare,
    desk,
    documents,
    record,
    run,
    runs,
    sign_in,
    start,
    steering,
)
from ripstop.kernel.errors import RipstopError

from .errors import error_response
from .feed import StreamTopics
from .forms import KEYS
from .rendering import static_address, static_files
from .sessions import SESSION, WebSessions
from .site import LOOK, Site, language_of
from .words import word

if TYPE_CHECKING:
    from ripstop.app.application import App


# Whether everything works: the workers, the journal, and the last check of it.


MOST_SHOWN = 100


class Verified(Struct, frozen=True):
    at: int
    damage: tuple[Damage, ...]


async def health_page(site: Site, request: Request) -> Response:
    engine = site.engine
    path = store_path(site.app.settings.store)
    context = {
        "workers": await engine.journal.workers(engine.clock()),
        "path": str(path),
        "size": await asyncio.to_thread(_size, path),
        "verified": site.verified,
        "model": site.app.settings.models.default,
        "most": MOST_SHOWN,
    }
    title = word(language_of(request), "health.title")
    return await site.render(request, "health.html", title=title, section="health", **context)


async def verify(site: Site, request: Request) -> Response:
    await site.form(request)
    damage = await site.engine.journal.verify()
    site.verified = Verified(site.engine.clock(), tuple(damage))
    return site.done(request, "/health", damage=len(damage))


async def ready(site: Site, request: Request) -> Response:
    """For probes: that the server answers, and nothing else."""
    return Response(b"ok", media_type="text/plain")


def _size(path: Path) -> int:
    """Of the journal with its log."""
    parts = (path, path.with_name(f"{path.name}-wal"))
    return sum(one.stat().st_size for one in parts if one.exists())


# The stream of a page: what happens in the runs that it shows, and on the desk.


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


# How the pages look to one person: theme, language, keys. And the map of the keys.


YEAR = 365 * 86_400


async def look_page(site: Site, request: Request) -> Response:
    chosen = {name: request.cookies.get(f"ripstop_{name}", values[0]) for name, values in LOOK.items()}
    title = word(language_of(request), "look.title")
    return await site.render(request, "look.html", title=title, section="look", chosen=chosen)


async def set_look(site: Site, request: Request) -> Response:
    form = await site.form(request)
    changed = {name: form.text(name) for name in LOOK if name in form.fields}
    for name, value in changed.items():
        if value not in LOOK[name]:
            allowed = ", ".join(filter(None, LOOK[name]))
            raise RequestRefused(422, f"{name!r} cannot be that.", f"Choose one of: {allowed}.")
    response = site.done(request, "/look", word(changed.get("lang") or language_of(request), "look.saved"))
    for name, value in changed.items():
        response.set_cookie(f"ripstop_{name}", value, max_age=YEAR, httponly=True, samesite="strict", path="/")
    return response


async def keys_page(site: Site, request: Request) -> Response:
    title = word(language_of(request), "keys.title")
    return await site.render(request, "keys.html", title=title, section="look", groups=KEYS)


# Styles, scripts and icons. Their addresses have the digest of their content, so a browser keeps them.


TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


async def static_file(site: Site, request: Request) -> Response:
    name = request.path_params["name"]
    files = static_files()
    if name not in files or static_address(name) != request.url.path:
        raise RequestRefused(404, "There is no such file.", "Reload the page.")
    headers = {"cache-control": "public, max-age=31536000, immutable", "vary": "accept-encoding"}
    body = files[name]
    if "gzip" in request.headers.get("accept-encoding", ""):
        body, headers["content-encoding"] = _zipped(name), "gzip"
    return Response(body, headers=headers, media_type=TYPES[name.rpartition(".")[2]])


async def favicon(site: Site, request: Request) -> Response:
    return RedirectResponse(static_address("mark.svg"), 303)


@cache
def _zipped(name: str) -> bytes:
    return gzip.compress(static_files()[name], mtime=0)


Handler = Callable[[Site, Request], Awaitable[Response]]
POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types ripstop",
    )
)
HEADERS = {
    "content-security-policy": POLICY,
    "permissions-policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
    # with `no-referrer` a browser sends the forms of our own pages with the origin `null`
    "referrer-policy": "same-origin",
}
"""Beyond what the door puts on every answer."""
ROUTES: tuple[tuple[str, str, Handler], ...] = (
    ("GET", "/", desk.desk_page),
    ("GET", "/desk", desk.desk_page),
    ("GET", "/desk/{run}", desk.halted_page),
    ("GET", "/desk/{run}/{number:int}", desk.question_page),
    ("POST", "/desk/{run}/{number:int}", answers.answer),
    ("GET", "/runs", runs.runs_page),
    ("POST", "/runs", start.start),
    ("GET", "/runs/new", start.new_run_page),
    ("GET", "/runs/{run}", run.run_page),
    ("GET", "/runs/{run}/rows", run.rows),
    ("GET", "/runs/{run}/summary", run.summary),
    ("GET", "/runs/{run}/drawing", run.drawing_page),
    ("GET", "/runs/{run}/fork", steering.fork_page),
    ("POST", "/runs/{run}/fork", steering.fork),
    ("GET", "/runs/{run}/cancel", steering.cancel_page),
    ("POST", "/runs/{run}/cancel", steering.cancel),
    ("POST", "/runs/{run}/resume", steering.resume),
    ("POST", "/runs/{run}/retry", steering.retry),
    ("POST", "/retry", steering.retry_all),
    ("GET", "/runs/{run}/restart", steering.restart_page),
    ("POST", "/runs/{run}/restart", steering.restart),
    ("POST", "/runs/{run}/use", steering.use_model),
    ("POST", "/runs/{run}/act/{action}", steering.act),
    ("GET", "/runs/{run}/act/{action}", steering.act_page),
    ("POST", "/runs/{run}/messages", chats.send),
    ("GET", "/runs/{run}/compare", compare.choose_page),
    ("GET", "/runs/{run}/compare/{other}", compare.compare_page),
    ("GET", "/runs/{run}/{number:int}", record.record_page),
    ("GET", "/runs/{run}/{number:int}/why", record.why_page),
    ("GET", "/chats", chats.chats_page),
    ("GET", "/chats/{run}", chats.chat_page),
    ("GET", "/documents", documents.documents_page),
    ("GET", "/documents/{run}", documents.document_page),
    ("GET", "/workflows", start.workflows_page),
    ("GET", "/workflows/{name:path}", start.workflow_page),
    ("GET", "/live", stream),
    ("GET", "/health", health_page),
    ("POST", "/health/verify", verify),
    ("GET", "/ready", ready),
    ("GET", "/look", look_page),
    ("POST", "/look", set_look),
    ("GET", "/keys", keys_page),
    ("GET", "/login", sign_in.login_page),
    ("POST", "/login", sign_in.login),
    ("POST", "/logout", sign_in.logout),
    ("GET", "/static/{digest}/{name}", static_file),
    ("GET", "/favicon.ico", favicon),
)


class WebFace:
    """The pages of one journal."""

    headers = HEADERS

    def __init__(self, app: "App", sessions: WebSessions, look_only: bool = False) -> None:
        self.site = Site(app, sessions, look_only)
        self.asgi = Starlette(
            routes=[Route(path, self._handled(handler), methods=[method]) for method, path, handler in ROUTES],
            exception_handlers={HTTPException: self._failed},
        )
        self.asgi.router.redirect_slashes = False

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Follow the journal for as long as this is open."""
        await self.site.prepare()
        async with self.site.feed.following():
            yield

    def end_streams(self) -> None:
        """Say goodbye to pages that are open, because the server stops."""
        self.site.feed.end_streams()
        self.site.stopping.set()

    def bare_error(self, request: Request, refusal: RequestRefused) -> str:
        """A page for a request that was refused before it was known who sent it."""
        return self.site.bare_failure(request, refusal.status, refusal.error, refusal.hint)

    def _handled(self, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
        async def handle(request: Request) -> Response:
            try:
                if self.site.look_only and (handler in DECIDING_PAGES or _decides(request)):
                    raise RequestRefused(403, ONLY_LOOKS, "Start it without --look-only to decide.")
                await self.site.note_cursor(request)
                response = await handler(self.site, request)
            except (RequestRefused, RipstopError) as error:
                response = await error_response(self.site, request, error)
            except Exception as error:  # noqa: BLE001  # a page that fails says so, and the log says why
                response = await error_response(self.site, request, error)
            for name, value in HEADERS.items():
                response.headers.setdefault(name, value)
            return response

        return handle

    async def _failed(self, request: Request, error: Exception) -> Response:
        response = await error_response(self.site, request, error)
        response.headers.update(HEADERS)
        return response


READING_POSTS = ("/login", "/logout", "/look", "/health/verify")
"""What can be posted to a desk that only looks."""
DECIDING_PAGES = frozenset(
    (steering.fork_page, steering.cancel_page, steering.act_page, steering.restart_page, start.new_run_page)
)
"""Pages that are only good for deciding something."""
ONLY_LOOKS = "This desk was started with --look-only: nothing can be decided here."


def _decides(request: Request) -> bool:
    return request.method == "POST" and request.url.path not in READING_POSTS
