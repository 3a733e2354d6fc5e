"""Documents that go from owner to owner: the list, and one with its text, its source, its history and what is legal."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from ripstop.engine.ports import RunQuery
from ripstop.kernel.errors import UsageError
from ripstop.kernel.parts import Facts, Ledger, Paper

from ..rendering import address
from ..site import Site, language_of, query_of
from ..words import word

SIZE = 50
VIEWS = ("text", "source")


async def documents_page(site: Site, request: Request) -> Response:
    given = query_of(request, "older", "q", "status")
    styles = site.sections().get("documents", ())
    query = RunQuery(
        styles=styles or ("",),
        text=given["q"],
        statuses=(given["status"],) if given["status"] else (),
        cursor=given["older"],
        size=SIZE,
    )
    page = await site.engine.runs(query)
    counts = await site.engine.journal.counts(RunQuery(styles=styles or ("",)))
    lang = language_of(request)
    title = word(lang, "documents.title")
    chips = [(word(lang, "documents.all"), "/documents", not given["status"], sum(counts.values()))]
    for status, count in sorted(counts.items()):
        chips.append(
            (word(lang, f"status.{status}"), address("/documents", status=status), status == given["status"], count)
        )
    context: dict[str, Any] = {"page": page, "chips": chips, "q": given["q"], "wanted": given["status"]}
    live = "/live?desk=1&runs=1"
    return await site.render(request, "documents.html", title=title, section="documents", live=live, **context)


async def document_page(site: Site, request: Request) -> Response:
    view = await site.engine.look(request.path_params["run"])
    run, style = view.run, site.engine.style(view.run)
    parts = style.view.parts(run)
    papers = [part for part in parts if isinstance(part, Paper)]
    if not papers:
        raise UsageError(f"{run.id} is a run of the style {run.started.style!r}, which has no document.")
    shown = request.query_params.get("view", "")
    context: dict[str, Any] = {
        "run": run,
        "view": view,
        "paper": papers[0],
        "facts": [part for part in parts if isinstance(part, Facts)],
        "history": [part for part in parts if isinstance(part, Ledger)],
        "actions": style.people.actions(run),
        "shown": shown if shown in VIEWS else VIEWS[0],
        "by": site.by(request),
    }
    live = address("/live", desk="1", run=run.id)
    title = papers[0].title or run.id
    return await site.render(request, "document.html", title=title, section="documents", live=live, **context)
