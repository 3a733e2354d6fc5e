"""Rows of things, ordered so that few edges cross.

Things are states, labels, and the bends of long edges. Threads join things of neighbouring rows, so every
edge that is longer than one row is a chain. Ordering is the usual barycentre sweep, up and down, with
exchanges of neighbours after each; the best order that was seen is kept, and then whole edges are tried at the
sides.
"""

from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass, field

SWEEPS = 12
PASSES = 4
"""How often a row is gone through for exchanges after a sweep."""
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
            _exchange(rows, set(range(len(rows))), PASSES)
            crossings = _crossings(rows)
            if crossings < fewest:
                best, fewest = [list(row) for row in rows], crossings
    for row in best:
        _number(row)
    if len(things) <= MANY:
        _move_chains(best, chains)
    return best


def _move_chains(rows: Order, chains: list[list[Thing]]) -> None:
    """Lead a whole edge around everything, at the left or at the right, where that saves crossings."""
    _exchange(rows, set(range(len(rows))))
    helped = True
    while helped:
        helped = False
        for chain in chains:
            for left in (True, False):
                helped = _move_chain(rows, chain, left) or helped


def _move_chain(rows: Order, chain: list[Thing], left: bool) -> bool:
    """Lead one edge along a side and let its neighbours follow; take that back if it saves nothing."""
    touched = {thing.row for thing in chain}
    gaps = touched | {row - 1 for row in touched}
    before = {row: list(rows[row]) for row in touched}
    saved = sum(_crossings_below(rows[gap]) for gap in gaps)
    for thing in chain:
        row = rows[thing.row]
        row.remove(thing)
        row.insert(0 if left else len(row), thing)
        _number(row)
    saved -= sum(_crossings_below(rows[gap]) for gap in gaps)
    saved += _exchange(rows, touched | gaps | {row + 1 for row in touched}, keep=before)
    if saved > 0:
        return True
    for number, row in before.items():
        rows[number] = row
        _number(row)
    return False


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


def _exchange(rows: Order, numbers: set[int], passes: int = -1, keep: dict[int, list[Thing]] | None = None) -> int:
    """Exchange neighbours in some rows, then around them, as long as that helps; returns how many crossings it saves.

    Every exchange saves one at least, so this ends without a number of `passes`, too. `keep` gets the rows that are
    changed as they were.
    """
    saved = 0
    while numbers and passes:
        passes -= 1
        changed = set()
        for number in sorted(numbers):
            row = rows[number]
            for i in range(len(row) - 1):
                gain = _gain(row[i], row[i + 1])
                if gain > 0:
                    if keep is not None and number not in keep:
                        keep[number] = list(row)
                    row[i], row[i + 1] = row[i + 1], row[i]
                    row[i].place, row[i + 1].place = i, i + 1
                    saved += gain
                    changed.add(number)
        # a row affects only its neighbours
        numbers = {near for number in changed for near in (number - 1, number, number + 1) if 0 <= near < len(rows)}
    return saved


def _gain(left: Thing, right: Thing) -> int:
    """How many crossings less there are if two neighbours are exchanged."""
    gain = 0
    for ours, theirs in (
        ([t.upper.place for t in left.up], [t.upper.place for t in right.up]),
        ([t.lower.place for t in left.down], [t.lower.place for t in right.down]),
    ):
        if len(ours) == len(theirs) == 1:  # bends of long edges, by far the most frequent
            gain += (ours[0] > theirs[0]) - (ours[0] < theirs[0])
        elif ours and theirs:
            theirs.sort()
            gain += sum(bisect_left(theirs, place) + bisect_right(theirs, place) - len(theirs) for place in ours)
    return gain


def _crossings(rows: Order) -> int:
    return sum(map(_crossings_below, rows))


def _crossings_below(row: list[Thing]) -> int:
    """Between a row and the next."""
    total = 0
    seen: list[int] = []
    ends = sorted((t.upper.place, t.lower.place) for thing in row for t in thing.down)
    for _, lower in ends:
        total += len(seen) - bisect_right(seen, lower)
        insort(seen, lower)
    return total
