"""A board, and the way that the iterations of a run took, as a diagram."""

from collections.abc import Sequence
from dataclasses import replace

from ripstop.text.diagrams.diagram import Chapter, Diagram, Edge, Node, journey

from .definition import FINISH, MAIN, USER, Board
from .state import BoardState, MainDecided
from .view import where


def draw_definition(board: Board) -> Diagram:
    """MAIN calls an agent, and its report comes back to MAIN."""
    nodes = [Node(MAIN)]
    nodes += [Node(agent.name, agent.workflow, nested=bool(agent.workflow)) for agent in board.agents]
    nodes += [Node(USER), Node(FINISH, end=True)]
    calls = [Edge(0, place) for place in range(1, len(nodes))]
    reports = [Edge(place, 0) for place in range(1, len(nodes) - 1)]
    policy = board.policy
    checked = ", ".join(policy.report_rules.apply_to)
    notes = [f"At most {policy.max_iterations} iterations.", f"The policy verifies the reports of {checked}."]
    return Diagram(board.name, tuple(nodes), (*calls, *reports), 0, notes=tuple(notes), source=board.folder)


def draw_run(board: Board, chapters: Sequence[Chapter]) -> Diagram:
    """The board with the calls that were made, numbered by iteration."""
    plain = draw_definition(board)
    places = {node.name: place for place, node in enumerate(plain.nodes)}
    now: BoardState = chapters[-1].after.state
    called: dict[int, list[int]] = {}
    decided = [one.event for one in chapters if isinstance(one.event, MainDecided)]
    for event in decided:
        if event.next_agent in places:
            called.setdefault(places[event.next_agent], []).append(event.iteration)
    answered = {place: [turn for turn in turns if turn < now.iteration] for place, turns in called.items()}
    edges = [
        replace(edge, turns=tuple(called.get(edge.target, ()) if edge.source == 0 else answered.get(edge.source, ())))
        for edge in plain.edges
    ]
    nodes = [replace(node, turns=len(called.get(place, ()))) for place, node in enumerate(plain.nodes)]
    nodes[0] = replace(nodes[0], turns=len(decided))
    ended = chapters[-1].after.ended
    here = places[FINISH] if ended and now.finished else places.get(where(now))
    return replace(
        plain,
        nodes=tuple(nodes),
        edges=tuple(edge for edge in edges if edge.turns or edge.source == 0),
        journey=replace(journey(chapters), turns=now.taken, here=here),
        counted="iteration",
    )
