"""The routes of the web desk, as one table, and the headers of every answer."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ripstop.http.refusals import RequestRefused
from ripstop.kernel.errors import RipstopError

from .error_pages import error_response
from .pages import (
    answering,
    chats,
    compare,
    desk,
    documents,
    health,
    live,
    look,
    record,
    restarting,
    run,
    runs,
    signing_in,
    starting,
    static,
    steering,
    workflows,
)
from .sessions import WebSessions
from .site import Site

if TYPE_CHECKING:
    from ripstop.app import App

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
    ("POST", "/desk/{run}/{number:int}", answering.answer),
    ("GET", "/runs", runs.runs_page),
    ("POST", "/runs", starting.start),
    ("GET", "/runs/new", starting.new_run_page),
    ("GET", "/runs/{run}", run.run_page),
    ("GET", "/runs/{run}/rows", run.rows),
    ("GET", "/runs/{run}/summary", run.summary),
    ("GET", "/runs/{run}/drawing", run.drawing_page),
    ("GET", "/runs/{run}/fork", steering.fork_page),
    ("POST", "/runs/{run}/fork", steering.fork),
    ("GET", "/runs/{run}/cancel", steering.cancel_page),
    ("POST", "/runs/{run}/cancel", steering.cancel),
    ("POST", "/runs/{run}/resume", steering.resume),
    ("GET", "/runs/{run}/restart", restarting.restart_page),
    ("POST", "/runs/{run}/restart", restarting.restart),
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
    ("GET", "/workflows", workflows.workflows_page),
    ("GET", "/workflows/{name:path}", workflows.workflow_page),
    ("GET", "/live", live.stream),
    ("GET", "/health", health.health_page),
    ("POST", "/health/verify", health.verify),
    ("GET", "/ready", health.ready),
    ("GET", "/look", look.look_page),
    ("POST", "/look", look.set_look),
    ("GET", "/keys", look.keys_page),
    ("GET", "/login", signing_in.login_page),
    ("POST", "/login", signing_in.login),
    ("POST", "/logout", signing_in.logout),
    ("GET", "/static/{digest}/{name}", static.static_file),
    ("GET", "/favicon.ico", static.favicon),
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
    (steering.fork_page, steering.cancel_page, steering.act_page, restarting.restart_page, starting.new_run_page)
)
"""Pages that are only good for deciding something."""
ONLY_LOOKS = "This desk was started with --look-only: nothing can be decided here."


def _decides(request: Request) -> bool:
    return request.method == "POST" and request.url.path not in READING_POSTS
