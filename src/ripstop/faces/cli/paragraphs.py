"""Text that keeps its indent: in a terminal it is wrapped at words, elsewhere it stays on its line.

A program or a file that reads our output wants whole lines; a person wants to see where one thing ends.
"""

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

LABEL = 8
"""Columns of the words at the left."""


def console_for(stderr: bool = False) -> Console:
    """Agents' words are shown as they are: no `:name:` becomes a picture, no number a colour."""
    return Console(stderr=stderr, highlight=False, emoji=False, soft_wrap=True)


def print_indented(console: Console, text: Text | str, indent: int) -> None:
    text = Text(text) if isinstance(text, str) else text
    if console.is_terminal:
        console.print(Padding(text, (0, 0, 0, indent), expand=False), soft_wrap=False)
    else:
        console.print(Text(" " * indent) + text)


def print_labelled(console: Console, label: str, text: str, style: str = "") -> None:
    """A word at the left (in a style of rich), and what it names beside it."""
    head = f"[{style}]{escape(label)}[/]" if style else escape(label)
    if not console.is_terminal:
        gap = " " * max(1, LABEL - len(label))
        return console.print(f"{head}{gap}{escape(text)}")
    row = Table.grid(padding=(0, 1, 0, 0))
    row.add_column(min_width=LABEL - 1, no_wrap=True)
    row.add_column(overflow="fold")
    row.add_row(head, Text(text))
    return console.print(row, soft_wrap=False)
