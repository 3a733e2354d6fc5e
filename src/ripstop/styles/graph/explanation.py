"""Why a turn led where it led: every condition that was looked at, as a tree with the values it saw."""

from collections.abc import Callable
from typing import Any

from .. import condition
from ..condition import And, Compare, Literal, Name, Not, Or, Trace
from .definition import Graph, State
from .events import TurnFinished


def explain_turn(graph: Graph, here: State, turned: TurnFinished, lookup: Callable[[str], Any]) -> list[str]:
    if not here.transitions:
        return [f"{here.name} has no transitions, so it leads to END."]
    lines = []
    for index, transition in enumerate(here.transitions):
        seen = condition.trace(condition.parse(transition.condition), lookup)
        mark = "✓" if seen.value else "✗"
        note = _note(index, bool(seen.value), turned.via)
        lines.append(f"{mark} → {transition.to}   {transition.condition or 'always'}{note}")
        lines.append(f"    {graph.source}:{transition.line}   {values(seen)}".rstrip())
        if isinstance(seen.node, And | Or) or (isinstance(seen.node, Not) and not isinstance(seen.node.operand, Name)):
            lines += [f"    {line}" for line in tree(seen)]
    if turned.via < 0:
        lines.append("No transition holds, so the workflow ends here.")
    return lines


def _note(index: int, holds: bool, taken: int) -> str:
    if index == taken:
        return "   (taken)"
    if 0 <= taken < index:
        return "   (holds too, but comes later)" if holds else "   (not needed)"
    return ""


def tree(trace: Trace, depth: int = 0) -> list[str]:
    """A condition with the value of every part; parts that were not needed are left out."""
    shown = show(trace.value) if isinstance(trace.node, Name | Compare) else show(bool(trace.value))
    lines = [f"{'  ' * depth}{_text(trace)} = {shown}"]
    if isinstance(trace.node, And | Or | Not):
        for part in trace.parts:
            if not isinstance(part.node, Literal):
                lines += tree(part, depth + 1)
        if isinstance(trace.node, And | Or) and len(trace.parts) == 1:
            lines.append(f"{'  ' * (depth + 1)}(the rest was not needed)")
    return lines


def _text(trace: Trace) -> str:
    match trace.node:
        case Name(name=name):
            return name
        case Literal(value=value):
            return show(value)
        case Compare(operator=operator):
            left, right = trace.parts
            return f"{_side(left)} {operator} {_side(right)}"
        case Not():
            return "NOT"
        case And():
            return "AND"
    return "OR"


def _side(trace: Trace) -> str:
    return f"{_text(trace)} [{show(trace.value)}]" if isinstance(trace.node, Name) else _text(trace)


def values(trace: Trace) -> str:
    """`approved = true, score = 7`: what the names in a condition were."""
    seen: dict[str, str] = {}
    _collect(trace, seen)
    return ", ".join(f"{name} = {value}" for name, value in seen.items())


def _collect(trace: Trace, seen: dict[str, str]) -> None:
    if isinstance(trace.node, Name):
        seen[trace.node.name] = show(trace.value)
    for part in trace.parts:
        _collect(part, seen)


def show(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)
