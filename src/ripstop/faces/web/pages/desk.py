"""The desk: everything that waits for a person on the left, one item of it on the right.

Without an item in the address, wide screens show the first one; on a phone there is only the list.
"""

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ripstop.http.refusals import RequestRefused
from ripstop.kernel.desk_kinds import HALTED
from ripstop.kernel.errors import RunNotFound
from ripstop.runtime.ports import MAX_PAGE, DeskQuery, RunInfo
from ripstop.views import AskedQuestion
from ripstop.visible_text import visible_line

from ..rendering import address
from ..site import Site, language_of
from ..words import word
from .desk_list import DeskList, desk_list
from .desk_pane import Pane, Typed, answered_pane, find_question, halted_pane, question_pane

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
