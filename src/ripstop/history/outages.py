"""Calls that model servers refuse, as any face may show them: by whom, how often, since when, and what is next."""

from collections.abc import Iterable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ripstop.engine.engine import Engine
from ripstop.engine.ports import Question, RunInfo
from ripstop.kernel.doubts import what_of
from ripstop.kernel.errors import RunUnreadable
from ripstop.kernel.outages import question_about_outage
from ripstop.kernel.run import OUTAGE, Refusals, Run

from .timeline import iso


class Outage(Struct, frozen=True, kw_only=True):
    """A refused call that waits to be made again."""

    run: str
    root: str
    """The run at the top of its family, with which it is retried."""
    call: int
    """The number of its record."""
    agent: str
    """Who makes it."""
    by: str
    """The provider that refused it."""
    reason: str
    """What it said last."""
    refusals: int
    """Since the call was asked for; a manual retry does not reset it."""
    since: str
    """When the first of them was."""
    next_attempt: str
    """When a worker tries again, if one is alive then; empty: not before somebody says so."""
    has_workers: bool
    """Whether one is alive now, in any process."""


def refused_calls(run: Run[Any], root: str, has_workers: bool) -> list[Outage]:
    """The calls of a run that wait to be made again, whether they have paused it or not."""
    return [_outage(run, root, one, has_workers) for one in run.refused if one.tries]


def outages(run: Run[Any], root: str, has_workers: bool) -> list[Outage]:
    """The refused calls that have paused a run of the family of `root`."""
    return [_outage(run, root, one, has_workers) for one in run.refused if one.paused]


def _outage(run: Run[Any], root: str, one: Refusals, has_workers: bool) -> Outage:
    opened = run.open.get(one.to)
    return Outage(
        run=run.id,
        root=root,
        call=one.to,
        agent=what_of(opened.command if opened else None),
        by=one.by,
        reason=one.reason,
        refusals=one.count,
        since=iso(one.first),
        next_attempt=iso(one.again) if one.again else "",
        has_workers=has_workers,
    )


PAUSES_SHOWN = 100
"""Paused runs of a list whose outages are read: the newest."""


async def outages_of(engine: Engine, infos: Iterable[RunInfo]) -> dict[str, list[Outage]]:
    """What has paused the runs of a list; of a run that this version cannot read, nothing is known."""
    has_workers, found = await engine.has_workers(), {}
    newest = sorted((info for info in infos if info.status == "paused"), key=lambda info: info.created)[-PAUSES_SHOWN:]
    for info in newest:
        try:
            found[info.run_id] = outages((await engine.look(info.run_id)).run, info.root, has_workers)
        except RunUnreadable:
            continue
    return found


async def outage_behind(engine: Engine, question: Question) -> Outage | None:
    """The refused call that a question is about; `None` if it is about something else, or has just been answered."""
    if question.command.purpose != OUTAGE or question.style not in engine.registry.kits:
        return None
    try:
        run, root = (await engine.look(question.run_id)).run, await engine.root_of(question.run_id)
    except RunUnreadable:
        return None
    found = outages(run, root, await engine.has_workers())
    return next((one for one in found if one.call in question.command.about), None)


def question_now(question: Question, outage: Outage | None) -> Question:
    """The question as it would be asked now. As it was asked, it says what the other side said then.

    Args:
        outage: What `outage_behind` has found.
    """
    if outage is None:
        return question
    return replace(question, command=question_about_outage(outage.call, outage.agent, outage.by, outage.reason))
