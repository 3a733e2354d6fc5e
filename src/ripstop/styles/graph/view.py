"""What a page or a terminal shows of a run of a graph."""

from typing import Any, Literal

from ripstop.kernel.parts import Facts, Line, Part, Rail, Stage, Talk
from ripstop.kernel.run import Run

from .children import values_of
from .definition import State
from .position import GraphState


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


def _progress(run: Run[GraphState], one: State, turns: int) -> Literal["done", "now", "next", "failed"]:
    ended = run.ended
    if one.name == run.state.here.name and (ended is None or run.state.saved):
        return "now"
    if one.name == run.state.here.name and ended and ended.outcome == "failed":
        return "failed"
    return "done" if turns else "next"
