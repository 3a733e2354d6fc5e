"""Which commands of a run somebody has to carry out, and when.

Every journal keeps this list beside its records, in the same transaction. This module is the only
place that knows how to derive it; a journal could throw its list away and build it again from here.
"""

from collections.abc import Iterable

from msgspec import Struct

from .effects import AskPerson, Command, SetTimer
from .events import Answered, Asked, Doubted, Ended, Record, Repeated, Withdrawn


class Opened(Struct, frozen=True):
    number: int
    command: Command
    due: int | None
    """When a worker may take it, in microseconds; `None` while it waits for a person."""


class Closed(Struct, frozen=True):
    number: int | None
    """The command that is settled; all of them if the run has ended."""


class Held(Struct, frozen=True):
    """The command stays open, but no worker may take it: it is in doubt."""

    number: int


class Released(Struct, frozen=True):
    """A held command may be taken again."""

    number: int
    due: int


Change = Opened | Closed | Held | Released


def changes(records: Iterable[Record]) -> list[Change]:
    found: list[Change] = []
    for record in records:
        event = record.event
        if isinstance(event, Asked):
            found.append(Opened(record.number, event.command, _due(event.command, record.at)))
        elif isinstance(event, Answered):
            found.append(Closed(event.to))
        elif isinstance(event, Withdrawn):
            found.append(Closed(event.number))
        elif isinstance(event, Doubted):
            found.append(Held(event.to))
        elif isinstance(event, Repeated):
            found.append(Released(event.number, record.at))
        elif isinstance(event, Ended):
            found.append(Closed(None))
    return found


def _due(command: Command, asked_at: int) -> int | None:
    if isinstance(command, AskPerson):
        return None
    if isinstance(command, SetTimer):
        return asked_at + round(command.after * 1_000_000)
    return asked_at
