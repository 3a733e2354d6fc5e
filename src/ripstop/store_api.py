"""For authors of stores: the port of a journal, and what passes through it.

`ripstop.testing.JournalConformance` says what every store must do.
"""

from ripstop.engine.ports import (
    ALL,
    NOTHING,
    All,
    ClaimedCommand,
    Damage,
    DeskQuery,
    Entry,
    Journal,
    Moved,
    Nothing,
    Page,
    Prefixed,
    Question,
    RunInfo,
    RunQuery,
    Scope,
    Tombstone,
    Tree,
)
from ripstop.kernel.codec import Codec
from ripstop.kernel.errors import (
    Conflict,
    JournalError,
    JournalNotFound,
    LeaseLost,
    NotNeeded,
    OutcomeUnknown,
    RunForgotten,
    Unreachable,
    Unwritable,
)
from ripstop.kernel.events import Record

__all__ = [
    # The port
    "Codec",
    "Damage",
    "Entry",
    "Journal",
    "Moved",
    "Record",
    "Tombstone",
    # Work
    "ALL",
    "NOTHING",
    "All",
    "ClaimedCommand",
    "Nothing",
    "Prefixed",
    "Scope",
    "Tree",
    # Lists
    "DeskQuery",
    "Page",
    "Question",
    "RunInfo",
    "RunQuery",
    # What a store raises
    "Conflict",
    "JournalError",
    "JournalNotFound",
    "LeaseLost",
    "NotNeeded",
    "OutcomeUnknown",
    "RunForgotten",
    "Unreachable",
    "Unwritable",
]
