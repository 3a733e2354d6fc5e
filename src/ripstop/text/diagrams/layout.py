"""Places for everything in a diagram, by construction free of overlaps.

- States are in rows by their rank; between two such rows is a row for labels, so that a label is a stop
  on its edge's way and has its own room, next to the state whose decision it is.
- An edge passes a row straight down, in its own column, and bends only in the gaps between rows. So
  no edge runs through a state or a label of another.
- A back edge leaves its state at the top and enters the other one from below.
- A loop leaves and enters at the right side of its state, with its label next to it; the mark of the start
  is at the left. Both are part of the room that the state takes in its row.
"""

from collections import deque
from dataclasses import dataclass
from itertools import accumulate, pairwise

from .diagram import Diagram, Edge
from .rows import Order, Thing, Thread, arrange, tie
from .shapes import LOOP, PORT, START_MARK, Label, label_of, size_of

# The place of each thing in its row, so that edges run as straight as the order of the rows allows.
#
# Every thread pulls its two ends above one another, the threads of long edges more strongly. Row by row, over
# and over, each thing goes to where it is pulled; where things would collide, the row is solved exactly by
# pooling those that push one another (isotonic regression). So things of a row never overlap.
#
# Pulling alone lets a long edge drift aside a little in every row. So at the end each edge is straightened: the
# longest stretches that have a column of their own get one x.


ROUNDS, FEWEST_ROUNDS = 60, 20
EFFORT = 600_000
"""Things that are pulled at most, over all rounds: in a drawing of 200 states the difference is not visible."""
STRAIGHTENINGS = 3
COLUMN_GAP = 18.0
NEAR = 30.0
"""A stretch moves this far to be exactly below or above what it leads to."""
JOG = 5.0
"""A bend that is smaller than this is not meant."""
STRONG, MIDDLE, WEAK = 8.0, 3.0, 1.0


