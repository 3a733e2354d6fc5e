"""The list of runs: newest first, filtered and page by page, as the journal keeps it. Nothing is folded for it."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace
from starlette.requests import Request
from starlette.responses import Response

from ripstop.engine.ports import RunQuery
from ripstop.history.outages import outages_of
from ripstop.history.runs import shown_counts, shown_runs
from ripstop.kernel.statuses import STATUSES

from ..rendering import address
from ..site import Site, language_of, query_of
from ..words import word
from .start import offered_workflows

SIZE, MAX_ROWS = 50, 200
"""Rows of a page, unless another number is asked for."""
EVERY = "*"
"""As `parent`: children of other runs, too."""
SINCE = {"hour": 3_600, "day": 86_400, "week": 7 * 86_400, "month": 30 * 86_400}
"""Seconds."""
MICROSECONDS = 1_000_000
LONGEST_TRAIL = 40
"""Pages that the way back remembers; beyond them it leads to the newest runs."""
SEPARATOR = "~"


class Chosen(Struct, frozen=True):
    """Which runs a page shows, as its address says."""

    status: str = ""
    style: str = ""
    q: str = ""
    since: str = ""
    """A key of `SINCE`."""
    parent: str = ""
    """A run whose children are shown; empty: runs without a parent; `EVERY`: all runs."""
    size: int = SIZE
    before: str = ""
    """The cursor behind which the page begins; empty: at the newest run."""
    trail: tuple[str, ...] = ()
    """The cursors of the pages before it, from the second page on."""

    @property
    def is_filtered(self) -> bool:
        """Whether fewer runs are shown than there are, apart from those of one status."""
        return bool(self.style or self.q or self.since or self.parent)

    def address(self, **changes: Any) -> str:
        """The address of the same list with changes; it begins at the newest run unless a change says otherwise."""
        fields = asdict(self) | {"before": "", "trail": ()} | changes
        size = fields["size"] if fields["size"] != SIZE else ""
        return address("/runs", **{**fields, "size": size, "trail": SEPARATOR.join(fields["trail"])})

    def query(self, now: int) -> RunQuery:
        return RunQuery(
            statuses=(self.status,) if self.status else (),
            styles=(self.style,) if self.style else (),
            text=self.q,
            parent=None if self.parent == EVERY else self.parent,
            since=now - SINCE[self.since] * MICROSECONDS if self.since else 0,
            cursor=self.before,
            size=self.size,
        )


async def runs_page(site: Site, request: Request) -> Response:
    chosen = chosen_in(request)
    page = await shown_runs(site.engine, chosen.query(site.engine.clock()))
    counts = await _counts(site, chosen)
    lang = language_of(request)
    return await site.render(
        request,
        "runs.html",
        title=word(lang, "runs.title"),
        section="runs",
        live="/live?runs=1&desk=1",
        chosen=chosen,
        rows=page.items,
        outages=await outages_of(site.engine, page.items),
        total=sum(counts.values()),
        chips=_chips(chosen, counts, lang),
        styles=sorted(site.engine.registry.kits),
        times=tuple(SINCE),
        newer=_newer(chosen),
        older=chosen.address(before=page.next, trail=_longer(chosen)) if page.next else "",
        offered=[] if page.items else offered_workflows(site),
    )


def chosen_in(request: Request) -> Chosen:
    """What an address asks for. What it does not know is left out: a link to a list never fails."""
    given = query_of(request, "status", "style", "q", "since", "parent", "size", "before", "trail")
    size = int(given["size"]) if given["size"].isascii() and given["size"].isdigit() else SIZE
    return Chosen(
        status=given["status"] if given["status"] in STATUSES else "",
        style=given["style"],
        q=given["q"].strip(),
        since=given["since"] if given["since"] in SINCE else "",
        parent=given["parent"],
        size=min(MAX_ROWS, size) or SIZE,
        before=given["before"],
        trail=tuple(filter(None, given["trail"].split(SEPARATOR)))[-LONGEST_TRAIL:],
    )


async def _counts(site: Site, chosen: Chosen) -> dict[str, int]:
    if not chosen.is_filtered:
        return (await site.counts()).by_status
    return await shown_counts(site.engine, replace(chosen, status="", before="").query(site.engine.clock()))


def _chips(chosen: Chosen, counts: dict[str, int], lang: str) -> list[tuple[str, str, bool, int | None]]:
    shown = [status for status in STATUSES if counts.get(status) or status == chosen.status]
    everything = (word(lang, "runs.all"), chosen.address(status=""), not chosen.status, None)
    chips = [
        (word(lang, f"status.{one}"), chosen.address(status=one), one == chosen.status, counts.get(one, 0))
        for one in shown
    ]
    return [everything, *chips]


def _newer(chosen: Chosen) -> str:
    """The address of the page before; empty for the first one."""
    if not chosen.before:
        return ""
    return chosen.address(before=chosen.trail[-1], trail=chosen.trail[:-1]) if chosen.trail else chosen.address()


def _longer(chosen: Chosen) -> Sequence[str]:
    trail = (*chosen.trail, chosen.before) if chosen.before else ()
    return trail[-LONGEST_TRAIL:]
