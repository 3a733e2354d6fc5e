"""A pipeline, and the way that a run took through its stages, as a diagram.

- A stage is a node, in order. A review and a critic are loops: feedback, or a finding, and the stage works again.
- A stage whose agents can go back (`goto_stage`) has an arrow to every stage that can be restarted before it.
- Moves of a run are numbered from 1, in the order in which they were made.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ripstop.text.diagrams.diagram import Chapter, Diagram, Edge, Journey, Node, journey

from .definition import MAX_GOTOS, Pipeline, PipelineStage
from .flow import GOTO
from .state import DraftReviewed, GotoRequested, PipelineState, StageBegan

END = "END"
Why = Literal["next", "feedback", "finding", "goto"]
NEXT: Why = "next"
WORDS: dict[Why, str] = {"next": "", "feedback": "feedback", "finding": "finding", "goto": "goto"}


@dataclass(frozen=True, slots=True)
class StageMove:
    """A run went from a stage to a stage, or to itself; after the last stage, to `END`."""

    source: str
    target: str
    why: Why = "next"


def draw_definition(pipeline: Pipeline) -> Diagram:
    """The stages as their author wrote them."""
    names = [*(stage.name for stage in pipeline.stages), END]
    places = {name: place for place, name in enumerate(names)}
    nodes = [Node(stage.name, _worker(stage), nested=bool(stage.workflow)) for stage in pipeline.stages]
    edges = [
        Edge(places[move.source], places[move.target], WORDS[move.why])
        for number, stage in enumerate(pipeline.stages)
        for move in _moves(pipeline, stage, names[number + 1])
    ]
    return Diagram(
        name=pipeline.name,
        nodes=(*nodes, Node(END, end=True)),
        edges=tuple(edges),
        start=0,
        description=" ".join(pipeline.description.split()),
        notes=_notes(pipeline),
        counted="step",
    )


def draw(pipeline: Pipeline, moves: Sequence[StageMove], at: str, journey: Journey) -> Diagram:
    """The pipeline with the moves of a run.

    Args:
        at: The stage that it is in, or `END`; empty before the first one.
    """
    plain = draw_definition(pipeline)
    places = {node.name: place for place, node in enumerate(plain.nodes)}
    taken: dict[tuple[int, int, str], list[int]] = {}
    undrawn = []
    for number, move in enumerate(moves, start=1):
        if move.source in places and move.target in places:
            key = places[move.source], places[move.target], WORDS[move.why]
            taken.setdefault(key, []).append(number)
        else:
            undrawn.append(number)
    edges = [replace(edge, turns=tuple(taken.pop(_key(edge), ()))) for edge in plain.edges]
    edges += [Edge(source, target, why, turns=tuple(turns)) for (source, target, why), turns in taken.items()]
    entered = [*([moves[0].source] if moves else filter(None, [at])), *(move.target for move in moves)]
    nodes = [node if node.end else replace(node, turns=entered.count(node.name)) for node in plain.nodes]
    gone = ", ".join(map(str, undrawn))
    notes = (f"Not drawn, because this definition no longer has its stages: step {gone}.",) if undrawn else ()
    return replace(
        plain,
        nodes=tuple(nodes),
        edges=tuple(edges),
        notes=(*plain.notes, *notes),
        journey=replace(journey, turns=len(moves), here=places.get(at)),
    )


def _key(edge: Edge) -> tuple[int, int, str]:
    return edge.source, edge.target, edge.condition


def _moves(pipeline: Pipeline, stage: PipelineStage, following: str) -> list[StageMove]:
    found = [StageMove(stage.name, following)]
    if stage.review:
        found.append(StageMove(stage.name, stage.name, "feedback"))
    if stage.critic and stage.max_iterations > 1:
        found.append(StageMove(stage.name, stage.name, "finding"))
    if GOTO in (*stage.tools, *stage.draft_tools, *(stage.critic.tools if stage.critic else ())):
        before = [one.name for one in pipeline.stages[: pipeline.index(stage.name)]]
        found += [StageMove(stage.name, name, "goto") for name in pipeline.restartable if name in before]
    return found


def _worker(stage: PipelineStage) -> str:
    actor = stage.workflow or stage.agent
    return f"{actor}, {stage.critic.agent}" if stage.critic else actor


def _notes(pipeline: Pipeline) -> tuple[str, ...]:
    reviewed = [stage.name for stage in pipeline.stages if stage.review]
    found = []
    if reviewed:
        times = "once" if pipeline.max_reviews == 1 else f"up to {pipeline.max_reviews} times"
        found.append(f"A person reviews the drafts of {', '.join(reviewed)}, each {times}.")
    often = [f"{stage.name} {stage.max_iterations}" for stage in pipeline.stages if stage.max_iterations > 1]
    if often:
        found.append(f"Iterations of actor and critic, at most: {', '.join(often)}.")
    if any(move.why == "goto" for stage in pipeline.stages for move in _moves(pipeline, stage, END)):
        by_itself = f"A goto is made at once, at most {MAX_GOTOS} times in a run."
        found.append(by_itself if pipeline.auto_goto else "A goto ends the run, and a person restarts it there.")
    return tuple(found)


def draw_run(pipeline: Pipeline, chapters: Sequence[Chapter]) -> Diagram:
    """The pipeline with the way that a run took."""
    now: PipelineState = chapters[-1].after.state
    ended = chapters[-1].after.ended
    at = END if ended and ended.outcome == "completed" else now.stage
    return draw(pipeline, moves_of(chapters, at), at, journey(chapters))


def moves_of(chapters: Sequence[Chapter], at: str) -> list[StageMove]:
    moves: list[StageMove] = []
    stage, why = "", NEXT
    for one in chapters:
        match one.event:
            case StageBegan(stage=name, iteration=iteration):
                if stage:
                    moves.append(StageMove(stage, name, "finding" if iteration > 1 else why))
                stage, why = name, NEXT
            case DraftReviewed(choice="feedback"):
                moves.append(StageMove(stage, stage, "feedback"))
            case GotoRequested(jumps=True):
                why = "goto"
    return [*moves, StageMove(stage, END)] if at == END and stage else moves
