"""The drawings of a run, as SVG for its page. What is drawn once is kept until the run has moved.

Our own writers escape every text, so what they write can be put into a page as it is.
"""

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from markupsafe import Markup

from ripstop.drawings.diagram import Diagram
from ripstop.drawings.inline_svg import inline_svg, shortened
from ripstop.drawings.lanes import lanes, lanes_svg
from ripstop.runtime.outline import Outline

from .rendering import address
from .showing import hue
from .words import word

if TYPE_CHECKING:
    from .run_about import RunAbout
    from .site import Site

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
        drawn = lanes(outline, now)
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
