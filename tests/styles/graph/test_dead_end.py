"""Whatever an agent decides, a state that none of its transitions leaves can say why."""

import json
from typing import Any

from hypothesis import given as for_all
from hypothesis import strategies as st

from ripstop.kernel.effects import AgentReplied
from ripstop.styles.graph.definition import END, Agent, Graph, State, Transition
from ripstop.styles.graph.style import GraphStyle
from ripstop.styles.turn import Corrected
from ripstop.testing import given

NAMES = ("score", "Score", "verdict", "done", "turns", "turn_count_a", "limit")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=80),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
CONDITIONS = (
    "score >= 8 AND NOT done",
    'verdict == "pass" OR verdict != "fail" AND score < limit',
    "NOT (score != 3) AND (done == true) == false",
    '"9" == score OR turns > score OR done',
)


def a_graph(conditions: list[str]) -> Graph:
    ways = tuple(Transition(to=END, condition=each) for each in conditions)
    states = (State(name="a", agent="ann", prompt="Go.", transitions=ways),)
    return Graph(name="g", start="a", agents=(Agent(name="ann"),), states=states, initial_message="x")


@for_all(st.dictionaries(st.sampled_from(NAMES), VALUES), st.lists(st.sampled_from(CONDITIONS), min_size=1))
def test_any_decisions_end_the_turn_or_are_asked_for_again(decisions: dict[str, Any], conditions: list[str]) -> None:
    story = given(GraphStyle(), a_graph(conditions))
    reply = AgentReplied(text=json.dumps({"content": "x", "decisions": decisions}))
    told = story.when(reply)
    if any(isinstance(event, Corrected) for event in told.decided):
        told = story.when(reply)
    broken = told.run.ended is not None and told.run.ended.outcome == "failed"
    if broken:  # the agent was told, and insists
        told.then_ends("failed", "done must be true or false")
        assert not isinstance(decisions["done"], bool)
    else:
        told.then_ends("completed")
    assert all(len(getattr(event, "text", "")) < 3000 for event in told.decided)
