"""The desk: everything that waits for a person on the left, one item of it on the right.

Without an item in the address, wide screens show the first one; on a phone there is only the list.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ripstop.engine.ports import MAX_PAGE, DeskQuery, Question, RunInfo, RunQuery
from ripstop.faces.http.asgi import RequestRefused
from ripstop.history.answers import AskedQuestion
from ripstop.history.desk import DeskItem, desk_item
from ripstop.history.evidence import doubted_call, verdict_shown
from ripstop.history.outages import outage_behind, question_now
from ripstop.history.transcript import talk_page
from ripstop.kernel.desk_kinds import DOUBTED, GUARDED, HALTED, HANDOFF, KINDS, PAUSED, QUESTION, REVIEWED, STUCK
from ripstop.kernel.effects import CallTool
from ripstop.kernel.errors import DefinitionError, RunNotFound, RunUnreadable, UnknownRecord, UnknownStyle, UsageError
from ripstop.kernel.parts import Rail, Talk
from ripstop.kernel.questions import kind_of
from ripstop.kernel.run import Run
from ripstop.kernel.style import NO_AUDIENCE
from ripstop.text.differences import Hunk, difference
from ripstop.text.translation import Translation
from ripstop.text.visible_text import visible, visible_line

from ..rendering import address
from ..site import Site, language_of, query_of
from ..words import word

# The list of the desk: what waits for a person, the oldest first, page by page. No run is read for it.
#
# Questions come first, then the runs that are stuck or set aside; the journal keeps the two in lists of their own.


SIZE = 50
ASKED = (REVIEWED, QUESTION, DOUBTED, GUARDED, PAUSED, HANDOFF)
"""Kinds whose chips are always there, so that they keep their places."""
Chip = tuple[str, str, bool, int | None]


class Row(Struct, frozen=True, kw_only=True):
    """A line of the list."""

    id: str
    """`run/number`, or the id of a run."""
    kind: str
    title: str
    at: int
    about: str
    """What it is about, in a few words."""
    text: str
    source: Question | RunInfo


class DeskList(Struct, frozen=True, kw_only=True):
    kind: str
    after: str
    rows: tuple[Row, ...]
    next: str
    """The cursor of the next page; empty at the end."""
    chips: tuple[Chip, ...]

    def address(self, path: str, **query: str) -> str:
        """An address that keeps the list as it is."""
        return address(path, kind=self.kind, after=self.after, **query)

    def following(self, item: str) -> Row | None:
        """What to do after an item: the next one of the list, else the first."""
        ids = [row.id for row in self.rows]
        at = ids.index(item) if item in ids else -1
        return next((row for row in (*self.rows[at + 1 :], *self.rows[: max(at, 0)]) if row.id != item), None)


async def desk_list(site: Site, request: Request, given: Mapping[str, str] | None = None) -> DeskList:
    """The page of the list that an address asks for, or the fields of a form.

    What is not known is left out: a link to a list never fails.
    """
    given = given or query_of(request, "kind", "after")
    lang = language_of(request)
    kind = given["kind"] if given["kind"] in KINDS else ""
    try:
        rows, following = await _rows(site, kind, given["after"], lang, site.translation(request))
        after = given["after"]
    except UsageError:  # not a cursor of this journal
        rows, following = await _rows(site, kind, "", lang, site.translation(request))
        after = ""
    chips = await _chips(site, kind, lang)
    return DeskList(kind=kind, after=after, rows=tuple(rows), next=following, chips=chips)


async def _rows(site: Site, kind: str, after: str, lang: str, translation: Translation) -> tuple[list[Row], str]:
    journal = site.engine.journal
    if kind in HALTED:
        page = await journal.runs(RunQuery(statuses=(kind,), cursor=after, size=SIZE))
        return [_halted_row(info, lang) for info in page.items], page.next
    questions = await journal.desk(DeskQuery(kind=kind, cursor=after, size=SIZE))
    asked = [question_now(one, await outage_behind(site.engine, one)) for one in questions.items]
    rows = [_row(one, await journal.run(one.run_id), lang, translation) for one in asked]
    if not kind and not questions.next:
        halted = await journal.runs(RunQuery(statuses=HALTED, size=SIZE))
        rows += [_halted_row(info, lang) for info in reversed(halted.items)]
    return rows, questions.next


def _row(question: Question, info: RunInfo | None, lang: str, translation: Translation) -> Row:
    ask, kind = question.command, kind_of(question.command)
    gist = info.gist if info else ""
    title, about, text = ask.question, ask.title, gist
    if kind == DOUBTED:
        title = word(lang, "desk.doubt.title")
        text = ask.question.removeprefix("Did this call take effect?").strip()
    elif kind == GUARDED:
        title, about, text = (
            word(lang, "desk.guard.title", guard=translation.of(ask.title, "guard")),
            gist,
            ask.question,
        )
    elif kind == HANDOFF:
        title, about, text = ask.title or question.run_id, word(lang, "desk.conversation"), ask.question
    elif kind == QUESTION and ask.choices:
        text = " / ".join(translation.of(label or choice) for choice, label in ask.choices.items())
    return Row(
        id=f"{question.run_id}/{question.number}",
        kind=kind,
        title=title,
        at=question.at,
        about=about or gist,
        text="" if text == about else text,
        source=question,
    )


def _halted_row(info: RunInfo, lang: str) -> Row:
    is_stuck = info.status == STUCK
    return Row(
        id=info.run_id,
        kind=info.status,
        title=info.gist or info.run_id,
        at=info.updated,
        about=info.style,
        text=word(lang, "desk.stuck.reason") if is_stuck else info.set_aside,
        source=info,
    )


async def _chips(site: Site, chosen: str, lang: str) -> tuple[Chip, ...]:
    halted = await site.engine.journal.counts(RunQuery(statuses=HALTED))
    counts = await site.kinds.now()
    chips: list[Chip] = [(word(lang, "desk.all"), "/desk", not chosen, await site.desk_count())]
    for kind in KINDS:
        count = halted.get(kind, 0) if kind in HALTED else None if counts is None else counts.get(kind, 0)
        if count or kind in ASKED or kind == chosen:
            chips.append((word(lang, f"desk.kind.{kind}"), address("/desk", kind=kind), kind == chosen, count))
    return tuple(chips)


# One item of the desk, with all that a person needs to decide: what each template `desk_….html` is given.
#
# A run that cannot be read here, such as one of a style that is not installed, is shown by its question alone.


UNREADABLE = (RunUnreadable, UnknownRecord, UnknownStyle, DefinitionError)
SHOWN = 256 * 1024
"""Bytes of a document that are shown; a longer one is cut, and cannot be edited in a page."""
MOST_CHANGES = 2000
"""Lines of a difference that are shown."""
MOST_LINES = 100
"""Of a conversation whose style has no notices, the last ones."""
FOLDED = 120
"""Characters of an argument of a call from which on it is folded."""
MOST_ANSWERS = 10
"""Earlier answers, the last ones."""
FIRST_SENTENCE = re.compile(r"(?<=\.) |(?<=。)")
CHANGES, PREVIEW, SOURCE = "changes", "preview", "source"
TEMPLATES = {
    REVIEWED: "desk_review.html",
    QUESTION: "desk_question.html",
    DOUBTED: "desk_doubt.html",
    GUARDED: "desk_guard.html",
    PAUSED: "desk_question.html",
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
        "arguments": shown_arguments(item.arguments or {}),
    }
    if item.kind == REVIEWED:
        return pane | await _review(site, item, run, listing, view, typed)
    if run is None:
        return pane | {"template": TEMPLATES[QUESTION]}
    if item.kind == DOUBTED:
        return pane | await _doubt(site, item, run)
    if item.kind == GUARDED:
        return pane | await _guard(site, item, run, typed, site.translation(request))
    return pane | (await _handoff(site, request, item, run) if item.kind == HANDOFF else {})


def form_fields(item: DeskItem, typed: Typed = Typed()) -> list[tuple[str, Any, str]]:
    """The fields of a question: the name that is posted, the field with its label, and what was typed."""
    return [
        (f"field.{name}", replace(field, label=field.label or name), typed.fields.get(name, ""))
        for name, field in item.fields.items()
    ]


async def _review(site: Site, item: DeskItem, run: Run[Any] | None, listing: DeskList, view: str, typed: Typed) -> Pane:
    document = item.document or ""
    changes = None if item.difference is None else shown_changes(item.difference)
    views = (*((CHANGES,) if changes is not None else ()), PREVIEW, *((SOURCE,) if item.edit else ()))
    here = SOURCE if typed.document is not None else view if view in views else views[0]
    answered = await earlier_answers(site, item.run, item.purpose, item.number)
    parts = site.engine.style(run).view.parts(run) if run else ()
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
    return {
        "call": call,
        "effect": (command.effect or site.app.toolbox.kind(command).value) if isinstance(command, CallTool) else "",
    }


async def _guard(site: Site, item: DeskItem, run: Run[Any], typed: Typed, translation: Translation) -> Pane:
    verdict = await verdict_shown(site.engine, run) if run.asks_about_verdict == item.number else None
    if verdict is None:
        return {"template": TEMPLATES[QUESTION]}
    typed_amount = typed.fields.get("raise")
    amount = f"{verdict.amount:g}" if verdict.amount else ""
    first, *more = FIRST_SENTENCE.split(translation.of(verdict.text), maxsplit=1)
    return {
        "title": first,
        "more": "".join(more),
        "verdict": verdict,
        "amount": amount if typed_amount is None else typed_amount,
    }


async def _handoff(site: Site, request: Request, item: DeskItem, run: Run[Any]) -> Pane:
    by, style = site.by(request), site.engine.style(run)
    is_mine = style.view.picture(run).whose_turn == by
    actions = () if is_mine else [action for action in style.people.actions(run) if action.by in ("", by)]
    return {
        "run": run,
        "is_mine": is_mine,
        "talk": await talk_page(site.engine, run) if style.audience is not NO_AUDIENCE else None,
        "said": Talk(tuple(item.talk[-MOST_LINES:])),
        "objection": style.people.objection(run, item.number, by),
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


def shown_arguments(arguments: Mapping[str, Any]) -> list[tuple[str, str, bool]]:
    """What a tool is called with: each name, its value as JSON or text, and whether that is folded."""
    shown = []
    for name, value in arguments.items():
        text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
        is_long = len(text) > FOLDED or "\n" in (value if isinstance(value, str) else text)
        shown.append((name, value if is_long and isinstance(value, str) else text, is_long))
    return shown


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


LONGEST_TITLE = 80


async def desk_page(site: Site, request: Request) -> Response:
    listing = await desk_list(site, request)
    pane = await _first_pane(site, request, listing)
    return await show_desk(site, request, listing, pane)


async def question_page(site: Site, request: Request) -> Response:
    run_id, number = request.path_params["run"], request.path_params["number"]
    question = await find_question(site, run_id, number)
    listing = await desk_list(site, request)
    if question is not None:
        pane = await question_pane(site, request, question, listing, request.query_params.get("view", ""))
    else:
        pane = await answered_pane(site, await asked_question(site, run_id, number), run_id, listing, Typed())
    return await show_desk(site, request, listing, pane, chosen=f"{run_id}/{number}")


async def halted_page(site: Site, request: Request) -> Response:
    """A run that is stuck or set aside; for any other, what it waits for, or the run itself."""
    run_id = request.path_params["run"]
    info = await site.engine.journal.run(run_id)
    if info is None:
        raise RunNotFound(run_id)
    if info.status in HALTED:
        listing = await desk_list(site, request)
        return await show_desk(site, request, listing, halted_pane(info), chosen=run_id)
    questions = (await site.engine.desk(DeskQuery(root=info.root, size=MAX_PAGE))).items
    numbers = [one.number for one in questions if one.run_id == run_id]
    return RedirectResponse(address(f"/desk/{run_id}/{numbers[0]}" if numbers else f"/runs/{run_id}"), 303)


async def asked_question(site: Site, run_id: str, number: int) -> AskedQuestion:
    """A question that was asked, open or not. Raises `RequestRefused` if there is none of this number."""
    asked = (await site.questions.of(run_id)).get(number)
    if asked is None:
        raise RequestRefused(404, f"{run_id}/{number} is not a question.", "The desk lists all that are open.")
    return asked


async def show_desk(
    site: Site, request: Request, listing: DeskList, pane: Pane | None, chosen: str = "", status: int = 200
) -> Response:
    """The desk with an item. `chosen`: the item that the address names, if it does."""
    lang = language_of(request)
    title = visible_line(" ".join(str(pane["title"])[:300].split()))[:LONGEST_TITLE] if pane and chosen else ""
    working = (await site.counts()).by_status.get("working", 0)
    return await site.render(
        request,
        "desk.html",
        title=title or word(lang, "desk.title"),
        section="desk",
        live=address("/live", desk="1", run=chosen.rpartition("/")[0] or chosen),
        status=status,
        listing=listing,
        pane=pane,
        chosen=chosen,
        shown=chosen or (listing.rows[0].id if pane and listing.rows else ""),
        working=working,
    )


async def _first_pane(site: Site, request: Request, listing: DeskList) -> Pane | None:
    if not listing.rows:
        return None
    source = listing.rows[0].source
    return halted_pane(source) if isinstance(source, RunInfo) else await question_pane(site, request, source, listing)
