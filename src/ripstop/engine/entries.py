"""A step on its way into the journal, and what this process does about it: before the append, and right after it."""

from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct

from ripstop.kernel.effects import SetTimer
from ripstop.kernel.outbox import Change, Closed, Finished, Opened, Released, Superseded
from ripstop.kernel.run import Open, Run, status
from ripstop.kernel.step import Step
from ripstop.kernel.style import Document, StyleKit

from .live import Appended, Live
from .ports import ClaimedCommand, Entry
from .run_cache import CachedRun

# Documents that a step changed: what a style projects from a run now, compared with what it did before.


def changed_documents(kit: StyleKit, before: Run[Any] | None, after: Run[Any]) -> list[Document]:
    was = () if before is None else kit.style.documents(before)
    found = kit.style.documents(after)
    if was == found:
        return []
    old = {(one.collection, one.key): one for one in was}
    new = {(one.collection, one.key): one for one in found}
    for place, document in new.items():
        if document.collection not in kit.collections:
            raise ValueError(f"The style {kit.name!r} has no collection {place[0]!r}.")
    changed = [document for place, document in new.items() if old.get(place) != document]
    gone = [Document(*place, None) for place in old if place not in new]
    return [*changed, *gone]


# What passes between the engine and the worker of the same process, without a poll.


class Job(Struct, frozen=True, gc=False):
    """A command that this process holds and should perform now."""

    run_id: str
    number: int
    opened: Open
    worker_id: int
    """The worker's number when it took the command; it may have another one by now."""
    attempt: int = 1
    begun: bool = False
    doubtful: bool = False
    unsafe: bool = False
    superseded: bool = False
    woken: int = 0
    awaits: str = ""

    @property
    def claim(self) -> ClaimedCommand:
        """As the journal knows it."""
        return ClaimedCommand(
            run_id=self.run_id,
            number=self.number,
            attempt=self.attempt,
            superseded=self.superseded,
            woken=self.woken,
            awaits=self.awaits,
        )


class Dispatcher(Protocol):
    """A worker in this process, which takes commands straight from the append."""

    def take(self, run_id: str, change: Opened, opened: Open) -> Job | None:
        """The command as its own, begun if repeating it would be harmless.

        `None` if it does not offer what the command needs, or takes nothing new.
        """

    def dispatch(self, jobs: list[Job]) -> None: ...

    def withdraw(self, run_id: str, number: int) -> None:
        """A command that it may have in hand is no longer needed."""

    def include(self, run_id: str) -> None:
        """Look for work in the run's family from now on, whatever the scope: this process has moved the run."""

    def wake(self) -> None:
        """Look at the outbox now."""

    def waits_now(self) -> bool:
        """Whether it waits for a store that is unreachable, however long that takes."""

    def give_up(self, error: BaseException | None) -> None:
        """Take nothing more, and say why: the journal cannot be trusted to know what this process knows."""

    def wake_by(self, seconds: float) -> None:
        """Check the outbox after this many seconds at the latest."""


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
        gist=style.view.gist(run),
        tokens=usage.input_tokens + usage.output_tokens,
        money=usage.money,
        documents=changed_documents(kit, before, run) if kit.collections else (),
        blobs={**(blobs or {}), **step.kept} if step.kept else blobs or NO_BLOBS,
        fork=fork,
        worker_id=jobs[0].worker_id if jobs else None,
        taken=taken,
        begun=begun,
        fence=fence,
    )
    return entry, jobs


def after_append(
    live: Live, dispatcher: Dispatcher | None, cached: CachedRun, step: Step[Any], changes: list[Change]
) -> None:
    """Show the step, and have the worker of this process look at what it made due or superfluous.

    Args:
        cached: The run as it is right after the step.
    """
    run = step.run
    if live.watched:
        live.show(Appended(run.id, tuple(step.records), cached.picture()))
    if dispatcher is None:
        return
    dispatcher.include(run.id)
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
