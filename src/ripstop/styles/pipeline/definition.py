"""A pipeline as data: stages in order, each with what it reads, writes and may do.

Paths of inputs, drafts and outputs are relative to the project's `.cowork` folder. The files that the coding stage
writes are elsewhere in the project, and are not listed.
"""

from typing import Any, Literal

from msgspec import Struct

RATE_LIMIT = 2.0
"""Seconds between two model calls, unless the definition sets another number."""
MAX_REVIEWS = 5
MAX_RETURNS = 2
MAX_GOTOS = 10
"""Jumps that `auto_goto` makes in one run."""
CHECK_REPORT, DELIVERY_REPORT = "artifacts/check_report.md", "artifacts/delivery_report.md"

StageKind = Literal["work", "check", "delivery"]
"""`check`: the engine looks for facts, the agent judges them. `delivery`: the engine writes the report, from evidence;
without code files there is none."""


class Critic(Struct, frozen=True):
    """The agent that checks what a stage has made."""

    agent: str
    instructions: str = ""
    model: str = ""
    tools: tuple[str, ...] = ()


class PipelineStage(Struct, frozen=True):
    name: str
    title: str = ""
    """For people; empty: the name."""
    kind: StageKind = "work"
    agent: str = ""
    """The actor; empty if a workflow does the work."""
    instructions: str = ""
    model: str = ""
    inputs: tuple[str, ...] = ()
    draft: str = ""
    """The file with the draft; empty: the stage has none."""
    draft_tools: tuple[str, ...] = ()
    """What the actor may call while it writes the draft."""
    review: bool = False
    """Whether a person reviews the draft."""
    outputs: tuple[str, ...] = ()
    """Files that must be there, and valid, when the stage is finished."""
    tools: tuple[str, ...] = ()
    """What the actor may call to make the formal output; none: the draft is the output."""
    critic: Critic | None = None
    max_iterations: int = 1
    workflow: str = ""
    """A workflow that makes the formal output in the actor's place."""
    writes_code: bool = False
    """Whether its product is files of the project rather than data."""

    @property
    def shown(self) -> str:
        return self.title or self.name

    @property
    def is_formal(self) -> bool:
        """Whether it makes more than a draft."""
        return bool(self.tools or self.workflow or self.kind != "work")

    @property
    def results(self) -> tuple[str, ...]:
        """The files below `.cowork` that later stages rest on: its outputs, or the draft if that is all."""
        return self.outputs or ((self.draft,) if self.draft and not self.is_formal else ())

    @property
    def products(self) -> tuple[str, ...]:
        """All its files below `.cowork`."""
        report = {"check": (CHECK_REPORT,), "delivery": (DELIVERY_REPORT,)}.get(self.kind, ())
        draft = (self.draft,) if self.draft else ()
        return tuple(dict.fromkeys((*draft, *self.outputs, *report)))


class Pipeline(Struct, frozen=True):
    name: str
    stages: tuple[PipelineStage, ...]
    description: str = ""
    rate_limit: float | None = None
    """Seconds between two model calls; none: the default, which scripted agents do not wait for."""
    max_reviews: int = MAX_REVIEWS
    """Reviews of one stage, in one run."""
    auto_goto: bool = False
    """Jump by itself where a stage asks for it, at most `MAX_GOTOS` times."""
    guards: dict[str, Any] = {}
    source: str = ""
    """The file that it was read from, as an absolute path; `shipped:NAME` for one that is shipped, and empty for the
    first of those."""
    max_returns: int = MAX_RETURNS
    """How often a run sends a product back to be mended before it ends as failed."""

    def stage(self, name: str) -> PipelineStage | None:
        return next((stage for stage in self.stages if stage.name == name), None)

    def index(self, name: str) -> int:
        """Raises `ValueError` for a stage that it does not have."""
        return [stage.name for stage in self.stages].index(name)

    @property
    def restartable(self) -> tuple[str, ...]:
        """The stages that a person can restart at: those that make something, except the first, which has the idea."""
        return tuple(stage.name for stage in self.stages[1:] if stage.kind == "work")
