"""Text that keeps its indent: in a terminal it is wrapped at words, elsewhere its lines stay as they are.

A program or a file that reads our output wants whole lines; a person wants to see where one thing ends.
"""

from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.table import Table

from .terminal import Part, line_of, text_of

if TYPE_CHECKING:
    from rich.console import Console

LABEL = 8
"""Columns of the words at the left."""


def print_line(console: "Console", *parts: Part) -> None:
    """Print one line: in a terminal it is wrapped at words, and a newline in it is shown as `\\n`."""
    console.print(line_of(*parts), soft_wrap=not console.is_terminal)


def print_indented(console: "Console", indent: int, *parts: Part) -> None:
    text = text_of(*parts)
    if console.is_terminal:
        return console.print(Padding(text, (0, 0, 0, indent), expand=False), soft_wrap=False)
    for line in text.split("\n", allow_blank=True):
        console.print(text_of(" " * indent) + line)
    return None


def print_labelled(console: "Console", label: str, text: str, style: str = "") -> None:
    """A word at the left (in a style of rich), and what it names beside it."""
    if not text:
        return console.print(line_of((label.rstrip(), style)))
    head, body = line_of((label, style)), text_of(text)
    if not console.is_terminal:
        first, *others = body.split("\n", allow_blank=True)
        console.print(head + text_of(" " * max(1, LABEL - len(label))) + first)
        for line in others:
            console.print(text_of(" " * LABEL) + line)
        return None
    row = Table.grid(padding=(0, 1, 0, 0))
    row.add_column(min_width=LABEL - 1, no_wrap=True)
    row.add_column(overflow="fold")
    row.add_row(head, body)
    return console.print(row, soft_wrap=False)
