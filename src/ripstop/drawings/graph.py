"""A graph, and a run of it, as a diagram."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ripstop.kernel.events import Event
from ripstop.styles.graph.definition import END, Graph
from ripstop.styles.graph.events import TurnFinished

from .diagram import Diagram, Edge, Journey, Node

NONE_HOLDS = "none of these holds"


@dataclass(frozen=True, slots=True)
class Happened:
    """A record of a run, and the state in which the run stood before it."""

    where: str
    event: Event


def of_graph(graph: Graph) -> Diagram:
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
    nodes = [Node(state.name, state.agent) for state in graph.states]
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


def of_run(graph: Graph, happened: Iterable[Happened], path: Sequence[str], journey: Journey) -> Diagram:
    """The graph with the way that a run took through it. `path` names the state of every turn, in order.

    Of `journey` the turns and the place are filled in here.
    """
    plain = of_graph(graph)
    places = {state.name: index for index, state in enumerate(graph.states)}
    nodes, edges, end = list(plain.nodes), list(plain.edges), len(graph.states)
    here = places.get(path[-1]) if path else plain.start
    undrawn: list[int] = []
    turned = [step for step in happened if isinstance(step.event, TurnFinished)]
    for turn, step in enumerate(turned, start=1):
        assert isinstance(step.event, TurnFinished)
        here = end if step.event.to in ("", END) else places.get(step.event.to)
        source = places.get(step.where)
        taken = None if source is None or here is None else _followed(edges, source, here, step.event)
        if taken is None:
            undrawn.append(turn)
        else:
            edges[taken] = replace(edges[taken], turns=(*edges[taken].turns, turn))
    if here is not None and here < end and len(path) > len(turned):
        here = places.get(path[-1])
    if len(nodes) == end and any(edge.target == end for edge in edges):
        nodes.append(Node(END, end=True))
    visits = Counter(path)
    return replace(
        plain,
        nodes=tuple(replace(node, turns=0 if node.end else visits[node.name]) for node in nodes),
        edges=tuple(edges),
        notes=(*plain.notes, *_undrawn(undrawn)),
        journey=replace(journey, turns=len(path), here=here),
    )


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
