"""What people were asked in a run, and what they answered.

`QuestionLog` keeps it for the runs that people look at: each record is read once, and only what is new is read again.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ripstop.engine.engine import Engine
from ripstop.kernel.effects import AskPerson, PersonAnswered
from ripstop.kernel.errors import RunNotFound
from ripstop.kernel.events import Answered, Asked, Record, Withdrawn

from .timeline import iso

MAX_TEXT = 20_000
"""Characters of a text behind a question."""
MOST_RUNS = 64
CHUNK = 4000
"""Records that are read at once; of a very long run more, because every reading walks back from its end."""
MOST_CHUNKS = 8


class GivenAnswer(Struct, frozen=True, kw_only=True):
    """What a person answered, and when."""

    to: int
    """The number of the question."""
    number: int
    at: str
    by: str
    choice: str
    text: str
    fields: dict[str, Any]
    edited: bool
    """Whether an edited document came with it."""


class AskedQuestion(Struct, frozen=True):
    """A question to a person, and what became of it."""

    number: int
    at: int
    """When it was asked, in microseconds."""
    ask: AskPerson
    given: GivenAnswer | None = None
    closed: int = 0
    """When it was answered or withdrawn; 0: neither is on record."""
    withdrawn: str = ""
    """Why it was withdrawn; empty if it was not."""


def answers_in(records: Iterable[Record]) -> list[tuple[AskPerson, GivenAnswer]]:
    """What people have answered in a run, each with the question."""
    asked: dict[int, AskedQuestion] = {}
    for record in records:
        _take_in(asked, record)
    return given_answers(asked)


def given_answers(asked: Mapping[int, AskedQuestion]) -> list[tuple[AskPerson, GivenAnswer]]:
    """The questions that were answered with their answers, in the order of the answers."""
    found = [(one.ask, one.given) for one in asked.values() if one.given]
    return sorted(found, key=lambda pair: pair[1].number)


def _take_in(asked: dict[int, AskedQuestion], record: Record) -> None:
    match record.event:
        case Asked(command=AskPerson() as ask):
            asked[record.number] = AskedQuestion(record.number, record.at, ask)
        case Answered(to=to, answer=PersonAnswered() as said) if to in asked:
            given = GivenAnswer(
                to=to,
                number=record.number,
                at=iso(record.at),
                by=said.by,
                choice=said.choice,
                text=said.text[:MAX_TEXT],
                fields=said.fields,
                edited=said.document is not None,
            )
            asked[to] = replace(asked[to], given=given, closed=record.at)
        case Withdrawn(number=number, because=because) if number in asked:
            asked[number] = replace(asked[number], withdrawn=because, closed=record.at)


class _Known(Struct):
    created: int
    length: int = 0
    asked: dict[int, AskedQuestion] = {}


class QuestionLog:
    """An LRU cache of the questions of runs."""

    def __init__(self, engine: Engine, most: int = MOST_RUNS) -> None:
        self._engine = engine
        self._most = most
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._lock = asyncio.Lock()

    async def of(self, run_id: str) -> Mapping[int, AskedQuestion]:
        """The questions of a run by their numbers, as they are in the journal now. Raises `RunNotFound`."""
        async with self._lock:
            info = await self._engine.journal.run(run_id)
            if info is None:
                raise RunNotFound(run_id)
            known = self._known.get(run_id)
            if known is None or known.created != info.created or known.length > info.length:
                known = self._known[run_id] = _Known(info.created)  # if it was known: another run has its name now
            chunk = max(CHUNK, (info.length - known.length) // MOST_CHUNKS)
            while known.length < info.length:
                records = await self._engine.journal.read(run_id, after=known.length, most=chunk)
                if not records:
                    break
                for record in records:
                    _take_in(known.asked, record)
                known.length = records[-1].number
                await asyncio.sleep(0)
            self._known.move_to_end(run_id)
            if len(self._known) > self._most:
                self._known.popitem(last=False)
            return known.asked
