"""A run of any style as a diagram, from its records."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ripstop.kernel.errors import UsageError
from ripstop.kernel.events import Event

from . import graph, handoff
from .diagram import Diagram, Journey


@dataclass(frozen=True, slots=True)
class Chapter:
    """A record of a run, with the style's own state before and after it."""

    where: str
    """Where the run stood before it, as its picture says."""
    before: Any
    event: Event
    after: Any


def of_run(style: str, definition: Any, chapters: Sequence[Chapter], path: Sequence[str], journey: Journey) -> Diagram:
    """`path` names the places in which an agent took its turn. Raises `UsageError` if the style has no picture."""
    if style == "graph":
        happened = [graph.Happened(one.where, one.event) for one in chapters]
        return graph.of_run(definition, happened, path, journey)
    if style == "handoff" and chapters:
        transitions = [(one.before.paper, one.event, one.after.paper) for one in chapters]
        now = chapters[-1].after
        return handoff.of_run(transitions, now.paper, now.most_interactions, journey)
    raise UsageError(f"A run of the style {style!r} cannot be drawn; `ripstop log {journey.run}` tells what happened.")
