"""What a workflow that a state runs comes to, as if an agent had said it.

- `outcome` is a decision like an agent's. So are the keys of the child's result, and those of its `decisions`, which
  the result of a graph has.
- A workflow that did not complete fails the run, unless a transition of the state asks for the outcome.
"""

from typing import Any

from ripstop.kernel.effects import RunFinished
from ripstop.kernel.style import Child

from .. import template
from .definition import OUTCOME, State
from .position import VALUES, GraphState, Word

CONTENT, DECISIONS = "content", "decisions"


def result_of(state: GraphState) -> dict[str, Any] | None:
    """The result of a run: what was said last, and the decisions in force."""
    last = state.last
    return {CONTENT: last.content, DECISIONS: last.decisions} if last.number else None


def joined(here: State, number: int, finished: RunFinished, result: Any) -> Word:
    """What a child came to. `number` is the record of its end."""
    content, decisions = finished.because, dict[str, Any]()
    if isinstance(result, dict):
        if isinstance(result.get(CONTENT), str):
            content = result[CONTENT]
        if isinstance(result.get(DECISIONS), dict):
            decisions |= result[DECISIONS]
        decisions |= {key: value for key, value in result.items() if key not in (CONTENT, DECISIONS)}
    return Word(here.workflow, content, {**decisions, OUTCOME: finished.outcome}, number)


def child_of(state: GraphState) -> Child:
    """What the workflow of the state gets."""
    here = state.here
    if not here.input:
        return Child(input=state.last.content or state.goal)
    return Child(input=template.render(here.input_template, VALUES, state, values_of(state)))


def values_of(state: GraphState) -> dict[str, str]:
    """The values of a run: as it was started with them, or as the graph says."""
    declared = state.definition.values
    return {name: state.given.get(name, default) or "" for name, default in declared.items()} if declared else {}
