"""The layout of any graph at all, and of one that was looked at."""

from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripstop.styles.graph.drawing import draw_definition
from ripstop.text.diagrams.diagram import Diagram
from ripstop.text.diagrams.layout import Layout, Point, Rect, lay_out, rank
from ripstop.text.diagrams.rows import Thing, arrange, tie
from tests.text.diagrams.diagrams import diagrams, graph, review_loop

pytestmark = pytest.mark.long

CLOSE = 0.25
"""Places are rounded to tenths."""


def overlap(a: Rect, b: Rect) -> bool:
    return (
        a.left + CLOSE < b.right and b.left + CLOSE < a.right and a.top + CLOSE < b.bottom and b.top + CLOSE < a.bottom
    )


def on_border(point: Point, box: Rect) -> bool:
    x, y = point
    inside = box.left - CLOSE <= x <= box.right + CLOSE and box.top - CLOSE <= y <= box.bottom + CLOSE
    return inside and min(abs(x - box.right), abs(y - box.top), abs(y - box.bottom)) <= CLOSE


def way(points: tuple[Point, ...]) -> list[Rect]:
    """What a route covers: its upright pieces, and the boxes in which it bends."""
    return [Rect(min(a, c), min(b, d), abs(a - c), abs(b - d)) for (a, b), (c, d) in pairwise(points)]


def labels(layout: Layout) -> list[Rect]:
    return [route.label for route in layout.routes if route.label.height]


@settings(deadline=None, max_examples=150)
@given(diagrams())
def test_nothing_overlaps_in_any_graph(diagram: Diagram) -> None:
    layout = lay_out(diagram)
    for one, other in combinations([*layout.boxes, *labels(layout)], 2):
        assert not overlap(one, other)


@settings(deadline=None, max_examples=150)
@given(diagrams())
def test_every_edge_leads_from_border_to_border_and_through_no_state(diagram: Diagram) -> None:
    layout = lay_out(diagram)
    for edge, route in zip(diagram.edges, layout.routes, strict=True):
        assert on_border(route.points[0], layout.boxes[edge.source])
        assert on_border(route.points[-1], layout.boxes[edge.target])
        if not route.loop:
            for piece in way(route.points):
                assert not any(overlap(piece, box) for box in layout.boxes)
                assert not any(overlap(piece, r.label) for r in layout.routes if r is not route and r.label.height)


@settings(deadline=None, max_examples=150)
@given(diagrams())
def test_everything_lies_inside_the_picture(diagram: Diagram) -> None:
    layout = lay_out(diagram)
    for rect in (*layout.boxes, *labels(layout), *(piece for r in layout.routes for piece in way(r.points))):
        assert rect.left >= -CLOSE and rect.top >= -CLOSE
        assert rect.right <= layout.width + CLOSE and rect.bottom <= layout.height + CLOSE


@settings(deadline=None, max_examples=100)
@given(diagrams())
def test_no_edge_stays_in_its_rank_and_the_start_is_at_the_top(diagram: Diagram) -> None:
    ranks = rank(diagram)
    assert ranks[diagram.start] == 0 == min(ranks)
    assert all(ranks[e.source] != ranks[e.target] for e in diagram.edges if e.source != e.target)


@settings(deadline=None, max_examples=50)
@given(diagrams())
def test_the_same_graph_is_laid_out_the_same(diagram: Diagram) -> None:
    assert lay_out(diagram) == lay_out(diagram)


def test_edges_of_the_review_loop_do_not_cross() -> None:
    layout = lay_out(draw_definition(review_loop()))
    ways = [way(route.points) for route in layout.routes if not route.loop]
    upright = [[piece for piece in pieces if piece.width == 0 and piece.height > 60] for pieces in ways]
    for number, pieces in enumerate(upright):
        others = [piece for other, covered in enumerate(ways) if other != number for piece in covered]
        for piece in pieces:
            assert not any(
                o.left < piece.left < o.right and overlap(o, Rect(piece.left - 1, piece.top, 2, piece.height))
                for o in others
            )


def test_long_edges_run_straight() -> None:
    layout = lay_out(draw_definition(review_loop()))
    assert max(len({x for x, _ in route.points}) for route in layout.routes if not route.loop) <= 3


def test_states_stand_in_the_order_of_their_author_when_that_is_as_good() -> None:
    written = graph("a", a=[("d", "skip"), ("b", "")], b=[("c", "")], c=[("d", "")], d=[("b", "again"), ("END", "")])
    assert rank(draw_definition(written)) == [0, 1, 2, 3, 4]


def test_a_hundred_states_are_laid_out() -> None:
    states = {f"s{i}": [(f"s{(i * 7 + 3) % 100}", "x"), (f"s{(i + 1) % 100}", "y")] for i in range(100)}
    layout = lay_out(draw_definition(graph("s0", **states)))
    assert len(layout.boxes) == 100


def crossings(rows: list[list[Thing]]) -> int:
    """Counted pair by pair, as one would with a finger."""
    threads = [[(thing.place, t.lower.place) for thing in row for t in thing.down] for row in rows]
    return sum((a[0] - b[0]) * (a[1] - b[1]) < 0 for gap in threads for a, b in combinations(gap, 2))


@settings(max_examples=150)
@given(
    st.lists(st.integers(1, 6), min_size=2, max_size=5).flatmap(
        lambda sizes: st.tuples(
            st.just(sizes), st.sets(st.tuples(st.integers(0, len(sizes) - 2), st.integers(0, 5), st.integers(0, 5)))
        )
    )
)
def test_no_exchange_of_neighbours_would_save_a_crossing(given_: tuple[list[int], set[tuple[int, int, int]]]) -> None:
    sizes, joined = given_
    rows = [[Thing(number) for _ in range(size)] for number, size in enumerate(sizes)]
    for upper, a, b in sorted(joined):
        if a < sizes[upper] and b < sizes[upper + 1]:
            tie(rows[upper][a], rows[upper + 1][b])
    things = [thing for row in rows for thing in row]
    ways = [[thing] for thing in things if thing.up and thing.down]
    best = arrange(things, things[0], ways)
    assert sorted(id(thing) for row in best for thing in row) == sorted(map(id, things))
    assert all(thing.place == place for row in best for place, thing in enumerate(row))
    fewest = crossings(best)
    for row in best:
        for one, other in pairwise(row):
            one.place, other.place = other.place, one.place
            assert crossings(best) >= fewest
            one.place, other.place = other.place, one.place
