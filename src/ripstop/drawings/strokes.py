"""Lines and boxes as SVG writes them: path data and attributes, without colours."""

from itertools import pairwise

from .layout import Point, Rect, Route
from .shapes import START_MARK


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
