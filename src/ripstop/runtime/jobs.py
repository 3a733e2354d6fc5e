"""What passes between the engine and the worker of the same process, without a poll."""

from typing import Protocol

from msgspec import Struct

from ripstop.kernel.outbox import Opened
from ripstop.kernel.run import Open

from .ports import ClaimedCommand


class Job(Struct, frozen=True, gc=False):
    """A command that this process holds and should perform now."""

    run_id: str
    number: int
    opened: Open
    holder: int
    """The worker's number when it took the command; it may have another one by now."""
    attempt: int = 1
    begun: bool = False
    doubtful: bool = False
    unsafe: bool = False
    superseded: bool = False
    woken: int = 0
    awaits: str = ""

    @property
    def claim(self) -> ClaimedCommand:
        """As the journal knows it."""
        return ClaimedCommand(
            run_id=self.run_id,
            number=self.number,
            attempt=self.attempt,
            superseded=self.superseded,
            woken=self.woken,
            awaits=self.awaits,
        )


class Dispatcher(Protocol):
    """A worker in this process, which takes commands straight from the append."""

    def take(self, run_id: str, change: Opened, opened: Open) -> Job | None:
        """The command as its own, begun if repeating it would be harmless.

        `None` if it does not offer what the command needs, or takes nothing new.
        """

    def dispatch(self, jobs: list[Job]) -> None: ...

    def withdraw(self, run_id: str, number: int) -> None:
        """A command that it may have in hand is no longer needed."""

    def wake(self) -> None:
        """Look at the outbox now."""

    def wake_by(self, seconds: float) -> None:
        """Check the outbox after this many seconds at the latest."""
