"""What the hand-off style records of its own."""

from ripstop.kernel.events import Event, TurnResult

from ..turn import TURN_EVENTS


class Moved(TurnResult, tag="handoff.moved", frozen=True):
    """A transition. What was said with it stands in the fact before it: an order, a reply or an edit."""

    action: str
    by: str
    before: str
    after: str
    at: str
    """The time as it stands in the document."""
    to: str = ""
    """The new owner, if there is one."""
    words: str = ""
    """The action as it stands in the history."""
    counts: bool = False
    """Whether it is an interaction."""
    written: bool = False
    """Whoever edited the document has written the history line already."""
    result: str = ""
    """The text for the section `Result`, where that is not what was said with the transition."""


class Edited(Event, tag="handoff.edited", frozen=True):
    """The document was changed from outside, and the change is taken over."""

    at: str
    """The time as it stands in the document."""
    text: str = ""
    """The document, if the change had to be joined with others; empty: as it was found."""
    notes: tuple[str, ...] = ()
    """What was put right in it, and what is odd about it."""


class TransitionRefused(Event, tag="handoff.refused", frozen=True):
    """Something was asked that cannot be. The document stays as it is."""

    order: str
    by: str
    reason: str
    line: int = 0
    """For an edit: the line of the edited text that the reason is about."""
    at: str = ""
    """For an edit: the time as a document writes it; empty in journals of version 0.1."""


class MessageNoted(Event, tag="handoff.heeded", frozen=True):
    """A message that changes nothing, and why."""

    by: str
    because: str


class AgentFailed(Event, tag="handoff.stumbled", frozen=True):
    """An agent did not do what it was asked to. That is no interaction, but it is counted."""

    by: str
    reason: str


HANDOFF_EVENTS: tuple[type[Event], ...] = (Moved, Edited, TransitionRefused, MessageNoted, AgentFailed, *TURN_EVENTS)
