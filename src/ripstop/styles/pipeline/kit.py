"""Pipeline: from an idea to delivered files, stage by stage, with a person's review."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ripstop.kernel.style import Sample, StyleKit

from .definition import Pipeline
from .state import PIPELINE_EVENTS
from .style import PipelineStyle

if TYPE_CHECKING:
    from ripstop.text.diagrams.diagram import Chapter, Diagram


def _draw_definition(definition: Pipeline) -> "Diagram":
    from .drawing import draw_definition

    return draw_definition(definition)


def _draw_run(definition: Pipeline, chapters: "Sequence[Chapter]") -> "Diagram":
    from .drawing import draw_run

    return draw_run(definition, chapters)


def _samples() -> Sequence[Sample]:
    from .samples import samples

    return samples()


KIT = StyleKit(
    style=PipelineStyle(),
    definition=Pipeline,
    events=PIPELINE_EVENTS,
    draw_definition=_draw_definition,
    draw_run=_draw_run,
    samples=_samples,
)
