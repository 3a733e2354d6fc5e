"""Steps made by hand, for tests of journals: what an engine would append, without an engine.

A `Scribe` folds what it has written, as the kernel does without a style, so that every step says what it does to the
outbox.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

from ripstop.engine.ports import ALL, ClaimedCommand, Entry, Journal, RunQuery, Scope
from ripstop.kernel.codec import Codec
from ripstop.kernel.effects import CallTool, Command, ToolReturned
from ripstop.kernel.errors import RipstopError
from ripstop.kernel.events import FORMAT, Answered, Asked, Ended, Event, Heard, Record, Started
from ripstop.kernel.folding import replay
from ripstop.kernel.outbox import AT_ONCE, Opened, inherited, plan
from ripstop.kernel.run import Run, status, waits_for
from ripstop.kernel.style import BARE, NO_CONTENTS, Document

SECOND = 1_000_000
NOW = 1_800_000_000 * SECOND
LATER = NOW + 3600 * SECOND
"""Long after every lease has run out."""

CONTENT = b"what the run follows"
DIGEST = hashlib.sha256(CONTENT).hexdigest()
STARTED = Started(style="errands", definition=DIGEST, format=FORMAT)
TOOL = CallTool(tool="hammer", arguments={"nail": 1})
OFFERS = ("", "tool:hammer")


class Scribe:
    def __init__(self) -> None:
        self._written: dict[str, list[tuple[Record, ...]]] = {}
        """The stories of a run, one for each step that was written for it."""

    def entry(
        self,
        run_id: str,
        *events: Event,
        after: int = 0,
        at: int = NOW,
        fork: tuple[str, int] | None = None,
        worker_id: int | None = None,
        begun: tuple[int, ...] = (),
        fence: tuple[int, int] | None = None,
        gist: str = "",
        documents: tuple[Document, ...] = (),
        blobs: Mapping[str, bytes] = {},
    ) -> Entry:
        """A step whose records follow the record `after`."""
        records = [Record(after + place, at, event) for place, event in enumerate(events, 1)]
        shared = self._records(fork[0], fork[1]) if fork else self._records(run_id, after)
        if len(shared) < after:  # where no run is: the journal will refuse it
            return Entry(run_id=run_id, records=records, changes=(), status="working", fence=fence)
        before = replay(BARE, NO_CONTENTS, fork[0] if fork else run_id, shared)
        run: Run[None] | None = replay(BARE, NO_CONTENTS, run_id, records, before)
        assert run is not None
        self._written.setdefault(run_id, []).append((*shared, *records))
        # what a fork opens again it has inherited; what its first step does to it follows
        changes = [*(inherited(run, fork[1]) if fork else ()), *plan(before, run, records)]
        # as the engine does: what is due now. A message behind another one on its channel is not
        due = {change.number for change in changes if isinstance(change, Opened) and change.due == records[0].at}
        taken = tuple(
            record.number
            for record in records
            if worker_id is not None
            and isinstance(record.event, Asked)
            and record.number in run.open
            and record.number in due
            and waits_for(record.event.command) in AT_ONCE
        )
        return Entry(
            run_id=run_id,
            records=records,
            changes=changes,
            status=status(run, listening=False),
            gist=gist,
            tokens=run.spent.usage.tokens,
            money=run.spent.usage.money,
            documents=documents,
            blobs={DIGEST: CONTENT, **blobs} if any(isinstance(event, Started) for event in events) else blobs,
            fork=fork,
            worker_id=worker_id,
            taken=taken,
            begun=begun,
            fence=fence,
        )

    def _records(self, run_id: str, upto: int) -> tuple[Record, ...]:
        known = reversed(self._written.get(run_id, []))
        return next((records[:upto] for records in known if len(records) >= upto), ())

    def drop(self, run_id: str) -> None:
        """The journal has refused the last step that was written for a run."""
        self._written[run_id].pop()

    def folded(self, run_id: str) -> Run[None] | None:
        """A run as far as it is written; `None` if it is not."""
        known = self._written.get(run_id)
        return replay(BARE, NO_CONTENTS, run_id, known[-1]) if known else None

    def start(
        self,
        run_id: str,
        *commands: Command,
        at: int = NOW,
        worker_id: int | None = None,
        begun: tuple[int, ...] = (),
        parent: tuple[str, int] | None = None,
        surface: tuple[str, int] | None = None,
        style: str = "errands",
        gist: str = "",
        documents: tuple[Document, ...] = (),
    ) -> Entry:
        """A run that starts and asks for something. Its commands are the records 2, 3, …"""
        started = Started(style=style, definition=DIGEST, format=FORMAT, parent=parent, surface=surface)
        asked = (Asked(command=command) for command in commands)
        return self.entry(
            run_id, started, *asked, at=at, worker_id=worker_id, begun=begun, gist=gist, documents=documents
        )

    def end(self, run_id: str, outcome: str = "completed", after: int = 1, at: int = NOW) -> Entry:
        """A run that hears something and ends."""
        return self.entry(run_id, Heard(text="x"), Ended(outcome=outcome, because="done"), after=after, at=at)


def answer(to: int, value: object = "done") -> Answered:
    return Answered(to=to, answer=ToolReturned(value=value))


def task(run_id: str, number: int, superseded: bool = False) -> ClaimedCommand:
    """A command as a worker got it that no end of a run had woken before."""
    return ClaimedCommand(run_id=run_id, number=number, attempt=1, superseded=superseded)


async def refuses(error: type[RipstopError], doing: Awaitable[object]) -> RipstopError:
    try:
        await doing
    except error as refusal:
        return refusal
    raise AssertionError(f"{error.__name__} was not raised")


# How a conformance test is told: with an open journal and a scribe, and checked for damage at its end.


Told = Callable[[Any, Journal, Scribe], Coroutine[Any, Any, None]]


class JournalStories:
    """The base of all parts of the conformance suite."""

    def open(self, codec: Codec, folder: Path) -> Journal:
        """An empty journal."""
        raise NotImplementedError

    async def tell(self, told: Told, folder: Path) -> None:
        journal = self.open(Codec(), folder)
        try:
            await told(self, journal, Scribe())
            assert await journal.verify() == [], "an honest journal is reported as damaged"
            for info in (await journal.runs(RunQuery(size=1000))).items:
                assert await journal.check_run(info.run_id) == [], "an honest run is reported as damaged"
        finally:
            await journal.close()


def story(told: Told) -> Callable[[Any, Path], None]:
    """A test in the form of a story about one journal."""

    def test(self: JournalStories, tmp_path: Path) -> None:
        asyncio.run(self.tell(told, tmp_path))

    test.__name__, test.__doc__ = told.__name__, told.__doc__
    return test


async def claim(
    journal: Journal, worker_id: int, now: int = NOW, room: int = 10, scope: Scope = ALL, offers: Sequence[str] = OFFERS
) -> list[ClaimedCommand]:
    return await journal.claim(worker_id, now, room, scope, offers)


async def claimed(journal: Journal, worker_id: int, now: int = NOW, scope: Scope = ALL) -> list[tuple[str, int]]:
    """Which commands a worker gets."""
    return [(task.run_id, task.number) for task in await claim(journal, worker_id, now, scope=scope)]
