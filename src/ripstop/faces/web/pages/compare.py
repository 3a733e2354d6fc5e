"""Two runs side by side: what they share is folded, then their turns in two columns, and what became of each."""

from collections.abc import Sequence
from itertools import islice

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ripstop.engine.ports import RunInfo, RunQuery
from ripstop.history.outline import TurnLine
from ripstop.text.differences import Hunk, difference

from ..rendering import address
from ..site import Site, language_of, query_of
from ..words import word
from .run import RunAbout, about_run

MOST_TURNS = 50
"""Of each run, behind what they share."""
MOST_LINES = 400
"""Of one difference."""
MAX_COMPARED = 200_000
"""Characters of a text that is compared."""
MOST_OFFERED = 20
MOST_FORKS = 50
"""Runs of which one is a fork of another, that are followed back."""


class Compared(Struct, frozen=True):
    """The difference between two texts, as much of it as a page shows."""

    hunks: list[Hunk]
    left_out: int = 0
    """Lines of the difference that are not shown."""
    is_too_long: bool = False
    """The texts are too long to be compared here."""


async def choose_page(site: Site, request: Request) -> Response:
    """Which run to compare with: one of its family, or of the same name."""
    run_id = request.path_params["run"]
    if other := query_of(request, "other")["other"].strip():
        return RedirectResponse(address(f"/runs/{run_id}/compare/{other}"), 303)
    about = await about_run(site, run_id)
    return await site.render(
        request,
        "compare.html",
        title=word(language_of(request), "compare.title"),
        section="runs",
        about=about,
        offered=await _offered(site, about.info),
        other=None,
    )


async def _offered(site: Site, info: RunInfo) -> list[RunInfo]:
    journal = site.engine.journal
    kin = [*(await journal.forks(info.run_id)), *(await journal.forks(info.fork_of) if info.fork_of else ())]
    origin = await journal.run(info.fork_of) if info.fork_of else None
    name = info.run_id.rpartition("-")[0]
    like = (await journal.runs(RunQuery(text=f"{name}-", size=MOST_OFFERED))).items if name else []
    found = {one.run_id: one for one in (*([origin] if origin else []), *kin, *like) if one.run_id != info.run_id}
    return list(islice(found.values(), MOST_OFFERED))


async def compare_page(site: Site, request: Request) -> Response:
    lang = language_of(request)
    one = await about_run(site, request.path_params["run"])
    other = await about_run(site, request.path_params["other"])
    shared = await _shared(site, one.info, other.info)
    return await site.render(
        request,
        "compare.html",
        title=word(lang, "compare.title"),
        section="runs",
        about=one,
        other=other,
        offered=[],
        shared=shared,
        shared_turns=_turns_until(one, shared),
        columns=[_after(about, shared) for about in (one, other)],
        definitions=await _definitions(site, one, other),
        documents=_compared(one.picture.document, other.picture.document),
    )


async def _shared(site: Site, one: RunInfo, other: RunInfo) -> int:
    """The number of the last record that both runs have; 0 if neither comes from the other or from a third."""
    lines = [await _line(site, info) for info in (one, other)]
    return max((min(length, lines[1][run]) for run, length in lines[0].items() if run in lines[1]), default=0)


async def _line(site: Site, info: RunInfo) -> dict[str, int]:
    """A run and those it was forked from, each with how many of its records the run has."""
    line = {info.run_id: info.length}
    at, length = info, info.length
    while at.fork_of and at.fork_of not in line and len(line) < MOST_FORKS:
        length = min(length, at.fork_at)
        line[at.fork_of] = length
        origin = await site.engine.journal.run(at.fork_of)
        if origin is None:
            break
        at = origin
    return line


def _turns_until(about: RunAbout, number: int) -> int:
    """How many turns a run had taken at a record."""
    place = about.outline.place_of(number) if number else None
    return about.outline[place].index if place is not None else 0


class Column(Struct, frozen=True):
    turns: list[TurnLine]
    left_out: int


def _after(about: RunAbout, shared: int) -> Column:
    """The turns of a run behind what it shares. A turn in which the runs part is shown."""
    place = about.outline.place_of(shared + 1) if shared else 0
    if place is None:
        return Column([], 0)
    turns = about.outline[place : place + MOST_TURNS]
    return Column(turns, max(0, len(about.outline) - place - MOST_TURNS))


async def _definitions(site: Site, one: RunAbout, other: RunAbout) -> Compared | None:
    """What differs between the definitions; `None` if it is the same one."""
    if one.run.definition == other.run.definition:
        return None
    texts = [await site.engine.journal.blob(about.run.definition) for about in (one, other)]
    return _compared(*(msgspec.json.format(text, indent=2).decode() for text in texts))


def _compared(old: str, new: str) -> Compared:
    if max(len(old), len(new)) > MAX_COMPARED:
        return Compared([], is_too_long=True)
    hunks = difference(old, new)
    kept, lines = [], 0
    for hunk in hunks:
        if lines + len(hunk.lines) > MOST_LINES:
            break
        kept.append(hunk)
        lines += len(hunk.lines)
    return Compared(kept, _lines(hunks) - lines)


def _lines(hunks: Sequence[Hunk]) -> int:
    return sum(len(hunk.lines) for hunk in hunks)
