"""How large things are drawn: fonts, and the sizes of states and labels that follow from their texts."""

from dataclasses import dataclass

from .diagram import Edge, Node, turns_in_words
from .lettering import clean, width, wrap

NAME, AGENT, CONDITION, END = 14.0, 12.0, 12.0, 13.0
"""Sizes of letters."""
NAME_LINE, AGENT_LINE, CONDITION_LINE = 18.0, 16.0, 16.0
MOST_NAME, MOST_CONDITION = 190.0, 200.0
LINES_OF_NAME, LINES_OF_CONDITION = 3, 3
LOOP = 26.0
"""How far a loop reaches out, and the least height that it needs."""
PORT = 18.0
"""Between two edges at the same border."""
START_MARK = 34.0
"""Room for the mark of the start, at the left of its state."""
LEAST_WIDTH = 84.0


@dataclass(frozen=True, slots=True)
class Size:
    lines: tuple[str, ...]
    more: str
    """The line below the name: who, and how often."""
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Label:
    """The condition of an edge, below the numbers of the turns that led along it."""

    turns: str
    lines: tuple[str, ...]
    width: float
    height: float


def size_of(node: Node) -> Size:
    if node.end:
        return Size((node.name,), "", max(72.0, round(width(node.name, END) + 36, 1)), 34.0)
    lines = wrap(node.name, NAME, MOST_NAME, LINES_OF_NAME) or (" ",)
    often = f" · {node.turns}×" if node.turns else ""
    (agent,) = wrap(node.agent, AGENT, MOST_NAME - 50, 1) or ("",)
    more = clean(f"{agent}{often}")
    widest = max(*(width(line, NAME) for line in lines), width(more, AGENT))
    height = len(lines) * NAME_LINE + (AGENT_LINE if more else 0.0) + 18
    return Size(lines, more, round(max(LEAST_WIDTH, widest + 28), 1), height)


def label_of(edge: Edge) -> Label:
    lines = wrap(edge.condition, CONDITION, MOST_CONDITION, LINES_OF_CONDITION, monospaced=True)
    turns = turns_in_words(edge.turns)
    if not lines and not turns:
        return Label("", (), 0.0, 0.0)
    widest = max(width(turns, CONDITION), *(width(line, CONDITION, monospaced=True) for line in lines), 0.0)
    height = (len(lines) + bool(turns)) * CONDITION_LINE + 6
    return Label(turns, lines, round(widest + 16, 1), height)
