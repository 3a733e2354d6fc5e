"""What the live line shows of a reply that is still coming: its last words, of the latest attempt only."""

from collections.abc import Callable

from ripstop.runtime.live import Token

LONGEST_TAIL = 48


class UnfinishedWords:
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
