"""What a page or a terminal shows of a run besides its records: plain data, made only when it is shown.

A style puts parts together (`Style.parts`); a face knows how to draw each of the eight, and knows no style. Texts are
as agents and people wrote them: a face makes them safe to show.
"""

from typing import Any, Literal

from msgspec import Struct


class Stage(Struct, frozen=True):
    """One stage of a rail."""

    name: str
    state: Literal["done", "now", "next", "skipped", "failed"] = "next"
    note: str = ""


class Rail(Struct, frozen=True, tag="rail"):
    """The way that a run takes, stage by stage."""

    stages: tuple[Stage, ...]
    title: str = ""


class Task(Struct, frozen=True):
    """One task of a plan."""

    id: str
    title: str
    state: Literal["open", "doing", "done", "failed"] = "open"
    needs: tuple[str, ...] = ()
    """Ids of the tasks that come before it."""


class Tasks(Struct, frozen=True, tag="tasks"):
    """A plan as a list of tasks."""

    tasks: tuple[Task, ...]
    title: str = ""


class LedgerEntry(Struct, frozen=True):
    """One line of a ledger."""

    number: int
    """The record that it is about."""
    by: str
    text: str
    note: str = ""


class Ledger(Struct, frozen=True, tag="ledger"):
    """Decisions, in order."""

    entries: tuple[LedgerEntry, ...]
    title: str = ""


class Claim(Struct, frozen=True):
    """What is claimed or wanted, beside what was found."""

    number: int
    by: str
    """Who claims it; empty: nobody."""
    claimed: str
    shown: str = ""
    holds: bool | None = None
    """Whether the evidence bears it out; none: nothing was checked."""


class Claims(Struct, frozen=True, tag="claims"):
    """What was claimed and what was shown, side by side."""

    claims: tuple[Claim, ...]
    title: str = ""


class Line(Struct, frozen=True):
    """Something that one side of a conversation said."""

    number: int
    by: str
    text: str
    at: int = 0
    """Microseconds; 0 where the style does not know."""
    is_reply: bool = False
    """Said by the run rather than to it."""


class Talk(Struct, frozen=True, tag="talk"):
    """A conversation."""

    lines: tuple[Line, ...]
    title: str = ""
    user: str = ""
    """Who is talked to, if that is known."""
    taken_by: str = ""
    """The person who has taken the conversation over; empty while no person has."""
    closed: bool = False


class Paper(Struct, frozen=True, tag="document"):
    """A document as it is now, in Markdown."""

    text: str
    title: str = ""


class Facts(Struct, frozen=True, tag="facts"):
    """Names and values, in the style's order."""

    rows: tuple[tuple[str, Any], ...]
    title: str = ""


class Timer(Struct, frozen=True):
    """A timer that is set."""

    name: str
    due: int
    """Microseconds."""


class Timers(Struct, frozen=True, tag="timers"):
    """The timers that are set."""

    timers: tuple[Timer, ...]
    title: str = ""


Part = Rail | Tasks | Ledger | Claims | Talk | Paper | Facts | Timers
