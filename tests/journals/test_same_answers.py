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
from ripstop.journals.sqlite.journal import SqliteJournal
from ripstop.kernel.codec import Codec
from ripstop.kernel.effects import AskPerson, CallTool, Command, SetTimer, StartRun
from ripstop.kernel.errors import JournalError
from ripstop.kernel.events import (
    Answered,
    Asked,
    Doubted,
    Ended,
    Event,
    Forked,
    Heard,
    Record,
    Repeated,
    Started,
    Withdrawn,
)
from ripstop.runtime.ports import Entry, Journal
from ripstop.testing.journal_entries import DIGEST, NOW, SECOND, answer, entry

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


def still_open(story: list[Record]) -> dict[int, Record]:
    """What is asked and not settled at the end of a story."""
    found: dict[int, Record] = {}
    for record in story:
        match record.event:
            case Asked():
                found[record.number] = record
            case Withdrawn(number=number) | Answered(to=number):
                found.pop(number, None)
            case Ended():
                found.clear()
    return found


class SameAnswers(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.loop = asyncio.new_event_loop()
        self.now = NOW
        self.stories: dict[str, list[Record]] = {}
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

    def length(self, run: str) -> int:
        return len(self.stories.get(run, []))

    def waits(self, run: str, number: int) -> type | None:
        """Of which kind an open command is."""
        asked = still_open(self.stories.get(run, [])).get(number)
        return type(asked.event.command) if asked and isinstance(asked.event, Asked) else None

    def status(self, run: str, *events: Event) -> str:
        """As an engine would give it: what has ended stays so."""
        story = [*(record.event for record in self.stories.get(run, [])), *events]
        begun = max((place for place, event in enumerate(story) if isinstance(event, Forked)), default=0)
        return "stopped" if any(isinstance(event, Ended) for event in story[begun:]) else "working"

    def append(self, new: Entry) -> bool:
        self.now += SECOND
        refused = self.both(lambda journal: journal.append(new))
        if refused is None:
            source, shared = new.fork or (new.run_id, None)
            self.stories[new.run_id] = [*self.stories.get(source, [])[:shared], *new.records]
        return refused is None

    @rule(run=RUNS, command=st.sampled_from(COMMANDS), holder=st.none() | HOLDERS, begun=st.booleans())
    def start(self, run: str, command: Command, holder: int | None, begun: bool) -> None:
        parent, _, number = run.partition(".")
        started = Started(style="s", definition=DIGEST, parent=(parent, int(number)) if number else None)
        if number and self.waits(parent, int(number)) is not StartRun:
            return
        at_once = (2,) if begun and holder else ()
        asked = Asked(command=command)
        self.append(entry(run, started, asked, at=self.now, holder=holder, begun=at_once))

    @rule(run=RUNS, events=st.lists(EVENTS, min_size=1, max_size=3), off=st.sampled_from([0, 0, 0, 0, -1, 1]),
          fence=st.none() | st.tuples(NUMBERS, HOLDERS), holder=st.none() | HOLDERS)  # fmt: skip
    def go_on(self, run: str, events: list[Event], off: int, fence: tuple[int, int] | None, holder: int | None) -> None:
        after = self.length(run) + off
        if after < 1:
            return
        # a step may settle what it has opened itself, but not what comes later
        events = [
            event for place, event in enumerate(events, after + 1)
            if max(getattr(event, "to", 0), getattr(event, "number", 0)) < place
        ] or [Heard(text="nothing")]  # fmt: skip
        status = self.status(run, *events)
        self.append(entry(run, *events, after=after, at=self.now, status=status, fence=fence, holder=holder))

    @rule(run=RUNS, again=st.booleans())
    def doubt(self, run: str, again: bool) -> None:
        open_ = still_open(self.stories.get(run, []))
        if not open_:
            return
        number = min(open_)
        event: Event = Repeated(number=number, because="x") if again else Doubted(to=number, evidence="x")
        self.append(entry(run, Heard(text="x"), event, after=self.length(run), at=self.now, status=self.status(run)))

    @rule(run=st.sampled_from(["a", "b"]), new=st.sampled_from(["f", "g"]), at=NUMBERS)
    def fork(self, run: str, new: str, at: int) -> None:
        if at <= self.length(run):
            inherited = list(still_open(self.stories[run][:at]).values())
            forked = Forked(run=run, at=at)
            self.append(entry(new, forked, after=at, at=self.now, fork=(run, at), inherited=inherited))

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
        elif what == "retry":  # of what was begun: nobody else has a reason to
            self.both(lambda journal: journal.begin(run, number, holder))
            self.both(lambda journal: journal.retry(run, number, holder, self.now + SECOND))
        elif self.waits(run, number) in (StartRun, None):  # nothing else waits for a run
            self.both(lambda journal: journal.park(run, number, holder))

    @invariant()
    def shows_the_same(self) -> None:
        for run in self.stories:
            self.both(lambda journal, run=run: journal.read(run))  # type: ignore[misc]  # the run of this round
            self.both(lambda journal, run=run: journal.read(run, after=2))  # type: ignore[misc]  # the run of this round
        self.both(lambda journal: journal.desk())
        self.both(lambda journal: journal.runs())
        self.both(lambda journal: journal.next_due())
        assert self.both(lambda journal: journal.verify()) == []


TestSameAnswers = pytest.mark.long(pytest.mark.filterwarnings("ignore")(SameAnswers.TestCase))
SameAnswers.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
