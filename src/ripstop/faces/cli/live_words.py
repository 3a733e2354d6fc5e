"""What the live line shows of a call: for how long it has been under way, and the last words of its reply so far."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from ripstop.kernel.counting import count
from ripstop.runtime.live import Token

from .terminal import Part, line_of
from .words import seconds

if TYPE_CHECKING:
    from rich.text import Text

LONGEST_TAIL = 48


class UnfinishedWords:
    """The last words of a reply that is still coming, of the latest attempt only."""

    def __init__(self, make_reader: Callable[[], Callable[[str], str]]) -> None:
        self._make_reader = make_reader
        self.tokens = 0
        """Pieces of the latest attempt."""
        self._attempt = 0
        self._last = ""
        self._words = make_reader()

    def take(self, token: Token) -> None:
        """Take a piece in. A new attempt replaces what the broken one showed; a late piece of that one is dropped."""
        if token.attempt < self._attempt:
            return
        if token.attempt > self._attempt:
            self._attempt, self.tokens, self._last, self._words = token.attempt, 0, "", self._make_reader()
        self.tokens += 1
        self._last = (self._last + self._words(token.text))[-4 * LONGEST_TAIL :]

    @property
    def tail(self) -> str:
        """The last words for people, on one line."""
        return " ".join(self._last.split())[-LONGEST_TAIL:]


class CallUnderWay:
    """The live line of a call. rich renders it several times a second, so its seconds go on between two pieces."""

    def __init__(self, head: list[Part], began: float, reply: UnfinishedWords | None) -> None:
        self._head = head
        self._began = began
        self._spent = f"{count(reply.tokens, 'token')}, " if reply and reply.tokens else ""
        self._tail = reply.tail if reply else ""

    def __rich__(self) -> "Text":
        effort = f"{self._spent}{seconds(time.monotonic() - self._began)}  {self._tail}"
        return line_of(*self._head, (effort.rstrip(), "dim"))
