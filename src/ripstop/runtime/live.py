"""What is happening right now, for whoever watches: tokens as they come, commands as they begin.

Never recorded and never waited for: a watcher that falls over or falls behind must not hold up a run.
"""

import logging
from collections.abc import Callable

from msgspec import Struct

from ripstop.kernel.effects import Command
from ripstop.kernel.events import Record
from ripstop.kernel.step import Picture

log = logging.getLogger("ripstop.live")


class Began(Struct, frozen=True):
    """A performer begins with a command."""

    run_id: str
    number: int
    command: Command
    attempt: int


class Token(Struct, frozen=True):
    """A piece of an agent's reply."""

    run_id: str
    number: int
    text: str


class Retrying(Struct, frozen=True):
    run_id: str
    number: int
    reason: str
    seconds: float


class Appended(Struct, frozen=True):
    """A step is durable."""

    run_id: str
    records: tuple[Record, ...]
    picture: Picture
    """The run right after it."""


Sight = Began | Token | Retrying | Appended
Watcher = Callable[[Sight], None]


class Live:
    def __init__(self) -> None:
        self._watchers: list[Watcher] = []
        self.watched = False

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """Call `watcher` with everything that happens; returns how to stop it."""
        self._watchers.append(watcher)
        self.watched = True
        return lambda: self._forget(watcher)

    def _forget(self, watcher: Watcher) -> None:
        self._watchers.remove(watcher)
        self.watched = bool(self._watchers)

    def show(self, sight: Sight) -> None:
        for watcher in tuple(self._watchers):
            try:
                watcher(sight)
            except Exception:
                log.exception("a watcher fell over and is not shown anything more")
                self._forget(watcher)
