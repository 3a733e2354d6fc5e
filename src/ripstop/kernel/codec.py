"""Events to bytes and back: JSON with explicit tags, nothing else.

No pickle, no class looked up by name. An unknown tag or field, or a missing field, stops loudly, because a
fold with holes in it would be a lie. Free-form dictionaries pass through untouched, even when
they happen to have a key named "type".

One event is a JSON object. All events of a step are a JSON array of such objects.

Nothing is written that could not be read back. msgspec encodes a field without looking at its type, so a fact, which
comes from outside, must be of a shape that is known to be good, or is read back before it is written. What was read
back is what is written: 10 for a float is written as 10.0, so that an event has the same bytes whenever it is written.
Decisions are made by styles, from facts that went through here; their floats are floats as they are made.
"""

import functools
import operator
import re
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from .effects import AgentReplied, Failed, Said, TimerFired, ToolCall, ToolReturned, Usage
from .errors import UnknownRecord, Unwritable
from .events import FORMAT, KERNEL_EVENTS, Answered, Event, Heard, Started
from .text_limits import DEEPEST, is_plain

SHARED = "turn"
"""What the tags of events begin with that all styles with agents share."""


class Codec:
    """Knows the kernel's events and those that styles add.

    A style that is known by its name only (`lazy`) is loaded when one of its events, or the start of one of its runs,
    is read; `load` must then call `learn`.
    """

    def __init__(
        self,
        events: Iterable[type[Event]] = (),
        lazy: tuple[str, ...] = (),
        load: Callable[[str], object] | None = None,
    ) -> None:
        self._lazy, self._load_style = set(lazy), load
        self._encode = msgspec.json.Encoder().encode
        self.learn(events)

    def learn(self, events: Iterable[type[Event]]) -> None:
        """Know these events of styles, and no others."""
        every = (*KERNEL_EVENTS, *events)
        known: Any = functools.reduce(operator.or_, every)
        self._tags = {str(event.__struct_config__.tag) for event in every}
        self._styles = {tag.partition(".")[0] for tag in self._tags} | self._lazy
        self._decode = msgspec.json.Decoder(known).decode
        self._decode_step = msgspec.json.Decoder(list[known]).decode

    def dump(self, event: Event) -> bytes:
        return _dumped(event, [event], self._encode, self._read_event)

    def dump_step(self, events: list[Event]) -> bytes:
        return _dumped(events, events, self._encode, self._read_step)

    def load(self, data: bytes | str) -> Event:
        try:
            event = self._read_event(data)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise _unknown(data, error) from error
        _check_format(event)
        return event

    def _read_event(self, data: bytes | str) -> Event:
        decode = self._decode
        try:
            event: Event = decode(data)
        except msgspec.ValidationError:
            self._load_styles_of(data)
            if self._decode is decode:  # nothing new is known: it cannot be read
                raise
            event = self._decode(data)
        return event

    def _read_step(self, data: bytes | str) -> list[Event]:
        decode = self._decode_step
        try:
            events: list[Event] = decode(data)
        except msgspec.ValidationError:
            self._load_styles_of(data)
            if self._decode_step is decode:
                raise
            events = self._decode_step(data)
        return events

    def _load_styles_of(self, data: bytes | str) -> None:
        """Load the styles whose events are in a text and not known yet. Another thread may have done so just now."""
        if not self._lazy:
            return
        tagged = _decode_tagged(data)
        tags = {one.type for one in (tagged if isinstance(tagged, list) else [tagged])}
        prefixes = {tag.partition(".")[0] for tag in tags - self._tags}
        # an event that several styles share does not say which of them it belongs to
        wanted = set(self._lazy) if SHARED in prefixes else self._lazy & prefixes
        for style in sorted(wanted):
            self._load(style)

    def _load(self, style: str) -> None:
        assert self._load_style is not None
        self._load_style(style)
        self._lazy.discard(style)

    def foreign_events(self, data: str | bytes) -> int:
        """How many events a step has that cannot be read because one belongs to a style that is not known here.

        0 for a step that cannot be read for any other reason.
        """
        try:
            events = _decode_tags(data)
        except (msgspec.MsgspecError, RecursionError):
            return 0
        prefixes = {one.type.partition(".")[0] for one in events if "." in one.type}
        return len(events) if prefixes - self._styles else 0

    def load_step(self, data: str | bytes) -> list[Event]:
        """The events of a step."""
        try:
            events = self._read_step(data)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise _unknown(data, error) from error
        if events and type(events[0]) is Started:
            _check_format(events[0])
            if events[0].style in self._lazy:
                self._load(events[0].style)  # its other records will be read next
        return events

    def load_one(self, data: str | bytes, place: int) -> Event | None:
        """One event of a step; `None` if the step is shorter. The others may be of a style that is not known here."""
        try:
            events = _split(data)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise _unknown(data, error) from error
        return self.load(bytes(events[place])) if 0 <= place < len(events) else None


