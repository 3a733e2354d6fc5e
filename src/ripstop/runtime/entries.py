"""A step on its way into the journal, and what this process does about it: before the append, and right after it."""

from collections.abc import Mapping
from typing import Any

from ripstop.kernel.effects import SetTimer
from ripstop.kernel.outbox import Change, Closed, Finished, Opened, Released, Superseded
from ripstop.kernel.run import Run, status
from ripstop.kernel.step import Step
from ripstop.kernel.style import Style, StyleKit

from .documents import changed_documents
from .jobs import Dispatcher, Job
from .live import Appended, Live
from .ports import Entry

NO_BLOBS: dict[str, bytes] = {}


def entry_of(
    run_id: str,
    kit: StyleKit,
    before: Run[Any] | None,
    step: Step[Any],
    changes: list[Change],
    dispatcher: Dispatcher | None,
    blobs: Mapping[str, bytes] | None = None,
    fence: tuple[int, int] | None = None,
    fork: tuple[str, int] | None = None,
) -> tuple[Entry, list[Job]]:
    """What to append, and which of the commands it opens this process takes."""
    run, style = step.run, kit.style
    jobs: list[Job] = []
    taken: tuple[int, ...] = ()
    begun: tuple[int, ...] = ()
    if dispatcher is not None:
        for change in changes:
            if type(change) is not Opened or change.due != step.at or change.number < step.records[0].number:
                continue
            opened = run.open.get(change.number)
            if opened is None or type(opened.command) is SetTimer:
                continue
            job = dispatcher.take(run_id, change, opened)
            if job is None:
                continue
            jobs.append(job)
            taken += (change.number,)
            if job.begun:
                begun += (change.number,)
    usage = run.spent.usage
    entry = Entry(
        run_id=run_id,
        records=step.records,
        changes=changes,
        status=status(run, style.listens(run.state)),
        gist=style.gist(run),
        tokens=usage.input_tokens + usage.output_tokens,
        money=usage.money,
        documents=changed_documents(kit, before, run) if kit.collections else (),
        blobs={**(blobs or {}), **step.kept} if step.kept else blobs or NO_BLOBS,
        fork=fork,
        holder=jobs[0].holder if jobs else None,
        taken=taken,
        begun=begun,
        fence=fence,
    )
    return entry, jobs


def after_append(
    live: Live, dispatcher: Dispatcher | None, style: Style[Any], step: Step[Any], changes: list[Change]
) -> None:
    """Show the step, and have the worker of this process look at what it made due or superfluous."""
    run = step.run
    if live.watched:
        live.show(Appended(run.id, tuple(step.records), style.picture(run)))
    if dispatcher is None:
        return
    for change in changes:
        if type(change) is Closed:
            continue
        if type(change) is Opened:
            if type(change.command) is SetTimer:
                dispatcher.wake_by(change.command.after)
        elif type(change) is Superseded:
            dispatcher.withdraw(run.id, change.number)
            dispatcher.wake()
        elif type(change) is Released or type(change) is Finished:
            dispatcher.wake()
