"""Rows of things, ordered so that few edges cross.

Things are states, labels, and the bends of long edges. Threads join things of neighbouring rows, so every
edge that is longer than one row is a chain. Ordering is the usual barycentre sweep, up and down, with
exchanges of neighbours after each; the best order that was seen is kept, and then whole edges are tried at the
sides.
"""

from bisect import bisect_right, insort
from dataclasses import dataclass, field

SWEEPS = 12
MANY = 1500
"""With more things than this, fewer sweeps: a drawing of that size is for searching, not for beauty."""


@dataclass(slots=True, eq=False)
class Thing:
    """Something that takes room in a row; `x` is where its threads are tied, `left` and `right` its reach."""

    row: int
    left: float = 0.0
    right: float = 0.0
    height: float = 0.0
    is_node: bool = False
    x: float = 0.0
    place: int = 0
    up: list["Thread"] = field(default_factory=list)
    down: list["Thread"] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Thread:
    """A piece of an edge between two neighbouring rows; it is tied beside the middle of a state."""

    upper: Thing
    lower: Thing
    upper_offset: float = 0.0
    lower_offset: float = 0.0


def tie(upper: Thing, lower: Thing) -> Thread:
    thread = Thread(upper, lower)
    upper.down.append(thread)
    lower.up.append(thread)
    return thread


Order = list[list[Thing]]


def arrange(things: list[Thing], first: Thing, chains: list[list[Thing]]) -> Order:
    """The rows, each in its best order. `chains` are the things on the way of each edge."""
    best, fewest = _first_order(things, first, False), -1
    for mirrored in (False, True):
        rows = _first_order(things, first, mirrored)
        if fewest < 0:
            fewest = _crossings(rows)
        for turn in range(2 * (SWEEPS if len(things) <= MANY else 1)):
            _sweep(rows, downwards=turn % 2 == 0)
            _exchange(rows)
            crossings = _crossings(rows)
            if crossings < fewest:
                best, fewest = _copy(rows), crossings
    if len(things) <= MANY:
        best = _move_chains(best, fewest, chains)
    for row in best:
        _number(row)
    return best


def _copy(rows: Order) -> Order:
    return [list(row) for row in rows]


def _move_chains(rows: Order, fewest: int, chains: list[list[Thing]]) -> Order:
    """Lead a whole edge around everything, at the left or at the right, where that saves crossings."""
    helped = True
    while helped and fewest:
        helped = False
        for chain in chains:
            for left in (True, False):
                moved = _copy(rows)
                for thing in chain:
                    row = moved[thing.row]
                    row.remove(thing)
                    row.insert(0 if left else len(row), thing)
                for row in moved:
                    _number(row)
                _exchange(moved)
                crossings = _crossings(moved)
                if crossings < fewest:
                    rows, fewest, helped = moved, crossings, True
    return rows


def _first_order(things: list[Thing], first: Thing, mirrored: bool) -> Order:
    """As a walk from the start meets them."""
    rows: Order = [[] for _ in range(max(thing.row for thing in things) + 1)]
    seen: set[int] = set()
    for root in (first, *things):
        stack = [root]
        while stack:
            thing = stack.pop()
            if id(thing) in seen:
                continue
            seen.add(id(thing))
            rows[thing.row].append(thing)
            stack.extend(t.lower for t in (thing.down if mirrored else reversed(thing.down)))
    for row in rows:
        _number(row)
    return rows


def _number(row: list[Thing]) -> None:
    for place, thing in enumerate(row):
        thing.place = place


def _sweep(rows: Order, downwards: bool) -> None:
    for row in rows if downwards else reversed(rows):
        wanted = {}
        for thing in row:
            near = [t.upper.place for t in thing.up] if downwards else [t.lower.place for t in thing.down]
            wanted[id(thing)] = sum(near) / len(near) if near else float(thing.place)
        row.sort(key=lambda thing: wanted[id(thing)])
        _number(row)


def _exchange(rows: Order) -> None:
    """Exchange neighbours as long as that helps."""
    for _ in range(4):
        helped = False
        for row in rows:
            for i in range(len(row) - 1):
                a, b = row[i], row[i + 1]
                if _between(b, a) < _between(a, b):
                    row[i], row[i + 1] = b, a
                    a.place, b.place = i + 1, i
                    helped = True
        if not helped:
            return


def _between(left: Thing, right: Thing) -> int:
    """How many threads of two neighbours cross in this order."""
    ups = sorted(t.upper.place for t in right.up)
    downs = sorted(t.lower.place for t in right.down)
    crossed = sum(_smaller(ups, t.upper.place) for t in left.up)
    return crossed + sum(_smaller(downs, t.lower.place) for t in left.down)


def _smaller(places: list[int], place: int) -> int:
    return sum(p < place for p in places)


def _crossings(rows: Order) -> int:
    total = 0
    for row in rows:
        seen: list[int] = []
        ends = sorted((t.upper.place, t.lower.place) for thing in row for t in thing.down)
        for _, lower in ends:
            total += len(seen) - bisect_right(seen, lower)
            insort(seen, lower)
    return total
