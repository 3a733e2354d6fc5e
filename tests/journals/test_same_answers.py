"""Whatever is done to them, the memory journal and the SQLite journal give the same answers."""

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ripstop.journals.memory import MemoryJournal
from ripstop.journals.sqlite import SqliteJournal
from ripstop.kernel.codec import Codec
from ripstop.kernel.effects import AskPerson, CallTool, Command, SetTimer, StartRun
from ripstop.kernel.errors import JournalError
from ripstop.kernel.events import Answered, Asked, Doubted, Ended, Event, Forked, Heard, Repeated, Started, Withdrawn
from ripstop.runtime.ports import Entry, Journal
from ripstop.testing.entries import DIGEST, NOW, SECOND, answer, entry

RUNS = st.sampled_from(["a", "b", "a.2", "a.3", "c"])
NUMBERS = st.integers(1, 6)
HOLDERS = st.integers(1, 3)
COMMANDS: tuple[Command, ...] = (
    CallTool(tool="t"),
    AskPerson(question="?"),
    SetTimer(name="t", after=2.5),
    StartRun(workflow="w"),
)
EVENTS = st.one_of(
    st.sampled_from(COMMANDS).map(lambda command: Asked(command=command)),
    NUMBERS.map(answer),
    NUMBERS.map(lambda number: Withdrawn(number=number, because="x")),
    st.text(max_size=5).map(lambda text: Heard(text=text)),
    st.just(Ended(outcome="stopped", because="x")),
)


class SameAnswers(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.loop = asyncio.new_event_loop()
        self.now = NOW
        self.lengths: dict[str, int] = {}
        self.open: dict[str, set[int]] = {}
        self.journals: list[Journal] = [
            MemoryJournal(Codec()),
            SqliteJournal(self.folder / "journal.db", Codec()),
        ]

    def teardown(self) -> None:
        self.both(lambda journal: journal.close())
        self.loop.close()
        shutil.rmtree(self.folder)

    def both(self, do: Callable[[Journal], Awaitable[Any]]) -> Any:
        """Do it to both; the answers, or the refusals, must be the same."""

        async def one(journal: Journal) -> Any:
            try:
                return await do(journal)
            except JournalError as error:
                return type(error), str(error)

        first, second = [self.loop.run_until_complete(one(journal)) for journal in self.journals]
        assert first == second
        return first

    def append(self, new: Entry) -> bool:
        self.now += SECOND
        refused = self.both(lambda journal: journal.append(new))
        if refused is None:
            self.lengths[new.run_id] = new.records[-1].number
            still = self.open.setdefault(new.run_id, set())
            for record in new.records:
                match record.event:
                    case Asked():
                        still.add(record.number)
                    case Withdrawn(number=number):
                        still.discard(number)
                    case Ended():
                        still.clear()
                    case Answered(to=number):
                        still.discard(number)
        return refused is None

    @rule(run=RUNS, command=st.sampled_from(COMMANDS), holder=st.none() | HOLDERS, begun=st.booleans())
    def start(self, run: str, command: Command, holder: int | None, begun: bool) -> None:
        parent, _, number = run.partition(".")
        started = Started(style="s", definition=DIGEST, parent=(parent, int(number)) if number else None)
        if number and parent not in self.lengths:
            return
        at_once = (2,) if begun and holder else ()
        asked = Asked(command=command)
        self.append(entry(run, started, asked, at=self.now, holder=holder, begun=at_once))

    @rule(run=RUNS, events=st.lists(EVENTS, min_size=1, max_size=3), off=st.sampled_from([0, 0, 0, 0, -1, 1]),
          fence=st.none() | st.tuples(NUMBERS, HOLDERS), holder=st.none() | HOLDERS)  # fmt: skip
    def go_on(self, run: str, events: list[Event], off: int, fence: tuple[int, int] | None, holder: int | None) -> None:
        after = self.lengths.get(run, 0) + off
        if after < 1:
            return
        # a step may settle what it has opened itself, but not what comes later
        events = [
            event for place, event in enumerate(events, after + 1)
            if max(getattr(event, "to", 0), getattr(event, "number", 0)) < place
        ] or [Heard(text="nothing")]  # fmt: skip
        status = "stopped" if any(isinstance(event, Ended) for event in events) else "working"
        self.append(entry(run, *events, after=after, at=self.now, status=status, fence=fence, holder=holder))

    @rule(run=RUNS, again=st.booleans())
    def doubt(self, run: str, again: bool) -> None:
        if not self.open.get(run):
            return
        number = min(self.open[run])
        event: Event = Repeated(number=number, because="x") if again else Doubted(to=number, evidence="x")
        self.append(entry(run, Heard(text="x"), event, after=self.lengths[run], at=self.now))

    @rule(run=st.sampled_from(["a", "b"]), new=st.sampled_from(["f", "g"]), at=NUMBERS)
    def fork(self, run: str, new: str, at: int) -> None:
        if at <= self.lengths.get(run, 0):
            self.append(entry(new, Forked(run=run, at=at), after=at, at=self.now, fork=(run, at)))

    @rule()
    def enrol(self) -> None:
        self.both(lambda journal: journal.enrol(self.now))

    @rule(holder=HOLDERS, seconds=st.sampled_from([0, 1, 40]))
    def heartbeat(self, holder: int, seconds: int) -> None:
        self.now += seconds * SECOND
        self.both(lambda journal: journal.heartbeat(holder, self.now))

    @rule(holder=HOLDERS)
    def leave(self, holder: int) -> None:
        self.both(lambda journal: journal.leave(holder))

    @rule(holder=HOLDERS, room=st.integers(1, 3), only=st.none() | RUNS)
    def claim(self, holder: int, room: int, only: str | None) -> None:
        def claim(journal: Journal) -> Awaitable[Any]:
            return journal.claim(holder, self.now, room, only)

        self.both(claim)

    @rule(run=RUNS, number=NUMBERS, holder=HOLDERS, what=st.sampled_from(["begin", "retry", "park"]))
    def work(self, run: str, number: int, holder: int, what: str) -> None:
        if what == "begin":
            self.both(lambda journal: journal.begin(run, number, holder))
        elif what == "retry":
            self.both(lambda journal: journal.retry(run, number, holder, self.now + SECOND))
        else:
            self.both(lambda journal: journal.park(run, number, holder))

    @invariant()
    def shows_the_same(self) -> None:
        for run in self.lengths:
            self.both(lambda journal, run=run: journal.read(run))  # type: ignore[misc]  # the run of this round
            self.both(lambda journal, run=run: journal.read(run, after=2))  # type: ignore[misc]  # the run of this round
        self.both(lambda journal: journal.desk())
        self.both(lambda journal: journal.runs())
        self.both(lambda journal: journal.next_due())
        assert self.both(lambda journal: journal.verify()) == []


TestSameAnswers = pytest.mark.filterwarnings("ignore")(SameAnswers.TestCase)
SameAnswers.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
