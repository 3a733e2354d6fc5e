"""A fork on its way: what it shares with the run it comes from, and the step that it begins with."""

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ripstop.kernel.effects import Limits
from ripstop.kernel.events import Forked, Record, RunSettings
from ripstop.kernel.folding import replay
from ripstop.kernel.outbox import Change, Opened, inherited, plan
from ripstop.kernel.run import Contents, Run
from ripstop.kernel.step import Step, advance, decide_again
from ripstop.kernel.style import Style

from .forking import decides_nothing


class Fork(Struct, frozen=True):
    step: Step[Any]
    changes: list[Change]
    """What the fork has open: what it shares, and what it asks for itself."""
    shared: Run[Any]
    """The run that it comes from, as it was there."""

    @property
    def asks_again(self) -> bool:
        """Whether it has commands open that it shares: no process takes those with the append."""
        return any(type(change) is Opened and change.number <= self.shared.length for change in self.changes)


class ForkChanges(Struct, frozen=True):
    """What a fork has otherwise than the run it comes from; a default keeps what was in force."""

    definition: str = ""
    pinned: str | None = None
    limits: Limits | None = None
    settings: RunSettings | None = None
    workspace: str = ""
    """Where the fork works, whatever its settings say."""


def fork_run(
    style: Style[Any],
    contents: Contents,
    run_id: str,
    records: list[Record],
    new_id: str,
    wanted: ForkChanges,
    now: int,
) -> Fork:
    """Fork a run behind `records`. At a fact it is decided again; elsewhere what was open there is asked again."""
    cut, fact = records[-1].number, records[-1]
    shared = replay(style, contents, run_id, records)
    assert shared is not None
    settings = wanted.settings
    if wanted.workspace:
        settings = replace(settings or shared.settings, workspace=wanted.workspace)
    forked = Forked(
        run=run_id,
        at=cut,
        definition=wanted.definition,
        pinned=wanted.pinned,
        limits=wanted.limits,
        settings=settings,
    )
    if fact.event.is_fact and not decides_nothing(fact.event):
        before = replay(style, contents, run_id, records[:-1])
        step = decide_again(style, contents, before, fact, forked, new_id, now)
    else:
        again = advance(style, contents, shared, new_id, forked, now)
        assert again is not None
        step = again
    return Fork(step, [*inherited(step.run, cut), *plan(shared, step.run, step.records)], shared)
