"""A pipeline is drawn with its loops and ways back, and a run with the moves that it made."""

import msgspec
import pytest

from ripstop.styles.pipeline.definition import Critic, Pipeline, PipelineStage
from ripstop.styles.pipeline.drawing import END, StageMove, draw, draw_definition
from ripstop.styles.pipeline.parsing import default_pipeline
from ripstop.text.diagrams.diagram import Diagram, Journey, in_words, standing
from ripstop.text.diagrams.formats import FORMATS

CRITIC = Critic("taster", "Taste.", tools=("provide_feedback", "goto_stage"))
STAGES = (
    PipelineStage("wish", agent="wish", instructions="x", draft="artifacts/w.md"),
    PipelineStage("bake", agent="baker", draft="artifacts/b.md", review=True, critic=CRITIC, max_iterations=3),
    PipelineStage("ice", workflow="icing", critic=CRITIC, outputs=("data/i.json",)),
)
CAKE = Pipeline("cake", STAGES)


def arrows(diagram: Diagram) -> list[tuple[str, str, str]]:
    names = [node.name for node in diagram.nodes]
    return [(names[edge.source], edge.condition, names[edge.target]) for edge in diagram.edges]


def test_stages_are_in_order_with_their_loops_and_ways_back() -> None:
    diagram = draw_definition(CAKE)
    assert arrows(diagram) == [
        ("wish", "", "bake"),
        ("bake", "", "ice"),
        ("bake", "feedback", "bake"),
        ("bake", "finding", "bake"),
        ("ice", "", END),
        ("ice", "goto", "bake"),
    ]
    assert [(node.agent, node.nested) for node in diagram.nodes] == [
        ("wish", False),
        ("baker, taster", False),
        ("icing, taster", True),
        ("", False),
    ]
    assert diagram.notes == (
        "A person reviews the drafts of bake, each up to 5 times.",
        "Iterations of actor and critic, at most: bake 3.",
        "A goto ends the run, and a person restarts it there.",
    )
    jumping = draw_definition(msgspec.structs.replace(CAKE, auto_goto=True, max_reviews=1))
    assert jumping.notes[0].endswith("each once.") and "at most 10 times" in jumping.notes[2]


@pytest.mark.req("S3-1", "S3-27", "S3-53")
def test_the_default_flow_goes_back_from_check_to_every_stage_that_can_be_restarted() -> None:
    found = arrows(draw_definition(default_pipeline()))
    assert [target for source, why, target in found if why == "goto" and source == "check"] == [
        "prd",
        "design",
        "plan",
        "coding",
    ]
    assert [source for source, why, _ in found if why == "feedback"] == ["prd", "design", "plan", "coding"]


def test_a_run_shows_how_often_it_took_each_way_and_where_it_is() -> None:
    moves = [
        StageMove("wish", "bake"),
        StageMove("bake", "bake", "feedback"),
        StageMove("bake", "bake", "finding"),
        StageMove("bake", "bake", "feedback"),
        StageMove("bake", "ice"),
        StageMove("ice", "bake", "goto"),
    ]
    diagram = draw(CAKE, moves, "bake", Journey("r1", "waiting"))
    turns = {arrow: edge.turns for arrow, edge in zip(arrows(diagram), diagram.edges, strict=True) if edge.turns}
    assert turns == {
        ("wish", "", "bake"): (1,),
        ("bake", "feedback", "bake"): (2, 4),
        ("bake", "finding", "bake"): (3,),
        ("bake", "", "ice"): (5,),
        ("ice", "goto", "bake"): (6,),
    }
    assert [node.turns for node in diagram.nodes] == [1, 5, 1, 0]
    assert diagram.journey is not None and diagram.journey.here == 1
    assert standing(diagram) == "run r1 · waiting after 6 steps" and "The run is in bake." in in_words(diagram)


def test_a_run_that_has_just_begun_is_in_its_first_stage() -> None:
    diagram = draw(CAKE, [], "wish", Journey("r1", "working"))
    assert [node.turns for node in diagram.nodes] == [1, 0, 0, 0]
    unopened = draw(CAKE, [], "", Journey("r1", "working"))
    assert unopened.journey is not None and unopened.journey.here is None


def test_moves_that_the_definition_does_not_have_are_drawn_or_named() -> None:
    moves = [StageMove("wish", "ice"), StageMove("ice", "glaze"), StageMove("ice", END)]
    diagram = draw(CAKE, moves, END, Journey("r1", "completed", ended=True))
    assert arrows(diagram)[-1] == ("wish", "", "ice") and diagram.edges[-1].turns == (1,)
    assert diagram.notes[-1] == "Not drawn, because this definition no longer has its stages: step 2."


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_can_draw_it(format: str) -> None:
    text = FORMATS[format](draw(default_pipeline(), [StageMove("idea", "prd")], "prd", Journey("r1", "waiting")))
    assert "delivery" in text and "feedback" in text
