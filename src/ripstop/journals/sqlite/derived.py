"""Is what is beside the records what they say? The list of runs and the outbox are derived from them.

- A command that was dropped from the outbox, or is never due there, would never be performed; one that was put in
  would be performed without having been asked for. No hash covers them, so they are derived again here.
- Records come by once, in the order in which they were written; of each run only what the kernel folds is kept.
- When a command is due is settled by its records until a worker has begun it; then attempts and children move it.
- Attempts, and whether one was begun, are only in the outbox: of those, only what cannot be is found.
- What needs a style to tell (whether a run is stuck or listens, its gist, its documents) is not compared: another
  version of the style may put it otherwise.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from msgspec import Struct

from ripstop.engine.ports import MOST_RECORDS, RunInfo
from ripstop.kernel.errors import RipstopError
from ripstop.kernel.events import Event, Record
from ripstop.kernel.folding import apply, replay
from ripstop.kernel.outbox import Change, Closed, Finished, Held, Opened, Released, Superseded, inherited, plan
from ripstop.kernel.run import Run, status
from ripstop.kernel.style import BARE, NO_CONTENTS

from ..forgetting import belongs_to
from .schema import is_count, is_time
from .steps import BEGUN, BEGUN_UNSAFE, IN_DOUBT, NOT_BEGUN, SUPERSEDED

STATES = (NOT_BEGUN, BEGUN, BEGUN_UNSAFE, IN_DOUBT, SUPERSEDED)


class RunRow(NamedTuple):
    """A run, as the list of runs has it: what `RunInfo` shows of it, and what only the store needs."""

    key: int
    run_id: str
    style: str
    status: str
    length: int
    created: int
    updated: int
    parent: str | None
    root: str
    fork_of: str | None
    fork_at: int
    gist: str
    tokens: int
    money: float
    set_aside: str | None
    last: int | None
    head: bytes
    parent_number: int | None


RUN_COLUMNS = ("key", *RunInfo.__struct_fields__, "last", "head", "parent_number")
"""The fields of a `RunRow` in the order in which the queries have them."""


class OpenRow(NamedTuple):
    """A command, as the outbox has it."""

    position: int
    waits: str
    due: int | None
    worker_id: int | None
    attempt: int
    state: int
    needs: str
    awaits: str | None
    woken: int


class _Open(Struct, gc=False):
    """A command that is open, and how the outbox must have it."""

    position: int
    waits: str
    due: int | None
    """As it was asked, or released."""
    needs: str
    awaits: str
    held: bool = False
    superseded: bool = False


class _Told(Struct):
    """What the records of a run have shown so far."""

    created: int
    run: Run[None] | None
    open: dict[int, _Open]
    updated: int = 0
    positions: dict[int, int] = {}
    """Where each open command was asked."""
    finished: int = 0
    """How often it has ended with all its children: so often it has woken what awaits it."""


class Derived:
    def __init__(self, runs: Iterable[RunRow], workers: frozenset[int] = frozenset(), whole: bool = False) -> None:
        """`whole`: all runs of the file are followed."""
        self._workers = workers
        self._whole = whole
        self._runs = {run.run_id: run for run in runs}
        self._told: dict[str, _Told] = {}
        self._unfit: set[str] = set()
        """Runs whose records do not fit together; what they say is not taken in any more."""
        self._cuts: dict[str, set[int]] = {}
        """Where a run is forked: what is open there is what the fork begins with."""
        self._at_cut: dict[tuple[str, int], tuple[Run[None], dict[int, int]]] = {}
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

    def follow(self, row: RunRow, position: int, first: int, at: int, events: list[Event]) -> str:
        """Take in a step; why that cannot be done, if the run's records do not fit together."""
        try:
            self._follow(row, position, first, at, events)
        except (RipstopError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            self._unfit.add(row.run_id)
            return f"the record does not follow from those before it ({type(error).__name__}: {error})"
        return ""

    def _follow(self, row: RunRow, position: int, first: int, at: int, events: list[Event]) -> None:
        if not self._unfit.isdisjoint(self.sources(row.run_id)):
            return
        told = self._told.get(row.run_id)
        if told is None:
            run, positions = self._shared(row)
            if run is None and row.fork_of is not None:
                raise LookupError(f"the run {row.fork_of!r} has not the records that it shares")
            told = self._told[row.run_id] = _Told(at, run, {}, positions=dict(positions))
        told.updated = at
        records = [Record(number, at, event) for number, event in enumerate(events, first)]
        if not records:
            return
        before = told.run
        for number in self._cuts.get(row.run_id, ()):
            if records[0].number <= number <= records[-1].number:
                self._cut(row.run_id, told, records, number, position)
        told.run = after = replay(BARE, NO_CONTENTS, row.run_id, records, before)
        assert after is not None
        found = plan(before, after, records)
        if row.fork_of is not None and records[0].number == row.fork_at + 1:
            found = [*inherited(after, row.fork_at), *found]
        for change in found:
            if type(change) is Opened:
                told.positions.setdefault(change.number, position)
            _apply(told, change)

    def family_of(self, run_id: str) -> tuple[str, str]:
        """The definition of a run and its list of pinned workflows, by hash; empty if they are not known."""
        told = self._told.get(run_id)
        return (told.run.definition, told.run.pinned) if told and told.run else ("", "")

    def _cut(self, run_id: str, told: _Told, records: list[Record], number: int, position: int) -> None:
        """Keep a run as it was right after a record where it is forked."""
        run, positions = told.run, dict(told.positions)
        for record in records:
            if record.number <= number:
                run = apply(BARE, NO_CONTENTS, run_id, run, record)
                if record.number in run.open:
                    positions[record.number] = position
        assert run is not None
        self._at_cut[run_id, number] = run, positions

    def _shared(self, row: RunRow) -> tuple[Run[None] | None, dict[int, int]]:
        if row.fork_of is None:
            return None, {}
        return self._at_cut.get(self._owner(row.fork_of, row.fork_at), (None, {}))

    # Comparing

    def wrong_in_list(self, row: RunRow) -> list[str]:
        """What the list of runs says of a run, and its records do not."""
        if not self._unfit.isdisjoint(self.sources(row.run_id)):
            return []
        told = self._told.get(row.run_id)
        if told is None or told.run is None:
            return ["the list of runs has a run without records"]
        run, source = told.run, self._runs.get(row.fork_of) if row.fork_of is not None else None
        no_parent = row.parent is None and row.parent_number is None
        compared: list[tuple[str, Any, Any]] = [
            ("style", row.style, source.style if source else run.started.style),
            ("created", row.created, told.created),
            ("updated", row.updated, told.updated),
            ("parent", None if no_parent else (row.parent, row.parent_number), None if source else run.started.parent),
            ("tokens", row.tokens, run.spent.usage.tokens),
            ("money", row.money, run.spent.usage.money),
        ]
        root = self._root(row)
        if root:
            compared.append(("root", row.root, root))
        possible = {status(run, listening=True), status(run, listening=False)}  # only its style knows which
        if row.status not in possible:
            compared.append(("status", row.status, " or ".join(sorted(possible))))
        if row.fork_of is None and row.fork_at:
            compared.append(("fork_at", row.fork_at, 0))
        if row.set_aside == "":
            compared.append(("set_aside", "", None))
        return [
            f"the list of runs has {name} {listed!r}, but the records say {said!r}"
            for name, listed, said in compared
            if listed != said
        ]

    def _root(self, row: RunRow) -> str:
        """The top of a run's family; empty if that cannot be told, because the run above it is not known here."""
        if row.parent is None or not belongs_to(row.run_id, row.parent):
            return row.run_id
        above = self._runs.get(row.parent)
        if above is None:
            possible = row.root == row.run_id or belongs_to(row.run_id, row.root)
            return "" if possible else row.parent
        return above.root

    def wrong_in_outbox(self, run: RunRow, rows: dict[int, OpenRow]) -> list[tuple[int, str]]:
        """What the outbox has of a run, and its records do not; with the command's number."""
        if not self._unfit.isdisjoint(self.sources(run.run_id)):
            return []
        open_ = self._told[run.run_id].open if run.run_id in self._told else {}
        found = []
        for number in sorted(open_.keys() | rows.keys()):
            asked = open_.get(number)
            if number not in rows:
                assert asked is not None
                if not asked.superseded or asked.waits == "run":
                    found.append((number, "the command is open, but not in the outbox: it would never be performed"))
            elif asked is None:
                found.append((number, "the outbox has a command that is not open"))
            else:
                text = self._wrong(run, number, asked, rows[number])
                if text:
                    found.append((number, f"the outbox has the command, but {text}"))
        return found

    def _wrong(self, run: RunRow, number: int, asked: _Open, row: OpenRow) -> str:
        impossible = _impossible(row)
        if impossible:
            return impossible
        if (row.state == SUPERSEDED) is not asked.superseded:
            return "as one that is needed" if asked.superseded else "as one that is no longer needed"
        if row.worker_id is not None and row.worker_id not in self._workers:
            return "claimed by a worker that is not in the list: it would never be released"
        if row.position != asked.position or row.waits != asked.waits:
            return "not as it was asked"
        if row.needs != ("" if asked.superseded else asked.needs):
            return "with other needs than it was asked with"
        question = row.awaits is not None and row.awaits.startswith(f"{run.run_id}.{number}.")
        if (row.awaits or "") != asked.awaits and not question:
            return "waiting for another run than it was asked for"
        if row.woken > self._most_woken(row.awaits):
            return f"woken {row.woken} times, more often than a run that it awaits has ended"
        if asked.superseded:
            return ""  # the worker that holds or claims it reports on it
        return self._wrong_time(asked, row)

    def _most_woken(self, awaits: str | None) -> int:
        """How often a command can have been woken."""
        if awaits is None:
            return 0
        told = self._told.get(awaits)
        if told is None:
            return 0 if self._whole else MOST_RECORDS
        return told.finished if self._unfit.isdisjoint(self.sources(awaits)) else MOST_RECORDS

    def _wrong_time(self, asked: _Open, row: OpenRow) -> str:
        """Whether a command is due when it must not be, or never, although it must be."""
        can_be_taken = row.due is not None or row.worker_id is not None
        if (row.state == IN_DOUBT) is not asked.held:
            return "as one that is not in doubt" if asked.held else "as one that is in doubt"
        if asked.held or (asked.due is None and not row.awaits):
            return "as one that a worker may take" if can_be_taken else ""
        if row.awaits:
            told = self._told.get(row.awaits)
            settled = told is not None and told.run is not None and told.run.is_settled
            return "" if can_be_taken or not settled else "never due, although the run that it waits for has ended"
        if row.waits == "person":
            return ""  # shown to an ancestor, and parked
        if row.due is None:
            return "never due: it would never be performed"
        if row.attempt == 0 and row.due != asked.due:
            return "due at another time"
        return "" if row.due == asked.due or is_time(row.due) else "due at a time that does not exist"


def _impossible(row: OpenRow) -> str:
    """What no command of an outbox can be, whatever was asked."""
    if row.state not in STATES:
        return f"with the state {row.state}, which does not exist"
    if not is_count(row.attempt):
        return f"with {row.attempt} attempts, which is not a number of attempts"
    if row.state in (BEGUN, BEGUN_UNSAFE) and row.attempt == 0:
        return "begun without an attempt"
    if not is_count(row.woken):
        return f"woken {row.woken} times, which is not a number of times"
    if row.due is not None and row.due < 0:
        return "due at a time that does not exist"
    return ""


def _apply(told: _Told, change: Change) -> None:
    open_ = told.open
    if type(change) is Opened:
        position = told.positions[change.number]
        open_[change.number] = _Open(position, change.waits, change.due, change.needs, change.awaits)
    elif type(change) is Closed:
        open_.pop(change.number, None)
        failed = told.run.failed_call if told.run else None
        if failed is None or failed.number != change.number:  # else it can be reopened
            told.positions.pop(change.number, None)
    elif type(change) is Superseded and change.number in open_:
        open_[change.number].superseded = True
    elif type(change) is Held and change.number in open_:
        open_[change.number].held = True
    elif type(change) is Released and change.number in open_:
        open_[change.number].held = False
        open_[change.number].due = change.due
    elif type(change) is Finished:
        told.finished += 1
