"""Hand-off: documents in Markdown, passed from owner to owner."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ripstop.kernel.style import Sample, StyleKit

from .definition import Policy
from .events import HANDOFF_EVENTS
from .style import HandoffStyle

if TYPE_CHECKING:
    from ripstop.text.diagrams.diagram import Chapter, Diagram


def _draw_definition(definition: Policy) -> "Diagram":
    from .drawing import draw_definition

    return draw_definition(definition)


def _draw_run(definition: Policy, chapters: "Sequence[Chapter]") -> "Diagram":
    from .drawing import draw_run

    return draw_run(definition, chapters)


def _samples() -> Sequence[Sample]:
    from .samples import SAMPLES

    return SAMPLES


KIT = StyleKit(
    style=HandoffStyle(),
    definition=Policy,
    events=HANDOFF_EVENTS,
    section="documents",
    draw_definition=_draw_definition,
    draw_run=_draw_run,
    samples=_samples,
)
