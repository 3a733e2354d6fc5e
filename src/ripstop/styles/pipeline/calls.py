"""What the pipeline asks of its tools, and what they return: the style and the tools both use these types.

- A field of a call has no default, so mypy finds a style that forgets one.
- Answers are in journals: a field that is added to one has a default.
- The tools touch the project's `.cowork` folder and its code; the style never does.
"""

from hashlib import sha256
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from ..checks import Shown
from .definition import StageKind
from .models import CodeFile, FeedbackEntry

OPEN, BEGIN, WRITE = "cowork_open", "cowork_begin", "cowork_write"
CHECK, FINISH, CLOSE = "cowork_check", "cowork_finish", "cowork_close"
SHOW = "cowork_show"
NO_CODE = "❌ Project incomplete: No code files found"
"""How both sides begin to say that there is nothing to deliver."""

Mode = Literal["new", "continue", "modify"]
"""`continue`: in a project that is there. `modify`: also remove what the stage and later ones have made."""
ProjectAnswer = TypeVar("ProjectAnswer", bound=Struct)


# Calls


class StageProducts(Struct, frozen=True, kw_only=True):
    name: str
    products: tuple[str, ...]
    writes_code: bool


class OpenProjectCall(Struct, frozen=True, kw_only=True):
    stages: tuple[StageProducts, ...]
    restartable: tuple[str, ...]
    mode: Mode
    stage: str
    """The first one that is to run."""
    idea: str
    flow: str
    """The definition's `source`."""
    change: str | None
    """What a person wants changed; empty: he did not say what, and what was asked for before goes on, with the reason
    of a stage that has asked for a restart. None: nothing was asked of this run."""


class BeginStageCall(Struct, frozen=True, kw_only=True):
    stage: str
    inputs: tuple[str, ...]
    may_miss: bool
    """Whether the stage can do without an input that is not there."""
    also: tuple[str, ...]
    """What earlier stages have made and the stage does not depend on: it is told what is there."""
    writes_code: bool
    """Whether a snapshot of the project's files is taken first, unless the run has one."""
    known: dict[str, str]
    """The hashes of texts that the stage was given before: those that are the same are not returned again."""


class ReviewFeedback(Struct, frozen=True, kw_only=True):
    """A person's words about a draft, for the feedback history."""

    record: int
    """The record with the words."""
    feedback_type: str
    severity: str
    details: str
    by: str
    source: str


class WriteFilesCall(Struct, frozen=True, kw_only=True):
    stage: str
    files: dict[str, str]
    expected: dict[str, str]
    """What files should have in them. One that is not there is written; one that a person has edited is returned."""
    reset: tuple[str, ...]
    """Files to be removed."""
    feedback: ReviewFeedback | None


class CheckStageCall(Struct, frozen=True, kw_only=True):
    outputs: tuple[str, ...]
    kind: StageKind
    writes_code: bool
    code_before: dict[str, str] | None
    """As `OpenedProject` has it."""
    code_at_start: dict[str, str] | None
    """Likewise."""
    code_reviewed: dict[str, str] | None
    """The code that a person has reviewed: hashes by path. None: nobody has, in this run."""


class ShowCodeCall(Struct, frozen=True, kw_only=True):
    stage: str
    code_before: dict[str, str] | None
    """As `OpenedProject` has it."""


class ReviewDecision(Struct, frozen=True, kw_only=True):
    """What a person decided about a draft, for a report."""

    stage: str
    choice: str
    by: str
    text: str
    at: int
    """Microseconds."""


class ReportCost(Struct, frozen=True, kw_only=True):
    """What a run has cost so far. The command to finish a stage is recorded with it."""

    calls: int
    input_tokens: int
    output_tokens: int
    money: float


class ReportCall(Struct, frozen=True, kw_only=True):
    path: str
    title: str
    prose: str
    decisions: tuple[ReviewDecision, ...]
    cost: ReportCost | None
    """None: it is not known."""
    shown: tuple[Shown, ...]
    """What was claimed, and what was shown."""


class FinishStageCall(Struct, frozen=True, kw_only=True):
    stage: str
    products: tuple[str, ...]
    writes_code: bool
    report: ReportCall | None
    is_finished: bool
    """Whether the stage is marked as finished. One that asks for a restart is not."""
    ends_change: bool
    """Whether the change that was asked for is delivered with it, so that later runs need not know of it."""


class CloseProjectCall(Struct, frozen=True, kw_only=True):
    outcome: str
    """How the run is about to end."""


ProjectCall: TypeAlias = (
    OpenProjectCall
    | BeginStageCall
    | WriteFilesCall
    | CheckStageCall
    | ShowCodeCall
    | FinishStageCall
    | CloseProjectCall
)


