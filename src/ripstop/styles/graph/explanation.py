"""Why a turn led where it led: every condition that was looked at, with the values it saw."""

from collections.abc import Callable
from typing import Any

from .. import condition
from ..condition import Trace
from .definition import Graph, State
from .events import Turned


def explain_turn(graph: Graph, here: State, turned: Turned, lookup: Callable[[str], Any]) -> list[str]:
    if not here.transitions:
        return [f"{here.name} has no transitions, so it leads to END."]
    lines = []
    for index, transition in enumerate(here.transitions):
        seen = condition.trace(condition.parse(transition.condition), lookup)
        taken = index == turned.via
        mark = "✓" if seen.value else "✗"
        source = transition.condition or "always"
        note = "taken" if taken else ("holds too, but comes later" if seen.value else "")
        if not taken and not seen.value and 0 <= turned.via < index:
            note = "not needed"
        lines.append(f"{mark} → {transition.to}   {source}{f'   ({note})' if note else ''}")
        lines.append(f"    {graph.source}:{transition.line}   {values(seen)}".rstrip())
    if turned.via < 0:
        lines.append("No transition holds, so the workflow ends here.")
    return lines


def values(trace: Trace) -> str:
    """`approved = true, score = 7`: what the names in a condition were."""
    seen: dict[str, str] = {}
    _collect(trace, seen)
    return ", ".join(f"{name} = {value}" for name, value in seen.items())


def _collect(trace: Trace, seen: dict[str, str]) -> None:
    if isinstance(trace.node, condition.Name):
        seen[trace.node.name] = show(trace.value)
    for part in trace.parts:
        _collect(part, seen)


def show(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)
