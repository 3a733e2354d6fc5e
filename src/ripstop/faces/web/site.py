"""What the handlers of all pages share: the open journal, who is signed in, and how a page is put together."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import msgspec
from markupsafe import Markup
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ripstop.app.settings.settings_file import store_path
from ripstop.definitions.loading import FOLDER, find_all
from ripstop.engine.ports import RunQuery
from ripstop.faces.http.door import BY
from ripstop.faces.http.event_stream import StreamSlots
from ripstop.history.answers import QuestionLog
from ripstop.history.desk import KindCounts
from ripstop.history.outline import Outlines
from ripstop.history.runs import shown_counts
from ripstop.kernel.desk_kinds import HALTED
from ripstop.kernel.errors import RipstopError
from ripstop.text.translation import Translation

from .feed import Feed
from .forms import Form, new_intent, read_form
from .rendering import Renderer, Shell
from .sessions import SESSION, WebSessions

if TYPE_CHECKING:
    from ripstop.app.application import App
    from ripstop.engine.engine import Engine

COUNTS_SECONDS = 2.0
"""For which the counts of the navigation are kept."""
AT_WORK_SHOWN = 5
NOTICE = "ripstop_notice"
"""The cookie with the words that the next page shows."""
LONGEST_NOTICE = 3100
"""Characters of that cookie: 300 of the notice, as they are coded, and the signature."""
LOOK = {"theme": ("", "light", "dark"), "lang": ("", "en", "zh"), "keys": ("on", "off")}
"""What a person may set for one browser, and the values of each; the first is the default."""
CURSOR = "ripstop.cursor"
"""The key of the scope that holds where the journal was when a page was asked for."""
TYPED = "ripstop.typed"
"""The key of the scope that holds the words of a form, so that they are not lost with it."""
TOP_LEVEL = RunQuery(parent="")
JSON_TYPE = "application/json"
FORM_FIELDS = Markup('<input type="hidden" name="csrf" value="{}"><input type="hidden" name="intent" value="{}">')


class Counts(Struct, frozen=True, kw_only=True):
    """How many of everything there are, for the navigation."""

    by_status: dict[str, int]
    by_section: dict[str, int]
    at_work: tuple[str, ...]
    workers: int
    workflows: int


class Site:
    def __init__(self, app: "App", sessions: WebSessions, look_only: bool = False) -> None:
        self.app = app
        self.sessions = sessions
        self.look_only = look_only
        self.outlines = Outlines(app.engine)
        self.questions = QuestionLog(app.engine)
        self.kinds = KindCounts(app.engine)
        self.feed = Feed(app.engine)
        self.slots = StreamSlots()
        self.stopping = asyncio.Event()
        """Set when the server stops: streams end."""
        self.verified: Any = None
        """What the last check of the journal found, if it was checked here."""
        self._renderer = Renderer(app.engine.clock, app.plugins.translation)
        self._counts: tuple[float, Counts] | None = None

    async def prepare(self) -> None:
        """Do what would make the first page slow."""
        await asyncio.to_thread(self._renderer.compile_all)

    def translation(self, request: Request) -> Translation:
        """Of what is said in records, into the reader's language."""
        return self._renderer.translation(language_of(request))

    @property
    def engine(self) -> "Engine":
        return self.app.engine

    def by(self, request: Request) -> str:
        name: str = request.scope[BY]
        return name

    async def form(self, request: Request) -> Form:
        form = await read_form(request, self.sessions)
        fields = "\n".join(filter(None, form.starting("field.").values()))
        request.scope[TYPED] = form.text("text") or form.text("input") or fields
        return form

    # Answers

    async def render(
        self,
        request: Request,
        template: str,
        *,
        title: str = "",
        section: str = "",
        live: str = "",
        status: int = 200,
        **context: Any,
    ) -> Response:
        """A page, with the navigation around it."""
        shell = await self.shell(request, title, section, live)
        html = self._renderer.page(template, shell, lambda: self._form_fields(request), **context)
        response = Response(html, status, media_type="text/html")
        if shell.notice:
            response.delete_cookie(NOTICE, path="/")
        return response

    def fragment(self, request: Request, template: str, **context: Any) -> Response:
        """A piece of a page, for a script that puts it in its place."""
        shell = Shell(
            title="",
            by=self.by(request),
            look_only=self.look_only,
            lang=language_of(request),
            keys=_look(request, "keys") == "on",
            send_keys=_send_keys(request),
        )
        html = self._renderer.page(template, shell, lambda: self._form_fields(request), **context)
        return Response(html, media_type="text/html")

    def bare_failure(self, request: Request, code: int, said: str, hint: str) -> str:
        """A page without navigation, where none can be made or its reader is not known."""
        shell = Shell(title=str(code), lang=language_of(request), theme=_look(request, "theme"))
        return self._renderer.page("failure.html", shell, Markup, code=code, said=said, hint=hint)

    def done(self, request: Request, to: str, notice: str = "", **data: Any) -> Response:
        """After something was done: the page that shows it, or JSON for a program."""
        if wants_json(request):
            return Response(msgspec.json.encode({"done": True, "see": to, **data}), media_type=JSON_TYPE)
        response = RedirectResponse(to, 303)
        if notice:
            coded = notice[:300].encode("unicode_escape").decode("ascii")
            signed = self.sessions.sign_notice(coded)
            response.set_cookie(NOTICE, signed, max_age=60, httponly=True, samesite="strict", path="/")
        return response

    def _form_fields(self, request: Request) -> Markup:
        session = request.scope.get(SESSION)
        token = self.sessions.form_token(session) if session else ""
        return FORM_FIELDS.format(token, new_intent())

    # What every page shows

    async def shell(self, request: Request, title: str, section: str, live: str) -> Shell:
        counts = await self.counts()
        return Shell(
            title=title,
            section=section,
            by=self.by(request),
            desk=await self.desk_count(),
            runs=sum(counts.by_status.values()),
            chats=counts.by_section.get("conversations", 0),
            documents=counts.by_section.get("documents", 0),
            workflows=counts.workflows,
            at_work=counts.at_work,
            workers=counts.workers,
            journal=_short(store_path(self.app.settings.store)),
            look_only=self.look_only,
            theme=_look(request, "theme"),
            lang=language_of(request),
            keys=_look(request, "keys") == "on",
            send_keys=_send_keys(request),
            # a script's fetch on the page before must not take the words that are for the next page
            notice="" if request.headers.get("x-fragment") else _notice(request, self.sessions),
            live=_with_cursor(request, live or "/live?desk=1"),
        )

    async def note_cursor(self, request: Request) -> None:
        """Remember where the journal is before a page is made, so that its stream misses nothing that comes then."""
        if "text/html" in request.headers.get("accept", ""):
            request.scope[CURSOR] = await self.engine.journal.cursor()

    async def desk_count(self) -> int:
        """What waits for a person: open questions, and runs that cannot go on."""
        halted = await self.engine.journal.counts(RunQuery(statuses=HALTED))
        return await self.engine.journal.desk_count() + sum(halted.values())

    async def counts(self) -> Counts:
        now = asyncio.get_running_loop().time()
        if self._counts is None or now - self._counts[0] > COUNTS_SECONDS:
            self._counts = now, await self._count()
        return self._counts[1]

    async def _count(self) -> Counts:
        engine, journal = self.engine, self.engine.journal
        workers = sum(alive for _, alive in await journal.workers(engine.clock()))
        by_section = {
            section: sum((await journal.counts(RunQuery(styles=styles, parent=""))).values())
            for section, styles in self.sections().items()
        }
        working = RunQuery(statuses=("working",), parent="", size=AT_WORK_SHOWN)
        at_work = tuple(info.run_id for info in (await journal.runs(working)).items) if workers else ()
        return Counts(
            by_status=await shown_counts(engine, TOP_LEVEL),
            by_section=by_section,
            at_work=at_work,
            workers=workers,
            workflows=len(self.workflow_paths()),
        )

    def sections(self) -> dict[str, tuple[str, ...]]:
        """The styles whose runs have a list of their own, by the name of the list."""
        found: dict[str, tuple[str, ...]] = {}
        for name, kit in self.engine.registry.kits.items():
            if kit.section:
                found[kit.section] = (*found.get(kit.section, ()), name)
        return found

    def workflow_paths(self) -> tuple[Path, ...]:
        """The workflows in `workflows/` of the folder that the server was started in."""
        if not Path(FOLDER).is_dir():
            return ()
        try:
            return tuple(one.path for one in find_all(self.app.plugins.readers, FOLDER))
        except RipstopError:
            return ()


