"""A run as its records tell it: what every style draws its picture of a run from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ripstop.kernel.events import Event
from ripstop.kernel.run import Run, status

from .diagram import Journey


@dataclass(frozen=True, slots=True)
class Chapter:
    """A record of a run, with the run right before and right after it."""

    event: Event
    before: Run[Any] | None
    """None for the first record."""
    after: Run[Any]


def journey(chapters: Sequence[Chapter], listening: bool = False, kind: str = "run") -> Journey:
    """How a run is at its last record. `listening`: whether its style says that a message can change anything."""
    run = chapters[-1].after
    ended = run.ended
    return Journey(run.id, status(run, listening), ended.because if ended else "", ended=ended is not None, kind=kind)
