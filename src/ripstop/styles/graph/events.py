"""What the graph style records of its own."""

from ripstop.kernel.events import Event, TurnResult

from ..turn import TURN_EVENTS


class TurnFinished(TurnResult, tag="graph.turned", frozen=True):
    """A turn is over. Its decisions stand in the reply `reply`; they lead to the state `to`."""

    reply: int
    """Number of the record that holds the reply."""
    to: str = ""
    """A state, or END; empty if no transition holds."""
    via: int = -1
    """Index of the transition that holds."""


class Saved(Event, tag="graph.saved", frozen=True):
    """The run ends here for now; `resume` goes on from exactly here."""

    because: str


GRAPH_EVENTS: tuple[type[Event], ...] = (TurnFinished, Saved, *TURN_EVENTS)
