"""Conversations: the list of sessions, one of them with all that happened in it, and what people at the desk say."""

from typing import Any

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from ripstop.engine.engine import View
from ripstop.engine.ports import RunInfo, RunQuery
from ripstop.history.desk import handed_over
from ripstop.history.transcript import DESK, talk_page
from ripstop.kernel.errors import RunNotFound, UsageError
from ripstop.kernel.parts import Facts, Talk, Timers
from ripstop.kernel.run import Run
from ripstop.kernel.style import NO_AUDIENCE
from ripstop.kernel.text_limits import LONGEST_MESSAGE, is_message

from ..rendering import address
from ..site import Site, language_of, query_of
from ..words import word

SIZE = 50
LONGEST_NAME = 80
"""Characters of a user's name, which a model may have written."""
TAKE = "take"
"""The action with which a person takes a conversation over."""


class SessionRow(Struct, frozen=True):
    """A line of the list of conversations."""

    run: str
    name: str
    """The user's, if that is known; else the session's."""
    session: str
    workflow: str
    status: str
    at: int
    last: str
    taken_by: str


async def chats_page(site: Site, request: Request) -> Response:
    rows, older = await _rows(site, request)
    title = word(language_of(request), "chats.title")
    live = "/live?desk=1&runs=1"
    whose = request.query_params.get("whose", "")
    context: dict[str, Any] = {"rows": rows, "older": older, "whose": whose, "chosen": None}
    return await site.render(request, "chats.html", title=title, section="chats", live=live, **context)


async def chat_page(site: Site, request: Request) -> Response:
    view = await site.engine.look(request.path_params["run"])
    run, by = view.run, site.by(request)
    if not site.engine.style(run).audience is not NO_AUDIENCE:
        raise UsageError(f"{run.id} is a run of the style {run.started.style!r}, not a conversation.")
    given = query_of(request, "before", "after")
    before, after = (int(given[name]) if given[name].isascii() and given[name].isdigit() else 0 for name in given)
    talk = await talk_page(site.engine, run, before or None, after)
    context: dict[str, Any] = {
        "run": run,
        "view": view,
        "talk": talk,
        "question": handed_over(run),
        "taken_by": _talk_of(site, run).taken_by,
        "by": by,
        "can_take": any(action.name == TAKE for action in site.engine.style(run).people.actions(run)),
    }
    if request.headers.get("x-fragment") and after:
        return site.fragment(request, "_talk.html", **context)
    rows, older = await _rows(site, request)
    parts = site.engine.style(run).view.parts(run)
    context |= {
        "rows": rows,
        "older": older,
        "whose": request.query_params.get("whose", ""),
        "chosen": _row(site, await site.engine.journal.run(run.id), view),
        "facts": [part for part in parts if isinstance(part, Facts)],
        "timers": [part for part in parts if isinstance(part, Timers)],
    }
    live = address("/live", desk="1", runs="1", run=run.id)
    return await site.render(request, "chats.html", title=context["chosen"].name, section="chats", live=live, **context)


async def send(site: Site, request: Request) -> Response:
    """A person at the desk says something to the user. Sent twice, it is said once."""
    form, run_id, by = await site.form(request), request.path_params["run"], site.by(request)
    text = form.text("text")
    if not is_message(text):
        raise UsageError(f"A message has 1 to {LONGEST_MESSAGE:,} characters.")
    view = await site.engine.look(run_id)
    style = site.engine.style(view.run)
    if not style.may_listen:
        raise UsageError(f"{run_id} does not listen: no run of the style {style.name!r} does.")
    question = handed_over(view.run)
    if not question:
        raise UsageError("The bot has this conversation. Take it over before you answer.")
    if objection := style.people.objection(view.run, question, by):
        raise UsageError(objection)
    if _talk_of(site, view.run).taken_by != by and any(
        action.name == TAKE for action in style.people.actions(view.run)
    ):
        await site.app.act(run_id, TAKE, by=by)
    await site.engine.hear(run_id, text, by=by, channel=DESK, id=form.intent)
    return site.done(request, address(f"/chats/{run_id}"))


async def _rows(site: Site, request: Request) -> tuple[list[SessionRow], str]:
    """A page of sessions, the newest first, and the cursor of the next page."""
    styles = site.sections().get("conversations", ())
    given = query_of(request, "older", "whose", "status")
    if not styles:
        return [], ""
    # a plan is made by a style that belongs to conversations, but is not one
    page = await site.engine.runs(RunQuery(styles=styles, parent="", cursor=given["older"], size=SIZE))
    rows = []
    for info in page.items:
        try:
            row = _row(site, info, await site.engine.look(info.run_id))
        except RunNotFound:  # forgotten a moment ago
            continue
        is_mine = row.taken_by == site.by(request)
        if given["whose"] in ("", "mine" if is_mine else "bot" if not row.taken_by else "others"):
            rows.append(row)
    return rows, page.next


def _row(site: Site, info: RunInfo | None, view: View) -> SessionRow:
    picture, talk = view.picture, _talk_of(site, view.run)
    return SessionRow(
        run=view.run.id,
        name=" ".join(talk.user[:LONGEST_NAME].split()) or _name(view.run.id),
        session=_name(view.run.id),
        workflow=":".join(view.run.id.split(":")[1:-1]),
        status=view.run.ended.outcome if view.run.ended else "closed" if talk.closed else picture.where,
        at=info.updated if info else view.run.began,
        last=picture.document,
        taken_by=talk.taken_by,
    )


def _talk_of(site: Site, run: Run[Any]) -> Talk:
    parts = site.engine.style(run).view.parts(run)
    return next((part for part in parts if isinstance(part, Talk)), Talk(()))


def _name(run_id: str) -> str:
    """The session in the id of its run."""
    return run_id.rpartition(":")[2]
