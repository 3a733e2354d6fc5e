"""What the author of a graph writes, as the style needs it: checked, with the places it came from."""

from typing import Any

from msgspec import Struct

END = "END"
SAVE = "save_and_end"


class Definition(Struct, frozen=True, omit_defaults=True):
    """Base: immutable, and defaults are not written, so that the pinned content stays small."""


class Agent(Definition, frozen=True):
    name: str
    type: str = "coder"
    model: str = ""
    """A model's SPEC or the name of a role; empty for the run's model."""
    tools: tuple[str, ...] | None = None
    """The tools it may call; none named: those of its type."""


class Transition(Definition, frozen=True):
    to: str
    condition: str = ""
    line: int = 0


class State(Definition, frozen=True):
    name: str
    agent: str
    prompt: str
    transitions: tuple[Transition, ...] = ()
    line: int = 0


class ExitCondition(Definition, frozen=True):
    condition: str
    action: str
    line: int = 0


class Graph(Definition, frozen=True):
    name: str
    start: str
    agents: tuple[Agent, ...]
    states: tuple[State, ...]
    description: str = ""
    initial_message: str = ""
    max_turns: int = 10
    exit_conditions: tuple[ExitCondition, ...] = ()
    guide: str = ""
    language: str = "en"
    strict_decisions: bool = False
    """A decision that a condition needs and nobody made is an error, not false."""
    reasks: int = 1
    """How often an agent is asked again when its reply cannot be read."""
    source: str = ""
    """Name of the file, for messages."""
    guards: dict[str, Any] = {}
    """Guards that are set otherwise than by default (`kernel.effects.Guards`)."""

    def state(self, name: str) -> State | None:
        for state in self.states:
            if state.name == name:
                return state
        return None

    def agent(self, name: str) -> Agent | None:
        for agent in self.agents:
            if agent.name == name:
                return agent
        return None