def inside(goal: str) -> str:
    """Where to go next: a path of this server, never another one."""
    is_inside = goal.startswith("/") and not goal.startswith(("//", "/\\")) and goal.isprintable()
    return goal if is_inside and not goal.startswith("/login") else "/desk"


def _with_cursor(request: Request, live: str) -> str:
    cursor: str = request.scope.get(CURSOR, "")
    return f"{live}&{urlencode({'after': cursor})}" if cursor else live


def wants_json(request: Request) -> bool:
    return JSON_TYPE in request.headers.get("accept", "")


def language_of(request: Request) -> str:
    """The reader's language: the one that was chosen, else what the browser prefers."""
    if chosen := _look(request, "lang"):
        return chosen
    for preferred in request.headers.get("accept-language", "").lower().split(","):
        code = preferred.partition(";")[0].strip().partition("-")[0]
        if code in LOOK["lang"] and code:
            return code
    return "en"


def _look(request: Request, name: str) -> str:
    given = request.cookies.get(f"ripstop_{name}", "")
    return given if given in LOOK[name] else LOOK[name][0]


def _send_keys(request: Request) -> str:
    return "⌘↵" if "Mac OS" in request.headers.get("user-agent", "") else "Ctrl ↵"


def _notice(request: Request, sessions: WebSessions) -> str:
    """The words that the page before has left. They come from a cookie, so they are signed, and only shown as text."""
    coded = sessions.read_notice(request.cookies.get(NOTICE, "")[:LONGEST_NOTICE])
    try:
        return coded.encode("ascii").decode("unicode_escape")[:300]
    except (UnicodeDecodeError, UnicodeEncodeError):
        return ""


def _short(path: Path) -> str:
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def query_of(request: Request, *names: str) -> Mapping[str, str]:
    """Parts of the query, each cut to what any of them can be."""
    return {name: request.query_params.get(name, "")[:500] for name in names}
