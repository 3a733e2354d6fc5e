"""Guards: what stops a run, whatever its style, before it goes on.

A guard looks at the run and at the command it wants to give, and returns a verdict (`Guarded`,
with its evidence) or nothing. The first verdict wins. It is recorded; then the run ends as `limit`
or `stopped`, or a person is asked whether it may go on.
"""

from collections.abc import Callable
from typing import Any

from . import budget, progress
from .effects import AskAgent, CallTool, Command, StartRun
from .events import GuardTripped
from .prompt import Prompt, estimate
from .run import Run

COSTLY = (AskAgent, CallTool, StartRun)
"""Commands that are not given any more once the time is up."""


def review(run: Run[Any], command: Command, render: Callable[[Any, AskAgent], Prompt]) -> Command | GuardTripped:
    """The command as it may be given, or the verdict that forbids it."""
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
        verdict = budget.before_turn_or_call(limits, run.spent, command)
        if verdict:
            return verdict
        if limits.tokens is not None or limits.money is not None:
            return budget.with_allowance(limits, run.spent, command, estimate(render(run.state, command)))
    elif type(command) is StartRun and run.started.depth >= limits.depth:
        return GuardTripped(
            guard="depth",
            limit=limits.depth,
            value=run.started.depth + 1,
            text=f"A child of this run would be {run.started.depth + 1} deep; the limit is {limits.depth}.",
        )
    return command
