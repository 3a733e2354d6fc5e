"""The pipeline's own decisions."""

from ripstop.kernel.events import Event, TurnResult

from ..turn import TURN_EVENTS


class StageBegan(Event, tag="pipeline.stage_began", frozen=True):
    stage: str
    iteration: int = 1


class DraftFinished(TurnResult, tag="pipeline.draft_finished", frozen=True):
    """The actor has written a draft: the words of the record `reply`."""

    stage: str
    reply: int


class DraftReviewed(Event, tag="pipeline.draft_reviewed", frozen=True):
    """A person has reviewed a draft; the words are in the record `answer`."""

    stage: str
    answer: int
    choice: str
    at: int
    """Microseconds."""


class OutputFinished(TurnResult, tag="pipeline.output_finished", frozen=True):
    """The formal output of a stage is there and valid."""

    stage: str
    reply: int
    """The record with the actor's last words, or with the end of the workflow in its place."""


class CriticFinished(TurnResult, tag="pipeline.critic_finished", frozen=True):
    stage: str
    reply: int
    findings: int = 0
    """How many of them are critical or major."""


class GotoRequested(Event, tag="pipeline.goto_requested", frozen=True):
    """An agent wants the run to go back to an earlier stage."""

    stage: str
    """The one that asks."""
    goto: str
    reason: str
    jumps: bool = False
    """Whether this run goes there itself."""


class StageFinished(Event, tag="pipeline.stage_finished", frozen=True):
    stage: str


PIPELINE_EVENTS: tuple[type[Event], ...] = (
    StageBegan,
    DraftFinished,
    DraftReviewed,
    OutputFinished,
    CriticFinished,
    GotoRequested,
    StageFinished,
    *TURN_EVENTS,
)
