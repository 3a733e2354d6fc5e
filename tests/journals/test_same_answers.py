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
from msgspec.structs import replace

from ripstop.engine.ports import (
    ALL,
    NOTHING,
    ClaimedCommand,
    DeskQuery,
    Entry,
    Journal,
    Prefixed,
    RunQuery,
    Scope,
    Tree,
)
from ripstop.journals.memory import MemoryJournal
from ripstop.journals.sqlite.journal import SqliteJournal
from ripstop.kernel.codec import Codec
from ripstop.kernel.effects import AgentReplied, AskAgent, AskPerson, CallTool, Command, Say, SetTimer, StartRun, Usage
from ripstop.kernel.errors import JournalError, UsageError
from ripstop.kernel.events import Answered, Asked, Doubted, Ended, Event, Forked, Heard, Repeated, Resumed, Withdrawn
from ripstop.kernel.run import DOUBT
from ripstop.kernel.style import Document
from ripstop.testing.journal_entries import NOW, SECOND, Scribe, answer, task

IDS = ["a", "b", "a.2", "a.3", "c", "shared", "f", "g"]
RUNS = st.sampled_from(IDS)
NUMBERS = st.integers(1, 6)
HOLDERS = st.integers(1, 3)
SOME: st.SearchStrategy[Any] = st.booleans()
ONE_HOLDER = st.none() | HOLDERS
COMMANDS: tuple[Command, ...] = (
    AskAgent(agent="ada"),
    CallTool(tool="t"),
    AskPerson(question="?", to="ann", purpose="p"),
    SetTimer(name="t", after=2.5),
    StartRun(workflow="w"),
    StartRun(workflow="w", name="shared"),
    Say(text="x", channel="c"),
)
COMMAND = st.sampled_from(COMMANDS)
OFFERS = st.sampled_from([("",), ("", "tool:t", "channel:c"), ("tool:t",)])
SCOPES: st.SearchStrategy[Scope] = st.just(ALL) | st.just(NOTHING) | RUNS.map(Tree) | RUNS.map(Prefixed)
DOCUMENTS = st.lists(
    st.builds(Document, st.just("notes"), st.sampled_from("xy"), st.sampled_from([None, 1, {"a": 2}])), max_size=2
).map(tuple)


