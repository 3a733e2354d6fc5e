"""Events to bytes and back: JSON with explicit tags, nothing else.

No pickle, no class looked up by name. An unknown tag or a missing field stops loudly, because a
fold with holes in it would be a lie. Free-form dictionaries pass through untouched, even when
they happen to have a key named "type".
"""

import functools
import operator
from collections.abc import Iterable

import msgspec

from .errors import UnknownRecord, Unwritable
from .events import DECISIONS, FACTS, FORMAT, Event, Started


class Codec:
    """Knows the kernel's events and those that styles add."""

    def __init__(self, events: Iterable[type[Event]] = ()) -> None:
        known: list[type[Event]] = [*FACTS, *DECISIONS, *events]
        self._encode = msgspec.json.Encoder().encode
        self._decode = msgspec.json.Decoder(functools.reduce(operator.or_, known)).decode

    def dump(self, event: Event) -> bytes:
        try:
            data = self._encode(event)
            if data.find(b":null") >= 0:  # `in` would first try to take it for a number, at ten times the price
                self._decode(data)  # NaN is written as null; where a number must stand, it could never be read again
            return data
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise Unwritable(
                f"This {type(event).__name__} cannot be recorded, because part of it is not JSON: {error}. "
                "Answer with texts, numbers, lists and dictionaries."
            ) from error

    def load(self, data: bytes | str) -> Event:
        try:
            event: Event = self._decode(data)
        except msgspec.MsgspecError as error:
            raise UnknownRecord(
                f"This record cannot be read: {error}. It was written by a newer version of ripstop, "
                f"or the journal is damaged (`ripstop verify` tells which). It begins {data[:80]!r}."
            ) from error
        if isinstance(event, Started) and event.format > FORMAT:
            raise UnknownRecord(
                f"This run was written in format {event.format}; this version reads up to {FORMAT}. Upgrade ripstop."
            )
        return event
