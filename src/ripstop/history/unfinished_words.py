"""What the agents of this process have said in calls that are still under way, for those who come in the middle.

Never recorded: the words are forgotten when the answer is. At most `MOST_CHARACTERS` of a call are kept, and
`MOST_CALLS` calls; what is beyond is not shown live.
"""

from collections import OrderedDict
from collections.abc import Callable

from msgspec import Struct

from ripstop.engine.live import Appended, Began, LiveEvent, Token
from ripstop.kernel.events import Answered, Record

MOST_CHARACTERS = 64_000
MOST_CALLS = 1_000
MakeReader = Callable[[str], Callable[[str], str]]
"""By the id of a run: what finds the words for people in pieces of a reply (`Style.word_reader`)."""


class NewWords(Struct, frozen=True):
    """Words that a piece of a reply has added."""

    run_id: str
    number: int
    attempt: int
    offset: int
    """Characters of the same attempt before them."""
    text: str


class _Call:
    def __init__(self, attempt: int, read: Callable[[str], str]) -> None:
        self.attempt = attempt
        self.read = read
        self.pieces: list[str] = []
        self.length = 0


class WordsSoFar:
    def __init__(self, make_reader: MakeReader) -> None:
        self._make_reader = make_reader
        self._calls: OrderedDict[tuple[str, int], _Call] = OrderedDict()

    def take(self, event: LiveEvent) -> NewWords | None:
        """Take a live event in; returns the words that it adds."""
        if isinstance(event, Token):
            return self._add(event)
        if isinstance(event, Began):
            self._calls.pop((event.run_id, event.number), None)
        elif isinstance(event, Appended):
            self._forget(event.run_id, event.records)
        return None

    def words(self, run_id: str, number: int) -> str:
        """What was said so far in an open call; empty if nothing was, or another process makes the call."""
        call = self._calls.get((run_id, number))
        return "".join(call.pieces) if call else ""

    def _add(self, token: Token) -> NewWords | None:
        key = token.run_id, token.number
        call = self._calls.get(key)
        if call is not None and token.attempt < call.attempt:
            return None  # a late piece of an attempt that was given up
        if call is None or token.attempt > call.attempt:
            call = self._calls[key] = _Call(token.attempt, self._make_reader(token.run_id))
            if len(self._calls) > MOST_CALLS:
                self._calls.popitem(last=False)
        text = call.read(token.text)[: MOST_CHARACTERS - call.length]
        if not text:
            return None
        offset = call.length
        call.pieces.append(text)
        call.length += len(text)
        return NewWords(token.run_id, token.number, token.attempt, offset, text)

    def _forget(self, run_id: str, records: tuple[Record, ...]) -> None:
        for record in records:
            if isinstance(record.event, Answered):
                self._calls.pop((run_id, record.event.to), None)
