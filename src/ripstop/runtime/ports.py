"""What the runtime needs from the outside, as small protocols.

Journals and performers implement these; the runtime knows nothing else about them. All times are
microseconds since 1970-01-01 UTC.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import Enum
from typing import Any, Protocol

from msgspec import Struct

from ripstop.kernel.effects import Answer, AskPerson, Command
from ripstop.kernel.errors import RipstopError
from ripstop.kernel.events import Record
from ripstop.kernel.prompt import Prompt

Clock = Callable[[], int]


# What an effect is like, which decides what happens to it after a crash


class Kind(Enum):
    PURE = "pure"
    """Repeating it changes nothing."""
    KEYED = "keyed"
    """It takes our key (`run/number`), so the other side does it once."""
    PROBEABLE = "probeable"
    """It can be asked whether it happened."""
    UNSAFE = "unsafe"
    """None of these: after a crash, and after a call that broke off, a person is asked."""

    def __init__(self, name: str) -> None:
        self.repeatable = name in ("pure", "keyed")


# Journals


class Entry(Struct, frozen=True, kw_only=True, gc=False):
    """One step on its way into a journal: all of it, or nothing. All its records have the same time."""

    run_id: str
    records: Sequence[Record]
    status: str
    blobs: Mapping[str, bytes] = {}
    """Content to keep, by hash; what is kept already is kept once."""
    fork: tuple[str, int] | None = None
    """With the first entry of a fork: (run, number of the last shared record)."""
    inherited: Sequence[Record] = ()
    """With a fork: the shared commands that are still open in it, and the doubts that hold some of them."""
    holder: int | None = None
    """The worker that takes the opened commands at once, without a poll."""
    begun: tuple[int, ...] = ()
    """Those of them that it begins at once, because repeating them would be harmless."""
    fence: tuple[int, int] | None = None
    """(command, holder): append only if this worker still holds this command."""


class ClaimedCommand(Struct, frozen=True, kw_only=True):
    """A due command, held by one worker."""

    run_id: str
    number: int
    attempt: int
    doubtful: bool = False
    """Somebody else had begun it, and never said how it ended."""


class RunInfo(Struct, frozen=True, kw_only=True):
    """A line of the list of runs."""

    run_id: str
    style: str
    status: str
    length: int
    created: int
    updated: int
    parent: str | None = None


class Question(Struct, frozen=True, kw_only=True):
    """Something that waits for a person."""

    run_id: str
    number: int
    at: int
    command: AskPerson


class Damage(Struct, frozen=True, kw_only=True):
    """One thing that is wrong with a journal."""

    run_id: str
    number: int
    text: str


class Journal(Protocol):
    async def read(self, run_id: str, after: int = 0) -> list[Record]:
        """The records of a run, those it shares with the run it was forked from included."""

    def append(self, entry: Entry) -> Awaitable[None]:
        """Append a step and update the outbox, or raise `Conflict` or `LeaseLost` and do neither.

        The entry is queued when this is called and durable when the awaitable returns.
        """

    async def blob(self, digest: str) -> bytes: ...

    async def latest(self) -> int:
        """The latest time that is known to have been: of the last record, or of a worker's last sign of life.

        0 for an empty journal. Costs the same however long the journal is.
        """

    async def runs(self) -> list[RunInfo]: ...

    async def desk(self) -> list[Question]: ...

    async def enrol(self, now: int) -> int:
        """Register a worker; returns its fencing number, higher than all before."""

    async def heartbeat(self, holder: int, now: int) -> bool:
        """Prolong the lease; false if it was lost and the worker must enrol again."""

    async def leave(self, holder: int) -> None:
        """Give everything back. What was begun and not answered is doubtful from now on."""

    async def has_workers(self, now: int) -> bool:
        """Whether a worker is enrolled that can be alive. If not, no run is being worked on."""

    async def claim(self, holder: int, now: int, room: int, only: str | None = None) -> list[ClaimedCommand]:
        """Take up to `room` due commands that nobody living holds; `only` of this run and its children."""

    async def begin(self, run_id: str, number: int, holder: int) -> int:
        """Record durably that an attempt begins; returns its number. Raises `LeaseLost`."""

    async def retry(self, run_id: str, number: int, holder: int, at: int) -> None:
        """Give a failed attempt back, to be claimed again at a later time."""

    async def park(self, run_id: str, number: int, holder: int) -> None:
        """Stop holding a command whose answer will come by itself."""

    async def next_due(self, only: str | None = None) -> int | None:
        """When the next unheld command (`only` of this run and its children) falls due."""

    def changed(self) -> bool:
        """Whether another process may have written since the last call. Costs next to nothing."""

    async def verify(self, run_id: str | None = None) -> list[Damage]: ...

    async def check_run(self, run_id: str) -> list[Damage]:
        """What is wrong with one run, from its own rows alone: quick enough to be done before acting on it."""

    async def close(self) -> None: ...


# Performers


class Request(Struct, frozen=True, kw_only=True):
    """A command ready to be carried out, with everything a performer may need."""

    run_id: str
    number: int
    command: Command
    attempt: int
    ordinal: int = 0
    """For `AskAgent`: which one of the run's calls it is, counted from 1; 0 where nobody counts."""
    settings: Mapping[str, Any]
    prompt: Prompt | None = None
    """For `AskAgent`."""
    arguments: Mapping[str, Any] = {}
    """For `CallTool`."""
    text: str = ""
    """For `Say`."""
    history: Callable[[], Awaitable[list[Record]]]
    """The run's records so far, if a performer needs them."""

    @property
    def key(self) -> str:
        """The idempotency key: the same for every attempt at this command, and for nothing else."""
        return f"{self.run_id}/{self.number}"


class TryAgain(RipstopError):
    """Raised by a performer: it did not work, surely had no effect, and may work later."""

    def __init__(self, reason: str, after: float | None = None, provider_wide: bool = False) -> None:
        super().__init__(reason)
        self.after = after
        self.provider_wide = provider_wide


class Refused(RipstopError):
    """Raised by a performer: it did not work and never will. `fault` says whose fault that is."""

    def __init__(self, reason: str, fault: str = "tool") -> None:
        super().__init__(reason)
        self.fault = fault


class InDoubt(RipstopError):
    """Raised by a performer: it broke off after the request left, so the effect may have happened.

    `evidence` says what is known, for the person who has to decide. Any other exception of an unsafe
    performer means the same; `Refused` and `TryAgain` are its word that nothing happened.
    """

    def __init__(self, evidence: str) -> None:
        super().__init__(evidence)


class Performer(Protocol):
    async def perform(self, request: Request) -> Answer | None:
        """Carry it out. `None`: the answer will come by itself."""

    def kind(self, command: Command) -> Kind: ...

    def provider(self, request: Request) -> str:
        """Whose rate limit counts; empty for nobody's."""

    async def probe(self, request: Request) -> Answer | None:
        """Only for `probeable`: the answer if it happened, `None` if it did not."""
