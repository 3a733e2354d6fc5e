"""What every agent has said last about each task.

- A report counts for the task that the decision before it is about. Where that is about several, it counts for those
  that the report itself names, outside of code: MAIN can mention a task that nobody touches.
- A report that names none of several counts for none of them. But it takes back what was said before, and what blocks
  it blocks all of them.
- An agent has worked on every task that it was called for, whatever its report names.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from ripstop.text.markdown import blocks

from ..checks import Shown, all_hold, lines_of
from .gates import concerned, tracked_tasks
from .plan import tasks_named
from .report import Report
from .state import BoardState, Standing


def with_report(state: BoardState, report: Report, found: Sequence[Shown]) -> BoardState:
    """The standings with a report that was verified; `found`: what it claims, beside what was shown."""
    assert state.agent is not None and state.decision is not None
    wrong = next((one for one in found if one.holds is False), None)
    said = Standing(
        report.verdict or "", all_hold(found), state.iteration, report.open_blockers, str(wrong) if wrong else ""
    )
    # where nothing is open, a decision about no task in particular is about all of them
    tasks = concerned(state, state.decision, state.known.tasks) or tracked_tasks(state.known.tasks)
    named = tasks if len(tasks) == 1 else tasks_named(tasks, _without_code(state.report))
    name = state.agent.name.casefold()
    before = state.standings.get(name, {})
    after = {"": said}
    for task in tasks:
        known = before.get(task.id.casefold(), _NOTHING)
        left_out = _names_others if named else _names_none
        after[task.id.casefold()] = said if task in named else left_out(known, said)
    return replace(state, standings={**state.standings, name: {**before, **after}})


_NOTHING = Standing("", False, 0)


def _names_others(before: Standing, said: Standing) -> Standing:
    """About a task that a report leaves out, though its agent was called for it, too."""
    return replace(before, called=said.iteration)


def _names_none(before: Standing, said: Standing) -> Standing:
    """About a task of a report on several that names none of them."""
    blockers = tuple(dict.fromkeys((*(before.blockers if before.is_named else ()), *said.blockers)))
    if before.iteration and before.verdict == said.verdict and said.holds:
        return replace(before, blockers=blockers, called=said.iteration)
    return replace(said, is_named=False, blockers=blockers)


def _without_code(text: str) -> str:
    lines = lines_of(text)
    for block in blocks(lines):
        lines[block.start : block.end] = [""] * (block.end - block.start)
    return "\n".join(lines)
