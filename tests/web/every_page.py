"""The addresses of one page of every kind in the demonstration, for checks that hold everywhere."""

import html
import re

from ripstop.faces.demo.world import RUNS
from tests.web.desk_server import DeskServer

DESK_KINDS = ("review", "question", "doubt", "guard", "handoff", "stuck", "set_aside")
FIXED = (
    *("/desk", "/desk?kind=question", "/runs", "/runs?status=restart", "/runs?q=nothing-like-this"),
    *("/runs/new", "/runs/new?workflow=review", "/chats", "/documents", "/workflows", "/workflows/review"),
    *("/health", "/look", "/keys"),
)
OF_RUNS = (
    *(
        "/runs/{completed}",
        "/runs/{completed}?see=records",
        "/runs/{completed}?see=trouble",
        "/runs/{completed}?q=draft",
    ),
    *("/runs/{completed}/2", "/runs/{completed}/26/why", "/runs/{completed}/drawing", "/runs/{completed}/fork?at=9"),
    *("/runs/{completed}/compare", "/runs/{completed}/compare/{fork}", "/runs/{working}", "/runs/{question}/cancel"),
    *("/runs/{failed}", "/runs/{limit}", "/runs/{stopped}", "/runs/{stuck}", "/runs/{set_aside}", "/runs/{family}"),
    *("/runs/{board}", "/runs/{board}?part=timeline", "/runs/{review}", "/runs/{document}", "/runs/{handoff}"),
    *("/chats/{handoff}", "/chats/{ready}", "/documents/{document}", "/documents/{document}?view=source"),
)
REFUSED = ("/nowhere", "/runs/no-such-run")
"""Pages that say that there is nothing."""


def every_page(server: DeskServer) -> list[str]:
    """The addresses of one page of each kind."""
    person = server.sign_in()
    found = list(FIXED)
    for kind in DESK_KINDS:
        items = desk_items(person.get(f"/desk?kind={kind}").text)
        assert items, f"the demonstration has nothing of the kind {kind!r}"
        found.append(items[0])
    review = next(path for path in found if RUNS["review"] in path)
    found += [f"{review}?view={view}" for view in ("preview", "source")]
    runs = {name: run.replace(":", "%3A") for name, run in RUNS.items()}
    return [*found, *(path.format_map(runs) for path in OF_RUNS)]


def desk_items(page: str) -> list[str]:
    """The addresses of the items of a desk page, without what they say of the list."""
    return [html.unescape(href).partition("?")[0] for href in re.findall(r'<a class="item" href="([^"]*)"', page)]
