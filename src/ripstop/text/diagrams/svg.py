"""A diagram as SVG: one picture with its own background, so that it is legible on light and dark pages alike.

No style sheet, no script, no embedded font, no ids: a page can include the picture any number of times.
"""

from itertools import pairwise
from xml.sax.saxutils import escape, quoteattr

from .diagram import Diagram, Edge, Node, in_words, standing
from .layout import Layout, Point, Rect, Route, lay_out
from .shapes import (
    AGENT,
    AGENT_LINE,
    CONDITION,
    CONDITION_LINE,
    END,
    NAME,
    NAME_LINE,
    START_MARK,
    clean,
    size_of,
    width,
    wrap,
)

# Lines and boxes as SVG writes them: path data and attributes, without colours.


def n(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")


def way(route: Route) -> tuple[str, str]:
    """The path data of an edge: its line, and its arrowhead."""
    (x, y), before = route.points[-1], route.points[-2]
    if route.loop:
        (_, top), (out, _) = route.points[0], route.points[1]
        bulge = n(x + (out - x) * 1.15)
        path = f"M{n(x)} {n(top)}C{bulge} {n(top - 8)} {bulge} {n(y + 8)} {n(x + 7)} {n(y + 1.5)}"
        return path, arrowhead(x, y, (-1, -0.3))
    down = 1 if y > before[1] else -1
    return _curve((*route.points[:-1], (x, y - 7 * down))), arrowhead(x, y, (0, down))


def _curve(points: tuple[Point, ...]) -> str:
    path = f"M{n(points[0][0])} {n(points[0][1])}"
    for (x, y), (to_x, to_y) in pairwise(points):
        if x == to_x:
            path += f"V{n(to_y)}"
        else:
            half = n((y + to_y) / 2)
            path += f"C{n(x)} {half} {n(to_x)} {half} {n(to_x)} {n(to_y)}"
    return path


def arrowhead(x: float, y: float, towards: tuple[float, float]) -> str:
    """A triangle with its tip at a place."""
    dx, dy = towards
    length = (dx * dx + dy * dy) ** 0.5
    dx, dy = dx / length, dy / length
    back_x, back_y = x - 9 * dx, y - 9 * dy
    corners = ((x, y), (back_x - 4.5 * dy, back_y + 4.5 * dx), (back_x + 4.5 * dy, back_y - 4.5 * dx))
    return f"M{'L'.join(f'{n(a)} {n(b)}' for a, b in corners)}Z"


def start(box: Rect) -> tuple[Point, str, str]:
    """The mark of the start: the middle of its dot, the line from it, and the arrowhead."""
    y = box.middle[1]
    x = box.left - START_MARK + 8
    return (x, y), f"M{n(x)} {n(y)}H{n(box.left - 7)}", arrowhead(box.left, y, (1, 0))


def inside(rect: Rect) -> Rect:
    """The inner one of a double border."""
    return Rect(rect.left + 3.5, rect.top + 3.5, rect.width - 7, rect.height - 7)


def halo(rect: Rect) -> Rect:
    """The room around a state in which a run is."""
    return Rect(rect.left - 6, rect.top - 6, rect.width + 12, rect.height + 12)


def box(rect: Rect, radius: float) -> str:
    """The attributes of a rectangle."""
    return f'x="{n(rect.left)}" y="{n(rect.top)}" width="{n(rect.width)}" height="{n(rect.height)}" rx="{n(radius)}"'


CHINESE = "'PingFang SC', 'Microsoft YaHei'"
SANS = f"system-ui, 'Segoe UI', 'Helvetica Neue', Arial, 'Noto Sans', 'Noto Sans CJK SC', {CHINESE}, sans-serif"
MONO = f"ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', 'Noto Sans Mono CJK SC', {CHINESE}, monospace"
MARGIN = 28.0
TITLE, SMALL = 18.0, 12.5
LEAST_WIDTH = 460.0
BOLD = 1.12
"""How much wider bold letters are."""

GROUND, FRAME, INK, SOFT = "#ffffff", "#d8dde6", "#1a2230", "#5a6475"
EDGE, TAKEN, HERE, FAINT = "#6d7889", "#1d4fd7", "#d97706", "#c0c7d2"
HALO = "#fcebcb"
AGENT_COLOURS = (
    ("#e6f0fd", "#3a6fb8"),
    ("#e5f6ea", "#2c8057"),
    ("#fdf0df", "#b0661a"),
    ("#f1eafc", "#6b48bf"),
    ("#fde9f1", "#b5347c"),
    ("#e0f5f6", "#20747c"),
    ("#f3f1dc", "#7a6f17"),
)
"""Ground and border of the states of each agent, in the order in which agents appear."""
UNVISITED = ("#f7f8fa", FAINT)


def svg(diagram: Diagram) -> str:
    layout = lay_out(diagram)
    inner = max(layout.width, LEAST_WIDTH)
    heading, top = _heading(diagram, inner)
    foot, bottom = _foot(diagram, inner, top + layout.height + 36)
    wide, high = round(inner + 2 * MARGIN, 1), round(bottom + 2 * MARGIN - 8, 1)
    shift = round((inner - layout.width) / 2, 1)
    size = f'width="{n(wide)}" height="{n(high)}" viewBox="0 0 {n(wide)} {n(high)}"'
    title = clean(_title(diagram))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label={quoteattr(title)}>',
        f"<title>{escape(title)}</title>",
        f"<desc>{escape(clean(in_words(diagram)))}</desc>",
        _rect(Rect(0.5, 0.5, wide - 1, high - 1), 10, GROUND, FRAME, 1),
        f'<g transform="translate({n(MARGIN)} {n(MARGIN)})" font-family="{SANS}" fill="{INK}">',
        *heading,
        f'<g transform="translate({n(shift)} {n(top)})">',
        *_halo(diagram, layout),
        *_edges(diagram, layout),
        _start(layout.boxes[diagram.start]),
        *(_box(diagram, number, layout.boxes[number]) for number in range(len(diagram.nodes))),
        "</g>",
        *foot,
        "</g>",
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _title(diagram: Diagram) -> str:
    journey = diagram.journey
    return f"{diagram.name}: the way of {journey.kind} {journey.run}" if journey else diagram.name


def _text(x: float, y: float, text: str, size: float, more: str = "") -> str:
    return f'<text x="{n(x)}" y="{n(y)}" font-size="{n(size)}"{more}>{escape(text)}</text>'


# Above and below the graph


def _heading(diagram: Diagram, room: float) -> tuple[list[str], float]:
    """Its parts, and how high they are."""
    parts, y = [], TITLE - 2
    for line in wrap(diagram.name, TITLE * BOLD, room, 2):
        parts.append(_text(0, y, line, TITLE, ' font-weight="700"'))
        y += TITLE + 5
    for line in wrap(diagram.description, SMALL, room, 3):
        parts.append(_text(0, y, line, SMALL, f' fill="{SOFT}"'))
        y += SMALL + 5
    for line in wrap(standing(diagram), SMALL * BOLD, room, 3):
        parts.append(_text(0, y, line, SMALL, f' fill="{TAKEN}" font-weight="600"'))
        y += SMALL + 5
    return parts, y + 14


def _foot(diagram: Diagram, room: float, y: float) -> tuple[list[str], float]:
    parts: list[str] = []
    if diagram.journey:
        parts += _legend(y, diagram.counted, diagram.journey.ended)
        y += SMALL + 8
    for note in diagram.notes:
        for line in wrap(note, SMALL, room, 3):
            parts.append(_text(0, y, line, SMALL, f' fill="{SOFT}"'))
            y += SMALL + 5
    return parts, y - SMALL - 5


def _legend(y: float, counted: str, ended: bool) -> list[str]:
    middle, words, more = y - 4, f"path taken, numbered by {counted}", f' fill="{SOFT}"'
    x = 34 + width(words, SMALL) + 20
    return [
        f'<path d="M0 {n(middle)}H20" stroke="{TAKEN}" stroke-width="2.4"/>',
        _filled(arrowhead(26, middle, (1, 0)), TAKEN),
        _text(34, y, words, SMALL, more),
        _rect(Rect(x, middle - 7, 20, 14), 5, GROUND, HERE, 3),
        _text(x + 28, y, "where it ended" if ended else "where it is", SMALL, more),
    ]


# Edges


def _edges(diagram: Diagram, layout: Layout) -> list[str]:
    """Those that were taken lie above those that were not."""
    pairs = sorted(zip(diagram.edges, layout.routes, strict=True), key=lambda pair: bool(pair[0].turns))
    lines = [_line(diagram, edge, route) for edge, route in pairs]
    return lines + [_label(diagram, edge, route) for edge, route in pairs if route.label.height]


def _colour(diagram: Diagram, edge: Edge) -> str:
    if not diagram.journey:
        return EDGE
    return TAKEN if edge.turns else FAINT


def _line(diagram: Diagram, edge: Edge, route: Route) -> str:
    colour = _colour(diagram, edge)
    line, head = way(route)
    return (
        f'<g><path d="{line}" fill="none" stroke="{colour}" stroke-width="{"2.4" if edge.turns else "1.5"}" '
        f'stroke-linecap="round"/>{_filled(head, colour)}</g>'
    )


def _filled(path: str, colour: str) -> str:
    return f'<path d="{path}" fill="{colour}"/>'


def _label(diagram: Diagram, edge: Edge, route: Route) -> str:
    rect, label = route.label, route.lines
    faded = diagram.journey and not edge.turns
    x, y = rect.middle[0], rect.top + 15
    where = f"{clean(diagram.source)}:{edge.line}" if edge.line and diagram.source else ""
    told = " ".join(part for part in (where, clean(edge.condition)) if part)
    parts = [
        f"<g><title>{escape(told)}</title>",
        _rect(rect, 6, GROUND, TAKEN if edge.turns else FRAME, 1),
    ]
    if label.turns:
        more = f' text-anchor="middle" font-weight="700" fill="{TAKEN}"'
        parts.append(_text(x, y, label.turns, CONDITION, more))
        y += CONDITION_LINE
    for line in label.lines:
        more = f' text-anchor="middle" font-family="{MONO}" fill="{SOFT if faded else INK}"'
        parts.append(_text(x, y, line, CONDITION, more))
        y += CONDITION_LINE
    return "".join([*parts, "</g>"])


# States


def _start(rect: Rect) -> str:
    (x, y), line, head = start(rect)
    return (
        f'<g><title>start</title><circle cx="{n(x)}" cy="{n(y)}" r="6" fill="{INK}"/>'
        f'<path d="{line}" stroke="{INK}" stroke-width="1.5"/>'
        f"{_filled(head, INK)}</g>"
    )


def _box(diagram: Diagram, number: int, rect: Rect) -> str:
    node = diagram.nodes[number]
    here = diagram.journey is not None and diagram.journey.here == number
    body = _end(node, rect, here or diagram.journey is None, here) if node.end else _state(diagram, node, rect, here)
    said = clean(f"{node.name} ({node.agent})" if node.agent else node.name)
    return f"<g><title>{escape(said)}</title>{body}</g>"


def _halo(diagram: Diagram, layout: Layout) -> list[str]:
    """A soft light around the run's present state, below all edges."""
    if diagram.journey is None or diagram.journey.here is None:
        return []
    wider = halo(layout.boxes[diagram.journey.here])
    round_ = wider.height / 2 if diagram.nodes[diagram.journey.here].end else 14.0
    return [_rect(wider, round_, HALO, HALO, 1)]


def _state(diagram: Diagram, node: Node, rect: Rect, here: bool) -> str:
    faded = diagram.journey is not None and not node.turns
    ground, border = UNVISITED if faded else AGENT_COLOURS[diagram.agents.index(node.agent) % len(AGENT_COLOURS)]
    size = size_of(node)
    x, y = rect.middle
    y -= (len(size.lines) * NAME_LINE + (AGENT_LINE if size.more else 0.0)) / 2 - 14
    ink = SOFT if faded else INK
    parts = [_rect(rect, 9, ground, HERE if here else border, 3 if here else 1.5)]
    if node.nested:
        parts.append(_rect(inside(rect), 6, "none", border, 1))
    for line in size.lines:
        parts.append(_text(x, y, line, NAME, f' text-anchor="middle" font-weight="600" fill="{ink}"'))
        y += NAME_LINE
    if size.more:
        parts.append(_text(x, y - 1, size.more, AGENT, f' text-anchor="middle" fill="{SOFT if faded else border}"'))
    return "".join(parts)


def _end(node: Node, rect: Rect, reached: bool, here: bool) -> str:
    inner = inside(rect)
    x, y = rect.middle
    colour = INK if reached else SOFT
    return (
        _rect(rect, rect.height / 2, GROUND, HERE if here else colour, 3 if here else 1.5)
        + _rect(inner, inner.height / 2, colour, colour, 1)
        + _text(x, y + 4.5, clean(node.name), END, f' text-anchor="middle" font-weight="700" fill="{GROUND}"')
    )


def _rect(rect: Rect, radius: float, ground: str, border: str, thick: float) -> str:
    return f'<rect {box(rect, radius)} fill="{ground}" stroke="{border}" stroke-width="{n(thick)}"/>'