class SameAnswers(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.loop = asyncio.new_event_loop()
        self.now = NOW
        self.scribe = Scribe()
        self.written: set[str] = set()
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
            except (JournalError, UsageError) as error:
                return type(error), str(error)

        first, second = [self.loop.run_until_complete(one(journal)) for journal in self.journals]
        assert first == second
        return first

    def append(self, new: Entry) -> None:
        self.now += SECOND
        if self.both(lambda journal: journal.append(new)) is None:
            self.written.add(new.run_id)
        else:
            self.scribe.drop(new.run_id)

    # Steps

    @rule(run=RUNS, commands=st.lists(COMMAND, min_size=1, max_size=3), worker_id=ONE_HOLDER, begun=st.booleans(),
          documents=DOCUMENTS)  # fmt: skip
    def start(
        self, run: str, commands: list[Command], worker_id: int | None, begun: bool, documents: tuple[Document, ...]
    ) -> None:
        parent = ("a", int(run[2:])) if "." in run else None
        if parent and "a" not in self.written:
            return
        at_once = (2,) if begun and worker_id and type(commands[0]) is AskAgent else ()
        new = self.scribe.start(
            run, *commands, at=self.now, worker_id=worker_id, begun=at_once, parent=parent, documents=documents
        )
        self.append(new)

    @rule(run=RUNS, data=st.data(), worker_id=ONE_HOLDER, fenced=st.booleans(), off=st.sampled_from([0, 0, 0, 0, -1]),
          documents=DOCUMENTS)  # fmt: skip
    def go_on(
        self,
        run: str,
        data: st.DataObject,
        worker_id: int | None,
        fenced: bool,
        off: int,
        documents: tuple[Document, ...],
    ) -> None:
        folded = self.scribe.folded(run) if run in self.written else None
        if folded is None:
            return
        events: list[Event] = []
        fence = None
        known = [*folded.open, *folded.late]
        if known and data.draw(SOME):
            number = data.draw(st.sampled_from(known))
            command = folded.open[number].command if number in folded.open else folded.late[number]
            cost = AgentReplied(text="x", usage=Usage(3, 4, 0.5))
            events.append(Answered(to=number, answer=cost) if type(command) is AskAgent else answer(number))
            fence = (number, data.draw(HOLDERS)) if fenced else None
        else:
            number = 0
            events.append(Heard(text="x"))
        if folded.ended is None:
            open_ = [number_ for number_ in folded.open if number_ != number]
            if open_ and data.draw(SOME):
                events.append(Withdrawn(number=data.draw(st.sampled_from(open_)), because="x"))
            events += [Asked(command=command) for command in data.draw(st.lists(COMMAND, max_size=2))]
            if not data.draw(st.integers(0, 3)):
                events.append(Ended(outcome="stopped", because="x"))
        elif not data.draw(st.integers(0, 2)):
            events += [Resumed(), Asked(command=data.draw(COMMAND))]
        after = max(folded.length + off, 1)
        new = self.scribe.entry(
            run, *events, after=after, at=self.now, fence=fence, worker_id=worker_id, documents=documents
        ) if off == 0 else self.scribe.entry(run, Heard(text="late"), after=after, at=self.now)  # fmt: skip
        self.append(new)

    @rule(run=RUNS, again=st.booleans())
    def doubt(self, run: str, again: bool) -> None:
        folded = self.scribe.folded(run) if run in self.written else None
        calls = [number for number, opened in folded.open.items() if type(opened.command) is CallTool] if folded else []
        if folded is None or not calls:
            return
        number = calls[0]
        questions = [question for question, about in folded.doubts.items() if about == number]
        if questions and again:
            events: tuple[Event, ...] = (answer(questions[0]), Repeated(number=number))
        elif not questions:
            ask = AskPerson(question="Did it?", purpose=DOUBT, about=(number,))
            events = (Doubted(to=number, evidence="x"), Asked(command=ask))
        else:
            return
        self.append(self.scribe.entry(run, *events, after=folded.length, at=self.now))

    @rule(run=st.sampled_from(["a", "b", "f"]), new=st.sampled_from(["f", "g"]), at=NUMBERS)
    def fork(self, run: str, new: str, at: int) -> None:
        folded = self.scribe.folded(run) if run in self.written else None
        if folded and at <= folded.length and new not in self.written:
            forked = Forked(run=run, at=at)
            self.append(self.scribe.entry(new, forked, after=at, at=self.now, fork=(run, at)))

    # Workers

    @rule()
    def enrol(self) -> None:
        self.both(lambda journal: journal.enrol(self.now))

    @rule(worker_id=HOLDERS, seconds=st.sampled_from([0, 1, 40]))
    def heartbeat(self, worker_id: int, seconds: int) -> None:
        self.now += seconds * SECOND
        self.both(lambda journal: journal.heartbeat(worker_id, self.now))

    @rule(worker_id=HOLDERS)
    def leave(self, worker_id: int) -> None:
        self.both(lambda journal: journal.leave(worker_id, self.now))

    @rule(worker_id=HOLDERS, room=st.integers(1, 3), scope=SCOPES, offers=OFFERS,
          refused=st.none() | st.lists(RUNS, max_size=2))  # fmt: skip
    def claim(
        self, worker_id: int, room: int, scope: Scope, offers: tuple[str, ...], refused: list[str] | None
    ) -> None:
        async def claim(journal: Journal) -> list[ClaimedCommand]:
            tasks = await journal.claim(worker_id, self.now, room, scope, offers, refused)
            return [replace(task, records=()) for task in tasks]  # which a store may bring along

        self.both(claim)
        self.both(lambda journal: journal.next_due(scope, offers, refused))

    @rule(run=RUNS, number=NUMBERS, worker_id=HOLDERS, safe=st.booleans(),
          what=st.sampled_from(["begin", "retry", "give_back", "park"]))  # fmt: skip
    def work(self, run: str, number: int, worker_id: int, safe: bool, what: str) -> None:
        attempt = 1 + number % 2
        if what == "begin":
            self.both(lambda journal: journal.begin(run, number, worker_id, attempt, safe))
        elif what == "retry":  # of what was begun: nobody else has a reason to
            self.both(lambda journal: journal.begin(run, number, worker_id, attempt, safe))
            self.both(lambda journal: journal.retry(run, number, worker_id, self.now + SECOND))
        elif what == "give_back":
            self.both(lambda journal: journal.give_back(run, number, worker_id))
        else:
            self.park(run, number, worker_id)

    def park(self, run: str, number: int, worker_id: int) -> None:
        """Only what awaits a run that has not ended: a worker answers the others at once."""
        folded = self.scribe.folded(run) if run in self.written else None
        opened = folded.open.get(number) if folded else None
        if folded is None or opened is None or type(opened.command) is not StartRun:
            return
        child = opened.command.name or f"{run}.{number}"
        awaited = self.scribe.folded(child) if child in self.written else None
        if awaited is None or not awaited.is_settled:
            self.both(lambda journal: journal.park(task(run, number), worker_id, self.now))

    # Care

    @rule(run=RUNS, reason=st.sampled_from(["", "unknown style"]))
    def set_aside(self, run: str, reason: str) -> None:
        self.both(lambda journal: journal.set_aside(run, reason))

    @rule(runs=st.lists(RUNS, min_size=1, max_size=2))
    def forget(self, runs: list[str]) -> None:
        if self.both(lambda journal: journal.forget(runs, self.now)) is None:
            self.written -= set(runs)

    @invariant()
    def shows_the_same(self) -> None:
        for run in self.written:
            self.both(lambda journal, run=run: journal.read(run))  # type: ignore[misc]  # the run of this round
            self.both(lambda journal, run=run: journal.read(run, 2, 5, 2))  # type: ignore[misc]  # the run of this round
        for ask in (DeskQuery(), DeskQuery(size=1), DeskQuery(root="a"), DeskQuery(to="bob"), DeskQuery(purpose="p")):
            self.both(lambda journal, ask=ask: journal.desk(ask))  # type: ignore[misc]  # the query of this round
        for query in (RunQuery(), RunQuery(size=2), RunQuery(root="a"), RunQuery(parent="a", statuses=("waiting",))):
            self.both(lambda journal, query=query: journal.runs(query))  # type: ignore[misc]  # the query of this round
            self.both(lambda journal, query=query: journal.counts(query))  # type: ignore[misc]  # the query of this round
        for worker_id in (1, 2, 3):
            self.both(lambda journal, worker_id=worker_id: self.withdrawn(journal, worker_id))  # type: ignore[misc]
        for look in ("desk_count", "next_due", "since", "cursor", "tombstones"):
            self.both(lambda journal, look=look: getattr(journal, look)())  # type: ignore[misc]
        self.both(lambda journal: journal.documents("notes"))
        assert self.both(lambda journal: journal.verify()) == []

    @staticmethod
    async def withdrawn(journal: Journal, worker_id: int) -> list[tuple[str, int]]:
        return sorted(await journal.superseded(worker_id))


TestSameAnswers = pytest.mark.long(pytest.mark.filterwarnings("ignore")(SameAnswers.TestCase))
SameAnswers.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
