"""The page of a run: its summary, the parts that its style gives, its timeline, and what is beside them.

No page reads a whole run: turns come from the outline, records from a window of it.
"""

from typing import Any

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from ripstop.kernel.effects import AskAgent, CallTool, StartRun
from ripstop.kernel.errors import UsageError
from ripstop.kernel.events import OUTCOMES
from ripstop.runtime.timeline import Why

from ..rendering import address
from ..run_about import SHORT_HASH, RunAbout, about_run, kin_of, shown_address, spending_of
from ..run_drawings import HALTED, lanes_of, path_of, whole_drawing
from ..run_tabs import ICONS, TIMELINE, RunTabs, tabs_of
from ..site import Site, language_of, query_of
from ..timeline_view import (
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
from ..words import word

MOST_OPEN = 20
"""Calls under way that a page shows."""
MOST_REDRAWN = 300
"""Turns of a run whose lanes are drawn again with each step; those of a longer one with the page."""
MOST_NOTES = 3
"""Troubles that are shown above the timeline."""


async def run_page(site: Site, request: Request) -> Response:
    run_id, lang = request.path_params["run"], language_of(request)
    about, asked = await about_run(site, run_id), asked_in(request)
    tabs = tabs_of(about.style.parts(about.run))
    part = query_of(request, "part")["part"]
    if part not in tabs.names:
        part = TIMELINE if not asked.is_tail or "see" in request.query_params else tabs.names[0]
    if asked.at and asked.see == TURNS and "see" not in request.query_params:
        asked = TimelineQuery(see="records", at=asked.at)  # a link to a record shows the record
    view = await timeline_view(site, run_id, about.outline, asked) if part == TIMELINE else None
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
    return site.fragment(request, "_rows.html", run=run_id, turns=[], records=record_rows(outline.style, entries))


async def summary(site: Site, request: Request) -> Response:
    """The pieces of a page that change while the run goes on: its summary, what is under way, what is beside it."""
    about, lang = await about_run(site, request.path_params["run"]), language_of(request)
    pieces = await _pieces(site, about, tabs_of(about.style.parts(about.run)), asked_in(request), lang)
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


def _open_rows(site: Site, about: RunAbout, lang: str) -> list[OpenCallRow]:
    rows: list[OpenCallRow] = []
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
        rows.append(OpenCallRow(one.number, one.at, text, words, one.in_doubt))
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
