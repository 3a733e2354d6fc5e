"""What passes between the engine and the worker of the same process, without a poll."""

from typing import Protocol

from msgspec import Struct

from ripstop.kernel.effects import Command
from ripstop.kernel.run import Open

from .ports import Kind


class Job(Struct, frozen=True, gc=False):
    """An open command that this process holds and should carry out now."""

    run_id: str
    number: int
    opened: Open
    holder: int
    """The worker's number when it took the command; it may have another one by now."""
    attempt: int = 1
    begun: bool = False
    doubtful: bool = False


class Dispatcher(Protocol):
    """A worker in this process, which takes commands straight from the append."""

    holder: int
    """Its number in the journal."""

    def kind(self, command: Command) -> Kind: ...

    def dispatch(self, jobs: list[Job]) -> None: ...

    def withdraw(self, run_id: str, numbers: list[int] | None) -> None: ...

    def wake(self) -> None:
        """Look at the outbox now."""

    def wake_by(self, seconds: float) -> None:
        """Look at the outbox so many seconds from now at the latest."""
