"""What a page or a terminal shows of a run of a graph."""

from collections.abc import Callable
from typing import Any
from typing import Literal as OneOf

from ripstop.kernel.parts import Facts, Line, Part, Rail, Stage, Talk
from ripstop.kernel.run import Run
from ripstop.kernel.style import Reason

from . import condition
from .condition import And, Compare, Literal, Name, Not, Or, Trace
from .definition import END, Graph, State, Transition
from .flow import values_of
from .state import GraphState, TurnFinished

# Why a turn led where it led: every condition that was checked, as a tree with the values it saw.


def explain_turn(graph: Graph, here: State, finished: TurnFinished, lookup: Callable[[str], Any]) -> tuple[Reason, ...]:
    """Every transition in order, whether its condition holds, and which one was taken."""
    if not here.transitions:
        return (Reason(f"{here.name} has no transitions, so it leads to {END}.", taken=True),)
    reasons = [
        _reason(graph, transition, condition.trace(node, lookup), index == finished.via)
        for index, transition, node in here.ways
    ]
    if finished.via < 0:
        reasons.append(Reason("No transition holds, so the workflow ends here.", taken=True))
    return tuple(reasons)


def _reason(graph: Graph, transition: Transition, seen: Trace, taken: bool) -> Reason:
    when = f"if {' '.join(transition.condition.split())}" if transition.condition else "always"
    source = f"{graph.source}:{transition.line}:{transition.column}" if graph.source and transition.line else ""
    negated = isinstance(seen.node, Not) and isinstance(seen.node.operand, Name)
    told = seen.parts[0] if negated else seen  # whether the NOT holds is what the reason itself says
    shown = () if isinstance(seen.node, Literal) else tuple(tree(told))
    return Reason(f"to {transition.to} {when}", bool(seen.value), taken, source, shown)


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


def show(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)


def graph_parts(run: Run[GraphState]) -> tuple[Part, ...]:
    state = run.state
    parts: list[Part] = [Rail(tuple(_stage(run, one) for one in state.definition.states), state.definition.name)]
    if state.definition.values:
        parts.append(Facts(tuple(values_of(state).items()), "Values"))
    last = state.last
    if last.decisions:
        parts.append(Facts(tuple(last.decisions.items()), f"Decisions of {last.agent}"))
    if last.number:
        parts.append(Talk((Line(last.number, last.agent, last.content, is_reply=True),), "Said last"))
    return tuple(parts)


def _stage(run: Run[Any], one: State) -> Stage:
    turns = run.state.counts.get(one.name, 0)
    note = f"{one.worker}, {turns} {'turn' if turns == 1 else 'turns'}" if turns else one.worker
    return Stage(one.name, _progress(run, one, turns), note)


def _progress(run: Run[GraphState], one: State, turns: int) -> OneOf["done", "now", "next", "failed"]:
    ended = run.ended
    if one.name == run.state.here.name and (ended is None or run.state.saved):
        return "now"
    if one.name == run.state.here.name and ended and ended.outcome == "failed":
        return "failed"
    return "done" if turns else "next"
