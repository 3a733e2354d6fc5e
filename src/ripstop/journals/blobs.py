"""Content that records refer to by its hash. What does not fit its hash was changed, and is never handed out."""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from ripstop.kernel.advice import VERIFY, Advice
from ripstop.kernel.effects import RunFinished
from ripstop.kernel.errors import JournalError
from ripstop.kernel.events import Answered, ChildSpoke, Ended, Event, Forked, Heard, Pin, Record, Redefined, Started

NAMES_A_DEFINITION = (Started, Redefined, Forked)
_NAMING = frozenset({Started, Redefined, Forked, Ended, Heard, ChildSpoke})
"""Events that can refer to content; of the answers, only the end of a child can."""


def named_in(event: Event) -> Iterator[str]:
    """The hashes of the content that an event refers to."""
    match event:
        case Started(definition=definition, pinned=pinned) | Redefined(definition=definition, pinned=pinned):
            yield from filter(None, (definition, pinned))
        case Forked(definition=definition, pinned=pinned):
            yield from filter(None, (definition, pinned))
        case Ended(result=result) | Answered(answer=RunFinished(result=result)) if result:
            yield result
        case Heard(attachments=attachments):
            yield from (content.hash for content in attachments)
        case ChildSpoke(document=document) if document:
            yield document


def pinned_for(content: bytes, definition: str) -> set[str]:
    """The definitions that a list of pinned workflows leads to from one; none if it is not such a list."""
    try:
        pins = msgspec.json.decode(content, type=dict[str, dict[str, Pin]])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return set()
    found: set[str] = set()
    waiting = [definition]
    while waiting:
        new = {pin.definition for pin in pins.get(waiting.pop(), {}).values()} - found
        found |= new
        waiting += new
    return found


def used_in(records: Iterable[Record]) -> set[str]:
    """The hashes of the content that a step refers to. Cheap for most steps, which refer to none."""
    found: set[str] = set()
    for record in records:
        event = record.event
        if type(event) in _NAMING or (type(event) is Answered and type(event.answer) is RunFinished):
            found.update(named_in(event))
    return found


def as_bytes(body: Any) -> bytes:
    """What is in a file, whatever its column type there."""
    return body if isinstance(body, bytes) else str(body).encode()


def is_genuine(body: bytes, digest: str) -> bool:
    return hashlib.sha256(body).hexdigest() == digest


def genuine(body: Any, digest: str, journal: str) -> bytes:
    """The content, if it is what was kept."""
    content = as_bytes(body)
    if not is_genuine(content, digest):
        said = f"{journal}: the content {digest[:12]}… was changed: it does not fit its hash. "
        raise JournalError(Advice(said, VERIFY, "; restore the journal from a backup."))
    return content
