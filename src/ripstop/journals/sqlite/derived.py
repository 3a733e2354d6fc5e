"""Is what stands beside the records what they say? The list of runs and the outbox are derived from them.

- A command that was dropped from the outbox, or is never due there, would never be carried out; one that was put in
  would be carried out without having been asked for. No hash covers them, so they are derived again here.
- Records come by once, in the order in which they were written; of each run only what is open is kept.
- When a command is due is settled by its records until somebody has begun it; then attempts and children move it.
- What needs a style to tell (whether a run is stuck or listens) is not compared.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from msgspec import Struct

from ripstop.kernel.events import OUTCOMES, RESUME, Ended, Event, Forked, Ordered, Record, Started
from ripstop.kernel.outbox import Closed, Held, Opened, Released, changes


class RunRow(NamedTuple):
    """A run, as the list of runs has it."""

    key: int
    run_id: str
    style: str
    status: str
    created: int
    updated: int
    length: int
    last: int | None
    head: bytes
    parent: str | None
    parent_number: int | None
    fork_of: str | None
    fork_at: int


class _Open(Struct, gc=False):
    """A command that is open, and how the outbox must have it."""

    position: int
    waits: str
    due: int | None
    """As it was asked."""
    held: bool = False
    again: int | None = None
    """When it was due again after a doubt."""


class _Told(Struct):
    """What the records of a run have told so far."""

    open: dict[int, _Open]
    created: int | None = None
    updated: int = 0
    style: str | None = None
    parent: tuple[str, int] | None = None
    fork: tuple[str, int] | None = None
    outcome: str | None = None


class Derived:
    def __init__(self, runs: Iterable[RunRow]) -> None:
        self._runs = {run.run_id: run for run in runs}
        self._told: dict[str, _Told] = {}
        self._cuts: dict[str, set[int]] = {}
        """Where a run is forked: what is open there is what the fork begins with."""
        self._at_cut: dict[tuple[str, int], dict[int, _Open]] = {}
        for run in self._runs.values():
            if run.fork_of is not None:
                owner, at = self._owner(run.fork_of, run.fork_at)
                self._cuts.setdefault(owner, set()).add(at)

    def _owner(self, run_id: str, number: int) -> tuple[str, int]:
        """The run that a record was written for, which forks of it share."""
        for source in self.sources(run_id):
            if number > self._runs[source].fork_at:
                return source, number
        return run_id, number

    def sources(self, run_id: str) -> list[str]:
        """A run, the one it is a fork of, and so on. A file that was tampered with may go round in a circle."""
        found: list[str] = []
        at: str | None = run_id
        while at in self._runs and at not in found:
            found.append(at)
            at = self._runs[at].fork_of
        return found

    def follow(self, run: RunRow, position: int, first: int, at: int, events: list[Event]) -> None:
        """Take in a step."""
        told = self._told.get(run.run_id)
        if told is None:
            told = self._told[run.run_id] = _Told(self._inherited(run), created=at)
        told.updated = at
        cuts = self._cuts.get(run.run_id, ())
        for number, event in enumerate(events, first):
            _note(told, event)
            _open_and_close(told.open, Record(number, at, event), position)
            if number in cuts:
                self._at_cut[run.run_id, number] = _asked_anew(told.open)

    def _inherited(self, run: RunRow) -> dict[int, _Open]:
        if run.fork_of is None:
            return {}
        return _asked_anew(self._at_cut.get(self._owner(run.fork_of, run.fork_at), {}))

    # Comparing

    def wrong_in_list(self, run: RunRow) -> list[str]:
        """What the list of runs says of a run, and its records do not."""
        told = self._told.get(run.run_id)
        if told is None:
            return ["the list of runs has a run without records"]
        parent = (run.parent, run.parent_number) if run.parent is not None else None
        fork = (run.fork_of, run.fork_at) if run.fork_of is not None else None
        source = self._runs.get(run.fork_of) if run.fork_of is not None else None
        compared: list[tuple[str, Any, Any]] = [
            ("style", run.style, source.style if source else told.style),
            ("created", run.created, told.created),
            ("updated", run.updated, told.updated),
            ("parent", parent, told.parent),
            ("fork", fork, told.fork),
        ]
        if told.outcome or run.status in OUTCOMES:
            compared.append(("status", run.status, told.outcome or "not ended"))
        return [
            f"the list of runs has {name} {listed!r}, but the records say {said!r}"
            for name, listed, said in compared
            if listed != said
        ]

    def wrong_in_outbox(self, run: RunRow, rows: dict[int, tuple[Any, ...]]) -> list[tuple[int, str]]:
        """What the outbox has of a run, and its records do not; with the command's number."""
        open_ = self._told[run.run_id].open if run.run_id in self._told else {}
        found = []
        for number in sorted(open_.keys() | rows.keys()):
            if number not in rows:
                found.append((number, "the command is open, but not in the outbox: nobody would carry it out"))
            elif number not in open_:
                found.append((number, "the outbox has a command that is not open"))
            else:
                text = self._wrong(run, number, open_[number], rows[number])
                if text:
                    found.append((number, f"the outbox has the command, but {text}"))
        return found

    def _wrong(self, run: RunRow, number: int, asked: _Open, row: tuple[Any, ...]) -> str:
        position, waits, due, holder, attempt = row
        if position != asked.position or waits != asked.waits:
            return "not as it was asked"
        expected = None if asked.held else asked.due if asked.again is None else asked.again
        if expected is None and asked.waits != "run":
            return "as one that a worker may take" if due is not None or holder is not None else ""
        if asked.waits == "run":
            forgotten = not asked.held and due is None and holder is None and self._has_ended_child(run, number)
            return "never due, although the run that it waits for has ended" if forgotten else ""
        if type(due) is not int:
            return "never due: nobody would carry it out"
        return "due at another time" if attempt == 0 and due != expected else ""

    def _has_ended_child(self, run: RunRow, number: int) -> bool:
        child = self._runs.get(f"{run.run_id}.{number}")
        return child is not None and child.parent == run.run_id and child.status in OUTCOMES


def _asked_anew(open_: dict[int, _Open]) -> dict[int, _Open]:
    """What is open, as a fork has it: as it was asked, whatever became of it since; unless it is in doubt."""
    return {number: _Open(one.position, one.waits, one.due, held=one.held) for number, one in open_.items()}


def _note(told: _Told, event: Event) -> None:
    if type(event) is Started:
        told.style, told.parent = event.style, event.parent
    elif type(event) is Forked:
        told.fork, told.outcome = (event.run, event.at), None
    elif type(event) is Ended:
        told.outcome = event.outcome
    elif type(event) is Ordered and event.order == RESUME:
        told.outcome = None


def _open_and_close(open_: dict[int, _Open], record: Record, position: int) -> None:
    for change in changes((record,)):
        if type(change) is Opened:
            open_[change.number] = _Open(position, change.waits, change.due)
        elif type(change) is Closed and change.number is not None:
            open_.pop(change.number, None)
        elif type(change) is Closed:
            open_.clear()
        elif type(change) is Held and change.number in open_:
            open_[change.number].held = True
        elif type(change) is Released and change.number in open_:
            open_[change.number].held = False
            open_[change.number].again = change.due
