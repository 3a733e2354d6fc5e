"""Which commands of a run somebody has to carry out, and when.

Every journal keeps this list beside its records, in the same transaction. This module is the only
place that knows how to derive it; a journal could throw its list away and build it again from here.
"""

from collections.abc import Iterable

from msgspec import Struct

from .effects import Command, SetTimer
from .events import Answered, Asked, Doubted, Ended, Record, Repeated, Withdrawn
from .run import WAITS_FOR

AT_ONCE = ("worker", "run")
"""Whoever waits for these waits for a worker, which may begin at once."""
NEVER = 2**63 - 1
"""Microseconds. The latest time that every store can hold; a timer beyond it never rings."""


class Opened(Struct, frozen=True, gc=False):
    number: int
    command: Command
    due: int | None
    """When a worker may take it, in microseconds; `None` while it waits for a person."""
    waits: str
    """For whom: a `worker`, a `person`, the `clock` or a child `run`."""


class Closed(Struct, frozen=True, gc=False):
    number: int | None
    """The command that is settled; all of them if the run has ended."""


class Held(Struct, frozen=True, gc=False):
    """The command stays open, but no worker may take it: it is in doubt."""

    number: int


class Released(Struct, frozen=True, gc=False):
    """A held command may be taken again."""

    number: int
    due: int


Change = Opened | Closed | Held | Released


def changes(records: Iterable[Record]) -> list[Change]:
    found: list[Change] = []
    for record in records:
        event = record.event
        if type(event) is Asked:
            command = event.command
            waits = WAITS_FOR[type(command)]
            due = record.at if waits in AT_ONCE else _due(command, record.at)
            found.append(Opened(record.number, command, due, waits))
        elif type(event) is Answered:
            found.append(Closed(event.to))
        elif type(event) is Withdrawn:
            found.append(Closed(event.number))
        elif type(event) is Doubted:
            found.append(Held(event.to))
        elif type(event) is Repeated:
            found.append(Released(event.number, record.at))
        elif type(event) is Ended:
            found.append(Closed(None))
    return found


def _due(command: Command, asked_at: int) -> int | None:
    return min(asked_at + round(command.after * 1_000_000), NEVER) if isinstance(command, SetTimer) else None
