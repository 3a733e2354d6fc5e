"""What a journal holds of chores besides what it holds of any run."""

from ripstop.style_api import Event, Fact, TurnResult


class ChoreAdded(Fact, tag="chores.added", frozen=True):
    what: str
    by: str = ""


class RoundBegan(Event, tag="chores.round_began", frozen=True):
    round: int


class ChoreFinished(TurnResult, tag="chores.finished", frozen=True, kw_only=True):
    index: int


CHORE_EVENTS = (ChoreAdded, RoundBegan, ChoreFinished)
