"""Where a run of a graph is: what folding its records keeps, and the values of names in prompts and conditions."""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from ripstop.kernel.events import Event, TurnResult

from ..turn import TURN_EVENTS, Turn
from . import condition
from .definition import Agent, Graph, State
from .prompts import GUIDES, SHORT_GUIDES, TURNS_OF

# The graph style's own events.


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


class GraphArguments(Struct, frozen=True, forbid_unknown_fields=True):
    """What a run of a graph can be started with."""

    values: dict[str, str] = {}
    """Texts for the values that the graph declares."""


class Word(Struct, frozen=True, gc=False):
    """What the agent before said, or the workflow."""

    agent: str = ""
    content: str = ""
    decisions: dict[str, Any] = {}
    number: int = 0


class GraphState(Struct, frozen=True, gc=False):
    definition: Graph
    goal: str
    here: State
    agent: Agent | None
    """Whose turn it is in `here`; none if `here` runs a workflow."""
    turns: int = 0
    counts: dict[str, int] = {}
    last: Word = Word()
    turn: Turn | None = None
    saved: bool = False
    given: dict[str, str] = {}
    """The values that the run was started with; those that it was not have the graph's default."""
    allowance: int = 0
    """Turns that may have been taken in all, once a saved run was resumed; 0: as many as `max_turns`."""
    small_model: bool = False
    """All models of the run are small ones, so the guide and the instructions are short."""
    child: int = 0
    """The command that runs the workflow of `here`; 0: none was given, or the turn is over."""
    joined: Word | None = None
    """What the workflow of `here` came to, until the turn is over."""
    continued: str = ""
    """The run of that workflow, if it ended at a limit: raising the limit lets it continue."""

    @property
    def built_in_guide(self) -> str:
        return (SHORT_GUIDES if self.small_model else GUIDES)[self.definition.language]

    @property
    def most_turns(self) -> int:
        return self.allowance or self.definition.max_turns


VALUES: dict[str, Callable[[GraphState], str]] = {
    "initial_message": lambda state: state.goal,
    "last_agent_name": lambda state: state.last.agent,
    "last_agent_content": lambda state: state.last.content,
    "last_agent_decisions": lambda state: msgspec.json.encode(state.last.decisions).decode(),
    "COLLABORATION_GUIDE": lambda state: state.definition.guide or state.built_in_guide,
    "turn_count": lambda state: str(state.turns),
}
"""The values of a prompt's variables."""
FROM_OUTSIDE = ("initial_message", "last_agent_content", "last_agent_decisions")
"""Those of them that are no text of the definition, and can be long."""


class Known(Struct, frozen=True, gc=False):
    """The values of names in conditions: what the engine knows, then the agent's decisions.

    In this order, because an agent must not be able to defeat the conditions with which its author ends a run.
    """

    state: GraphState
    decisions: dict[str, Any]
    error: bool = False
    missing: dict[str, None] = {}
    """The names that had no value, in the order in which they were asked for."""

    def value(self, name: str) -> Any:
        state = self.state
        if name in self.decisions and name not in state.definition.engine_names:
            return self.decisions[name]
        match name:
            case "max_turns_exceeded":
                return state.turns >= state.most_turns
            case "error_occurred":
                return self.error
            case "turns" | "turn_count":
                return state.turns
        if name.startswith(TURNS_OF):  # without such a state it is 0, unless an agent decided it
            return state.counts.get(name.removeprefix(TURNS_OF), 0)
        self.missing[name] = None
        return condition.MISSING
