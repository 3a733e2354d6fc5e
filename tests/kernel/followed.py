"""Stories whose outbox is kept as a journal would keep it: only by what `outbox.plan` says."""

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from ripstop.kernel.effects import Answer, Command
from ripstop.kernel.events import Event, Fact, Forked, Record, Started
from ripstop.kernel.folding import Folding, apply, replay
from ripstop.kernel.outbox import Change, Closed, Finished, Held, Opened, Released, Superseded, inherited, plan
from ripstop.kernel.run import Contents, Run
from ripstop.kernel.style import Style
from ripstop.testing import Given


class Row(Struct):
    command: Command
    due: int | None
    waits: str
    needs: str
    awaits: str
    state: str = "open"


class Outbox:
    """A little table, as every store has one."""

    def __init__(self) -> None:
        self.rows: dict[int, Row] = {}
        self.finished: list[str] = []
        self.working: set[int] = set()
        """Rows that a worker holds."""

    def carry_out(self, changes: Iterable[Change]) -> None:
        for change in changes:
            match change:
                case Opened(number, command, due, waits, needs, awaits):
                    assert number not in self.rows
                    self.rows[number] = Row(command, due, waits, needs, awaits)
                case Closed(number, plain):
                    row = self.rows.pop(number, None)
                    assert row is None or not (plain and (row.needs or row.awaits))
                case Superseded(number, at, undo):
                    if number in self.rows and (undo or number in self.working):
                        self.rows[number].state, self.rows[number].due = "superseded", at if undo else None
                    else:
                        self.rows.pop(number, None)
                case Held(number):
                    self.rows[number].state, self.rows[number].due = "held", None
                case Released(number, due):
                    assert self.rows[number].state != "superseded"
                    self.rows[number].state, self.rows[number].due = "open", due
                case Finished(run):
                    self.finished.append(run)

    @property
    def open(self) -> dict[int, Row]:
        return {number: row for number, row in self.rows.items() if row.state != "superseded"}

    @property
    def due(self) -> list[int]:
        return [number for number, row in self.rows.items() if row.due is not None]

    def take_step(self, before: Run[Any] | None, after: Run[Any], records: list[Record]) -> None:
        if before is not None and type(records[0].event) is Forked:
            self.carry_out(inherited(after, before.length))
        self.carry_out(plan(before, after, records))


class Followed(Given):
    def __init__(self, style: Style[Any], definitions: dict[str, Any], run_id: str = "story") -> None:
        super().__init__(style, definitions, run_id)
        self.outbox = Outbox()

    def tell(self, fact: Fact | Answer, after: float = 1.0) -> list[Event]:
        before, told = self.run, len(self.records)
        events = super().tell(fact, after)
        if events:
            assert self.run is not None
            self.outbox.take_step(before, self.run, self.records[told:])
        return events

    def fork(self, at: int, run_id: str = "fork") -> "Followed":
        """A story that shares this one's records up to `at`; it has to be told `Forked` next."""
        fork = Followed(self.style, self.contents.definitions, run_id)
        fork.contents = self.contents
        fork.records = self.records[:at]
        fork.run = replay(self.style, self.contents, self.run_id, fork.records)
        fork.now = self.now
        return fork


def followed(style: Style[Any], definition: Any, started: Started, *told: Fact | Answer) -> Followed:
    story = Followed(style, {"definition": definition})
    for fact in (started, *told):
        story.tell(fact)
    return story


def steps_of(records: Iterable[Record]) -> list[list[Record]]:
    """The steps that records are made of: each begins with a fact."""
    steps: list[list[Record]] = []
    for record in records:
        if record.event.is_fact:
            steps.append([])
        steps[-1].append(record)
    return steps


def rebuilt(style: Folding[Any], contents: Contents, run_id: str, records: list[Record]) -> Outbox:
    """The outbox of a run, from its records alone; those before the last `Forked` are another run's."""
    outbox, run = Outbox(), None
    for step in steps_of(records):
        if type(step[0].event) is Forked:
            outbox = Outbox()
        before = run
        for record in step:
            run = apply(style, contents, run_id, run, record)
        assert run is not None
        outbox.take_step(before, run, step)
    return outbox
