"""What the blackboard asks of its tools, and what they answer. The style and the tools both use these types.

- A field of a call has no default: what the style forgets, mypy finds.
- An answer is recorded, so its fields are those of the journals. One can be added, with a default.
- A call is shown in the log with its fields in this order.
"""

from typing import Literal, TypeAlias

from msgspec import Struct

from .definition import EvidenceKind

OPEN, CHECK, WRITE = "board_open", "board_check", "board_write"
MAX_CLAIMS = 50
"""Things that are looked for after one report."""


# What a report claims, to be looked for in the workspace


class ClaimInFile(Struct, frozen=True, kw_only=True, tag_field="evidence"):
    """A claim about a file. Each has all of these fields, whichever of them count."""

    path: str
    sha256: str
    """Hexadecimal; empty: any."""
    prefix: str
    """How the line with the number begins; empty: any line."""
    at_least: float | None
    at_most: float | None
    text: str
    """The quote."""


class FileClaim(ClaimInFile, frozen=True, kw_only=True, tag=EvidenceKind.FILE.value):
    """The file exists."""


class NumberClaim(ClaimInFile, frozen=True, kw_only=True, tag=EvidenceKind.NUMBER.value):
    """A number in the file is within its bounds."""


class QuoteClaim(ClaimInFile, frozen=True, kw_only=True, tag=EvidenceKind.QUOTE.value):
    """The file has the words."""


class CommandClaim(Struct, frozen=True, kw_only=True, tag_field="evidence", tag=EvidenceKind.COMMAND.value):
    """A command ends with an exit code."""

    command: tuple[str, ...]
    exit_code: int


AnyFileClaim: TypeAlias = FileClaim | NumberClaim | QuoteClaim
EvidenceClaim: TypeAlias = AnyFileClaim | CommandClaim


# Calls


class BoardCall(Struct, frozen=True, kw_only=True):
    """Which board it is: common to all calls."""

    folder: str
    """As the definition names it; a tool goes by the run's settings, which know if it was moved."""
    copy: bool
    """Whether the run works on a copy in its workspace, which is made when it opens the board."""
    plan: str
    history: str


class OpenBoard(BoardCall, frozen=True, kw_only=True):
    iteration_pattern: str
    """With one group, for a line of the history that begins an iteration."""
    tail: int
    """Characters of the history that are returned."""
    reports: tuple[str, ...]
    """Those of the agents, which an earlier run can have left."""
    blocker_prefix: str


class CheckBoard(BoardCall, frozen=True, kw_only=True):
    digest: str
    own: str
    """The report of the agent that has worked; empty for none."""
    evidence: tuple[EvidenceClaim, ...]


class WriteBoard(BoardCall, frozen=True, kw_only=True):
    digest: str
    plan_text: str | None
    """The new plan; `None`: the old one stays."""
    append: str
    """To the history."""
    reports: dict[str, str]
    """By path."""
    definition_files: tuple[str, ...]
    """The files of the definition, and its folders with a slash behind them."""
    iteration_pattern: str
    tail: int
    """As in `OpenBoard`, for a history that a person has edited."""
    close: bool
    """Whether the run needs the board no more."""


# Answers


class HistoryTail(Struct, frozen=True):
    """The end of the history."""

    history: str = ""
    left_out: int = 0
    """Entries before it."""
    iteration: int = 0
    """The highest in all of the history; 0: none."""


class OpenedBoard(Struct, frozen=True):
    digest: str = ""
    """Of all files: the board as the run knows it from now on."""
    plan: str = ""
    history: str = ""
    left_out: int = 0
    iteration: int = 0
    blocker_lines: dict[str, str] = {}
    """The lines of each report that say what blocks."""

    @property
    def tail(self) -> HistoryTail:
        return HistoryTail(self.history, self.left_out, self.iteration)


class ChangedFile(Struct, frozen=True):
    """A file that differs from what the run knows."""

    path: str
    what: Literal["created", "changed", "deleted"]
    diff: str = ""
    """As people read it; empty if it is not text, or too long."""


class ClaimResult(Struct, frozen=True):
    holds: bool
    shown: str
    """What was found, or why it does not hold."""


class CheckedBoard(Struct, frozen=True):
    changed: tuple[ChangedFile, ...] = ()
    """By anyone, apart from the agent's own report."""
    report: str | None = None
    """The agent's report as it is on the board; `None`: it was not written there."""
    digest: str | None = None
    """`None` if something was changed."""
    evidence: tuple[ClaimResult, ...] = ()
    """In the order of the claims."""


class WrittenBoard(Struct, frozen=True):
    edited: tuple[ChangedFile, ...] = ()
    """If anything was, nothing is written: the run decides by what it is now."""
    digest: str = ""
    plan: str | None = None
    """What it is now, if it was edited …"""
    history: HistoryTail | None = None
    """… and the same of the history."""
