"""Graphs and diagrams to draw: any at all, and one that people look at."""

from hypothesis import strategies as st

from ripstop.styles.graph.definition import END, Agent, ExitCondition, Graph, State, Transition
from ripstop.text.diagrams.diagram import Diagram, Edge, Journey, Node

TEXTS = st.one_of(
    st.sampled_from(
        ["a", "review", "需求文档更新", "NOT (approved AND score >= 8)", '"quoted" <b>&amp;', "END", "end"]
    ),
    st.text(max_size=30),
    st.text(alphabet="ab_ .:;#&<>\"'`*[]{}()|\\%-1\n", max_size=30),
    st.text(alphabet="字符W 😀", min_size=20, max_size=200),
)


@st.composite
def diagrams(draw: st.DrawFn) -> Diagram:
    count = draw(st.integers(1, 10))
    nodes = [Node(draw(TEXTS), draw(TEXTS), turns=draw(st.integers(0, 2))) for _ in range(count)]
    if draw(st.booleans()):
        nodes.append(Node("END", end=True))
    places = st.integers(0, len(nodes) - 1)
    edges = draw(
        st.lists(
            st.builds(
                Edge,
                source=st.integers(0, count - 1),
                target=places,
                condition=TEXTS,
                line=st.integers(0, 99),
                turns=st.lists(st.integers(1, 999), max_size=9).map(tuple),
            ),
            max_size=24,
        )
    )
    journey = draw(st.none() | st.builds(Journey, run=TEXTS, status=TEXTS, because=TEXTS, here=st.none() | places))
    return Diagram(
        draw(TEXTS),
        tuple(nodes),
        tuple(edges),
        draw(st.integers(0, count - 1)),
        draw(TEXTS),
        (draw(TEXTS),),
        "f",
        journey,
    )


def graph(start: str, **states: list[tuple[str, str]]) -> Graph:
    """A graph with one agent, from `state=[(target, condition), …]`."""
    return Graph(
        name="article",
        start=start,
        agents=(Agent("writer"),),
        states=tuple(
            State(name, "writer", "", tuple(Transition(to, condition, 7) for to, condition in transitions), 5)
            for name, transitions in states.items()
        ),
        exit_conditions=(ExitCondition("max_turns_exceeded", "force_end"),),
        source="workflow.yaml",
    )


def review_loop() -> Graph:
    """Eight states, four edges back, three loops, and an end that three states lead to."""
    return graph(
        "research",
        research=[("outline", "enough_sources"), ("research", "NOT enough_sources"), (END, "topic_is_nonsense")],
        outline=[("draft", "outline_ready"), ("research", "NOT outline_ready AND missing_facts > 2")],
        draft=[("fact_check", "draft_complete"), ("draft", "NOT draft_complete")],
        fact_check=[("review", "errors == 0"), ("draft", "errors > 0 AND errors <= 5"), ("research", "errors > 5")],
        review=[
            ("polish", "approved AND score < 9"),
            ("publish", "approved AND score >= 9"),
            ("draft", "NOT approved AND rounds < 3 AND NOT out_of_time"),
            (END, "rejected_for_good"),
        ],
        polish=[("review", "polished"), ("polish", "NOT polished")],
        publish=[("announce", "published")],
        announce=[],
    )
