"""The place of each thing in its row, so that edges run as straight as the order of the rows allows.

Every thread pulls its two ends above one another, the threads of long edges more strongly. Row by row, over
and over, each thing goes to where it is pulled; where things would collide, the row is solved exactly by
pooling those that push one another (isotonic regression). So things of a row never overlap.

Pulling alone lets a long edge drift aside a little in every row. So at the end each edge is straightened: the
longest stretches that have a column of their own get one x.
"""

from itertools import accumulate, pairwise

from .rows import Order, Thing

ROUNDS, FEWEST_ROUNDS = 60, 20
EFFORT = 600_000
"""Things that are pulled at most, over all rounds: in a drawing of 200 states the difference is not visible."""
STRAIGHTENINGS = 3
GAP = 18.0
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
    return left.right + GAP + right.left


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
