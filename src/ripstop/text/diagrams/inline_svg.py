"""A diagram as SVG to put into a page: no ground, title or legend, and classes instead of colours.

The page's style sheet gives them: `d-edge`, `d-label` and `d-node` are what is drawn; `d-agent-1` to `d-agent-6` is
whose a state is, `d-end` and `d-nested` what kind of state; `d-taken`, `d-faint` and `d-here` say what a run did. There
are no ids and no `style`, so a page with a strict content policy can have any number of them.
"""

from collections.abc import Callable
from dataclasses import replace
from xml.sax.saxutils import escape, quoteattr

from .diagram import Diagram, Edge, Node, in_words
from .layout import Layout, Rect, Route, lay_out
from .shapes import AGENT, AGENT_LINE, CONDITION, CONDITION_LINE, END, NAME, NAME_LINE, clean, size_of
from .svg import box, halo, inside, n, start, way

HUES = 6
MARGIN = 10.0
MAX_LABEL = 500
"""Characters of a name, a condition or a note."""

Hue = Callable[[str], int]
"""Which of the colours 1 to 6 an agent has."""
Link = Callable[[str], str]
"""The address that a state leads to, by its name."""


def inline_svg(diagram: Diagram, hue: Hue | None = None, link: Link | None = None) -> str:
    """Draw a diagram.

    Args:
        hue: Left out: in the order in which agents appear.
        link: Left out: states are not links, and the drawing is one image.
    """
    diagram = _bounded(diagram)
    layout = lay_out(diagram)
    wide, high = n(layout.width + 2 * MARGIN), n(layout.height + 2 * MARGIN)
    view = f"{n(-MARGIN)} {n(-MARGIN)} {wide} {high}"
    size = f'width="{wide}" height="{high}" viewBox="{view}"'
    role = "img" if link is None else "group"
    colours = hue or _in_order(diagram)
    parts = [
        f'<svg class="d" {size} role="{role}" aria-label={quoteattr(clean(diagram.name))}>',
        f"<desc>{escape(clean(in_words(diagram)))}</desc>",
        *_halo(diagram, layout),
        *_edges(diagram, layout),
        _start(layout.boxes[diagram.start]),
        *(_node(diagram, number, layout.boxes[number], colours, link) for number in range(len(diagram.nodes))),
    ]
    return "".join([*parts, "</svg>"])


def shortened(diagram: Diagram) -> Diagram:
    """A run's diagram with the ways that were taken, and the ways out of where it is; all else is left out."""
    journey = diagram.journey
    if journey is None:
        return diagram
    edges = [edge for edge in diagram.edges if edge.turns or edge.source == journey.here]
    wanted = {diagram.start, journey.here, *(place for edge in edges for place in (edge.source, edge.target))}
    wanted |= {place for place, node in enumerate(diagram.nodes) if node.turns}
    kept = [place for place in range(len(diagram.nodes)) if place in wanted]
    moved = {old: new for new, old in enumerate(kept)}
    return replace(
        diagram,
        nodes=tuple(diagram.nodes[place] for place in kept),
        edges=tuple(replace(edge, source=moved[edge.source], target=moved[edge.target]) for edge in edges),
        start=moved[diagram.start],
        journey=replace(journey, here=None if journey.here is None else moved[journey.here]),
    )


def _bounded(diagram: Diagram) -> Diagram:
    """The diagram with texts as long as a page can have, wherever it shows them."""
    return replace(
        diagram,
        name=_short(diagram.name),
        nodes=tuple(replace(node, name=_short(node.name), agent=_short(node.agent)) for node in diagram.nodes),
        edges=tuple(replace(edge, condition=_short(edge.condition)) for edge in diagram.edges),
        description=_short(diagram.description),
        notes=tuple(map(_short, diagram.notes)),
        journey=diagram.journey and replace(diagram.journey, because=_short(diagram.journey.because)),
    )


def _short(text: str) -> str:
    return text if len(text) <= MAX_LABEL else f"{text[: MAX_LABEL - 1]}…"


def _in_order(diagram: Diagram) -> Hue:
    places = {agent: place % HUES + 1 for place, agent in enumerate(diagram.agents)}
    return places.__getitem__


def _text(x: float, y: float, text: str, size: float, name: str) -> str:
    place = f'x="{n(x)}" y="{n(y)}" font-size="{n(size)}" text-anchor="middle"'
    return f'<text class="{name}" {place}>{escape(text)}</text>'


