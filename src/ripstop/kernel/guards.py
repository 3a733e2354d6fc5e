"""Guards: what stops a run, whatever its style, before it continues.

A guard looks at the run and at the command it wants to give, and returns a verdict (`GuardTripped`,
with its evidence) or nothing. The first verdict wins. It is recorded; then the run ends as `limit`
or `stopped`, or a person is asked whether it may continue.

A budget that is not used up, but set aside, is no verdict: the command waits until a child has reported, or a call
that is open has its reply. Both come without the run's doing, so they come. From a child that waits for the run's
answer to a question nothing would come back, so what that child has counts as used up.
"""

from typing import Any

from msgspec.structs import replace

from . import budget, progress
from .budget import Render
from .effects import AskAgent, CallTool, Command, StartRun
from .events import GuardTripped
from .prompt import estimate
from .run import Run, is_shared

COSTLY = (AskAgent, CallTool, StartRun)
"""Commands that are not given any more once the time is up."""


def review(run: Run[Any], command: Command, render: Render) -> Command | GuardTripped | None:
    """The command as it may be given, or the verdict that forbids it. `None`: it has to wait."""
    found = _review(run, command, render)
    if type(found) is not GuardTripped:
        return found
    return None if _can_wait(run, command, render) else budget.explained(run, found)


def _can_wait(run: Run[Any], command: Command, render: Render) -> bool:
    """Whether the command could be given if all that is set aside came back whole, but for what cannot."""
    asking = {number for _, number in run.asked_here}
    stuck = {number: opened for number, opened in run.open.items() if number in asking}
    if not run.late and len(stuck) == len(run.open):
        return False
    spent = replace(run.spent, runs=budget.runs_below(run) - len(stuck))  # runs do not come back
    returned = replace(run, open=stuck, late={}, spent=spent)
    return type(_review(returned, command, render)) is not GuardTripped


def _review(run: Run[Any], command: Command, render: Render) -> Command | GuardTripped:
    limits = run.limits
    if limits.seconds is not None and isinstance(command, COSTLY):
        verdict = budget.before_time(limits, run.work)
        if verdict:
            return verdict
    if type(command) is AskAgent:
        if command.continues is None:
            verdict = progress.review(run.trail, run.guards)
            if verdict:
                return verdict
        is_metered = limits.tokens is not None or limits.money is not None
        # what is set aside is only looked for where something can be: nearly no run has anything open then
        spent = budget.committed(run, render if is_metered else None) if run.open or run.late else run.spent
        verdict = budget.before_turn_or_call(limits, spent, command)
        if verdict:
            return verdict
        if is_metered:
            return budget.with_allowance(limits, spent, command, estimate(render(run.state, command)))
    elif type(command) is StartRun:
        return _before_child(run, command, render)
    return command


def _before_child(run: Run[Any], command: StartRun, render: Render) -> Command | GuardTripped:
    """The command with the slice of the budget that the child gets. A child that others share has its own limits."""
    depth = run.started.depth + 1
    if depth > run.limits.depth:
        text = f"A child of this run would be {depth} deep; the limit is {run.limits.depth}."
        return GuardTripped(guard="depth", limit=run.limits.depth, value=depth, text=text)
    verdict = budget.before_child(run)
    if verdict:
        return verdict
    if is_shared(run.id, command):
        return command
    limits = budget.slice_for_child(run, command, render)
    return limits if type(limits) is GuardTripped else replace(command, limits=limits)
