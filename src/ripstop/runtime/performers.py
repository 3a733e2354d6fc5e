"""What the runtime needs from performers, as a small protocol.

All times are microseconds since 1970-01-01 UTC.
"""

from collections.abc import Awaitable, Mapping, Sequence
from enum import Enum
from typing import Any, Protocol

from msgspec import Struct

from ripstop.kernel.effects import Answer, AskPerson, Command, PersonAnswered
from ripstop.kernel.errors import RipstopError
from ripstop.kernel.events import Record, RunSettings
from ripstop.kernel.prompt import Prompt
from ripstop.kernel.style import Child

from .call_progress import CallProgress

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


class RunAccess(Protocol):
    """What a request lets a performer learn and do besides answering it; `Request` says what each of them is."""

    def history(self) -> Awaitable[list[Record]]: ...
    def ask(self, key: str, question: AskPerson) -> Awaitable[PersonAnswered | None]: ...
    def reread(self, run_id: str) -> Awaitable[bool]: ...
    def is_over(self, run_id: str) -> Awaitable[bool]: ...


class Request(Struct, frozen=True, kw_only=True):
    """A command ready to be performed, with everything a performer may need."""

    run_id: str
    number: int
    command: Command
    attempt: int
    ordinal: int = 0
    """For `AskAgent`: which one of the run's calls it is, counted from 1; 0 if they are not counted."""
    settings: RunSettings
    prompt: Prompt | None = None
    """For `AskAgent`."""
    arguments: Mapping[str, Any] = {}
    """For `CallTool`."""
    text: str = ""
    """For `Say`."""
    child: Child | None = None
    """For `StartRun`: what the child gets."""
    superseded: bool = False
    """It is no longer needed: undo what it started."""
    repeated: bool = False
    """Another worker had begun it, and never recorded how it ended."""
    woken: int = 0
    """How often the run that it awaits has ended since it was asked."""
    access: RunAccess
    progress: CallProgress

    @property
    def key(self) -> str:
        """The idempotency key: the same for every attempt at this command, and for nothing else."""
        return f"{self.run_id}/{self.number}"

    async def history(self) -> list[Record]:
        """The run's records so far."""
        return await self.access.history()

    async def ask(self, key: str, question: AskPerson) -> PersonAnswered | None:
        """Ask a person, by a key that is the same for the same question: the answer, or `None` if there is none yet.

        Then the performer returns `None`, and is called again when the person has answered.
        """
        return await self.access.ask(key, question)

    async def reread(self, run_id: str) -> bool:
        """Read the definition of a run again from its files, and continue with it if it has changed: whether it has.

        Raises `Refused` if it is wrong now.
        """
        return await self.access.reread(run_id)

    async def is_over(self, run_id: str) -> bool:
        """Whether another run of this journal has ended; false if the journal has no such run."""
        return await self.access.is_over(run_id)


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
        """Perform it. `None`: the answer will come later, from elsewhere."""

    def kind(self, command: Command) -> Kind: ...

    def offers(self) -> Sequence[str]:
        """What commands may need that it can perform: `tool:NAME`, `channel:NAME`."""

    def provider(self, request: Request) -> str:
        """The provider whose rate limit counts; empty for none."""

    async def probe(self, request: Request) -> Answer | None:
        """Only for `probeable`: the answer if it happened, `None` if it did not."""
