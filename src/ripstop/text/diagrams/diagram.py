"""What is to be seen, in no format: states, arrows, and the path that a run took.

- Nodes are named by their place in `Diagram.nodes`. The start is a node like all others; an end, if
  anything leads to it, is a node with `end`.
- Turns of a run (or steps: `Diagram.counted`) are numbered from 1. An arrow carries the numbers of the turns that
  ended with it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ripstop.kernel.events import Event
from ripstop.kernel.run import Run, status


@dataclass(frozen=True, slots=True)
class Node:
    name: str
    agent: str = ""
    end: bool = False
    turns: int = 0
    """How many turns were taken here."""
    nested: bool = False
    """It runs another workflow, and is drawn with a double border; `agent` is that workflow's name."""


@dataclass(frozen=True, slots=True)
class Edge:
    source: int
    target: int
    condition: str = ""
    """Empty: always."""
    line: int = 0
    turns: tuple[int, ...] = ()
    """The turns after which this arrow was followed."""


@dataclass(frozen=True, slots=True)
class Journey:
    """The progress of a run."""

    run: str
    status: str
    because: str = ""
    turns: int = 0
    ended: bool = False
    here: int | None = None
    """The node in which it is."""
    kind: str = "run"
    """What is on its way: a run, or a document."""


@dataclass(frozen=True, slots=True)
class Diagram:
    name: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    start: int
    description: str = ""
    notes: tuple[str, ...] = ()
    """What arrows cannot show, a sentence each."""
    source: str = ""
    """The file it was written in."""
    journey: Journey | None = None
    counted: str = "turn"
    """What is numbered."""

    @property
    def agents(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(node.agent for node in self.nodes if not node.end))


MOST_NUMBERS = 6


def turns_in_words(turns: tuple[int, ...]) -> str:
    """`1 · 3 · 5`; of many, the first few and how many there are."""
    if len(turns) <= MOST_NUMBERS:
        return " · ".join(map(str, turns))
    few = " · ".join(map(str, turns[: MOST_NUMBERS - 2]))
    return f"{few} … {turns[-1]} ({len(turns)}×)"


def standing(diagram: Diagram) -> str:
    """The status of its run, in a line; empty if it shows none."""
    journey, counted = diagram.journey, diagram.counted
    if journey is None:
        return ""
    since = f"after {journey.turns} {counted}{'' if journey.turns == 1 else 's'}"
    if counted == "turn" and not journey.ended:
        since = f"in turn {journey.turns}"
    told = f"{journey.kind} {journey.run} · {journey.status} {since}"
    return f"{told}: {journey.because}" if journey.because else told


def in_words(diagram: Diagram) -> str:
    """The whole diagram as sentences, for those who cannot see it."""
    names = [node.name for node in diagram.nodes]
    if len(set(names)) < len(names):
        names = [f"{node.name} ({node.agent})" if node.agent else node.name for node in diagram.nodes]
    said = [f"Starts in {names[diagram.start]}."]
    for edge in diagram.edges:
        when = f" if {edge.condition}" if edge.condition else ""
        taken = f" (after {diagram.counted} {', '.join(map(str, edge.turns))})" if edge.turns else ""
        said.append(f"{names[edge.source]} leads to {names[edge.target]}{when}{taken}.")
    if diagram.journey and diagram.journey.here is not None:
        said.append(f"The {diagram.journey.kind} is in {names[diagram.journey.here]}.")
    return " ".join([*said, *diagram.notes])


# A run as its records tell it: what every style draws its picture of a run from.


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
