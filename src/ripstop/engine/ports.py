"""What the engine needs from the outside, as small protocols.

Journals and performers implement these; the engine knows nothing else about them. All times are
microseconds since 1970-01-01 UTC.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Generic, ParamSpec, Protocol, TypeVar

from msgspec import Meta, Struct

from ripstop.kernel.effects import AskPerson, Say, text_of
from ripstop.kernel.errors import Unreachable
from ripstop.kernel.events import Answered, ChildSpoke, Record
from ripstop.kernel.outbox import Change
from ripstop.kernel.style import Document

Clock = Callable[[], int]

LATEST = 253_402_300_800_000_000
"""The end of the year 9999, after which a time cannot be shown."""
MOST_RECORDS = 2**53
"""Of a run; every JSON reader can hold such a number."""
Time = Annotated[int, Meta(ge=0, lt=LATEST)]
Count = Annotated[int, Meta(ge=0, lt=MOST_RECORDS)]


# Journals


class Entry(Struct, frozen=True, kw_only=True, gc=False):
    """One step on its way into a journal: all of it, or nothing. All its records have the same time."""

    run_id: str
    records: Sequence[Record]
    changes: Sequence[Change]
    """What happens to the outbox (`outbox.plan`). The store applies it and derives nothing itself."""
    status: str
    gist: str = ""
    tokens: int = 0
    money: float = 0.0
    documents: Sequence[Document] = ()
    """Documents that this step changed."""
    blobs: Mapping[str, bytes] = {}
    """Content that the run uses, by hash; what is kept already is kept once."""
    fork: tuple[str, int] | None = None
    """With the first entry of a fork: (run, number of the last shared record)."""
    worker_id: int | None = None
    """The worker that takes the opened commands in `taken` at once, without a poll."""
    taken: tuple[int, ...] = ()
    begun: tuple[int, ...] = ()
    """Those of them that it begins at once, because repeating them would be harmless."""
    fence: tuple[int, int] | None = None
    """(command, holder): append only if this worker still holds this command."""


LISTED = ("status", "gist", "tokens", "money")
"""What an entry says of its run for the list of runs; fields of `Entry` and of `RunInfo`, and columns of stores."""


class All(Struct, frozen=True):
    """Every run of a journal."""


class Nothing(Struct, frozen=True):
    """No run: only commands that this process asks for are performed."""


class Tree(Struct, frozen=True):
    """A run with all its descendants, and the named runs that they wait for."""

    run_id: str


class Prefixed(Struct, frozen=True):
    """Every run whose id begins with a name and a dot, such as those of the documents of a folder."""

    name: str

    @property
    def bounds(self) -> tuple[str, str]:
        """The ids are from the first (inclusive) to the second."""
        return f"{self.name}.", f"{self.name}/"  # the character after the dot


Scope = All | Nothing | Tree | Prefixed
"""The runs in which a worker looks for work."""
ALL, NOTHING = All(), Nothing()


class ClaimedCommand(Struct, frozen=True, kw_only=True):
    """A due command, held by one worker."""

    run_id: str
    number: int
    attempt: int
    doubtful: bool = False
    """Another worker had begun it, and never recorded how it ended."""
    unsafe: bool = False
    """… and that worker knew that it must not be repeated blindly."""
    superseded: bool = False
    """It is no longer needed: what it cost is to be reported, and what it started to be cancelled."""
    woken: int = 0
    """How often the end of the run that it awaits has made it due."""
    awaits: str = ""
    """The run whose end makes it due; empty for none."""
    set_aside: bool = False
    """Another worker has set its run aside."""
    records: Sequence[Record] = ()
    """The run's records, where the store brings them along; else they are read."""


