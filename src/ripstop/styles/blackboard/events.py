"""The blackboard's own decisions."""

from ripstop.kernel.events import Event, TurnResult

from ..turn import TURN_EVENTS


class MainDecided(TurnResult, tag="blackboard.main_decided", frozen=True):
    """MAIN's decision is valid. It is in the record `reply`, and in the history before it is carried out."""

    iteration: int
    reply: int
    next_agent: str
    at: int
    """Microseconds."""


class ReportVerified(TurnResult, tag="blackboard.report_verified", frozen=True):
    """A report is what the policy demands. Its words are in the record `report`, what was found in `evidence`."""

    iteration: int
    report: int
    """The record with the agent's last words, or the end of the workflow that took its place."""
    evidence: int
    """The record with the state of the board after the turn."""
    at: int
    verdict: str = ""


class UserDecided(Event, tag="blackboard.user_decided", frozen=True):
    iteration: int
    answer: int
    at: int


class BoardEdited(Event, tag="blackboard.board_edited", frozen=True):
    """A person has edited files of the board between two turns; they count as they are now."""

    paths: tuple[str, ...]


BLACKBOARD_EVENTS: tuple[type[Event], ...] = (MainDecided, ReportVerified, UserDecided, BoardEdited, *TURN_EVENTS)
