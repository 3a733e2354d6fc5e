"""Places for everything in a diagram, by construction free of overlaps.

- States are in rows by their rank; between two such rows is a row for labels, so that a label is a stop
  on its edge's way and has its own room, next to the state whose decision it is.
- An edge passes a row straight down, in its own column, and bends only in the gaps between rows. So
  no edge runs through a state or a label of another.
- A back edge leaves its state at the top and enters the other one from below.
- A loop leaves and enters at the right side of its state, with its label next to it; the mark of the start
  is at the left. Both are part of the room that the state takes in its row.
"""

from dataclasses import dataclass

from . import columns
from .diagram import Diagram, Edge
from .ranks import rank
from .rows import Order, Thing, Thread, arrange, tie
from .shapes import LOOP, PORT, START_MARK, Label, label_of, size_of

GAP, SLOPE, MOST_GAP = 22.0, 0.1, 64.0
BEND = 5.0
"""Half the room that a passing edge takes."""


@dataclass(frozen=True, slots=True)
class Rect:
    left: float
    top: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return round(self.left + self.width, 1)

    @property
    def bottom(self) -> float:
        return round(self.top + self.height, 1)

    @property
    def middle(self) -> tuple[float, float]:
        return round(self.left + self.width / 2, 1), round(self.top + self.height / 2, 1)


Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Route:
    """The way of an edge from the border of its source to the border of its target, and where its label is.

    Between two points with the same x it runs straight, else it bends, upright at both.
    """

    points: tuple[Point, ...]
    label: Rect
    lines: Label
    loop: bool = False


@dataclass(frozen=True, slots=True)
class Layout:
    width: float
    height: float
    boxes: tuple[Rect, ...]
    """As `Diagram.nodes`."""
    routes: tuple[Route, ...]
    """As `Diagram.edges`."""


@dataclass(slots=True, eq=False)
class _Chain:
    """An edge on its way through the rows, from the upper state to the lower."""

    threads: list[Thread]
    stop: Thing
    back: bool


def lay_out(diagram: Diagram) -> Layout:
    labels = [label_of(edge) for edge in diagram.edges]
    ranks = rank(diagram)
    nodes = _nodes(diagram, labels, ranks)
    chains: dict[int, _Chain] = {}
    things = list(nodes)
    # forward edges first: the walk that makes the first order then finds the back edges last, at the side
    for back in (False, True):
        for number, edge in enumerate(diagram.edges):
            if edge.source != edge.target and (ranks[edge.source] > ranks[edge.target]) == back:
                chains[number] = _chain(edge, labels[number], nodes, back, things)
    ways = [[thread.lower for thread in chain.threads[:-1]] for chain in chains.values()]
    rows = arrange(things, nodes[diagram.start], ways)
    for node in nodes:
        _tie_beside_one_another(node)
    columns.assign(rows, ways)
    middles, height = _heights(rows)
    reaches = [max(thing.height for thing in row) / 2 for row in rows]
    boxes = tuple(_box(diagram, i, node, middles) for i, node in enumerate(nodes))
    routes = tuple(
        _route(chains[i], labels[i], boxes, edge, middles, reaches)
        if i in chains
        else _loop(diagram, i, labels, boxes[edge.source])
        for i, edge in enumerate(diagram.edges)
    )
    width = max(thing.x + thing.right for row in rows for thing in row)
    return Layout(round(width, 1), round(height, 1), boxes, routes)


def _nodes(diagram: Diagram, labels: list[Label], ranks: list[int]) -> list[Thing]:
    nodes = []
    for number, node in enumerate(diagram.nodes):
        size = size_of(node)
        tops = sum(_joins(e, number, ranks, above=True) for e in diagram.edges)
        bottoms = sum(_joins(e, number, ranks, above=False) for e in diagram.edges)
        width = max(size.width, (max(tops, bottoms) + 1) * PORT)
        loops = [labels[i] for i, e in enumerate(diagram.edges) if e.source == e.target == number]
        height = max(size.height, sum(max(loop.height, LOOP) + 6 for loop in loops))
        beside = max((LOOP + loop.width for loop in loops), default=0.0)
        left = width / 2 + (START_MARK if number == diagram.start else 0.0)
        nodes.append(Thing(2 * ranks[number], left, width / 2 + beside, height, is_node=True))
    return nodes


def _joins(edge: Edge, node: int, ranks: list[int], above: bool) -> bool:
    if edge.source == edge.target or node not in (edge.source, edge.target):
        return False
    other = edge.target if edge.source == node else edge.source
    return (ranks[other] < ranks[node]) == above