# Answers


class OpenedProject(Struct, frozen=True):
    completed: tuple[str, ...] = ()
    """Stages before the first one, which count as finished."""
    idea: str = ""
    removed: tuple[str, ...] = ()
    kept_code: tuple[str, ...] = ()
    code_before: dict[str, str] | None = None
    """The project's code when the work on this delivery began: hashes by path. None: recorded before it was kept."""
    code_at_start: dict[str, str] | None = None
    """The code when a change was asked for, if it was another then."""
    change: str | None = None
    """The change that a person has asked for, of this run or of one before, and that was not delivered yet."""


class ListedFile(Struct, frozen=True):
    path: str
    size: int


class BegunStage(Struct, frozen=True):
    """What a stage has to work with, as it was read for the prompt that comes next."""

    inputs: dict[str, str] = {}
    """Texts by path."""
    missing: tuple[str, ...] = ()
    """Inputs that are not there."""
    feedback: tuple[FeedbackEntry, ...] = ()
    """All of this stage, and the latest of others; the newest is the last …"""
    files: tuple[ListedFile, ...] = ()
    """Files of the project …"""
    more_files: int = 0
    """… and how many others there are."""
    same: tuple[str, ...] = ()
    """Inputs whose text is the one that was given before."""
    more_feedback: int = 0
    """… and how many older entries are left out."""


class WrittenFiles(Struct, frozen=True, omit_defaults=True):
    written: dict[str, str]
    """The hashes by path."""
    removed: tuple[str, ...]
    edited: dict[str, str] = {}
    """Files that were not as expected: their texts by path."""


class FeatureCoverage(Struct, frozen=True):
    feature: str
    name: str
    components: list[str]
    tasks: list[str]
    status: str


class ProjectFacts(Struct, frozen=True):
    """What the engine itself finds in a project, for the agents that judge it."""

    files: tuple[CodeFile, ...] = ()
    coverage: tuple[FeatureCoverage, ...] = ()
    uncovered: tuple[str, ...] = ()
    requirements: int = 0
    features: tuple[int, int] = (0, 0)
    """Completed, and all. One counts as completed only if it has tasks and they are."""
    components: int = 0
    tasks: tuple[int, int] = (0, 0)
    """Likewise. A task counts as completed only if all its files are there and not empty."""
    unchecked: tuple[str, ...] = ()
    """What could not be looked at, and why."""
    missing_files: tuple[str, ...] = ()
    """Files of the plan that are not there."""
    code_files: int = 0
    """Those with something in them."""
    changed_files: tuple[str, ...] | None = None
    """Code that is new, different or gone since the work on this delivery began. None: it is not known."""
    empty_files: tuple[str, ...] = ()
    """Files of the plan that have nothing in them."""
    planned_files: int = 0
    """All files of the plan."""
    tasks_marked: int | None = None
    """Tasks whose status is completed, whether or not their files are there. None: `tasks` counts those."""
    since_review: tuple[str, ...] | None = None
    """Code that is new, different or gone since a person has reviewed it. None: nobody has."""
    since_start: tuple[str, ...] | None = None
    """Likewise, since a change was asked for. None: `changed_files` has it."""
    tasks_without_files: int = 0
    """Completed tasks that name no file, so that nothing can be looked at for them."""
    in_white_space: tuple[str, ...] = ()
    """Code that differs from what it was in nothing but white space."""
    features_marked: int | None = None
    """Features whose status is completed, whether or not their tasks are. None: `features` counts those."""
    other_files: tuple[str, ...] = ()
    """Files that differ from what they were before the run and are not code, such as documents."""


class CheckedStage(Struct, frozen=True):
    problems: tuple[str, ...] = ()
    facts: ProjectFacts | None = None


class ShownCode(Struct, frozen=True):
    """What the code of a stage is, against what was there before the run, for a person."""

    text: str = ""
    """In Markdown; the beginning, if it is long."""
    files: int = 0
    """How many differ."""
    code: dict[str, str] = {}
    """All code as it is then: hashes by path."""


class FinishedStage(Struct, frozen=True, omit_defaults=True):
    products: dict[str, str] = {}
    """The hashes by path."""
    report: str = ""
    """The delivery report as it was written, if this was the delivery."""


class ClosedProject(Struct, frozen=True):
    closed: bool = True


def text_hash(text: str) -> str:
    """By which both sides know that a text is the same."""
    return sha256(text.encode(errors="surrogatepass")).hexdigest()


def answer_of(kind: type[ProjectAnswer], value: Any) -> ProjectAnswer:
    """What a tool has returned, from its record."""
    return msgspec.convert(value if isinstance(value, dict) else {}, kind)
