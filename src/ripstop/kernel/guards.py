"""Guards: what stops a run, whatever its style, before it continues.

A guard looks at the run and at the command it wants to give, and returns a verdict (`GuardTripped`,
with its evidence) or nothing. The first verdict wins. It is recorded; then the run ends as `limit`
or `stopped`, or a person is asked whether it may continue.
"""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from . import budget, progress
from .effects import AskAgent, CallTool, Command, StartRun
from .events import GuardTripped
from .prompt import Prompt, estimate
from .run import Run, is_shared

COSTLY = (AskAgent, CallTool, StartRun)
"""Commands that are not given any more once the time is up."""


def review(run: Run[Any], command: Command, render: Callable[[Any, AskAgent], Prompt]) -> Command | GuardTripped:
    """The command as it may be given, or the verdict that forbids it."""
    found = _review(run, command, render)
    return budget.explained(run, found) if type(found) is GuardTripped else found


def _review(run: Run[Any], command: Command, render: Callable[[Any, AskAgent], Prompt]) -> Command | GuardTripped:
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
        # what children were given is only looked for where a child can be: nearly no run has any
        spent = budget.committed(run) if run.open or run.late else run.spent
        verdict = budget.before_turn_or_call(limits, spent, command)
        if verdict:
            return verdict
        if limits.tokens is not None or limits.money is not None:
            return budget.with_allowance(limits, spent, command, estimate(render(run.state, command)))
    elif type(command) is StartRun:
        return _before_child(run, command)
    return command


def _before_child(run: Run[Any], command: StartRun) -> Command | GuardTripped:
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
    limits = budget.slice_for_child(run, command)
    return limits if type(limits) is GuardTripped else replace(command, limits=limits)
