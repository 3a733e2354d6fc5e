"""The graph style's own events."""

from ripstop.kernel.events import Event, TurnResult

from ..turn import TURN_EVENTS


class TurnFinished(TurnResult, tag="graph.turn_finished", frozen=True):
    """A turn is over. Its decisions are in the record `reply`; they lead to the state `to`."""

    reply: int
    """Number of the record that holds the reply, or the end of the workflow that the state runs."""
    to: str = ""
    """A state, or END; empty if no transition holds."""
    via: int = -1
    """Index of the transition that holds."""


class Saved(Event, tag="graph.saved", frozen=True):
    """The run ends here for now, and can be resumed from exactly here."""

    because: str


GRAPH_EVENTS: tuple[type[Event], ...] = (TurnFinished, Saved, *TURN_EVENTS)
