"""The words for the user in replies that a model is still writing."""

from collections.abc import Callable

from ripstop.runtime.live import Token


class DraftWords:
    def __init__(self, make_reader: Callable[[], Callable[[str], str]]) -> None:
        self._make_reader = make_reader
        self._number = self._attempt = 0
        self._read = make_reader()

    def words(self, token: Token) -> str:
        """The words in a piece; empty for a late piece of an attempt that was given up."""
        if (token.number, token.attempt) < (self._number, self._attempt):
            return ""
        if (token.number, token.attempt) != (self._number, self._attempt):
            self._number, self._attempt, self._read = token.number, token.attempt, self._make_reader()
        return self._read(token.text)