class _Tagged(msgspec.Struct):
    type: str


_split = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode_tags = msgspec.json.Decoder(list[_Tagged]).decode
_decode_tagged = msgspec.json.Decoder(list[_Tagged] | _Tagged).decode


def _dumped(value: Any, events: list[Event], encode: Callable[[Any], bytes], decode: Callable[[bytes], Any]) -> bytes:
    try:
        data = encode(value)
        # `find`, because `in` would first try to take it for a number, at ten times the price. NaN is written as null.
        if data.find(b":null") >= 0 or not (events and _is_known_good(events[0])):
            _check_depth(data)
            data = encode(decode(data))
        return data
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        kinds = " or ".join(type(event).__name__ for event in events)
        raise Unwritable(
            f"This {kinds} cannot be recorded, because part of it is not JSON or not of its type: {error}. "
            "Answer with texts, numbers, lists and dictionaries."
        ) from error


def _is_known_good(event: Event) -> bool:
    """Whether an event is surely read back. Every step asks, so it is cheap; `False` means that it must be tried."""
    if type(event) is Heard:
        return (
            type(event.text) is str
            and type(event.by) is str
            and type(event.channel) is str
            and type(event.id) is str
            and event.attachments == ()
        )
    if (
        type(event) is not Answered
        or event.retries
        or type(event.took) is not float
        or type(event.first_token) is not float
    ):
        return False  # an answer with retries is rare enough to be tried
    answer = event.answer
    if type(answer) is AgentReplied:
        return (
            type(answer.text) is str
            and type(answer.sent) is str
            and type(answer.model) is str
            and type(answer.recorded) is bool
            and type(answer.cut) is bool
            and type(answer.window) is int
            and type(answer.says) is str
            and type(answer.filtered) is bool
            and _is_good_usage(answer.usage)
            and type(answer.calls) is tuple
            and (not answer.calls or all(_is_good_call(call) for call in answer.calls))
        )
    if type(answer) is ToolReturned:
        return is_plain(answer.value) and type(answer.unkept) is str
    if type(answer) is Failed:
        return (
            type(answer.reason) is str
            and type(answer.fault) is str
            and type(answer.too_long) is int
            and _is_good_usage(answer.usage)
        )
    return type(answer) is Said or type(answer) is TimerFired


def _is_good_usage(usage: Usage) -> bool:
    return (
        type(usage) is Usage
        and type(usage.input_tokens) is int
        and type(usage.output_tokens) is int
        and type(usage.money) is float
        and type(usage.unreported_input) is int
        and type(usage.unreported_output) is int
        and type(usage.unreported_money) is float
    )


def _is_good_call(call: ToolCall) -> bool:
    return (
        type(call) is ToolCall
        and type(call.id) is str
        and type(call.tool) is str
        and type(call.malformed) is str
        and type(call.arguments) is dict
        and is_plain(call.arguments)
    )


MOST_NESTED = DEEPEST + 20
"""Levels in one step: a free-form value, and the events around it."""
_BRACKETS_AND_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[\]{}]')


def _check_depth(data: bytes) -> None:
    """A reader further up the stack has less room than we have, so the depth must not depend on it."""
    depth = 0
    for token in _BRACKETS_AND_STRINGS.finditer(data):
        first = data[token.start()]
        if first in b"[{":
            depth += 1
            if depth > MOST_NESTED:
                raise ValueError(f"it is nested more than {DEEPEST} levels deep")
        elif first in b"]}":
            depth -= 1


def _unknown(data: bytes | str, error: Exception) -> UnknownRecord:
    return UnknownRecord(
        f"This record cannot be read: {error}. It was written by a newer version of ripstop, "
        f"or the journal is damaged (verifying it shows which). It begins {data[:80]!r}."
    )


def _check_format(event: Event) -> None:
    if type(event) is Started and event.format != FORMAT:
        raise UnknownRecord(
            f"This run was written in format {event.format}; this version reads format {FORMAT}. "
            + ("Upgrade ripstop." if event.format > FORMAT else "It was made by a version before 0.2.")
        )
