"""The pure half of the plug-in."""

from collections.abc import Sequence

from ripstop.style_api import (
    AgentReplied,
    Chapter,
    Diagram,
    Edge,
    Failed,
    Node,
    PersonAnswered,
    Sample,
    StyleKit,
    TimerFired,
    ToolReturned,
    Usage,
    journey,
)

from .definition import Chores
from .events import CHORE_EVENTS, ChoreFinished
from .style import COLLECTION, NO, YES, ChoreStyle

FILED = ToolReturned(value="filed")


def draw_definition(definition: Chores) -> Diagram:
    return _diagram(definition, definition.chores)


def draw_run(definition: Chores, chapters: Sequence[Chapter]) -> Diagram:
    state = chapters[-1].after.state
    finished = [one.event.index for one in chapters if isinstance(one.event, ChoreFinished)]
    plain = _diagram(definition, state.chores, tuple(finished))
    ended = chapters[-1].after.ended
    here = len(state.chores) if ended and ended.outcome == "completed" else min(len(state.done), len(state.chores) - 1)
    told = journey(chapters)
    return Diagram(
        plain.name,
        plain.nodes,
        plain.edges,
        0,
        journey=type(told)(told.run, told.status, told.because, len(finished), told.ended, here),
    )


def _diagram(definition: Chores, chores: Sequence[str], finished: tuple[int, ...] = ()) -> Diagram:
    nodes = [Node(what, definition.agent, turns=finished.count(index)) for index, what in enumerate(chores)]
    edges = [
        Edge(index, index + 1, turns=tuple(turn for turn, one in enumerate(finished, start=1) if one == index))
        for index in range(len(chores))
    ]
    return Diagram(definition.name, (*nodes, Node("clean", end=True)), tuple(edges), 0)


def said(text: str) -> AgentReplied:
    return AgentReplied(text=text, usage=Usage(input_tokens=7, output_tokens=3))


def samples() -> tuple[Sample, ...]:
    flat = Chores("flat", ("sweep", "dust"), pause=1.5)
    content, unhappy = PersonAnswered(choice=YES, by="ann"), PersonAnswered(choice=NO, text="Corners!", by="ann")
    round = (said("Swept."), FILED, said("Dusted."), FILED, TimerFired())
    return (
        Sample("content", flat, (*round, content), arguments={"person": "ann"}),
        Sample("once more", flat, (*round, unhappy, *round, content), input="Mind the cat."),
        Sample("never content", flat, (*round, unhappy), arguments={"rounds": 1}),
        Sample("broken broom", flat, (said("Swept."), Failed(reason="The drawer is stuck."))),
    )


KIT = StyleKit(
    style=ChoreStyle(),
    definition=Chores,
    events=CHORE_EVENTS,
    collections=(COLLECTION,),
    draw_definition=draw_definition,
    draw_run=draw_run,
    samples=samples,
)
