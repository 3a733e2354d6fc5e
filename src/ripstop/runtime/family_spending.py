"""What a run and the runs below it have spent so far.

A parent counts what a child spent when the child reports, so that it is counted once. Whoever looks at a parent that
waits wants to know it now: it is read from the children that have not reported, never per step.
"""

from typing import Any

from ripstop.kernel.effects import StartRun
from ripstop.kernel.errors import RunNotFound
from ripstop.kernel.outbox import child_id
from ripstop.kernel.run import Run, Spent

from .engine import Engine


async def family_spent(engine: Engine, run: Run[Any], above: frozenset[str] = frozenset()) -> Spent:
    """What the run will have spent if the children that have not reported spend nothing more. Turns are its own.

    Args:
        above: Runs that are being counted already: named runs can wait for each other.
    """
    spent, above = run.spent, above | {run.id}
    commands = {number: opened.command for number, opened in run.open.items()} | run.late
    for number, command in commands.items():
        if not isinstance(command, StartRun):
            continue
        try:
            child = (await engine.look(child_id(run.id, number, command))).run
        except RunNotFound:  # it has not started yet
            continue
        if child.payer != f"{run.id}/{number}" or child.id in above:
            continue
        below = await family_spent(engine, child, above)
        usage = spent.usage.plus(below.usage.minus(child.paid.usage))
        spent = Spent(spent.turns, spent.calls + below.calls - child.paid.calls, usage)
    return spent
