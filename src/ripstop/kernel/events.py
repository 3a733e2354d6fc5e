"""Everything a journal may contain.

*Facts* come from outside. *Decisions* are what a style or the kernel makes of a fact. A fact and
its decisions are one step: they are appended together or not at all, so every journal reads as
`fact decision* fact decision* …`.

Tags are part of the file format: never rename one, never give an old one a new meaning. A new
field needs a default, so that old journals keep folding (`tests/old_journals/`).
"""

from typing import Any, final

from msgspec import Struct

from .effects import Answer, Command, Limits

FORMAT = 1
"""Stands in every `Started`. A journal with a higher number was written by a newer version."""


class Event(Struct, frozen=True, omit_defaults=True, gc=False):
    """Base of everything a journal may contain. Styles add decisions of their own."""


# Facts


class Started(Event, tag="started", frozen=True):
    style: str
    definition: str
    """Hash of the definition's content; the content is kept once per journal."""
    input: str = ""
    limits: Limits = Limits()
    settings: dict[str, Any] = {}
    """What the shell must know to go on with the run in another process (model, workspace)."""
    parent: tuple[str, int] | None = None
    """(run, command) that started this run, if another run did."""
    depth: int = 0
    format: int = FORMAT
    guards: dict[str, Any] = {}
    """Guards that are set for this run, over those of its style and under those of its definition."""


class Forked(Event, tag="forked", frozen=True):
    """The run goes on, under a new id, from a record of another run; all before it is shared."""

    run: str
    at: int
    definition: str | None = None
    """Hash of the definition to go on with; none keeps the one in force."""
    limits: Limits | None = None
    """Limits to go on with; none keeps those in force."""
    settings: dict[str, Any] = {}
    """Settings to go on with, such as a workspace of its own; the others stay as they were."""


class Heard(Event, tag="heard", frozen=True):
    """Somebody spoke to the run without being asked."""

    text: str
    by: str = ""


class Ordered(Event, tag="ordered", frozen=True):
    """An operator steers the run. The kernel knows `cancel`, `resume` and `use`; a style may know more.

    `use` changes the run's settings from now on: its arguments take their places.
    """

    order: str
    arguments: dict[str, Any] = {}
    by: str = ""


CANCEL, RESUME, USE = "cancel", "resume", "use"


class Answered(Event, tag="answered", frozen=True):
    to: int
    answer: Answer
    attempt: int = 1
    """More than 1: it was tried before, and that attempt failed or its process died."""
    began: int = 0
    """When the worker that answers began, in microseconds, if that was after the command was asked: the command was
    left by another process. The time before it is not time at work."""


class Doubted(Event, tag="doubted", frozen=True):
    """An effect that must not be repeated blindly may have happened: its worker died, or the call broke off."""

    to: int
    evidence: str


# Decisions


class Asked(Event, tag="asked", frozen=True):
    """The run asks the world for something. This record's number is the command's id."""

    command: Command


class Withdrawn(Event, tag="withdrawn", frozen=True):
    """Nobody needs the answer any more; or a whole turn is taken anew, and it is named by its first command."""

    number: int
    because: str
    call: bool = False
    """A call of an agent that this run never made, because a fork asks anew; it does not count."""
    turn: bool = False
    """The turn that began with it is taken anew; it does not count."""


class Repeated(Event, tag="repeated", frozen=True):
    """A command in doubt is to be carried out again, because a person said so."""

    number: int
    because: str


@final
class GuardTripped(Event, tag="guarded", frozen=True):
    """A guard stopped something. The evidence is what `why` shows."""

    guard: str
    limit: float
    value: float
    text: str
    evidence: tuple[int, ...] = ()
    """Numbers of the records that the verdict rests on."""
    progress: int = 0
    """Number of the last record with progress, for a guard that found none since; a fork there goes back to it."""


class Warned(Event, tag="warned", frozen=True):
    """Something is odd but not fatal."""

    text: str


class Ended(Event, tag="ended", frozen=True):
    """`outcome` is one of `OUTCOMES`; `because` is never empty."""

    outcome: str
    because: str


class TurnResult(Event, frozen=True, kw_only=True):
    """Base of the decisions with which a style ends an agent's turn: what the turn changed.

    Words are not in it, however many were said: only decisions, files, fields.
    """

    agent: str = ""
    deed: str = ""
    """A mark of all that the turn decided and wrote; the same for turns that did the same."""
    courteous: bool = False
    """Nothing was said but courtesies."""
    marked: bool = False
    """The agent used the end marker."""


OUTCOMES = ("completed", "limit", "stopped", "failed", "restart", "transferred")

Fact = Started | Forked | Heard | Ordered | Answered | Doubted
FACTS = (Started, Forked, Heard, Ordered, Answered, Doubted)
DECISIONS = (Asked, Withdrawn, Repeated, GuardTripped, Warned, Ended)


class Record(Struct, frozen=True, gc=False):
    """An event in its place. `at` is in microseconds since 1970-01-01 UTC."""

    number: int
    at: int
    event: Event
