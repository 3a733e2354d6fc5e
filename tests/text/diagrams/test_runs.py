"""A run in its graph: the edges it followed, in their order, and where it stands."""

import json
from typing import Any

from ripstop.kernel.effects import AgentReplied, RunFinished
from ripstop.kernel.folding import apply
from ripstop.styles.graph.definition import Graph, State
from ripstop.styles.graph.drawing import NONE_HOLDS, draw_definition, draw_run
from ripstop.styles.graph.kit import KIT
from ripstop.testing import Given, given
from ripstop.text.diagrams.diagram import Chapter, Diagram
from ripstop.text.diagrams.formats import dot, mermaid
from ripstop.text.diagrams.svg import HERE, TAKEN, svg
from tests.text.diagrams.diagrams import graph

PAIR = graph("write", write=[("judge", "done"), ("write", "NOT done")], judge=[("END", "good"), ("write", "NOT good")])


def says(**decisions: Any) -> AgentReplied:
    return AgentReplied(text=json.dumps({"content": "Said.", "decisions": decisions}))


def chapters(story: Given) -> list[Chapter]:
    told: list[Chapter] = []
    for record in story.records:
        before = told[-1].after if told else None
        after = apply(story.style, story.contents, story.run_id, before, record)
        told.append(Chapter(record.event, before, after))
    return told


def drawn(definition: Graph, *answers: AgentReplied | RunFinished, now: Graph | None = None) -> Diagram:
    """A run of a definition, drawn in it or in the one that it has `now`."""
    return draw_run(now or definition, chapters(given(KIT.style, definition, *answers)))


def followed(diagram: Diagram) -> dict[tuple[str, str], tuple[int, ...]]:
    names = [node.name for node in diagram.nodes]
    return {(names[e.source], names[e.target]): e.turns for e in diagram.edges if e.turns}


def here(diagram: Diagram) -> str | None:
    assert diagram.journey is not None
    return None if diagram.journey.here is None else diagram.nodes[diagram.journey.here].name


THERE_AND_BACK = (says(done=True), says(good=False), says(done=True), says(good=True))


def test_edges_carry_the_turns_that_followed_them() -> None:
    diagram = drawn(PAIR, *THERE_AND_BACK)
    assert followed(diagram) == {("write", "judge"): (1, 3), ("judge", "write"): (2,), ("judge", "END"): (4,)}
    assert [node.turns for node in diagram.nodes] == [2, 2, 0]
    assert here(diagram) == "END"


def test_a_run_that_has_not_ended_is_where_its_turn_is() -> None:
    diagram = drawn(PAIR, says(done=True))
    assert here(diagram) == "judge"
    assert "in turn 2" in svg(diagram)
    assert here(drawn(PAIR)) == "write"


def test_a_run_that_failed_is_where_it_failed() -> None:
    unread = AgentReplied(text="hm", recorded=True)
    assert here(drawn(PAIR, says(done=True), unread)) == "judge"
    assert here(drawn(PAIR, says(done=True), says(good=False), unread)) == "write"


def test_a_turn_after_which_nothing_held_is_drawn_as_an_edge_of_its_own() -> None:
    lonely = graph("a", a=[("a", "again")])
    assert len(draw_definition(lonely).nodes) == 1
    diagram = drawn(lonely, says(again=True), says(again=False))
    assert followed(diagram) == {("a", "a"): (1,), ("a", "END"): (2,)}
    assert diagram.edges[-1].condition == NONE_HOLDS
    assert here(diagram) == "END"


def test_a_state_without_transitions_leads_to_the_end() -> None:
    diagram = drawn(graph("a", a=[]), says())
    assert followed(diagram) == {("a", "END"): (1,)}
    assert len(diagram.edges) == 1


def test_of_two_edges_between_the_same_states_the_one_that_held_is_marked() -> None:
    diagram = drawn(graph("a", a=[("b", "x"), ("b", "y")], b=[]), says(x=False, y=True))
    assert [edge.turns for edge in diagram.edges] == [(), (1,), ()]


def test_steps_that_a_new_definition_lacks_are_named_and_not_drawn() -> None:
    old = graph("gone", gone=[("write", "")], write=[("gone", "x"), ("gone", "y"), ("judge", "done")], judge=[])
    diagram = drawn(old, says(), says(x=False, y=False, done=True), now=PAIR)
    assert followed(diagram) == {("write", "judge"): (2,)}
    assert diagram.notes[-1].endswith("the steps after turn 1.")


def test_a_state_that_runs_a_workflow_has_a_double_border_in_every_format() -> None:
    nested = graph("a", a=[])
    nested = Graph("g", "a", (), (State("a", workflow="other"),), source=nested.source)
    diagram = drawn(nested, RunFinished(run="r.2", outcome="completed"))
    assert [(node.agent, node.nested, node.turns) for node in diagram.nodes] == [
        ("other: story.2", True, 1),
        ("", False, 0),
    ], "the node names the run that it started"
    assert 's0[["a<br/>other' in mermaid(diagram)
    assert "peripheries=2" in dot(diagram)
    plain = drawn(graph("a", a=[]), says())
    assert svg(diagram).count("<rect") == svg(plain).count("<rect") + 1


def test_every_format_shows_the_path_and_where_it_is() -> None:
    diagram = drawn(PAIR, *THERE_AND_BACK)
    picture = svg(diagram)
    assert "1 · 3" in picture and TAKEN in picture and HERE in picture and "where it ended" in picture
    assert "write leads to judge if done (after turn 1, 3)." in picture
    assert "linkStyle 1,3,4 stroke" in mermaid(diagram) and "class s2 here" in mermaid(diagram)
    assert '"1 · 3\\ndone", color="#1d4fd7"' in dot(diagram)
    assert TAKEN not in svg(draw_definition(PAIR)) and "linkStyle" not in mermaid(draw_definition(PAIR))
