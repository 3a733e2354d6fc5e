"""What passes between the engine and the worker of the same process, without a poll."""

from typing import Protocol

from msgspec import Struct

from ripstop.kernel.effects import Command
from ripstop.kernel.run import Open

from .performers import Kind
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

    @property
    def holder(self) -> int:
        """Its number in the journal."""

    def takes(self, needs: str) -> bool:
        """Whether it offers what a command needs, and takes new commands at all."""

    def kind(self, command: Command) -> Kind: ...

    def dispatch(self, jobs: list[Job]) -> None: ...

    def withdraw(self, run_id: str, number: int) -> None:
        """A command that it may have in hand is no longer needed."""

    def wake(self) -> None:
        """Look at the outbox now."""

    def wake_by(self, seconds: float) -> None:
        """Check the outbox after this many seconds at the latest."""
