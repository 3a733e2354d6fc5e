"""Checking a graph that comes from a journal, which somebody else may have made.

It is written out as its author would have written it, and read again by the same reader: every rule for files holds
for it, and none has to be kept in two places.
"""

from typing import Any

import msgspec

from ripstop.definitions.plain_tree import tree_of
from ripstop.definitions.problems import Position, WrongDefinition, in_order
from ripstop.styles.graph.definition import Agent, Graph, State

from .reader import FILE, graph_problems


def check_pinned(graph: Graph) -> None:
    """Raise `WrongDefinition` unless a graph could have been read from a file."""
    problems = graph_problems(tree_of(_written(graph), Position(graph.source or FILE)))
    if problems:
        raise WrongDefinition(in_order(problems))


def _written(graph: Graph) -> dict[str, Any]:
    """A graph as a mapping, with the fields that a file has."""
    return {
        "name": graph.name,
        "description": graph.description,
        "initial_message": graph.initial_message,
        "max_turns": graph.max_turns,
        "language": graph.language,
        "strict_decisions": graph.strict_decisions,
        "reasks": graph.reasks,
        "guards": graph.guards,
        "values": graph.values,
        **({"agents": [_agent(agent) for agent in graph.agents]} if graph.agents else {}),
        "states": [_state(state, state.name == graph.start) for state in graph.states],
        "exit_conditions": [{"condition": one.condition, "action": one.action} for one in graph.exit_conditions],
    }


def _agent(agent: Agent) -> dict[str, Any]:
    return {
        "name": agent.name,
        "type": agent.type,
        **({"model": agent.model} if agent.model else {}),
        **({} if agent.tools is None else {"tools": list(agent.tools)}),
    }


def _state(state: State, start: bool) -> dict[str, Any]:
    """What is set is written, so that what does not go together is found."""
    written: dict[str, Any] = {
        "name": state.name,
        "start": start,
        "transitions": [{"to": way.to, "condition": way.condition} for way in state.transitions],
    }
    for name in ("workflow", "input", "limits"):
        if getattr(state, name):
            written[name] = msgspec.to_builtins(getattr(state, name))
    if not state.workflow or state.agent or state.prompt:
        written |= {"agent": state.agent, "prompt": state.prompt}
    return written
