"""Graph: agents take turns along the edges of a state graph."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ripstop.kernel.style import Sample, StyleKit

from .definition import Graph
from .state import GRAPH_EVENTS
from .style import GraphStyle

if TYPE_CHECKING:
    from ripstop.text.diagrams.diagram import Chapter, Diagram


def _draw_definition(definition: Graph) -> "Diagram":
    from .drawing import draw_definition

    return draw_definition(definition)


def _draw_run(definition: Graph, chapters: "Sequence[Chapter]") -> "Diagram":
    from .drawing import draw_run

    return draw_run(definition, chapters)


def _samples() -> Sequence[Sample]:
    from .samples import samples

    return samples()


KIT = StyleKit(
    style=GraphStyle(),
    definition=Graph,
    events=GRAPH_EVENTS,
    draw_definition=_draw_definition,
    draw_run=_draw_run,
    samples=_samples,
)
