"""What is happening right now, for watchers: tokens as they arrive, commands as they begin.

Never recorded and never waited for: a watcher that fails or falls behind must not hold up a run.
"""

import logging
from collections.abc import Callable

from msgspec import Struct

from ripstop.kernel.effects import Command
from ripstop.kernel.events import Record
from ripstop.kernel.style import Picture

log = logging.getLogger("ripstop.live")


class Began(Struct, frozen=True):
    """A performer begins with a command."""

    run_id: str
    number: int
    command: Command
    attempt: int


class Token(Struct, frozen=True):
    """A piece of an agent's reply, as the model writes it; `Style.word_reader` finds the words for people in it.

    A higher `attempt` restarts the reply: discard what an earlier one showed.
    """

    run_id: str
    number: int
    text: str
    attempt: int = 1


class Retrying(Struct, frozen=True):
    """A command is tried again after a pause."""

    run_id: str
    number: int
    reason: str
    seconds: float


class RateLimited(Struct, frozen=True):
    """A call waits, because the provider's rate limit does not allow it yet."""

    run_id: str
    number: int
    provider: str
    seconds: float
    """Until the next call may go out, if no other call is first."""


class Appended(Struct, frozen=True):
    """A step is durable."""

    run_id: str
    records: tuple[Record, ...]
    picture: Picture
    """The run right after it."""


LiveEvent = Began | Token | Retrying | RateLimited | Appended
Watcher = Callable[[LiveEvent], None]


class Live:
    """Shows live events to watchers: of all runs, or of one run and its children."""

    def __init__(self) -> None:
        self._watchers: list[Watcher] = []
        self._family_watchers: dict[str, list[Watcher]] = {}
        self.watched = False

    def watch(self, watcher: Watcher, run_id: str | None = None) -> Callable[[], None]:
        """Call `watcher` with everything that happens; returns how to stop it.

        Args:
            run_id: Only what happens to this run and its children. What others do costs such a watcher nothing.
        """
        watchers = self._watchers if run_id is None else self._family_watchers.setdefault(run_id, [])
        watchers.append(watcher)
        self.watched = True
        return lambda: self._forget(watcher, run_id)

    def _forget(self, watcher: Watcher, run_id: str | None) -> None:
        watchers = self._watchers if run_id is None else self._family_watchers.get(run_id, [])
        if watcher in watchers:
            watchers.remove(watcher)
        if run_id is not None and not watchers:
            self._family_watchers.pop(run_id, None)
        self.watched = bool(self._watchers or self._family_watchers)

    def show(self, event: LiveEvent) -> None:
        for watcher in tuple(self._watchers):
            self._show(watcher, None, event)
        if not self._family_watchers:
            return
        run_id = event.run_id
        while run_id:  # a child's id is its parent's, a dot and a number
            for watcher in tuple(self._family_watchers.get(run_id, ())):
                self._show(watcher, run_id, event)
            run_id = run_id.rpartition(".")[0]

    def _show(self, watcher: Watcher, run_id: str | None, event: LiveEvent) -> None:
        try:
            watcher(event)
        except Exception:
            log.exception("Live watcher failed; unsubscribed")
            self._forget(watcher, run_id)
