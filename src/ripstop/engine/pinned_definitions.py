"""Content that records name by its hash, as this process has loaded it: definitions, pins and results."""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from ripstop.kernel.effects import RunFinished
from ripstop.kernel.errors import DefinitionError
from ripstop.kernel.events import Answered, Event, Forked, Pin, Record, Redefined, Started
from ripstop.kernel.run import Contents

from .ports import Journal

LoadDefinition = Callable[[str, bytes], Any]
"""(style, content) → the style's own definition type."""
CheckDefinition = Callable[[str, Any], None]
"""(style, definition): raises `DefinitionError` if a definition could not have been written by an author."""
RESULTS = 256
"""Results of other runs that are kept, so that a hundred runs share one plan."""
Pins = dict[str, dict[str, Pin]]
"""Definition → workflow → the definition it is pinned to."""


def digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class Definitions:
    def __init__(self, load: LoadDefinition, check: CheckDefinition | None) -> None:
        self.known: dict[str, Any] = {}
        self.bare = Contents(self.known, {})
        """For records that name no results."""
        self._load = load
        self._check = check
        self._results: OrderedDict[str, Any] = OrderedDict()
        self._pins: dict[str, Pins] = {}

    def pin(self, style: str, content: bytes, decoded: Any = None) -> str:
        """The hash of a definition, which is known from now on. `decoded`: what the content says, if that is known."""
        digest = digest_of(content)
        if digest not in self.known:
            self.known[digest] = self._load(style, content) if decoded is None else decoded
        return digest

    async def contents(self, journal: Journal, records: Iterable[Record], style: str) -> Contents:
        """What folding records needs. The journal hands out only what fits its hash."""
        results: dict[str, Any] = {}
        for record in records:
            event = record.event
            if event.is_fact and (type(event) is not Answered or type(event.answer) is RunFinished):
                await self._know(journal, event, style, results)
        return Contents(self.known, results) if results else self.bare

    async def for_fact(self, journal: Journal, fact: Event, style: str) -> tuple[Contents, dict[str, bytes]]:
        """What a fact that is about to be appended needs; and the content that its run uses from now on."""
        if type(fact) is Answered:
            answer = fact.answer
            if type(answer) is not RunFinished or not answer.result:
                return self.bare, {}
            body = await journal.blob(answer.result)
            return Contents(self.known, {answer.result: self._result(answer.result, body)}), {answer.result: body}
        results: dict[str, Any] = {}
        await self._know(journal, fact, style, results)
        return self.bare, {}

    async def _know(self, journal: Journal, event: Event, style: str, results: dict[str, Any]) -> None:
        if isinstance(event, (Started, Forked, Redefined)):
            digest = event.definition
            if digest and digest not in self.known:
                self.known[digest] = self._load(style, await journal.blob(digest))
        elif type(event) is Answered and type(event.answer) is RunFinished and event.answer.result:
            digest = event.answer.result
            known = self._results.get(digest)
            results[digest] = self._result(digest, await journal.blob(digest)) if known is None else known

    def _result(self, digest: str, body: bytes) -> Any:
        if digest not in self._results:
            self._results[digest] = msgspec.json.decode(body)
            if len(self._results) > RESULTS:
                self._results.popitem(last=False)
        return self._results[digest]

    async def pins(self, journal: Journal, digest: str) -> Pins:
        """The workflows that a family can start."""
        return self._pins.get(digest) or self._read_pins(digest, await journal.blob(digest))

    def _read_pins(self, digest: str, content: bytes) -> Pins:
        if digest not in self._pins:
            try:
                self._pins[digest] = msgspec.json.decode(content, type=Pins)
            except msgspec.MsgspecError as error:
                raise DefinitionError(f"The list of workflows {digest[:12]}… cannot be read: {error}.") from error
        return self._pins[digest]

    async def family(
        self, journal: Journal, definition: bytes, pinned: bytes, given: Mapping[str, bytes]
    ) -> dict[str, bytes]:
        """Everything that a run uses, by hash: its definition, and those that it and its descendants can start.

        So nothing that a run may need is forgotten with another one. Definitions that are not given are in the journal.
        """
        digest = digest_of(definition)
        used = {digest: definition}
        if not pinned:
            return used
        pins = self._read_pins(digest_of(pinned), pinned)
        waiting = [digest]
        while waiting:
            for pin in pins.get(waiting.pop(), {}).values():
                if pin.definition not in used:
                    body = given.get(pin.definition)
                    used[pin.definition] = await journal.blob(pin.definition) if body is None else body
                    waiting.append(pin.definition)
        return {**used, digest_of(pinned): pinned}

    def check(self, style: str, digest: str) -> None:
        """Check a definition as if its author had written it now."""
        if self._check:
            self._check(style, self.known[digest])