# Edges


def _edges(diagram: Diagram, layout: Layout) -> list[str]:
    """Those that were taken lie above those that were not."""
    pairs = sorted(zip(diagram.edges, layout.routes, strict=True), key=lambda pair: bool(pair[0].turns))
    lines = [_line(diagram, edge, route) for edge, route in pairs]
    return lines + [_label(diagram, edge, route) for edge, route in pairs if route.label.height]


def _state_of(diagram: Diagram, edge: Edge) -> str:
    if not diagram.journey:
        return ""
    return " d-taken" if edge.turns else " d-faint"


def _line(diagram: Diagram, edge: Edge, route: Route) -> str:
    line, head = way(route)
    paths = f'<path class="d-line" d="{line}"/><path class="d-head" d="{head}"/>'
    return f'<g class="d-edge{_state_of(diagram, edge)}">{paths}</g>'


def _label(diagram: Diagram, edge: Edge, route: Route) -> str:
    rect, label = route.label, route.lines
    x, y = rect.middle[0], rect.top + 15
    where = f"{clean(diagram.source)}:{edge.line}" if edge.line and diagram.source else ""
    told = " ".join(part for part in (where, clean(edge.condition)) if part)
    parts = [f'<g class="d-label{_state_of(diagram, edge)}"><title>{escape(told)}</title><rect {box(rect, 6)}/>']
    if label.turns:
        parts.append(_text(x, y, label.turns, CONDITION, "d-turns"))
        y += CONDITION_LINE
    for line in label.lines:
        parts.append(_text(x, y, line, CONDITION, "d-condition"))
        y += CONDITION_LINE
    return "".join([*parts, "</g>"])


# States


def _halo(diagram: Diagram, layout: Layout) -> list[str]:
    """A soft light around the run's present state, below all edges."""
    if diagram.journey is None or diagram.journey.here is None:
        return []
    rect = halo(layout.boxes[diagram.journey.here])
    radius = rect.height / 2 if diagram.nodes[diagram.journey.here].end else 14.0
    return [f'<rect class="d-halo" {box(rect, radius)}/>']


def _start(rect: Rect) -> str:
    (x, y), line, head = start(rect)
    dot = f'<circle cx="{n(x)}" cy="{n(y)}" r="6"/>'
    paths = f'<path class="d-line" d="{line}"/><path class="d-head" d="{head}"/>'
    return f'<g class="d-start"><title>start</title>{dot}{paths}</g>'


def _node(diagram: Diagram, number: int, rect: Rect, hue: Hue, link: Link | None) -> str:
    node, journey = diagram.nodes[number], diagram.journey
    is_here = journey is not None and journey.here == number
    is_faint = journey is not None and not is_here and (node.end or not node.turns)
    kinds = ["d-node", "d-end" if node.end else f"d-agent-{hue(node.agent)}"]
    kinds += [name for name, holds in (("d-nested", node.nested), ("d-here", is_here), ("d-faint", is_faint)) if holds]
    said = clean(f"{node.name} ({node.agent})" if node.agent else node.name)
    body = _end(node, rect) if node.end else _state(node, rect)
    drawn = f'<g class="{" ".join(kinds)}"><title>{escape(said)}</title>{body}</g>'
    return drawn if link is None or node.end else f"<a href={quoteattr(link(node.name))}>{drawn}</a>"


def _state(node: Node, rect: Rect) -> str:
    size = size_of(node)
    x, y = rect.middle
    y -= (len(size.lines) * NAME_LINE + (AGENT_LINE if size.more else 0.0)) / 2 - 14
    parts = [f'<rect class="d-box" {box(rect, 9)}/>']
    if node.nested:
        parts.append(f'<rect class="d-inner" {box(inside(rect), 6)}/>')
    for line in size.lines:
        parts.append(_text(x, y, line, NAME, "d-name"))
        y += NAME_LINE
    if size.more:
        parts.append(_text(x, y - 1, size.more, AGENT, "d-agent"))
    return "".join(parts)


def _end(node: Node, rect: Rect) -> str:
    inner = inside(rect)
    x, y = rect.middle
    return (
        f'<rect class="d-box" {box(rect, rect.height / 2)}/><rect class="d-inner" {box(inner, inner.height / 2)}/>'
        + _text(x, y + 4.5, clean(node.name), END, "d-name")
    )
