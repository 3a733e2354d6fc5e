"""The page of a run: its summary, the parts that its style gives, its timeline, and what is beside them.

No page reads a whole run: turns come from the outline, records from a window of it.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from markupsafe import Markup
from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from ripstop.app.run_files import file_changes
from ripstop.engine.ports import DeskQuery, Question, RunInfo, RunQuery
from ripstop.history.narration import shown_seconds
from ripstop.history.outages import Outage, outage_behind, question_now, refused_calls
from ripstop.history.outline import Outline
from ripstop.history.runs import shown_status
from ripstop.history.timeline import Why
from ripstop.kernel.budget import amount
from ripstop.kernel.effects import AskAgent, CallTool, StartRun
from ripstop.kernel.errors import RunNotFound, UsageError
from ripstop.kernel.events import OUTCOMES
from ripstop.kernel.limits import BY_RANK
from ripstop.kernel.parts import Claims, Facts, Ledger, Line, Paper, Part, Rail, Talk, Tasks, Timers
from ripstop.kernel.run import Run
from ripstop.kernel.style import Action, Picture, Style
from ripstop.text.diagrams.diagram import Diagram
from ripstop.text.diagrams.inline_svg import inline_svg, shortened
from ripstop.text.diagrams.lanes import lanes, lanes_svg

from ..markup import hue
from ..rendering import address
from ..site import Site, language_of, query_of
from ..words import word
from .timeline import (
    MOST_RECORDS,
    MOST_TURNS,
    SEE,
    TURNS,
    TimelineQuery,
    asked_in,
    number_in,
    record_rows,
    timeline_view,
)

if TYPE_CHECKING:
    from ..site import Site


# What the pages of a run say about it: how it is, what it spent, what is on record, and its family.
#
# All of it comes from its outline, whose run is folded already, and from the lists of the journal.


MICROSECONDS = 1_000_000
PAUSED_STATUS = "paused"
MOST_KIN = 20
"""Children, forks or questions of a run that its page lists."""
SHORT_HASH = 12


class RunAbout(Struct, frozen=True):
    """A run as its pages show it."""

    info: RunInfo
    """With the status as people see it."""
    outline: Outline
    run: Run[Any]
    style: Style[Any]
    picture: Picture
    workflow: str
    """The name that its definition has; empty if it has none."""
    section: str
    """The list of its own that it is in: `conversations`, `documents`, or empty."""
    seconds: float
    """From its beginning to its last record or, while it has not ended, to now."""
    has_workers: bool

    @property
    def elapsed(self) -> str:
        return shown_seconds(self.seconds)

    @property
    def at_work(self) -> str:
        """How long models, tools and children were at work; of a fork, with what it shares."""
        return shown_seconds(self.run.work.counted / MICROSECONDS)

    @property
    def can_be_cancelled(self) -> bool:
        return self.run.ended is None

    @property
    def can_be_retried(self) -> bool:
        """Whether a model server has refused a call, and the run is paused or has failed through that."""
        return self.info.status == PAUSED_STATUS or (bool(self.run.failed_call) and not self.info.parent)

    @property
    def can_be_forked(self) -> bool:
        return not self.style.unforkable

    @property
    def restarts(self) -> tuple[str, ...]:
        """The stages at which its project can be restarted: of a run that has ended, and that no other run started."""
        is_over = self.run.ended is not None and not self.info.parent and bool(self.run.settings.workspace)
        return self.style.ending(self.run.state).restarts if is_over else ()

    @property
    def actions(self) -> tuple[Action, ...]:
        return self.style.people.actions(self.run)


class Kin(Struct, frozen=True):
    children: list[RunInfo]
    has_more_children: bool
    forks: list[RunInfo]
    questions: list[Question]
    """What the run and its descendants ask people now."""


async def about_run(site: "Site", run_id: str) -> RunAbout:
    """Raises `RunNotFound`, or the `JournalError` that says why the run cannot be read."""
    engine = site.engine
    outline = await site.outlines.of(run_id)
    info, run = await engine.journal.run(run_id), outline.run
    if info is None or run is None:
        raise RunNotFound(run_id)
    style = outline.style
    left, has_workers = run_id in await engine.left_waiting(), await engine.has_workers()
    now = info.updated if run.ended else engine.clock()
    return RunAbout(
        info=replace(info, status=shown_status(info.status, has_workers, left)),
        outline=outline,
        run=run,
        style=style,
        picture=style.view.picture(run),
        workflow=str(getattr(engine.definition(run), "name", "")),
        section=engine.kit(run).section,
        seconds=max(0, now - info.created) / MICROSECONDS,
        has_workers=has_workers,
    )


async def kin_of(site: "Site", info: RunInfo) -> Kin:
    journal, run_id = site.engine.journal, info.run_id
    children = await journal.runs(RunQuery(parent=run_id, size=MOST_KIN))
    asked = await journal.desk(DeskQuery(root=info.root, size=1000))
    mine = [one for one in asked.items if one.run_id == run_id or one.run_id.startswith(f"{run_id}.")]
    questions = [question_now(one, await outage_behind(site.engine, one)) for one in mine[:MOST_KIN]]
    return Kin(children.items, bool(children.next), (await journal.forks(run_id))[:MOST_KIN], questions)


class Spending(Struct, frozen=True):
    """What was spent of something, and the limit; 0 for none."""

    name: str
    unit: str
    """As in the table of limits."""
    value: float
    limit: float


def spending_of(about: RunAbout) -> list[Spending]:
    run = about.run
    spent = []
    for limit in BY_RANK:
        most = getattr(run.limits, limit.name) or 0
        if limit.unit != "s":
            value = about.style.view.turns(run) if limit.name == "turns" else amount(run.spent, limit.name)
        elif most:  # otherwise the time at work is not counted
            value = run.work.counted / MICROSECONDS
        else:
            continue
        spent.append(Spending(limit.name, limit.unit, value, most))
    return spent


def shown_address(base_url: str) -> str:
    """A base URL without the parts that can hold a secret; empty if it cannot be read."""
    try:
        parts = urlsplit(base_url)
        host = parts.hostname or ""
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return ""
    return f"{parts.scheme}://{host}{port}{parts.path}" if host else ""


# The drawings of a run, as SVG for its page. What is drawn once is kept until the run has moved.
#
# Our own writers escape every text, so what they write can be put into a page as it is.


Kept = WeakKeyDictionary[Outline, tuple[object, Markup]]
_lanes: Kept = WeakKeyDictionary()
_paths: Kept = WeakKeyDictionary()
NOTHING = Markup("")
SECOND = 1_000_000
HALTED = ("interrupted", "set_aside")
"""Statuses in which nothing is done of what is open."""


def lanes_of(about: "RunAbout", now: int, lang: str) -> Markup:
    """When who worked; empty if nobody did."""
    outline = about.outline
    if about.info.status in HALTED:
        now = about.info.updated
    key = outline.records, lang, now // SECOND if outline.open else 0
    known = _lanes.get(outline)
    if known is None or known[0] != key:
        drawn = lanes(outline, now, word(lang, "run.lanes.tools"))
        svg = Markup(lanes_svg(drawn, word(lang, "run.lanes"), hue)) if drawn.lanes else NOTHING  # noqa: S704
        known = _lanes[outline] = key, svg
    return known[1]


async def path_of(site: "Site", about: "RunAbout") -> Markup:
    """The ways that the run has taken, and those that it can take now; empty if its style does not draw its runs."""
    outline = about.outline
    known = _paths.get(outline)
    if known is None or known[0] != outline.records:
        drawn = await site.outlines.drawing(about.run.id)
        svg = whole_drawing(shortened(drawn.diagram), about.run.id) if drawn else NOTHING
        known = _paths[outline] = outline.records, svg
    return known[1]


def whole_drawing(diagram: Diagram, run_id: str) -> Markup:
    """A drawing in which a state leads to its turns."""
    svg = inline_svg(diagram, hue, lambda state: address(f"/runs/{run_id}", q=state))
    return Markup(svg)  # noqa: S704


# Where the parts of a run go: which tabs its page has, which opens first, and what is beside them. Knows no style.
#
# | tab      | when there is                 | shows                                           |
# |----------|-------------------------------|-------------------------------------------------|
# | stages   | a rail                        | the rail, decisions, claims, drafts, last words |
# | board    | a plan or claims, and no rail | decisions, claims; the plan is beside it        |
# | talk     | a talk, and no rail           | the talk                                        |
# | document | a document, and no rail       | the document, decisions                         |
# | timeline | always                        | turns or records                                |
#
# The first tab opens. A tab with nothing but a rail and last words comes last: the drawing of the run shows the same.


TIMELINE = "timeline"
ICONS = {"board": "list", "stages": "flow", "talk": "chat", "document": "doc", TIMELINE: "pulse"}
MOST_ROWS = 200
"""Rows of one part; of more, the last ones are shown."""
LONGEST_DOCUMENT, LONGEST_LINE = 100_000, 4000
"""Characters of a document, and of one message; behind a longer one is the number of the record that has all of it."""


class ShownPart(Struct, frozen=True):
    part: Part
    left_out: int = 0
    """How many of its rows are not shown."""


class RunTabs(Struct, frozen=True):
    names: tuple[str, ...]
    """Of the tabs, in order; the first one opens."""
    main: dict[str, tuple[ShownPart, ...]]
    """What each tab shows; the timeline is not among them."""
    beside: tuple[ShownPart, ...]
    """What is beside every tab."""


def tabs_of(parts: Sequence[Part]) -> RunTabs:
    shown = [_bounded(part) for part in parts]

    def of(*kinds: type[Any]) -> tuple[ShownPart, ...]:
        return tuple(one for kind in kinds for one in shown if isinstance(one.part, kind))

    main: dict[str, tuple[ShownPart, ...]] = {}
    if of(Rail):
        main["stages"] = of(Rail, Ledger, Claims, Paper, Talk)
    elif of(Tasks, Claims):
        main["board"] = of(Ledger, Claims)
    elif of(Paper):
        main["document"] = of(Paper, Ledger)
    if of(Talk) and not of(Rail):
        main["talk"] = of(Talk)
    is_bare = "stages" in main and not of(Ledger, Claims, Paper)
    names = (TIMELINE, *main) if is_bare else (*main, TIMELINE)
    return RunTabs(names, main, of(Tasks, Facts, Timers))


def _bounded(part: Part) -> ShownPart:
    """A part of which not more is shown than a page can have."""
    match part:
        case Ledger(entries=rows):
            return _last(rows, lambda kept: replace(part, entries=kept))
        case Claims(claims=rows):
            return _last(rows, lambda kept: replace(part, claims=kept))
        case Tasks(tasks=rows):
            return _last(rows, lambda kept: replace(part, tasks=kept))
        case Talk(lines=rows):
            return _last(rows, lambda kept: replace(part, lines=tuple(map(_short, kept))))
        case Facts(rows=rows):
            return _last(rows, lambda kept: replace(part, rows=kept))
        case Rail(stages=rows):
            return _last(rows, lambda kept: replace(part, stages=kept))
        case Timers(timers=rows):
            return _last(rows, lambda kept: replace(part, timers=kept))
        case Paper(text=text) if len(text) > LONGEST_DOCUMENT:
            return ShownPart(replace(part, text=text[:LONGEST_DOCUMENT]), len(text) - LONGEST_DOCUMENT)
    return ShownPart(part)


def _short(line: Line) -> Line:
    is_long = len(line.text) > LONGEST_LINE
    return replace(line, text=f"{line.text[:LONGEST_LINE]}… ({line.number})") if is_long else line


def _last(rows: tuple[Any, ...], kept: Callable[[Any], Part]) -> ShownPart:
    return ShownPart(kept(rows[-MOST_ROWS:]), max(0, len(rows) - MOST_ROWS))


MOST_OPEN = 20
"""Calls under way that a page shows."""
MOST_REDRAWN = 300
"""Turns of a run whose lanes are drawn again with each step; those of a longer one with the page."""
MOST_NOTES = 3
"""Troubles that are shown above the timeline."""


async def run_page(site: Site, request: Request) -> Response:
    run_id, lang = request.path_params["run"], language_of(request)
    about, asked = await about_run(site, run_id), asked_in(request)
    tabs = tabs_of(about.style.view.parts(about.run))
    part = query_of(request, "part")["part"]
    if part not in tabs.names:
        part = TIMELINE if not asked.is_tail or "see" in request.query_params else tabs.names[0]
    if asked.at and asked.see == TURNS and "see" not in request.query_params:
        asked = TimelineQuery(see="records", at=asked.at)  # a link to a record shows the record
    is_timeline = part == TIMELINE
    view = await timeline_view(site, run_id, about.outline, asked, site.translation(request)) if is_timeline else None
    is_at_end = view is not None and view.is_at_end
    return await site.render(
        request,
        "run.html",
        title=run_id,
        section="runs",
        live=address("/live", run=run_id, desk=1),
        tabs=[
            (word(lang, f"run.tab.{name}"), address(f"/runs/{run_id}", part=name), name == part, None, ICONS[name])
            for name in tabs.names
        ],
        part=part,
        main=tabs.main.get(part, ()),
        view=view,
        lanes=lanes_of(about, site.engine.clock(), lang) if view is not None else "",
        **await _pieces(site, about, tabs, asked, lang, is_at_end),
    )


async def _pieces(
    site: Site, about: RunAbout, tabs: RunTabs, asked: TimelineQuery, lang: str, is_at_end: bool = True
) -> dict[str, Any]:
    """What a page replaces while the run goes on."""
    return {
        "about": about,
        "see": asked.see,
        "sees": _sees(about, asked, lang),
        "why": await _last_word(site, about),
        "notes": [text for line in about.outline.troubled[-MOST_NOTES:] for text in line.trouble][-MOST_NOTES:],
        "open_rows": _open_rows(site, about, lang) if is_at_end else [],
        "beside": tabs.beside,
        "path": await path_of(site, about),
        "kin": await kin_of(site, about.info),
        "spending": spending_of(about),
        "on_record": _on_record(about),
        "files": await file_changes(site.engine, about.info.run_id),
    }


async def rows(site: Site, request: Request) -> Response:
    """What a page adds to its timeline: the records, or with `see=turns` the turns, after a record."""
    run_id = request.path_params["run"]
    given = query_of(request, "after", "before", "see")
    after, before = number_in(given["after"]), number_in(given["before"]) or None
    outline = await site.outlines.of(run_id)
    if given["see"] == TURNS:
        place = outline.place_of(after + 1)
        found = outline[max(place, len(outline) - MOST_TURNS) :] if place is not None else []
        return site.fragment(request, "_rows.html", run=run_id, turns=found, records=[])
    entries = await site.outlines.window(run_id, after, before, MOST_RECORDS, with_prompts=False)
    found_records = record_rows(outline, entries, site.translation(request))
    return site.fragment(request, "_rows.html", run=run_id, turns=[], records=found_records)


async def summary(site: Site, request: Request) -> Response:
    """The pieces of a page that change while the run goes on: its summary, what is under way, what is beside it."""
    about, lang = await about_run(site, request.path_params["run"]), language_of(request)
    pieces = await _pieces(site, about, tabs_of(about.style.view.parts(about.run)), asked_in(request), lang)
    is_short = about.outline.turns <= MOST_REDRAWN
    drawn = lanes_of(about, site.engine.clock(), lang) if is_short else ""
    return site.fragment(request, "_summary.html", part=TIMELINE, is_piece=True, lanes=drawn, **pieces)


async def drawing_page(site: Site, request: Request) -> Response:
    run_id = request.path_params["run"]
    about, drawn = await about_run(site, run_id), await site.outlines.drawing(run_id)
    if drawn is None:
        raise UsageError(f"Runs of style {about.info.style!r} are not drawn.")
    title = word(language_of(request), "run.drawing.title", run=run_id)
    return await site.render(
        request,
        "drawing.html",
        title=title,
        section="runs",
        about=about,
        picture=whole_drawing(drawn.diagram, run_id),
        left_out=drawn.left_out,
    )


def _sees(about: RunAbout, asked: TimelineQuery, lang: str) -> list[tuple[str, str, bool, int | None]]:
    """The three ways to see the timeline."""
    counts = {"turns": None, "records": None, "trouble": about.outline.trouble}
    return [
        (word(lang, f"run.see.{see}"), address(f"/runs/{about.run.id}", see=see), see == asked.see, counts[see])
        for see in SEE
    ]


class OpenCallRow(Struct, frozen=True):
    """Something that is under way."""

    number: int
    at: int
    text: str
    words: str | None
    """What an agent has said so far; `None` for what says nothing."""
    is_doubtful: bool
    outage: Outage | None
    """How often it was refused, and what is next; `None`: it does not wait to be made again."""


def _open_rows(site: Site, about: RunAbout, lang: str) -> list[OpenCallRow]:
    rows: list[OpenCallRow] = []
    refused = {one.call: one for one in refused_calls(about.run, about.info.root, about.has_workers)}
    for one in about.outline.open:
        words: str | None = None
        match one.command:
            case AskAgent(agent=who):
                text, words = word(lang, "run.open.agent", who=who), site.feed.words_so_far(about.run.id, one.number)
            case CallTool(tool=who):
                text = word(lang, "run.open.tool", tool=who)
            case StartRun(workflow=who):
                text = word(lang, "run.open.workflow", workflow=who)
            case _:
                continue
        if about.info.status in HALTED:
            text, words = word(lang, "run.open.left", who=who), None
        if one.in_doubt:
            text, words = word(lang, "run.open.doubt", n=one.number), None
        elif outage := refused.get(one.number):
            text, words = word(lang, "run.open.refused", who=who, reason=outage.reason), None
        elif about.has_workers and (provider := about.run.held_back.get(one.number)):
            text, words = word(lang, "run.open.held", who=who, provider=provider), None
        rows.append(OpenCallRow(one.number, one.at, text, words, one.in_doubt, refused.get(one.number)))
    return rows[-MOST_OPEN:]


async def _last_word(site: Site, about: RunAbout) -> Why | None:
    """Why a guard stopped the run, and how it can continue; `None` while it goes on or if there is nothing to say."""
    run = about.run
    if run.verdict is None and (run.ended is None or run.ended.outcome == OUTCOMES[0]):
        return None
    found = [why for _, why in await site.outlines.why(run.id, about.outline.last_word)]
    return next((why for why in reversed(found) if why.verdict or why.ways), None)


def _on_record(about: RunAbout) -> dict[str, Any]:
    """What of its settings may be shown: names, never keys or what an address can hide."""
    run, guards = about.run, about.run.guards
    return {
        "model": run.settings.model_for_all or run.settings.model,
        "base_url": shown_address(run.settings.base_url),
        "definition": run.definition[:SHORT_HASH],
        "workspace": run.settings.workspace,
        "patience": guards.patience,
        "courtesy": guards.courtesy,
        "then": guards.then,
        "records": about.outline.records,
    }
