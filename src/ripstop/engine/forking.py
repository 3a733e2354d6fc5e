"""Where a run can be forked: after a fact, or at the end of a step.

The default is the last record. But if a run failed because of what its agent did, deciding on that again would
fail again; so it is the last command to an agent, which is then asked again.
"""

from collections.abc import Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ripstop.kernel.effects import AskAgent, AskPerson, CallTool, Failed, Limits
from ripstop.kernel.errors import UsageError
from ripstop.kernel.events import Answered, Asked, Ended, Event, Forked, Record, RunSettings, SettingsChanged
from ripstop.kernel.folding import replay
from ripstop.kernel.outbox import Change, Opened, inherited, plan
from ripstop.kernel.run import OUTAGE, Contents, Run
from ripstop.kernel.step import Step, advance, decide_again
from ripstop.kernel.style import Style


def last_shared(run_id: str, records: list[Record], at: int | None, redefined: bool = False) -> int:
    """The number of the last record that a fork shares; `redefined` if it has a new definition."""
    wanted = at if at is not None else question_before_failure(records, redefined) or len(records)
    if not 1 <= wanted <= len(records):
        raise UsageError(f"Run {run_id!r} has the records 1 to {len(records)}; it cannot be forked at {wanted}.")
    cut = wanted
    if records[cut - 1].event.is_fact:
        return cut
    while cut < len(records) and not records[cut].event.is_fact:
        cut += 1
    if isinstance(records[cut - 1].event, Ended):
        # nothing follows an end: fork at the fact that led to it, so that it is decided again
        while not records[cut - 1].event.is_fact:
            cut -= 1
    return cut


def decides_nothing(event: Event) -> bool:
    """New settings lead to nothing, so there is nothing to decide again."""
    return isinstance(event, SettingsChanged)


def question_before_failure(records: list[Record], redefined: bool = False) -> int | None:
    """The number of the last question to an agent, if the run failed through what the agent did with it.

    A new definition may make something else of a reply, but not of a call that failed.
    """
    fact = next((record.event for record in reversed(records) if record.event.is_fact), None)
    if fact is None or not failed_by_agent(
        records[-1].event, fact, lambda number: records[number - 1].event, redefined
    ):
        return None
    questions = (r for r in reversed(records) if isinstance(r.event, Asked) and isinstance(r.event.command, AskAgent))
    return next(questions).number


def failed_by_agent(end: Event, fact: Event, event_at: Callable[[int], Event], redefined: bool = False) -> bool:
    """Whether a run failed through what its agent did, or through a refused call that a person gave up.

    Args:
        end: The event of its last record.
        fact: The fact that led to it.
        event_at: The event of a record, by its number.
    """
    if not isinstance(end, Ended) or end.outcome != "failed":
        return False
    if not isinstance(fact, Answered) or (redefined and not isinstance(fact.answer, Failed)):
        return False
    asked = event_at(fact.to)
    assert isinstance(asked, Asked)
    command = asked.command
    if isinstance(command, AskPerson):  # who gave the call up that was refused
        return command.purpose == OUTAGE
    return isinstance(command, AskAgent) or (isinstance(command, CallTool) and bool(command.agent))


# A fork on its way: what it shares with the run it comes from, and the step that it begins with.


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
    mark: str = ""
    in_doubt: bool = False


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
        mark=wanted.mark,
        in_doubt=wanted.in_doubt,
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
