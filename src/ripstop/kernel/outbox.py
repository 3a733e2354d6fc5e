"""Which commands of a run somebody has to carry out, and when.

Every journal keeps this list beside its records, in the same transaction. This module is the only
place that knows how to derive it; a journal could throw its list away and build it again from here.
"""

from collections.abc import Iterable

from msgspec import Struct

from .effects import AskPerson, Command, SetTimer
from .events import Answered, Asked, Doubted, Ended, Record, Repeated, Withdrawn


class Opened(Struct, frozen=True, gc=False):
    number: int
    command: Command
    due: int | None
    """When a worker may take it, in microseconds; `None` while it waits for a person."""


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
            found.append(Opened(record.number, event.command, _due(event.command, record.at)))
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
    if type(command) is AskPerson:
        return None
    if type(command) is SetTimer:
        return asked_at + round(command.after * 1_000_000)
    return asked_at
