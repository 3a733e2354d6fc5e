"""Where in its row each thing stands, so that edges run as straight as the order of the rows allows.

Every thread pulls its two ends above one another, the threads of long edges more strongly. Row by row, over
and over, each thing goes to where it is pulled; where things would collide, the row is solved exactly by
pooling those that push one another (isotonic regression). So things of a row never overlap.

Pulling alone lets a long edge drift aside a little in every row. So at the end each edge is straightened: the
longest stretches that have a column of their own get one x.
"""

from itertools import pairwise

from .rows import Order, Thing

ROUNDS = 60
STRAIGHTENINGS = 3
GAP = 18.0
NEAR = 30.0
"""A stretch moves this far to stand exactly below or above what it leads to."""
JOG = 5.0
"""A bend that is smaller than this is not meant."""
STRONG, MIDDLE, WEAK = 8.0, 3.0, 1.0


def assign(rows: Order, chains: list[list[Thing]]) -> None:
    """Give every thing its `x`; the leftmost reach becomes 0."""
    for row in rows:
        _settle(row, [0.0] * len(row), [1.0] * len(row))
    for turn in range(ROUNDS):
        for row in rows if turn % 2 == 0 else reversed(rows):
            _pull(row)
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


def _pull(row: list[Thing]) -> None:
    wanted, weights = [], []
    for thing in row:
        pulls = [(_weight(thing, t.upper), t.upper.x + t.upper_offset - t.lower_offset) for t in thing.up]
        pulls += [(_weight(thing, t.lower), t.lower.x + t.lower_offset - t.upper_offset) for t in thing.down]
        weight = sum(w for w, _ in pulls)
        wanted.append(sum(w * x for w, x in pulls) / weight if pulls else thing.x)
        weights.append(weight or 0.1)
    _settle(row, wanted, weights)


def _weight(one: Thing, other: Thing) -> float:
    return (STRONG, MIDDLE, WEAK)[one.is_node + other.is_node]


def apart(left: Thing, right: Thing) -> float:
    """The least distance between the middles of two neighbours."""
    return left.right + GAP + right.left


def _settle(row: list[Thing], wanted: list[float], weights: list[float]) -> None:
    """The places nearest to the wanted ones (in weighted squares) at which neighbours keep their distance."""
    offsets = [0.0]
    for left, right in pairwise(row):
        offsets.append(offsets[-1] + apart(left, right))
    pools: list[tuple[float, float, int]] = []  # mean, weight, how many
    for want, weight, offset in zip(wanted, weights, offsets, strict=True):
        mean, total, count = want - offset, weight, 1
        while pools and pools[-1][0] >= mean:
            before, more, number = pools.pop()
            mean = (before * more + mean * total) / (more + total)
            total, count = total + more, count + number
        pools.append((mean, total, count))
    means = (mean for mean, _, count in pools for _ in range(count))
    for thing, mean, offset in zip(row, means, offsets, strict=True):
        thing.x = mean + offset


def _straighten(rows: Order, chain: list[Thing]) -> None:
    """`chain` is what lies on the way of one edge, from above to below."""
    done = 0
    while done < len(chain):
        lowest, highest = _room(rows, chain[done])
        stretch = [chain[done]]
        for thing in chain[done + 1 :]:
            low, high = max(lowest, _room(rows, thing)[0]), min(highest, _room(rows, thing)[1])
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
    """Between which places a thing can be moved, as its neighbours stand now."""
    row = rows[thing.row]
    low, high = -1e9, 1e9
    if thing.place > 0:
        left = row[thing.place - 1]
        low = left.x + apart(left, thing)
    if thing.place + 1 < len(row):
        right = row[thing.place + 1]
        high = right.x - apart(thing, right)
    # where neighbours touch, rounding may have crossed the two
    return min(low, thing.x), max(high, thing.x)


def _column(stretch: list[Thing], lowest: float, highest: float) -> float:
    """One x for a stretch: where no bend is needed at one of its ends, if that is near; else in its middle."""
    mean = sum(thing.x for thing in stretch) / len(stretch)
    above, below = stretch[0].up[0], stretch[-1].down[0]
    ends = [above.upper.x + above.upper_offset, below.lower.x + below.lower_offset]
    if abs(ends[0] - ends[1]) <= JOG:
        ends.pop()  # what is below can follow
    near = [x for x in ends if lowest <= x <= highest and abs(x - mean) <= NEAR]
    return min(near, key=lambda x: abs(x - mean), default=min(max(mean, lowest), highest))
