"""Checking a definition that comes from a journal, which somebody else may have made.

A pinned graph is written out as its author would have written it, and read again by the same reader: every rule for
files holds for it, and none has to be kept in two places.
"""

from typing import Any

from ripstop.definitions.graph.reader import graph_problems
from ripstop.styles.graph.definition import Graph

from .problems import Position, WrongDefinition, in_order
from .yaml_positions import Span
from .yaml_tree import Value, YamlEntry


def check_pinned(definition: Any) -> None:
    """Raise `WrongDefinition` unless a graph could have been read from a file. Other styles have types alone."""
    if not isinstance(definition, Graph):
        return
    problems = graph_problems(_value(_written(definition), Position(definition.source or "workflow.yaml")))
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
        "agents": [
            {
                "name": agent.name,
                "type": agent.type,
                **({"model": agent.model} if agent.model else {}),
                **({} if agent.tools is None else {"tools": list(agent.tools)}),
            }
            for agent in graph.agents
        ],
        "states": [
            {
                "name": state.name,
                "agent": state.agent,
                "prompt": state.prompt,
                "start": state.name == graph.start,
                "transitions": [{"to": way.to, "condition": way.condition} for way in state.transitions],
            }
            for state in graph.states
        ],
        "exit_conditions": [{"condition": one.condition, "action": one.action} for one in graph.exit_conditions],
    }


def _value(thing: Any, place: Position) -> Value:
    if isinstance(thing, dict):
        return Value({str(key): YamlEntry(place, _value(one, place)) for key, one in thing.items()}, place)
    if isinstance(thing, (list, tuple)):
        return Value([_value(one, place) for one in thing], place)
    text = str(thing)
    return Value(thing, place, Span(text, 0, len(text), ""))
