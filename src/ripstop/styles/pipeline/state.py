"""Where a pipeline is. What the stages made is in files; here is only what the next prompt needs."""

from typing import Any, Literal

from msgspec import Struct

from ripstop.kernel.effects import PersonAnswered
from ripstop.kernel.events import Event, TurnResult

from ..checks import Shown
from ..turn import TURN_EVENTS, Turn
from .calls import BegunStage, CheckedStage, Mode, ShownCode
from .definition import Pipeline, PipelineStage

PASS, EDIT, FEEDBACK = "pass", "edit", "feedback"
"""What a person can choose in a review."""

# The pipeline's own decisions.


class StageBegan(Event, tag="pipeline.stage_began", frozen=True):
    stage: str
    iteration: int = 1


class DraftFinished(TurnResult, tag="pipeline.draft_finished", frozen=True):
    """The actor has written a draft: the words of the record `reply`."""

    stage: str
    reply: int


class DraftReviewed(Event, tag="pipeline.draft_reviewed", frozen=True):
    """A person has reviewed a draft, or the code; the words are in the record `answer`."""

    stage: str
    answer: int
    choice: str
    at: int
    """Microseconds."""
    code: bool = False
    """Whether it was the code that the stage has written, rather than its draft."""


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


class ProductJudged(Event, tag="pipeline.product_judged", frozen=True):
    """What was claimed about a product, beside what was found; with it, whether it can be delivered."""

    stage: str
    """The one that judges it."""
    reply: int
    """The record with the verdict; 0 if only the engine has looked."""
    shown: tuple[Shown, ...]
    reasons: tuple[str, ...] = ()
    """What keeps it back; none: nothing does."""
    back: str = ""
    """The stage that this run goes back to; empty: none, or it has gone back as often as it may."""


class StageFinished(Event, tag="pipeline.stage_finished", frozen=True):
    stage: str


PIPELINE_EVENTS: tuple[type[Event], ...] = (
    StageBegan,
    DraftFinished,
    DraftReviewed,
    OutputFinished,
    CriticFinished,
    GotoRequested,
    ProductJudged,
    StageFinished,
    *TURN_EVENTS,
)


Phase = Literal[
    "open",  # the project is opened
    "begin",  # the inputs of a stage are read
    "facts",  # facts are looked for
    "read",  # the inputs are read again for the next prompt
    "draft",  # the actor writes a draft
    "write_draft",  # the draft is written to its file
    "review",  # a person reviews it
    "answer",  # the answer is written
    "reset",  # old output is removed
    "formal",  # the actor, or a workflow, makes the formal output
    "verify",  # it is verified
    "critic",  # the critic checks it
    "show",  # code is compared with what was there before
    "review_code",  # a person reviews it
    "finish",  # the stage is marked as finished
    "close",  # the project is released
]
"""What the run waits for."""
TurnPhase = Literal["draft", "formal", "critic"]
"""What an agent works on."""


class PipelineArguments(Struct, frozen=True, forbid_unknown_fields=True):
    mode: Mode = "new"
    stage: str = ""
    """The first one of this run; empty: the pipeline's first."""
    change: str = ""
    """What the person wants changed."""


class Review(Struct, frozen=True):
    """A person's answer to a review."""

    stage: str
    choice: str
    number: int
    at: int = 0
    by: str = ""
    text: str = ""
    fields: dict[str, Any] = {}
    code: bool = False
    """Whether it was about the code, rather than the draft."""


class CommandRun(Struct, frozen=True):
    """A command that an agent has run, and how it ended the last time."""

    stage: str
    command: tuple[str, ...]
    exit_code: int | None
    """None: it was stopped, or not run at all."""
    more: str = ""
    """Why it has no exit code."""
    times: int = 1
    is_stale: bool = False
    """Whether files were written after it, so that it says nothing about them."""


class PipelineState(Struct, frozen=True):
    definition: Pipeline
    arguments: PipelineArguments
    idea: str
    first: str
    """The stage that the project is opened at: the first one of this run, or the one that it jumps to."""
    change: str | None = None
    """The change that a person has asked for, of this run or of one before. None: there is none; empty: he did not say
    what."""
    phase: Phase = "open"
    stage: str = ""
    """Empty until the first one has begun."""
    iteration: int = 1
    reviews: int = 0
    """Reviews of this stage in this run …"""
    most_reviews: int = 0
    """… how many it may have …"""
    code_reviews: int = 0
    """… and those of its code, which may have as many."""
    code_before: dict[str, str] | None = None
    """As `OpenedProject` has it."""
    code_at_start: dict[str, str] | None = None
    """Likewise, of when this run began."""
    given: BegunStage = BegunStage()
    given_number: int = 0
    """The record with it."""
    read_for: TurnPhase = "draft"
    """What the agent works on that gets what is read now."""
    turn: Turn | None = None
    draft: str = ""
    draft_number: int = 0
    """The record with the draft: the actor's reply, or the person's edit."""
    reviewed: tuple[Review, ...] = ()
    """Every review of this run."""
    shown_code: ShownCode = ShownCode()
    """What was shown of the code last …"""
    shown_code_number: int = 0
    """… and the record with it."""
    code_reviewed: dict[str, str] | None = None
    """The code that a person has taken as it is: hashes by path."""
    commands: tuple[CommandRun, ...] = ()
    """What agents of this run have run, by command; the latest is the last."""
    coded_in: str = ""
    """The last stage that has begun in this run and writes code."""
    said: PersonAnswered | None = None
    """What a person has just answered to a review, until it is recorded as a decision."""
    found: CheckedStage | None = None
    """What the engine found when it looked last."""
    output_number: int = 0
    """The record that the formal output of this stage ended with."""
    words: str = ""
    """What an agent, or a person who edited, said last."""
    report: str = ""
    """The delivery report as it was written."""
    prose: str = ""
    """The words for a report."""
    child: str = ""
    """The workflow's run that reached the limit of this run, and continues if that is raised."""
    goto: str = ""
    goto_reason: str = ""
    jumps: bool = False
    """Whether this run goes to the stage `goto` itself."""
    gotos: int = 0
    shown: tuple[Shown, ...] = ()
    """What was claimed and found when the product was judged last …"""
    shown_at: int = 0
    """… and the record with it."""
    kept_back: tuple[str, ...] = ()
    """What keeps the product of this stage from being delivered."""
    returns: int = 0
    """How often this run has sent it back."""
    code_kept_back: dict[str, str] = {}
    """The code that was kept back last: hashes by path."""
    finished: tuple[str, ...] = ()
    """Stages that this run has finished, or found finished."""
    closed: bool = False
    """The project is released: the run is over."""
    cancelled: bool = False

    @property
    def here(self) -> PipelineStage:
        found = self.definition.stage(self.stage)
        assert found is not None, self.stage
        return found

    @property
    def lacks_code(self) -> bool:
        """Whether the run is about to deliver, and nothing is there to be delivered."""
        if self.phase != "facts" or self.here.kind != "delivery":
            return False
        return not (self.found and self.found.facts and self.found.facts.code_files)

    @property
    def outcome(self) -> Literal["restart", "completed"]:
        """How the run ends when its project is closed."""
        return "restart" if self.goto else "completed"

    @property
    def last_review(self) -> Review | None:
        """The last one of this stage since it began."""
        last = self.reviewed[-1] if self.reviewed else None
        return last if last and last.stage == self.stage and (self.reviews or self.code_reviews) else None
