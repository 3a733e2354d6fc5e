"""A run in its graph: the edges it followed, in their order, and where it stands."""

from ripstop.drawings.diagram import Diagram, Journey
from ripstop.drawings.dot import dot
from ripstop.drawings.graph import NONE_HOLDS, Happened, of_graph, of_run
from ripstop.drawings.mermaid import mermaid
from ripstop.drawings.svg import HERE, TAKEN, svg
from ripstop.kernel.events import Warned
from ripstop.styles.graph.definition import Graph
from ripstop.styles.graph.events import TurnFinished
from tests.drawings.diagrams import graph

PAIR = graph("write", write=[("judge", "done"), ("write", "NOT done")], judge=[("END", "good"), ("write", "NOT good")])


def turned(where: str, to: str, via: int) -> Happened:
    return Happened(where, TurnFinished(reply=1, to=to, via=via))


def drawn(definition: Graph, *happened: Happened, path: list[str], ended: bool = True) -> Diagram:
    return of_run(definition, happened, path, Journey("r-1", "completed" if ended else "working", ended=ended))


def followed(diagram: Diagram) -> dict[tuple[str, str], tuple[int, ...]]:
    names = [node.name for node in diagram.nodes]
    return {(names[e.source], names[e.target]): e.turns for e in diagram.edges if e.turns}


def here(diagram: Diagram) -> str | None:
    assert diagram.journey is not None
    return None if diagram.journey.here is None else diagram.nodes[diagram.journey.here].name


THERE_AND_BACK = (
    turned("write", "judge", 0),
    Happened("judge", Warned(text="odd")),
    turned("judge", "write", 1),
    turned("write", "judge", 0),
    turned("judge", "END", 0),
)


def test_edges_carry_the_turns_that_followed_them() -> None:
    diagram = drawn(PAIR, *THERE_AND_BACK, path=["write", "judge", "write", "judge"])
    assert followed(diagram) == {("write", "judge"): (1, 3), ("judge", "write"): (2,), ("judge", "END"): (4,)}
    assert [node.turns for node in diagram.nodes] == [2, 2, 0]
    assert here(diagram) == "END"


def test_a_run_that_has_not_ended_stands_where_its_turn_is() -> None:
    diagram = drawn(PAIR, turned("write", "judge", 0), path=["write", "judge"], ended=False)
    assert here(diagram) == "judge"
    assert "in turn 2" in svg(diagram)
    assert here(drawn(PAIR, path=[], ended=False)) == "write"


def test_a_turn_after_which_nothing_held_is_drawn_as_an_edge_of_its_own() -> None:
    lonely = graph("a", a=[("a", "again")])
    assert len(of_graph(lonely).nodes) == 1
    diagram = drawn(lonely, turned("a", "a", 0), turned("a", "", -1), path=["a", "a"])
    assert followed(diagram) == {("a", "a"): (1,), ("a", "END"): (2,)}
    assert diagram.edges[-1].condition == NONE_HOLDS
    assert here(diagram) == "END"


def test_a_state_without_transitions_leads_to_the_end() -> None:
    diagram = drawn(graph("a", a=[]), turned("a", "", -1), path=["a"])
    assert followed(diagram) == {("a", "END"): (1,)}
    assert len(diagram.edges) == 1


def test_of_two_edges_between_the_same_states_the_one_that_held_is_marked() -> None:
    twice = graph("a", a=[("b", "x"), ("b", "y")], b=[])
    diagram = drawn(twice, turned("a", "b", 1), path=["a", "b"], ended=False)
    assert [edge.turns for edge in diagram.edges] == [(), (1,), ()]


def test_steps_that_a_new_definition_lacks_are_named_and_not_drawn() -> None:
    diagram = drawn(PAIR, turned("gone", "write", 0), turned("write", "judge", 5), path=["gone", "write", "judge"])
    assert followed(diagram) == {("write", "judge"): (2,)}
    assert diagram.notes[-1].endswith("the steps after turn 1.")


def test_every_format_shows_the_path_and_where_it_stands() -> None:
    diagram = drawn(PAIR, *THERE_AND_BACK, path=["write", "judge", "write", "judge"])
    picture = svg(diagram)
    assert "1 · 3" in picture and TAKEN in picture and HERE in picture and "where it ended" in picture
    assert "write leads to judge if done (after turn 1, 3)." in picture
    assert "linkStyle 1,3,4 stroke" in mermaid(diagram) and "class s2 here" in mermaid(diagram)
    assert '"1 · 3\\ndone", color="#1d4fd7"' in dot(diagram)
    assert TAKEN not in svg(of_graph(PAIR)) and "linkStyle" not in mermaid(of_graph(PAIR))