def assign(rows: Order, chains: list[list[Thing]]) -> None:
    """Give every thing its `x`; the leftmost reach becomes 0."""
    pulled = [_Row(row) for row in rows]
    for one in pulled:
        one.spread()
    for turn in range(max(FEWEST_ROUNDS, min(ROUNDS, EFFORT // sum(map(len, rows))))):
        for one in pulled if turn % 2 == 0 else reversed(pulled):
            one.pull()
    for _ in range(STRAIGHTENINGS):
        for chain in (*chains, *reversed(chains)):
            _straighten(rows, chain)
        for row in rows:
            for thing in row:
                if thing.is_node:
                    _snap(rows, thing)
    leftmost = min(thing.x - thing.left for row in rows for thing in row)
    for row in rows:
        for thing in row:
            thing.x = round(thing.x - leftmost, 1)


class _Row:
    """A row, and what pulls at the things in it. Only `Thing.x` changes between rounds, so all else is kept."""

    def __init__(self, things: list[Thing]) -> None:
        self.things = things
        self._pulls = [_pulls_at(thing) for thing in things]
        self._weights = [sum(weight for weight, _, _ in pulls) or 0.1 for pulls in self._pulls]
        self._offsets = list(accumulate((apart(left, right) for left, right in pairwise(things)), initial=0.0))

    def pull(self) -> None:
        wanted = []
        for thing, pulls, weight in zip(self.things, self._pulls, self._weights, strict=True):
            if len(pulls) == 2:  # a bend of a long edge, by far the most frequent
                (v, one, shift), (w, other, slip) = pulls
                wanted.append((v * (one.x + shift) + w * (other.x + slip)) / weight)
            else:
                wanted.append(sum(w * (one.x + shift) for w, one, shift in pulls) / weight if pulls else thing.x)
        self._settle(wanted, self._weights)

    def spread(self) -> None:
        """Stand side by side, where nothing pulls yet."""
        self._settle([0.0] * len(self.things), [1.0] * len(self.things))

    def _settle(self, wanted: list[float], weights: list[float]) -> None:
        """The places nearest to the wanted ones (in weighted squares) at which neighbours keep their distance."""
        pools: list[tuple[float, float, int]] = []  # mean, weight, how many
        for want, weight, offset in zip(wanted, weights, self._offsets, strict=True):
            mean, total, count = want - offset, weight, 1
            while pools and pools[-1][0] >= mean:
                before, more, number = pools.pop()
                mean = (before * more + mean * total) / (more + total)
                total, count = total + more, count + number
            pools.append((mean, total, count))
        means = (mean for mean, _, count in pools for _ in range(count))
        for thing, mean, offset in zip(self.things, means, self._offsets, strict=True):
            thing.x = mean + offset


def _pulls_at(thing: Thing) -> list[tuple[float, Thing, float]]:
    """(how strongly, by what, how far beside it)"""
    pulls = [(_weight(thing, t.upper), t.upper, t.upper_offset - t.lower_offset) for t in thing.up]
    return pulls + [(_weight(thing, t.lower), t.lower, t.lower_offset - t.upper_offset) for t in thing.down]


def _weight(one: Thing, other: Thing) -> float:
    return (STRONG, MIDDLE, WEAK)[one.is_node + other.is_node]


def apart(left: Thing, right: Thing) -> float:
    """The least distance between the middles of two neighbours."""
    return left.right + COLUMN_GAP + right.left


def _straighten(rows: Order, chain: list[Thing]) -> None:
    """`chain` is what lies on the way of one edge, from above to below."""
    done = 0
    while done < len(chain):
        lowest, highest = _room(rows, chain[done])
        stretch = [chain[done]]
        for thing in chain[done + 1 :]:
            room = _room(rows, thing)
            low, high = max(lowest, room[0]), min(highest, room[1])
            if low > high:
                break
            lowest, highest = low, high
            stretch.append(thing)
        done += len(stretch)
        x = _column(stretch, lowest, highest)
        for thing in stretch:
            thing.x = x


def _snap(rows: Order, node: Thing) -> None:
    """Stand exactly below what leads here, if that is all but so."""
    low, high = _room(rows, node)
    for thread in node.up:
        x = thread.upper.x + thread.upper_offset - thread.lower_offset
        if abs(x - node.x) <= JOG and low <= x <= high:
            node.x = x
            return


def _room(rows: Order, thing: Thing) -> tuple[float, float]:
    """Between which places a thing can be moved, with its neighbours where they are now."""
    row, place, x = rows[thing.row], thing.place, thing.x
    low, high = -1e9, 1e9
    if place > 0:
        left = row[place - 1]
        low = left.x + apart(left, thing)
    if place + 1 < len(row):
        right = row[place + 1]
        high = right.x - apart(thing, right)
    # where neighbours touch, rounding may have crossed the two
    return (low if low < x else x), (high if high > x else x)


def _column(stretch: list[Thing], lowest: float, highest: float) -> float:
    """One x for a stretch: where no bend is needed at one of its ends, if that is near; else in its middle."""
    mean = sum(thing.x for thing in stretch) / len(stretch)
    above, below = stretch[0].up[0], stretch[-1].down[0]
    ends = [above.upper.x + above.upper_offset, below.lower.x + below.lower_offset]
    if abs(ends[0] - ends[1]) <= JOG:
        ends.pop()  # what is below can follow
    near = [x for x in ends if lowest <= x <= highest and abs(x - mean) <= NEAR]
    return min(near, key=lambda x: abs(x - mean), default=min(max(mean, lowest), highest))


# Which state is above which.
#
# 1. Cycles are broken: states are put in an order, and an edge that leads back in it is a *back edge*, which
#    the layout treats as if it led the other way. Of several natural orders (the author's, and two walks from the
#    start) the one with the fewest back edges wins; the author's wins a tie.
# 2. Each state is one rank below the lowest of those that lead to it. The start is at the top, all
#    ends are at the bottom, and a state that can be lower without making an edge longer is moved down.


def rank(diagram: Diagram) -> list[int]:
    """The rank of every node, 0 at the top. No edge but a loop stays in its rank."""
    count = len(diagram.nodes)
    ends = [i for i, node in enumerate(diagram.nodes) if node.end]
    pairs = sorted({(e.source, e.target) for e in diagram.edges if e.source != e.target})
    place = _best_order(diagram, ends, pairs)
    down = [(a, b) if place[a] < place[b] else (b, a) for a, b in pairs]
    above: list[list[int]] = [[] for _ in range(count)]
    below: list[list[int]] = [[] for _ in range(count)]
    for a, b in down:
        above[b].append(a)
        below[a].append(b)
    order = sorted(range(count), key=place.__getitem__)
    ranks = [0] * count
    for node in order:
        ranks[node] = max((ranks[a] + 1 for a in above[node]), default=0)
    for node in reversed(order):
        if node != diagram.start and len(above[node]) < len(below[node]):
            ranks[node] = min(ranks[b] for b in below[node]) - 1
    for end in ends:
        ranks[end] = max(ranks)
    return ranks


def _best_order(diagram: Diagram, ends: list[int], pairs: list[tuple[int, int]]) -> list[int]:
    after: list[list[int]] = [[] for _ in diagram.nodes]
    for edge in diagram.edges:
        after[edge.source].append(edge.target)
    roots = [diagram.start, *(i for i in range(len(diagram.nodes)) if i != diagram.start)]
    orders = []
    for order in (roots, _by_depth(roots, after), _by_breadth(roots, after)):
        last = [i for i in order if i not in ends] + ends
        place = [0] * len(last)
        for position, node in enumerate(last):
            place[node] = position
        orders.append(place)
    return min(orders, key=lambda place: sum(place[a] > place[b] for a, b in pairs))


def _by_depth(roots: list[int], after: list[list[int]]) -> list[int]:
    """The reverse of the order in which a walk in depth leaves the nodes."""
    left: list[int] = []
    seen: set[int] = set()
    for root in roots:
        if root in seen:
            continue
        seen.add(root)
        stack = [(root, iter(after[root]))]
        while stack:
            node, rest = stack[-1]
            fresh = next((n for n in rest if n not in seen), None)
            if fresh is None:
                left.append(node)
                stack.pop()
            else:
                seen.add(fresh)
                stack.append((fresh, iter(after[fresh])))
    # whatever cannot be reached from the start was left last, and must not come before it
    order = left[::-1]
    start = order.index(roots[0])
    return [*order[start:], *order[:start]]


def _by_breadth(roots: list[int], after: list[list[int]]) -> list[int]:
    order: list[int] = []
    seen: set[int] = set()
    for root in roots:
        queue = deque([root])
        while queue:
            node = queue.popleft()
            if node not in seen:
                seen.add(node)
                order.append(node)
                queue.extend(after[node])
    return order


ROW_GAP, SLOPE, MAX_ROW_GAP = 22.0, 0.1, 64.0
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
    assign(rows, ways)
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
        y += height + min(ROW_GAP + SLOPE * widest, MAX_ROW_GAP)
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