class RunInfo(Struct, frozen=True, kw_only=True):
    """A line of the list of runs. A store checks what it reads against these types."""

    run_id: str
    style: str
    status: str
    length: Count
    created: Time
    updated: Time
    parent: str | None = None
    root: str = ""
    """The run at the top of its family."""
    fork_of: str | None = None
    fork_at: Count = 0
    gist: str = ""
    tokens: Count = 0
    money: float = 0.0
    set_aside: str = ""
    """Why workers leave it alone: it cannot be read, or its style is not known; empty if they do not."""


MAX_PAGE = 1000


class RunQuery(Struct, frozen=True, kw_only=True):
    """Which runs, the newest first."""

    statuses: tuple[str, ...] = ()
    styles: tuple[str, ...] = ()
    text: str = ""
    """A part of the run's id or of its gist, the line that the list shows of it; upper and lower case differ."""
    parent: str | None = None
    """Only children of this run; empty: only runs without a parent."""
    root: str = ""
    """Only this run's family."""
    since: int = 0
    """Only what has changed since then, in microseconds since 1970."""
    cursor: str = ""
    """Where the page before ended (`Page.next`)."""
    size: int = 50


class DeskQuery(Struct, frozen=True, kw_only=True):
    """Which questions, the oldest first."""

    root: str = ""
    """Only of this run's family."""
    to: str | None = None
    """Only what is meant for this role or person, or for anyone."""
    purpose: str = ""
    kind: str = ""
    """Only of this kind (`desk_kinds`)."""
    cursor: str = ""
    size: int = 50


class Question(Struct, frozen=True, kw_only=True):
    """Something that waits for a person."""

    run_id: str
    number: int
    at: int
    command: AskPerson
    style: str = ""


T = TypeVar("T")


class Page(Struct, Generic[T], frozen=True):
    """Items of a list, and the cursor with which the next ones are asked for."""

    items: list[T]
    next: str = ""
    """The cursor of the next page; empty at the end. Where a filter leaves most out, a page before it may be short."""


class Moved(Struct, frozen=True, kw_only=True):
    """A step that was appended, for followers of a whole journal."""

    cursor: str
    run_id: str
    records: Sequence[Record]


class Tombstone(Struct, frozen=True, kw_only=True):
    """What is left of a run that was forgotten."""

    run_id: str
    at: int
    """When it was forgotten."""
    status: str
    length: int


PUT_BACK = "r"
"""What the id of a journal begins with that was put back from a copy."""


class JournalIdentity(Struct, frozen=True):
    """Who a journal is. Its user's state folder knows it by this, wherever the journal lies."""

    id: str = ""
    """Random; empty until its user first works with it."""
    copied: int = 0
    """When this store was copied from the journal of that id, in microseconds; 0: it is that journal."""

    @property
    def mark(self) -> str:
        """What keys of calls end with in runs that begin in it: in the journal that it was put back from, runs may have
        had the same ids. Empty: it was not put back."""
        return self.id[1:13] if self.id.startswith(PUT_BACK) else ""


class JournalPlace(Struct, frozen=True):
    """How far a journal has come. A copy that was made earlier has not come as far, or has gone another way."""

    position: int = 0
    """Of the last step, those of forgotten runs included."""
    digest: str = ""
    """The hash of that step; empty if its run was forgotten."""
    workers: int = 0
    """The highest number that a worker has had: one that begins a command appends nothing."""


class Damage(Struct, frozen=True, kw_only=True):
    """One thing that is wrong with a journal."""

    run_id: str
    number: int
    text: str


