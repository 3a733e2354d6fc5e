"""A graph, and a run of it, as a diagram."""

from collections.abc import Sequence
from dataclasses import replace

from ripstop.kernel.effects import StartRun
from ripstop.kernel.events import Asked
from ripstop.kernel.outbox import child_id
from ripstop.text.diagrams.diagram import Chapter, Diagram, Edge, Node, journey

from .definition import END, Graph
from .state import GraphState, TurnFinished

NONE_HOLDS = "none of these holds"


def draw_definition(graph: Graph) -> Diagram:
    """The graph as its author wrote it. A state without transitions leads to the end, so that is drawn."""
    places = {state.name: index for index, state in enumerate(graph.states)}
    end = len(graph.states)
    edges: list[Edge] = []
    for index, state in enumerate(graph.states):
        for t in state.transitions:
            target = end if t.to == END else places[t.to]
            edges.append(Edge(index, target, " ".join(t.condition.split()), t.line))
        if not state.transitions:
            edges.append(Edge(index, end, line=state.line))
    nodes = [Node(state.name, state.worker, nested=bool(state.workflow)) for state in graph.states]
    if any(edge.target == end for edge in edges):
        nodes.append(Node(END, end=True))
    return Diagram(
        name=graph.name,
        nodes=tuple(nodes),
        edges=tuple(edges),
        start=places[graph.start],
        description=" ".join(graph.description.split()),
        notes=_notes(graph),
        source=graph.source,
    )


def draw_run(graph: Graph, chapters: Sequence[Chapter]) -> Diagram:
    """The graph with the path that a run took through it."""
    plain = draw_definition(graph)
    places = {state.name: index for index, state in enumerate(graph.states)}
    nodes, edges, end = list(plain.nodes), list(plain.edges), len(graph.states)
    now: GraphState = chapters[-1].after.state
    here = places.get(now.here.name)
    undrawn: list[int] = []
    finished = [one for one in chapters if isinstance(one.event, TurnFinished)]
    for turn, one in enumerate(finished, start=1):
        assert isinstance(one.event, TurnFinished) and one.before is not None
        source, target = places.get(one.before.state.here.name), _target(one.event, places, end)
        taken = None if source is None or target is None else _followed(edges, source, target, one.event)
        if taken is None:
            undrawn.append(turn)
        else:
            edges[taken] = replace(edges[taken], turns=(*edges[taken].turns, turn))
    if finished and chapters[-1].after.ended and now.turn is None and not now.child:  # no turn is under way
        last = finished[-1].event
        assert isinstance(last, TurnFinished)
        here = _target(last, places, end)
    if len(nodes) == end and any(edge.target == end for edge in edges):
        nodes.append(Node(END, end=True))
    children = _children(chapters)
    return replace(
        plain,
        nodes=tuple(_visited(node, now, children.get(node.name, "")) for node in nodes),
        edges=tuple(edges),
        notes=(*plain.notes, *_undrawn(undrawn)),
        journey=replace(journey(chapters), turns=now.turns, here=here),
    )


def _children(chapters: Sequence[Chapter]) -> dict[str, str]:
    """The run that each state with a workflow started last."""
    started: dict[str, str] = {}
    for one in chapters:
        if isinstance(one.event, Asked) and isinstance(one.event.command, StartRun):
            run = one.after
            started[run.state.here.name] = child_id(run.id, run.length, one.event.command)
    return started


def _visited(node: Node, now: GraphState, child: str) -> Node:
    if node.end:
        return node
    turns = now.counts.get(node.name, 0)
    return replace(node, turns=turns, agent=f"{node.agent}: {child}" if child else node.agent)


def _target(finished: TurnFinished, places: dict[str, int], end: int) -> int | None:
    return end if finished.to in ("", END) else places.get(finished.to)


def _followed(edges: list[Edge], source: int, target: int, turned: TurnFinished) -> int | None:
    """Which edge was followed; one for "no transition holds" is added when it is needed.

    After a fork with a new definition the transitions of earlier turns may be numbered otherwise, or gone.
    """
    leaving = [index for index, edge in enumerate(edges) if edge.source == source]
    if 0 <= turned.via < len(leaving) and edges[leaving[turned.via]].target == target:
        return leaving[turned.via]
    same = [index for index in leaving if edges[index].target == target]
    if turned.via >= 0:
        return same[0] if same else None
    fitting = [index for index in same if edges[index].condition in ("", NONE_HOLDS)]
    if fitting:
        return fitting[0]
    edges.append(Edge(source, target, NONE_HOLDS))
    return len(edges) - 1


def _notes(graph: Graph) -> tuple[str, ...]:
    exits = [f"{e.condition} ({e.action})" for e in graph.exit_conditions]
    limit = f"At most {graph.max_turns} {'turn' if graph.max_turns == 1 else 'turns'}."
    return (limit, f"Ends early on {' or '.join(exits)}.") if exits else (limit,)


def _undrawn(turns: list[int]) -> tuple[str, ...]:
    if not turns:
        return ()
    return (
        f"Not drawn, because this definition no longer has them: the steps after turn {', '.join(map(str, turns))}.",
    )
