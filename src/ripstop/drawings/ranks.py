"""Which state is above which.

1. Cycles are broken: states are put in an order, and an edge that leads back in it is a *back edge*, which
   the layout treats as if it led the other way. Of several natural orders (the author's, and two walks from the
   start) the one with the fewest back edges wins; the author's wins a tie.
2. Each state is one rank below the lowest of those that lead to it. The start is at the top, all
   ends are at the bottom, and a state that can be lower without making an edge longer is moved down.
"""

from collections import deque

from .diagram import Diagram


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
