"""What every agent has said last about each task.

- A report counts for the task that the decision before it is about. Where that is about several, it counts for those
  that the report itself names, outside of code: MAIN can mention a task that nobody touches.
- A report that names none of several counts for none of them. But it takes back what was said before, and what blocks
  it blocks all of them.
- What a report says of one task alone (`- Verdict: FAIL` below its heading) has to be its verdict on everything, too:
  else its verdict on that task does not hold.
- What blocked in the last report that an agent made in an earlier run blocks until it reports again.
- An agent has worked on every task that it was called for, whatever its report names.
"""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from ..checks import Shown, failed
from ..key_lines import lines_of, shown_lines
from .definition import Board
from .gates import concerned, tracked_tasks
from .plan import PlanTask, tasks_named
from .report import Report, read_report
from .state import BoardState, Standing


def with_report(state: BoardState, report: Report, found: Sequence[Shown]) -> BoardState:
    """The standings with a report that was verified; `found`: what it claims, beside what was shown."""
    assert state.agent is not None and state.decision is not None
    wrong = failed(found)
    said = Standing(
        report.verdict or "", not wrong, state.iteration, report.open_blockers, str(wrong[0]) if wrong else ""
    )
    # where nothing is open, a decision about no task in particular is about all of them
    tasks = concerned(state, state.decision, state.known.tasks) or tracked_tasks(state.known.tasks)
    named = tasks if len(tasks) == 1 else tasks_named(tasks, "\n".join(shown_lines(lines_of(state.report))))
    name = state.agent.name.casefold()
    before = state.standings.get(name, {})
    after = {"": said}
    for task in tasks:
        known = before.get(task.id.casefold(), _NOTHING)
        left_out = _names_others if named else _names_none
        after[task.id.casefold()] = _of_task(task, said, report) if task in named else left_out(known, said)
    left = {one: blockers for one, blockers in state.left_open.items() if one != state.agent.name}
    return replace(state, standings={**state.standings, name: {**before, **after}}, left_open=left)


def left_open(board: Board, lines: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """What blocks still by the last reports of earlier runs, by agent; `lines`: those about it, by report."""
    rules = board.policy.report_rules
    found = {
        one.name: read_report(lines[one.report], rules, one.name).open_blockers
        for one in board.agents
        if one.report in lines
    }
    return {agent: blockers for agent, blockers in found.items() if blockers}


def _of_task(task: PlanTask, said: Standing, report: Report) -> Standing:
    known = task.id.casefold()
    other = next((one for of, one in report.of_tasks if of.casefold() == known and one != report.verdict), "")
    return replace(said, holds=False, shown=f"the report says {other} of {task.id} itself") if other else said


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
