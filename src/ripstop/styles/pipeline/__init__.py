"""Pipeline: from an idea to delivered files, stage by stage, with a person's review."""

from collections.abc import Sequence

from ripstop.kernel.style import Sample, StyleKit

from .definition import Pipeline
from .events import PIPELINE_EVENTS
from .style import PipelineStyle


def _samples() -> Sequence[Sample]:
    from .samples import samples

    return samples()


KIT = StyleKit(
    style=PipelineStyle(),
    definition=Pipeline,
    events=PIPELINE_EVENTS,
    samples=_samples,
)
