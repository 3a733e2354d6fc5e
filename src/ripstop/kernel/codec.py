"""Events to bytes and back: JSON with explicit tags, nothing else.

No pickle, no class looked up by name. An unknown tag or a missing field stops loudly, because a
fold with holes in it would be a lie. Free-form dictionaries pass through untouched, even when
they happen to have a key named "type".

One event is a JSON object. All events of a step are a JSON array of such objects.
"""

import functools
import operator
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from .errors import UnknownRecord, Unwritable
from .events import DECISIONS, FACTS, FORMAT, Event, Started


class Codec:
    """Knows the kernel's events and those that styles add."""

    def __init__(self, events: Iterable[type[Event]] = ()) -> None:
        known: Any = functools.reduce(operator.or_, [*FACTS, *DECISIONS, *events])
        self._encode = msgspec.json.Encoder().encode
        self._decode = msgspec.json.Decoder(known).decode
        self._decode_step = msgspec.json.Decoder(list[known]).decode

    def dump(self, event: Event) -> bytes:
        return _dumped(event, [event], self._encode, self._decode)

    def dump_step(self, events: list[Event]) -> bytes:
        return _dumped(events, events, self._encode, self._decode_step)

    def load(self, data: bytes | str) -> Event:
        try:
            event: Event = self._decode(data)
        except msgspec.MsgspecError as error:
            raise _unknown(data, error) from error
        _check_format(event)
        return event

    def load_step(self, data: str | bytes) -> list[Event]:
        """The events of a step; a file of the first version has each by itself."""
        if data[:1] not in ("[", b"["):
            return [self.load(data)]
        try:
            events: list[Event] = self._decode_step(data)
        except msgspec.MsgspecError as error:
            raise _unknown(data, error) from error
        if events:
            _check_format(events[0])
        return events


def _dumped(value: Any, events: list[Event], encode: Callable[[Any], bytes], decode: Callable[[bytes], Any]) -> bytes:
    try:
        data = encode(value)
        if data.find(b":null") >= 0:  # `in` would first try to take it for a number, at ten times the price
            decode(data)  # NaN is written as null; where a number must stand, it could never be read again
        return data
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        kinds = " or ".join(type(event).__name__ for event in events)
        raise Unwritable(
            f"This {kinds} cannot be recorded, because part of it is not JSON: {error}. "
            "Answer with texts, numbers, lists and dictionaries."
        ) from error


def _unknown(data: bytes | str, error: msgspec.MsgspecError) -> UnknownRecord:
    return UnknownRecord(
        f"This record cannot be read: {error}. It was written by a newer version of ripstop, "
        f"or the journal is damaged (`ripstop verify` tells which). It begins {data[:80]!r}."
    )


def _check_format(event: Event) -> None:
    if type(event) is Started and event.format > FORMAT:
        raise UnknownRecord(
            f"This run was written in format {event.format}; this version reads up to {FORMAT}. Upgrade ripstop."
        )
