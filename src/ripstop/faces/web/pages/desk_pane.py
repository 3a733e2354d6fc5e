"""One item of the desk, with all that a person needs to decide: what each template `desk_….html` is given.

A run that cannot be read here, such as one of a style that is not installed, is shown by its question alone.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request

from ripstop.differences import Hunk, difference
from ripstop.kernel.desk_kinds import DOUBTED, GUARDED, HANDOFF, QUESTION, REVIEWED
from ripstop.kernel.effects import CallTool
from ripstop.kernel.errors import DefinitionError, RunNotFound, RunUnreadable, UnknownRecord, UnknownStyle
from ripstop.kernel.parts import Rail, Talk
from ripstop.kernel.questions import kind_of
from ripstop.kernel.run import Run
from ripstop.runtime.ports import DeskQuery, Question, RunInfo
from ripstop.views import AskedQuestion, DeskItem, desk_item
from ripstop.views.evidence import doubted_call, verdict_shown
from ripstop.views.talk import talk_page
from ripstop.visible_text import visible

from ..rendering import address
from ..showing import line
from ..site import Site
from .desk_list import DeskList

UNREADABLE = (RunUnreadable, UnknownRecord, UnknownStyle, DefinitionError)
SHOWN = 256 * 1024
"""Bytes of a document that are shown; a longer one is cut, and cannot be edited in a page."""
MOST_CHANGES = 2000
"""Lines of a difference that are shown."""
MOST_LINES = 100
"""Of a conversation whose style has no notices, the last ones."""
MOST_ANSWERS = 10
"""Earlier answers, the last ones."""
CHANGES, PREVIEW, SOURCE = "changes", "preview", "source"
TEMPLATES = {
    REVIEWED: "desk_review.html",
    QUESTION: "desk_question.html",
    DOUBTED: "desk_doubt.html",
    GUARDED: "desk_guard.html",
    HANDOFF: "desk_handoff.html",
}
Pane = dict[str, Any]


class Typed(Struct, frozen=True):
    """What a person had typed into a form that was refused, and why it was."""

    fault: str = ""
    choice: str = ""
    text: str = ""
    document: str | None = None
    fields: dict[str, str] = {}


class ShownText(Struct, frozen=True):
    """A text, cut to what a page can show."""

    text: str
    size: int
    """Bytes of the whole text."""
    is_cut: bool


class ShownChanges(Struct, frozen=True):
    hunks: tuple[Hunk, ...]
    added: int
    removed: int
    left_out: int
    """Lines that are not shown."""


async def find_question(site: Site, run_id: str, number: int) -> Question | None:
    """An open question; `None` if it is not open. Raises `RunNotFound`."""
    info = await site.engine.journal.run(run_id)
    if info is None:
        raise RunNotFound(run_id)
    query = DeskQuery(root=info.root, size=1000)
    while True:
        page = await site.engine.desk(query)
        for question in page.items:
            if (question.run_id, question.number) == (run_id, number):
                return question
        if not page.next:
            return None
        query = replace(query, cursor=page.next)


async def read_run(site: Site, run_id: str) -> Run[Any] | None:
    """A run as it is now; `None` if it cannot be read here."""
    try:
        return (await site.engine.look(run_id)).run
    except UNREADABLE:
        return None


# An open question


async def question_pane(
    site: Site, request: Request, question: Question, listing: DeskList, view: str = "", typed: Typed = Typed()
) -> Pane:
    item = await desk_item(site.engine, question, log=site.questions)
    run = await read_run(site, item.run)
    pane: Pane = {
        "template": TEMPLATES[item.kind],
        "item": item,
        "title": item.title or item.question,
        "at": question.at,
        "about": run.started.input if run else "",
        "family": [name.rpartition(" (")[0] for name in item.family[1:]],
        "fields": form_fields(item, typed),
        "typed": typed,
        "is_readable": run is not None,
    }
    if item.kind == REVIEWED:
        return pane | await _review(site, item, run, listing, view, typed)
    if run is None:
        return pane | {"template": TEMPLATES[QUESTION]}
    if item.kind == DOUBTED:
        return pane | await _doubt(site, item, run)
    if item.kind == GUARDED:
        return pane | await _guard(site, item, run, typed)
    return pane | (await _handoff(site, request, item, run) if item.kind == HANDOFF else {})


def form_fields(item: DeskItem, typed: Typed = Typed()) -> list[tuple[str, Any, str]]:
    """The fields of a question: the name that is posted, the field with its label, and what was typed."""
    return [
        (f"field.{name}", replace(field, label=line(field.label or name)), typed.fields.get(name, ""))
        for name, field in item.fields.items()
    ]


async def _review(site: Site, item: DeskItem, run: Run[Any] | None, listing: DeskList, view: str, typed: Typed) -> Pane:
    document = item.document or ""
    changes = None if item.difference is None else shown_changes(item.difference)
    views = (*((CHANGES,) if changes is not None else ()), PREVIEW, *((SOURCE,) if item.edit else ()))
    here = SOURCE if typed.document is not None else view if view in views else views[0]
    answered = await earlier_answers(site, item.run, item.purpose, item.number)
    parts = site.engine.style(run).parts(run) if run else ()
    shown = shown_text(document)
    return {
        "title": item.question,
        "views": {name: listing.address(f"/desk/{item.id}", view=name) for name in views},
        "view": here,
        "changes": changes,
        "document": shown,
        "source": document if typed.document is None else typed.document,
        "has_hidden": visible(document) != document.replace("\r\n", "\n"),
        "base": digest(document),
        "rail": next((part for part in parts if isinstance(part, Rail)), None),
        "answered": answered[-MOST_ANSWERS:],
        "answered_before": max(0, len(answered) - MOST_ANSWERS),
        "draft": len(answered) + 1,
        "file": item.title.rpartition("/")[2],
    }


async def _doubt(site: Site, item: DeskItem, run: Run[Any]) -> Pane:
    call = await doubted_call(site.engine, run, item.number)
    if call is None:
        return {"template": TEMPLATES[QUESTION]}
    command = call.command
    is_tool = isinstance(command, CallTool)
    arguments = msgspec.json.format(msgspec.json.encode(call.arguments), indent=2).decode() if is_tool else ""
    return {
        "call": call,
        "effect": (command.effect or site.app.toolbox.kind(command).value) if isinstance(command, CallTool) else "",
        "arguments": shown_text(arguments, 20_000),
    }


async def _guard(site: Site, item: DeskItem, run: Run[Any], typed: Typed) -> Pane:
    verdict = await verdict_shown(site.engine, run) if run.asks_about_verdict == item.number else None
    if verdict is None:
        return {"template": TEMPLATES[QUESTION]}
    typed_amount = typed.fields.get("raise")
    amount = f"{verdict.amount:g}" if verdict.amount else ""
    title, stop, more = verdict.text.partition(". ")
    return {
        "title": f"{title}{stop.strip()}",
        "more": more,
        "verdict": verdict,
        "amount": amount if typed_amount is None else typed_amount,
    }


async def _handoff(site: Site, request: Request, item: DeskItem, run: Run[Any]) -> Pane:
    by, style = site.by(request), site.engine.style(run)
    is_mine = style.picture(run).whose_turn == by
    actions = () if is_mine else [action for action in style.actions(run) if action.by in ("", by)]
    return {
        "run": run,
        "is_mine": is_mine,
        "talk": await talk_page(site.engine, run) if style.has_notices else None,
        "said": Talk(tuple(item.talk[-MOST_LINES:])),
        "objection": style.objection(run, item.number, by),
        "actions": [(action, address(f"/runs/{run.id}/act/{action.name}")) for action in actions],
        "by": by,
    }


# A question that is not open any more, and a run that cannot go on


async def answered_pane(site: Site, asked: AskedQuestion, run_id: str, listing: DeskList, typed: Typed) -> Pane:
    """What became of a question, and what is open now; what a person typed for it is kept."""
    run = await read_run(site, run_id)
    following = listing.following(f"{run_id}/{asked.number}")
    newer = _asked_since(run, asked) if run else 0
    kind = kind_of(asked.ask)
    pane: Pane = {
        "template": "desk_answered.html",
        "title": asked.ask.question if kind == REVIEWED else asked.ask.title or asked.ask.question,
        "asked": asked,
        "run": run_id,
        "kind": kind,
        "following": following,
        "newer": newer,
        "newer_id": f"{run_id}/{newer}",
        "typed": typed,
        "yours": None,
    }
    if newer and typed.document is not None:
        question = await find_question(site, run_id, newer)
        item = await desk_item(site.engine, question, log=site.questions) if question else None
        if item and item.document is not None and item.edit:
            pane |= compared(item, typed.document)
    return pane


def compared(item: DeskItem, document: str) -> Pane:
    """A document that was edited elsewhere or too late, beside the draft as it is now."""
    now = item.document or ""
    return {"yours": shown_changes(difference(now, document)), "base": digest(now), "edit": item.edit}


def _asked_since(run: Run[Any], asked: AskedQuestion) -> int:
    """The open question of the same purpose; 0 if there is none."""
    purposes = {number: getattr(opened.command, "purpose", None) for number, opened in run.open.items()}
    return next((number for number, purpose in purposes.items() if purpose == asked.ask.purpose), 0)


def halted_pane(info: RunInfo) -> Pane:
    return {"template": "desk_halted.html", "title": info.gist or info.run_id, "info": info}


# Parts of them


async def earlier_answers(site: Site, run_id: str, purpose: str, before: int) -> list[AskedQuestion]:
    """The questions of a purpose that were answered before a question was asked, in order."""
    try:
        asked = await site.questions.of(run_id)
    except UNREADABLE:
        return []
    return [one for one in asked.values() if one.given and one.ask.purpose == purpose and one.number < before]


def shown_text(text: str, most: int = SHOWN) -> ShownText:
    whole = text.encode("utf-8", "surrogatepass")
    is_cut = len(whole) > most
    return ShownText(whole[:most].decode("utf-8", "ignore") if is_cut else text, len(whole), is_cut)


def shown_changes(hunks: Sequence[Hunk]) -> ShownChanges:
    """Changes, cut to so many lines and characters as a page can show."""
    lines = [line for hunk in hunks for line in hunk.lines]
    kept: list[Hunk] = []
    count, room = 0, SHOWN
    for hunk in hunks:
        fitting = 0
        for one in hunk.lines:
            room -= len(one.text)
            if count + fitting >= MOST_CHANGES or room < 0:
                break
            fitting += 1
        count += fitting
        if fitting:
            kept.append(Hunk(hunk.lines[:fitting]))
        if fitting < len(hunk.lines):
            break
    added, removed = (sum(one.kind == kind for one in lines) for kind in ("added", "removed"))
    return ShownChanges(tuple(kept), added, removed, len(lines) - count)


def digest(document: str) -> str:
    """What an edit says it is an edit of."""
    return hashlib.sha256(document.encode("utf-8", "surrogatepass")).hexdigest()
