"""Blackboard: MAIN decides, specialists report, a policy verifies."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ripstop.kernel.style import Sample, StyleKit

from .definition import Board
from .state import BLACKBOARD_EVENTS
from .style import BlackboardStyle

if TYPE_CHECKING:
    from ripstop.text.diagrams.diagram import Chapter, Diagram


def _draw_definition(definition: Board) -> "Diagram":
    from .drawing import draw_definition

    return draw_definition(definition)


def _draw_run(definition: Board, chapters: "Sequence[Chapter]") -> "Diagram":
    from .drawing import draw_run

    return draw_run(definition, chapters)


def _samples() -> Sequence[Sample]:
    from .samples import samples

    return samples()


KIT = StyleKit(
    style=BlackboardStyle(),
    definition=Board,
    events=BLACKBOARD_EVENTS,
    draw_definition=_draw_definition,
    draw_run=_draw_run,
    samples=_samples,
)
