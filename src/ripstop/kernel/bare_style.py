"""A run without its style: what the kernel itself makes of its records.

For callers that have records but not the style, or do not need it: a journal that checks its list of open commands
against its records. Definitions and results are not read.
"""

from collections.abc import Mapping
from typing import Any

from .effects import Guards
from .events import Answered, Event, Started
from .run import Contents


class BareStyle:
    def guards(self, definition: Any, wishes: Mapping[str, Any]) -> Guards:
        return Guards()

    def begin(self, definition: Any, started: Started) -> None:
        return None

    def rebase(self, state: None, definition: Any) -> None:
        return None

    def evolve(self, state: None, number: int, event: Event) -> None:
        return None

    def joined(self, state: None, number: int, event: Answered, result: Any) -> None:
        return None


class _Nothing(dict[str, Any]):
    def __missing__(self, key: str) -> None:
        return None


BARE = BareStyle()
NO_CONTENTS = Contents(_Nothing(), _Nothing())
