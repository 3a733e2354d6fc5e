"""What a step does to the list of open commands: rows to insert, delete, hold, release and wake.

Every journal keeps this list with its records, in the same transaction, and only applies what `plan` says. So a
journal could throw its list away and build it again from here.
"""

from collections.abc import Iterable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from .effects import AskAgent, AskPerson, CallTool, Command, Say, SetTimer, StartRun
from .events import (
    Allowed,
    Answered,
    Asked,
    CallRefused,
    Doubted,
    DoubtResolved,
    Ended,
    Forked,
    Record,
    Reopened,
    Repeated,
    Withdrawn,
)
from .restoring import is_held
from .run import OWN_PURPOSES, WAITS_FOR, Run, is_transcript

AT_ONCE = frozenset({"worker", "run"})
"""What waits for these can be done by a worker at once."""
RARE = frozenset({Withdrawn, Ended, Doubted, CallRefused, Repeated, Reopened, Allowed})
"""Events that change rows in few steps. Every step has events that change none, so these are looked up together."""
NEVER = 2**63 - 1
"""Microseconds. The latest time that every store can hold; a timer beyond it never fires."""


class Opened(Struct, frozen=True, gc=False):
    number: int
    command: Command
    due: int | None
    """When a worker may take it, in microseconds; `None`: not before something else happens."""
    waits: str
    """For whom: a `worker`, a `person`, the `clock` or a child `run`."""
    needs: str = ""
    """What a worker must offer to take it, `tool:NAME` or `channel:NAME`; empty: any worker can."""
    awaits: str = ""
    """The run whose end makes it due again; empty for none."""


class Closed(Struct, frozen=True, gc=False):
    """It is settled: delete the row."""

    number: int
    plain: bool = False
    """Any worker could take it, and it awaited no run: the next command can have its row as it is."""


class Superseded(Struct, frozen=True, gc=False):
    """It is no longer needed. Delete the row, unless a worker holds it, who will report what it cost.

    If it started a run, if it awaits one, or if the parent of its run waits to learn what it cost, the row stays and
    becomes due (`undo`): a worker has to cancel that run, or to report.
    """

    number: int
    at: int
    undo: bool = False


class Held(Struct, frozen=True, gc=False):
    """It stays open, but no worker may take it before a person has spoken: it is in doubt, or it was refused."""

    number: int


class Released(Struct, frozen=True, gc=False):
    """It may be taken again, as if it had never been begun."""

    number: int
    due: int
    unless_begun: bool = False
    """A worker that has it in hand keeps it: what is to be done again is being done. And if one that is gone had begun
    it, that stays known: it may have happened."""


class Finished(Struct, frozen=True, gc=False):
    """The run has ended with all its children, or a guard has it wait for a person: every row that awaits it is due."""

    run: str
    at: int


Change = Opened | Closed | Superseded | Held | Released | Finished


def plan(before: Run[Any] | None, after: Run[Any], records: Iterable[Record]) -> list[Change]:
    """What the records of one step change, which led from `before` to `after`.

    For the first step of a fork, `inherited` says what it has besides.
    """
    found: list[Change] = []
    for record in records:
        event = record.event
        if type(event) is Asked:
            if type(event.command) is AskAgent and not event.waits:  # by far the most frequent
                found.append(Opened(record.number, event.command, record.at, "worker"))
            elif opened := _opened(after, record, event.command):
                found.append(opened)
        elif type(event) is Answered or type(event) is DoubtResolved:
            was = before.open.get(event.to) if before else None
            kind = type(was.command) if was else None
            found.append(Closed(event.to, kind is AskAgent))
            if kind is Say:
                _release_next_message(before, after, event.to, record.at, found)
        elif type(event) is Forked:
            before = None  # its rows are those of another run; `inherited` are this one's
        elif type(event) in RARE:
            _plan_rare(before, after, found, record)
    if after.ended is not None or after.late or (before and before.late):
        _finish(before, after, found, record.at)
    elif after.asks_about_verdict and not (before and before.asks_about_verdict == after.asks_about_verdict):
        found.append(Finished(after.id, record.at))  # those that share it need not wait for a person
    if after.held is not None:
        found = _hold(before, after, found, record.at)
    return found


def _hold(before: Run[Any] | None, after: Run[Any], found: list[Change], at: int) -> list[Change]:
    """Whether a run is held, no worker takes anything of it; what waits for a person is not affected."""
    was, kept = before is not None and is_held(before), before.open if before else {}
    mine = [number for number in kept if number in after.open and type(kept[number].command) is not AskPerson]
    if is_held(after):
        still = [_not_due(change) for change in found if type(change) is not Released]
        opened = [change.number for change in still if type(change) is Opened and change.waits != "person"]
        return [*still, *(Held(number) for number in (*(() if was else mine), *opened))]
    if was and not after.ended:
        free = [number for number in mine if number not in after.doubts.values()]
        rows = (_opened(after, Record(n, kept[n].at, Asked(command=kept[n].command)), kept[n].command) for n in free)
        due = {row.number: row.due for row in rows if row and row.due is not None}
        for one in after.refused:  # it is as refused as before; 0: a person has to say when it is made again
            due[one.to] = one.again
        return [*found, *(Released(number, max(when, at)) for number, when in due.items() if when)]
    return found


def _not_due(change: Change) -> Change:
    is_for_workers = type(change) is Opened and change.waits != "person"
    return replace(change, due=None) if is_for_workers else change


