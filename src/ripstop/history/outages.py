"""Calls that model servers refuse, as any face may show them: by whom, how often, since when, and what is next."""

from typing import Any

from msgspec import Struct

from ripstop.engine.engine import Engine
from ripstop.engine.ports import Question
from ripstop.kernel.run import OUTAGE, Run

from .timeline import iso


class Outage(Struct, frozen=True, kw_only=True):
    """A refused call that has paused its run."""

    run: str
    root: str
    """The run at the top of its family, with which it is retried."""
    call: int
    """The number of its record."""
    by: str
    """The provider that refused it."""
    reason: str
    """What it said last."""
    refusals: int
    """Since the call was asked for, whoever had it retried since."""
    since: str
    """When the first of them was."""
    next_attempt: str
    """When a worker tries again, if one is alive then; empty: not before somebody says so."""


def outages(run: Run[Any], root: str) -> list[Outage]:
    """The refused calls that have paused a run of the family of `root`."""
    return [
        Outage(
            run=run.id,
            root=root,
            call=one.to,
            by=one.by,
            reason=one.reason,
            refusals=one.count,
            since=iso(one.first),
            next_attempt=iso(one.again) if one.again else "",
        )
        for one in run.refused
        if one.paused
    ]


async def outage_behind(engine: Engine, question: Question) -> Outage | None:
    """The refused call that a question is about; `None` if it is about something else, or has just been answered."""
    if question.command.purpose != OUTAGE or question.style not in engine.registry.kits:
        return None
    found = outages((await engine.look(question.run_id)).run, await engine.root_of(question.run_id))
    return next((one for one in found if one.call in question.command.about), None)
