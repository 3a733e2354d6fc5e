"""The definitions that a process has loaded, by the hash of their content."""

import hashlib
from collections.abc import Callable, Iterable
from typing import Any

from ripstop.kernel.events import Forked, Record, Started

from .ports import Journal

LoadDefinition = Callable[[str, bytes], Any]
"""(style, content) → the style's own definition type."""
CheckDefinition = Callable[[Any], None]
"""Raises `DefinitionError` if a definition could not have been written by an author."""


class Definitions:
    def __init__(self, load: LoadDefinition, check: CheckDefinition | None) -> None:
        self.known: dict[str, Any] = {}
        self._load = load
        self._check = check

    def pin(self, style: str, content: bytes) -> str:
        """The hash of a definition, which is known from now on."""
        digest = hashlib.sha256(content).hexdigest()
        if digest not in self.known:
            self.known[digest] = self._load(style, content)
        return digest

    async def know(self, journal: Journal, records: Iterable[Record], style: str) -> None:
        """Load every definition that records refer to. The journal hands out only what fits its hash."""
        for record in records:
            digest = record.event.definition if isinstance(record.event, (Started, Forked)) else None
            if digest and digest not in self.known:
                self.known[digest] = self._load(style, await journal.blob(digest))

    def check(self, digest: str) -> None:
        """Check a definition as if its author had written it now."""
        if self._check:
            self._check(self.known[digest])