def _finish(before: Run[Any] | None, after: Run[Any], found: list[Change], at: int) -> None:
    _forget_late(before, after, found)
    if after.is_settled and not (before and before.is_settled):
        found.append(Finished(after.id, at))


def _plan_rare(before: Run[Any] | None, after: Run[Any], found: list[Change], record: Record) -> None:
    event = record.event
    if type(event) is Ended:
        _close_all(before, after, found, record.at)
    elif type(event) is Withdrawn and not event.unmade:  # else it is the row of the run that was forked
        found.append(_superseded(after, event.number, record.at))
        _release_next_message(before, after, event.number, record.at, found)
    elif type(event) is Doubted:
        found.append(Held(event.to))
    elif type(event) is CallRefused:
        found.append(Released(event.to, event.again) if event.again else Held(event.to))
    elif type(event) is Repeated:
        found.append(Released(event.number, record.at, unless_begun=True))
    elif type(event) is Allowed and before and event.number in before.open:
        found.append(Released(event.number, record.at))  # one that is opened in this step is due as it is opened
    elif type(event) is Reopened and (opened := after.open.get(event.number)):
        found.append(Opened(event.number, opened.command, record.at, "worker", needs_of(opened.command)))


def inherited(fork: Run[Any], shared: int) -> list[Change]:
    """The rows of a fork, after its first step, for commands up to number `shared`: it did not ask for them itself.

    A child that its first step did not need any more has a row as well: a worker has to report that it never began.
    """
    found: list[Change] = []
    for number, opened in fork.open.items():
        if number > shared:
            continue
        change = _opened(fork, Record(number, opened.at, Asked(command=opened.command)), opened.command)
        if change:
            found.append(change)
    found.extend(Held(number) for number in fork.doubts.values() if number in fork.open and number <= shared)
    if is_held(fork):
        rows = [change.number for change in found if type(change) is Opened and change.waits != "person"]
        found.extend(Held(number) for number in rows)
    for number, command in fork.late.items():
        if number <= shared and type(command) is StartRun:
            found.append(Opened(number, command, fork.began, "run", awaits=child_id(fork.id, number, command)))
            found.append(Superseded(number, fork.began, undo=True))
    return found


def _opened(after: Run[Any], record: Record, command: Command) -> Opened | None:
    waits, at = WAITS_FOR[type(command)], record.at
    due: int | None = at
    awaits = ""
    if type(command) is StartRun:
        awaits = child_id(after.id, record.number, command)
    elif type(command) is SetTimer:
        due = min(at + round(command.after * 1_000_000), NEVER)
    elif type(command) is AskPerson:
        due = at if surfaces(after, command) else None
    elif type(command) is Say:
        if is_transcript(after, command):
            return None
        due = at if _next_message(after, command.channel) == record.number else None
    if record.number in after.waiting:
        due = None
    return Opened(record.number, command, due, waits, needs_of(command), awaits)


def needs_of(command: Command) -> str:
    """What a worker must offer to carry a command out; empty: any worker can."""
    if type(command) is CallTool:
        return f"tool:{command.tool}"
    return f"channel:{command.channel}" if type(command) is Say and command.channel else ""


def child_id(run_id: str, number: int, command: StartRun) -> str:
    return command.name or f"{run_id}.{number}"


def surfaces(run: Run[Any], ask: AskPerson) -> bool:
    """Whether a question appears in an ancestor: one of the style's own that is meant for anyone.

    One that allows a call does not: where it would appear, only its words are shown.
    """
    is_own = not ask.to and ask.purpose not in OWN_PURPOSES and ask.arguments is None
    return run.started.surface is not None and is_own


def _next_message(run: Run[Any], channel: str) -> int:
    """The oldest message on a channel that is not delivered yet: messages keep their order. 0 for none."""
    for number, opened in run.open.items():
        if type(opened.command) is Say and opened.command.channel == channel:
            return number
    return 0


def _release_next_message(before: Run[Any] | None, after: Run[Any], closed: int, at: int, found: list[Change]) -> None:
    """If the message that was next on its channel is closed now, another one is."""
    was = before.open.get(closed) if before else None
    if before is None or was is None or type(was.command) is not Say:
        return
    channel = was.command.channel
    following = _next_message(after, channel)
    # one that was said in this step is due as it is opened
    if following in before.open and _next_message(before, channel) == closed:
        found.append(Released(following, at))


def _superseded(after: Run[Any], number: int, at: int) -> Superseded | Closed:
    """A command that is no longer needed; whose answer could not be recorded either is simply gone."""
    command = after.late.get(number)
    if command is None:
        return Closed(number)
    return Superseded(number, at, undo=after.started.parent is not None or type(command) is StartRun)


def _forget_late(before: Run[Any] | None, after: Run[Any], found: list[Change]) -> None:
    """The oldest of too many withdrawn calls are forgotten, so that they can no longer be reported."""
    if before is None or before.late is after.late:
        return
    closed = {change.number for change in found if type(change) is Closed}
    found.extend(Closed(number) for number in before.late if number not in after.late and number not in closed)


def _close_all(before: Run[Any] | None, after: Run[Any], found: list[Change], at: int) -> None:
    """The run has ended: what is open is no longer needed, but for messages that were said."""
    gone = {change.number for change in found if type(change) is Closed or type(change) is Superseded}
    opened = [change.number for change in found if type(change) is Opened]
    for number in dict.fromkeys((*(before.open if before else ()), *opened)):
        if number not in gone and number not in after.open:
            found.append(_superseded(after, number, at))
            _release_next_message(before, after, number, at, found)
