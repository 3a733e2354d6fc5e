"""Where a run on a board is. It stays small however long the run: what is older is in the files and the journal."""

from typing import Literal

from msgspec import Struct

from ripstop.kernel.effects import PersonAnswered
from ripstop.kernel.events import Event, TurnResult

from ..checks import Shown
from ..turn import TURN_EVENTS, Turn
from .calls import CheckedBoard, WrittenBoard
from .decision import Decision
from .definition import Board, Specialist
from .history import History
from .plan import PlanTask, Update

# The blackboard's own decisions.


class MainDecided(TurnResult, tag="blackboard.main_decided", frozen=True):
    """MAIN's decision is valid. It is in the record `reply`, and in the history before it is carried out."""

    iteration: int
    reply: int
    next_agent: str
    at: int
    """Microseconds."""
    shown: tuple[Shown, ...] = ()
    """What the gates of decisions wanted, and what they found."""


class ReportVerified(TurnResult, tag="blackboard.report_verified", frozen=True):
    """A report is what the policy demands. Its words are in the record `report`, what was found in `evidence`."""

    iteration: int
    report: int
    """The record with the agent's last words, or the end of the workflow that took its place."""
    evidence: int
    """The record with the state of the board after the turn."""
    at: int
    verdict: str = ""


class ChecksFailed(Event, tag="blackboard.checks_failed", frozen=True):
    """What MAIN has decided, or an agent reported, is refused: not all of its checks hold."""

    iteration: int
    agent: str
    reply: int
    """The record with its words."""
    shown: tuple[Shown, ...] = ()
    """What was claimed, and what was found."""


class UserDecided(Event, tag="blackboard.user_decided", frozen=True):
    iteration: int
    answer: int
    at: int


class BoardEdited(Event, tag="blackboard.board_edited", frozen=True):
    """A person has edited files of the board between two turns; they count as they are now."""

    paths: tuple[str, ...]


BLACKBOARD_EVENTS: tuple[type[Event], ...] = (
    MainDecided,
    ReportVerified,
    ChecksFailed,
    UserDecided,
    BoardEdited,
    *TURN_EVENTS,
)


Phase = Literal["open", "main", "decide", "agent", "check", "report", "user", "answer", "sync"]
"""What the run waits for: the board is opened; MAIN decides; its decision is written; an agent works; the board is
checked; a report is written; a person is asked; the answer is written; edits are looked for."""


class BoardArguments(Struct, frozen=True, forbid_unknown_fields=True):
    max_iterations: int | None = None


class Writing(Struct, frozen=True):
    """What is to be written to the board next."""

    append: str = ""
    plan: str | None = None
    reports: dict[str, str] = {}
    close: bool = False
    unplaced: tuple[Update, ...] = ()
    """Updates of the decision for which the plan has no place."""


class Reported(Struct, frozen=True):
    """A report that was verified."""

    iteration: int
    agent: str
    number: int
    """The record with its words."""
    text: str
    """The beginning of its words, as much as MAIN is shown …"""
    length: int
    """… and how many characters they have."""
    verdict: str = ""
    blockers: tuple[str, ...] = ()
    """Those that are not clear."""
    shown: tuple[Shown, ...] = ()


class Decided(Struct, frozen=True):
    """A decision, for those who look."""

    iteration: int
    number: int
    next_agent: str
    reason: str
    shown: tuple[Shown, ...] = ()


class RefusedWork(Struct, frozen=True):
    """A decision or a report that was refused, for those who look."""

    iteration: int
    number: int
    by: str
    failed: tuple[Shown, ...]
    """What did not hold."""


class Standing(Struct, frozen=True):
    """What an agent has said last about a task."""

    verdict: str
    holds: bool
    """Whether the evidence bears it out. A verdict that it does not bear out opens no gate."""
    iteration: int
    """0: it was only called for the task, and has not spoken about it."""
    blockers: tuple[str, ...] = ()
    shown: str = ""
    """What does not hold."""
    is_named: bool = True
    """Whether the report is about this task, and not about several of which it names none."""
    called: int = 0
    """The last iteration in which the agent was called for the task and did not name it; 0: none since it spoke."""

    @property
    def worked(self) -> int:
        """The last iteration in which the agent may have worked on the task."""
        return max(self.iteration, self.called)


class KnownBoard(Struct, frozen=True):
    """The board as the engine knows it."""

    digest: str = ""
    plan: str = ""
    history: History = History()
    tasks: tuple[PlanTask, ...] = ()
    """Those of the plan, read when it changes: everything else that needs them would read it again with every step."""
    given: tuple[PlanTask, ...] = ()
    """Those of the plan as the run found it, or as a person left it. MAIN cannot make one disappear."""
    accepted: tuple[str, ...] = ()
    """Ids of tasks that were done then, in small letters. They need no verdict of this run."""


class BoardState(Struct, frozen=True):
    definition: Board
    goal: str
    most_iterations: int
    is_child: bool = False
    phase: Phase = "open"
    iteration: int = 0
    """The current one, counted over all runs on this board …"""
    taken: int = 0
    """… and how many this run has begun."""
    known: KnownBoard = KnownBoard()
    turn: Turn | None = None
    decision: Decision | None = None
    agent: Specialist | None = None
    report: str = ""
    """What the agent said last …"""
    report_number: int = 0
    """… and the record with it."""
    report_kept: bool = False
    """It was refused, and is on the board, where a person can mend it."""
    continued: str = ""
    """The workflow's run that reached the limit of this run, and continues if that is raised."""
    asked: str = ""
    """The tool of the board that was called last …"""
    asked_at: int = 0
    """… and the record with the call."""
    checked: CheckedBoard = CheckedBoard()
    """What the check of this turn found; empty before it, and once something else was answered …"""
    written: WrittenBoard = WrittenBoard()
    """… and likewise the last write, apart from one that keeps a refused report."""
    said: PersonAnswered = PersonAnswered()
    """What the person decided whose answer is to be written."""
    found_at: int = 0
    """The record with the last of these three."""
    recheck: bool = False
    """The agent has written its report to a file, which was read only when its words had been checked."""
    writing: Writing = Writing()
    rewrites: int = 0
    """How often a write has found edits in a row."""
    reports: tuple[Reported, ...] = ()
    """The recent ones."""
    decisions: tuple[Decided, ...] = ()
    """The recent ones."""
    refusals: tuple[RefusedWork, ...] = ()
    """The recent ones."""
    verdicts: dict[str, str] = {}
    """The last verdict of every agent that has reported, by its name in small letters."""
    standings: dict[str, dict[str, Standing]] = {}
    """What every agent has said last about each task, by both names in small letters, and at all, by no name."""
    left_open: dict[str, tuple[str, ...]] = {}
    """What blocks by the last report of each agent in an earlier run, until it reports again."""
    flips: dict[str, tuple[str, ...]] = {}
    """The last verdicts on one task, by agent and task."""
    finished: bool = False
    cancelled: bool = False