class Journal(Protocol):
    """The port of a store: records, lists, outbox and workers."""

    # Records

    def append(self, entry: Entry) -> Awaitable[None]:
        """Append a step and update the outbox, in one transaction. Durable when the awaitable returns.

        The entry is queued when this is called. What is raised says what became of it:

        - `Conflict`: not appended; the run has other records at these numbers, or is gone. So a step that is appended
          twice is refused the second time.
        - `LeaseLost`: not appended; its worker does not hold the command of `fence` any more.
        - `Unwritable`: not appended; its records cannot be encoded.
        - `Unreachable`: not appended, and it never will be; it can be tried again, as the same step or another one.
        - `OutcomeUnknown`: appended whole, or not at all, or it still will be. The engine reads the run back, and
          appends the very same entry again if it is not there: whichever of the two comes first, the other is refused.
          A store that can find out by itself need not raise it.
        - any other `JournalError`: the process does not go on with this journal. What it held is released when its
          worker leaves, or when its lease has run out.

        Every other method can be repeated without harm; a store that loses a reply to one of them repeats it itself.
        """

    async def read(
        self, run_id: str, after: int = 0, before: int | None = None, most: int | None = None
    ) -> list[Record]:
        """The records of a run after number `after` and before `before`, the first `most` of them.

        Those it shares with the run it was forked from are included.
        """

    async def since(self, cursor: str = "", most: int = 100) -> list[Moved]:
        """The steps of all runs after a cursor, in order per run, each at least once; empty: from the beginning."""

    async def cursor(self) -> str:
        """The cursor after the last step."""

    async def follower(self, name: str) -> str:
        """The cursor that a follower has kept under its name; empty if it never did."""

    async def keep_follower(self, name: str, cursor: str) -> None: ...

    async def blob(self, digest: str) -> bytes: ...

    async def latest(self) -> int:
        """The latest known time: of the last record, or of a worker's last heartbeat.

        0 for an empty journal. Costs the same however long the journal is.
        """

    # JournalIdentity

    async def identity(self) -> JournalIdentity: ...

    async def identify(self, new: JournalIdentity, instead_of: JournalIdentity) -> JournalIdentity:
        """Give the journal another identity, if it still has the one that the caller knows. Returns what it has now."""

    async def place(self, position: int | None = None) -> JournalPlace:
        """How far the journal has come; or, of a step that it has at this position, the hash."""

    async def heads(self) -> str:
        """A hash over the last step of every run: the same as long as no run has another record."""

    # Lists

    async def runs(self, query: RunQuery = RunQuery()) -> Page[RunInfo]: ...

    async def run(self, run_id: str) -> RunInfo | None: ...

    async def counts(self, query: RunQuery = RunQuery()) -> dict[str, int]:
        """How many runs have each status."""

    async def forks(self, run_id: str) -> list[RunInfo]: ...

    async def desk(self, query: DeskQuery = DeskQuery()) -> Page[Question]: ...

    async def desk_count(self) -> int: ...

    async def document(self, collection: str, key: str) -> bytes | None: ...

    async def documents(self, collection: str, cursor: str = "", size: int = 50) -> Page[tuple[str, bytes]]: ...

    # Workers

    async def enrol(self, now: int) -> int:
        """Register a worker; returns its fencing number, higher than all before."""

    async def heartbeat(self, worker_id: int, now: int) -> bool:
        """Renew the lease; false if it was lost and the worker must enrol again."""

    async def leave(self, worker_id: int, now: int) -> None:
        """Release everything. What was begun and not answered is in doubt from now on."""

    async def workers(self, now: int) -> list[tuple[int, bool]]:
        """The workers that are enrolled, and whether each can be alive."""

    async def claim(
        self,
        worker_id: int,
        now: int,
        room: int,
        scope: Scope = ALL,
        offers: Sequence[str] = ("",),
        refused: Collection[str] | None = None,
    ) -> list[ClaimedCommand]:
        """Take up to `room` due commands that no living worker holds and that need one of `offers`.

        Args:
            refused: The runs that this worker has set aside. It also gets commands of runs that others have; `None`: of
                no run that is set aside. A run that a scope names by its family is taken in any case.
        """

    async def begin(self, run_id: str, number: int, worker_id: int, attempt: int, repeatable: bool) -> None:
        """Record durably that an attempt begins. Idempotent. Raises `LeaseLost`."""

    async def retry(self, run_id: str, number: int, worker_id: int, at: int) -> None:
        """Release a command after a failed attempt, to be claimed again at a later time."""

    async def give_back(self, run_id: str, number: int, worker_id: int) -> None:
        """Stop holding a command that was not begun."""

    async def await_run(self, run_id: str, number: int, worker_id: int, awaited: str) -> None:
        """Have the end of another run make a command due that this worker holds."""

    async def park(self, task: ClaimedCommand, worker_id: int, now: int) -> None:
        """Stop holding a command until the run that it awaits ends; or `now`, if that happened since it was claimed,
        or if it is no longer needed since then."""

    async def superseded(self, worker_id: int) -> list[tuple[str, int]]:
        """Commands that this worker holds and that are no longer needed."""

    async def held(self, run_id: str) -> set[int]:
        """The commands of a run that workers hold."""

    async def begun(self, run_id: str) -> tuple[int, ...]:
        """The commands of a run that a worker has begun and not answered."""

    async def left_waiting(self, now: int) -> set[str]:
        """The runs with the status `waiting` of which any worker could take a command now, if none that is alive has
        it: a child is to be started, or has ended."""

    async def next_due(
        self, scope: Scope = ALL, offers: Sequence[str] = ("",), refused: Collection[str] | None = None
    ) -> int | None:
        """When the next unclaimed command is due that `claim` would find."""

    def changed(self) -> bool:
        """Whether another process may have written since the last call, or has died. Costs next to nothing."""

    def listen(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` when other processes write, if the store can notify; returns a function that stops it."""

    @property
    def path(self) -> Path | None:
        """The file on this machine that holds it, next to which its locks are; `None`: it is in this process's memory.

        What the user agrees to for a journal is kept by this path.
        """

    @property
    def clock(self) -> Clock | None:
        """The store's own clock, which all its workers use; `None`: this machine's."""

    # Care

    async def set_aside(self, run_id: str, reason: str) -> None:
        """Say why a worker leaves a run alone; an empty reason: not any more. A step that is appended ends it, too."""

    async def forget(self, run_ids: Sequence[str], now: int, dry_run: bool = False) -> None:
        """Remove runs that have ended, and leave a tombstone for each. Raises `UsageError` if one is still needed.

        With `dry_run` that is all it does: nothing is removed.
        """

    async def tombstones(self) -> list[Tombstone]: ...

    async def tombstone(self, run_id: str) -> Tombstone | None:
        """What is left of a run that was forgotten; `None`: it was not."""

    async def backup(self, path: Path, now: int) -> None:
        """Copy a consistent snapshot of the journal, while others work on it. The copy says that it is one."""

    async def verify(self, run_id: str | None = None) -> list[Damage]: ...

    async def check_run(self, run_id: str) -> list[Damage]:
        """What is wrong with one run, from its own rows alone: quick enough to be done before acting on it."""

    async def close(self) -> None: ...


# Waiting for a store that is unreachable for a while: its disk is full, or another program has locked it.


P = ParamSpec("P")

STORE_PAUSE = 1.0
"""Seconds after which it is tried again."""


async def until_reachable(
    waits: Callable[[], bool], act: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Do something that can be repeated as long as the store was not reached. Raises `Unreachable` unless `waits()`."""
    while True:
        try:
            return await act(*args, **kwargs)
        except Unreachable:
            if not waits():
                raise
        await asyncio.sleep(STORE_PAUSE)


# What a message says: its own words, or those of the record that it names.


async def words_of(journal: Journal, run_id: str, message: Say) -> str:
    if not message.about:
        return message.text
    return text_in((await journal.read(run_id, after=message.about - 1, most=1))[0])


def text_in(record: Record) -> str:
    """The words that a record holds."""
    event = record.event
    if isinstance(event, Answered):
        return text_of(event.answer)
    if isinstance(event, ChildSpoke) and event.ask:
        return event.text or event.ask.question
    return str(getattr(event, "text", ""))
