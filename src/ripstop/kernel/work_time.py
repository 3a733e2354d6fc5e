"""A run's time at work: the time during which a call of an agent, a tool or a child is open.

- Folded from the times of the records, so it is the same in every process; only for runs with a limit of seconds.
- A call is counted when a worker answers it. While a run waits for a person or a timer nothing is counted, and
  neither is the time between two processes: the first answer after a restart says when its worker began.
- The deadline is a timer that is open only while something is at work. A step that answers one call and makes the
  next one leaves it alone, so it costs a record only where work begins or ends.
"""

from collections.abc import Collection, Mapping
from typing import Protocol

from msgspec import Struct

from .effects import AskAgent, CallTool, Command, SetTimer, StartRun

DEADLINE = "ripstop:deadline"
"""Name of the kernel's own timer, which ends a run whose time is up."""
AT_WORK = frozenset({AskAgent, CallTool, StartRun})
ANSWERED_BY_WORKERS = frozenset({*AT_WORK, SetTimer})
SECOND = 1_000_000


class WorkTime(Struct, frozen=True, gc=False):
    """Times in microseconds."""

    counted: int = 0
    """Up to the last answer of a worker."""
    since: int = 0
    """When the time that is not counted yet began; 0 while nothing is at work."""
    deadline: int = 0
    """The open timer that ends the run when its time is up; 0 for none."""

    def is_up(self, seconds: float) -> bool:
        return self.counted >= round(seconds * SECOND)

    def within(self, seconds: float | None) -> "WorkTime":
        """Without what was worked beyond a limit, so that raising the limit by a second gives a second."""
        if seconds is None or self.counted <= seconds * SECOND:
            return self
        return WorkTime(round(seconds * SECOND), self.since, self.deadline)

    def left(self, seconds: float) -> float:
        """Seconds until the limit, as far as time is counted."""
        return max(0.0, seconds - self.counted / SECOND)


class HasCommand(Protocol):
    """The fields of an open command that are used here."""

    @property
    def command(self) -> Command: ...


def is_deadline(command: Command) -> bool:
    return type(command) is SetTimer and command.name == DEADLINE


def after_asking(time: WorkTime, number: int, command: Command, at: int) -> WorkTime:
    if type(command) in AT_WORK:
        return time if time.since else WorkTime(time.counted, at, time.deadline)
    return WorkTime(time.counted, time.since, number) if is_deadline(command) else time


def after_answer(time: WorkTime, number: int, command: Command, in_doubt: bool, began: int, at: int) -> WorkTime:
    """Count up to an answer. `began`: when the worker that answers began, if that was after the command was asked."""
    deadline = 0 if number == time.deadline else time.deadline
    if time.since and type(command) in ANSWERED_BY_WORKERS and not in_doubt:
        return WorkTime(time.counted + max(0, at - max(time.since, began)), at, deadline)
    return WorkTime(time.counted, time.since, deadline)


def in_fork(still_open: Mapping[int, HasCommand], in_doubt: Collection[int], at: int) -> WorkTime:
    """A fork has all its time before it."""
    deadline = next((number for number, opened in still_open.items() if is_deadline(opened.command)), 0)
    return after_closing(WorkTime(0, at, deadline), still_open, in_doubt)


def after_closing(time: WorkTime, still_open: Mapping[int, HasCommand], in_doubt: Collection[int]) -> WorkTime:
    """Stop counting if nothing is at work any more, and forget a deadline that is closed."""
    if time.since:
        for number, opened in still_open.items():
            if type(opened.command) in AT_WORK and number not in in_doubt:
                break
        else:
            time = WorkTime(time.counted, 0, time.deadline)
    return time if time.deadline in still_open or not time.deadline else WorkTime(time.counted, time.since, 0)