def _chain(edge: Edge, label: Label, nodes: list[Thing], back: bool, things: list[Thing]) -> _Chain:
    upper, lower = nodes[edge.source], nodes[edge.target]
    if back:
        upper, lower = lower, upper
    at = lower.row - 1 if back else upper.row + 1
    threads: list[Thread] = []
    stop, above = upper, upper
    for row in range(upper.row + 1, lower.row):
        if row == at:
            half = max(label.width / 2, BEND)
            thing = stop = Thing(row, half, half, label.height)
        else:
            thing = Thing(row, BEND, BEND)
        things.append(thing)
        threads.append(tie(above, thing))
        above = thing
    threads.append(tie(above, lower))
    return _Chain(threads, stop, back)


def _tie_beside_one_another(node: Thing) -> None:
    """Threads leave a state side by side, in the order of where they lead."""
    for threads, upper in ((node.down, True), (node.up, False)):
        threads.sort(key=lambda t: t.lower.place if t.upper is node else t.upper.place)
        for number, thread in enumerate(threads):
            offset = (number - (len(threads) - 1) / 2) * PORT
            if upper:
                thread.upper_offset = offset
            else:
                thread.lower_offset = offset


def _heights(rows: Order) -> tuple[list[float], float]:
    """The middle of every row, and the height of all. Wide bends get a higher gap, or they would be flat."""
    middles: list[float] = []
    y = 0.0
    for row in rows:
        height = max((thing.height for thing in row), default=0.0)
        middles.append(y + height / 2)
        widest = max((abs(_lower_x(t) - _upper_x(t)) for thing in row for t in thing.down), default=0.0)
        y += height + min(GAP + SLOPE * widest, MOST_GAP)
        last = height
    return middles, middles[-1] + last / 2


def _upper_x(thread: Thread) -> float:
    return thread.upper.x + thread.upper_offset


def _lower_x(thread: Thread) -> float:
    return thread.lower.x + thread.lower_offset


def _box(diagram: Diagram, number: int, thing: Thing, middles: list[float]) -> Rect:
    half = thing.left - (START_MARK if number == diagram.start else 0.0)
    return Rect(
        round(thing.x - half, 1),
        round(middles[thing.row] - thing.height / 2, 1),
        round(2 * half, 1),
        round(thing.height, 1),
    )


def _route(
    chain: _Chain,
    label: Label,
    boxes: tuple[Rect, ...],
    edge: Edge,
    middles: list[float],
    reaches: list[float],
) -> Route:
    upper, lower = boxes[edge.source], boxes[edge.target]
    if chain.back:
        upper, lower = lower, upper
    first, last = chain.threads[0], chain.threads[-1]
    points = [(_upper_x(first), upper.bottom), (_upper_x(first), middles[first.upper.row] + reaches[first.upper.row])]
    for thread in chain.threads[:-1]:
        x, row = thread.lower.x, thread.lower.row
        points += [(x, middles[row] - reaches[row]), (x, middles[row] + reaches[row])]
    points += [(_lower_x(last), middles[last.lower.row] - reaches[last.lower.row]), (_lower_x(last), lower.top)]
    way = [(round(x, 1), round(y, 1)) for x, y in points]
    way = [p for i, p in enumerate(way) if i == 0 or p != way[i - 1]]
    stop = chain.stop
    top = round(middles[stop.row] - label.height / 2, 1)
    rect = Rect(round(stop.x - label.width / 2, 1), top, round(label.width, 1), round(label.height, 1))
    return Route(tuple(way[::-1] if chain.back else way), rect, label)


def _loop(diagram: Diagram, number: int, labels: list[Label], box: Rect) -> Route:
    """Loops of one state are one below the other."""
    edge = diagram.edges[number]
    loops = [i for i, e in enumerate(diagram.edges) if e.source == e.target == edge.source]
    heights = [max(labels[i].height, LOOP) + 6 for i in loops]
    place = loops.index(number)
    y = box.middle[1] - sum(heights) / 2 + sum(heights[:place]) + heights[place] / 2
    label, x = labels[number], box.right
    points = ((x, round(y - LOOP / 4, 1)), (round(x + LOOP, 1), round(y, 1)), (x, round(y + LOOP / 4, 1)))
    rect = Rect(round(x + LOOP, 1), round(y - label.height / 2, 1), round(label.width, 1), round(label.height, 1))
    return Route(points, rect, label, loop=True)
