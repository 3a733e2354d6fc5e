"""The parts of a run in a terminal: each of the eight kinds as text, whatever the style."""

import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from rich.cells import cell_len, set_cell_size
from rich.padding import Padding
from rich.table import Table

from ripstop.engine.ports import RunInfo
from ripstop.kernel.parts import Claims, Facts, Ledger, Paper, Rail, Talk, Tasks, Timers
from ripstop.kernel.parts import Part as ViewPart
from ripstop.text.visible_text import visible_line

from .terminal import Part, line_of, say, text_of, with_style
from .words import COLOURS, first_line, local_time

if TYPE_CHECKING:
    from rich.console import Console


# Text that keeps its indent: in a terminal it is wrapped at words, elsewhere its lines stay as they are.
#
# A program or a file that reads our output wants whole lines; a person wants to see where one thing ends.


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


ARGUMENT = 80
"""Characters of an argument in a list of questions."""


def print_arguments(console: "Console", arguments: Mapping[str, Any], folded_by: str | None) -> None:
    """What a tool is called with, key by key. A line of a value is set off further than a key, so it cannot be one.

    Args:
        folded_by: The command that shows all of it, if long values are folded here; `None`: they are not.
    """
    for name, value in arguments.items():
        key = (f"{visible_line(name)}: ", "bold")
        text = value if isinstance(value, str) else msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
        one_line = msgspec.json.encode(value).decode()
        if len(one_line) <= ARGUMENT:
            print_indented(console, 4, key, one_line)
        elif folded_by:
            more = f"… ({len(text):,} characters; all of them: {folded_by})"
            print_indented(console, 4, key, visible_line(one_line[:ARGUMENT]), (more, "dim"))
        else:
            print_indented(console, 4, key, (f"({len(text):,} characters)", "dim"))
            print_indented(console, 8, text)


MARKS = {"done": "●", "now": "▶", "next": "○", "skipped": "–", "failed": "✗", "open": "○", "doing": "▶"}
MAX_CELL_TEXT = 300
MOST_LINES = 40
"""Lines of a document, and entries of a list, that are shown; `--json` has all of them."""


def show_parts(console: "Console", parts: tuple[ViewPart, ...]) -> None:
    for part in parts:
        lines = list(_lines(part))
        if not lines:
            continue
        say()
        say((part.title or type(part).__name__, "bold"))
        left = len(lines) - MOST_LINES
        if left > 0 and isinstance(part, Talk):  # of a conversation the newest matter
            say((f"  … {left:,} earlier", "dim"))
        for line in lines[-MOST_LINES:] if isinstance(part, Talk) else lines[:MOST_LINES]:
            print_indented(console, 2, line)
        if left > 0 and not isinstance(part, Talk):
            say((f"  … {left:,} more; --json has all of them.", "dim"))


def _lines(part: ViewPart) -> Iterator[str]:
    return LINES[type(part)](part)


def _rail(part: Rail) -> Iterator[str]:
    for stage in part.stages:
        yield f"{MARKS[stage.state]} {stage.name}{f'  {stage.note}' if stage.note else ''}"


def _tasks(part: Tasks) -> Iterator[str]:
    for task in part.tasks:
        after = f"  after {', '.join(task.needs)}" if task.needs else ""
        yield f"{MARKS[task.state]} {task.id}  {first_line(task.title, MAX_CELL_TEXT)}{after}"


def _ledger(part: Ledger) -> Iterator[str]:
    for entry in part.entries:
        note = f"  ({entry.note})" if entry.note else ""
        yield f"{entry.number:>5}  {entry.by}: {first_line(entry.text, MAX_CELL_TEXT)}{note}"


def _claims(part: Claims) -> Iterator[str]:
    for claim in part.claims:
        holds = "?" if claim.holds is None else "✓" if claim.holds else "✗"
        shown = f"  shown: {first_line(claim.shown, MAX_CELL_TEXT)}" if claim.shown else ""
        who = f"{claim.by} claims: " if claim.by else ""
        yield f"{claim.number:>5}  {holds} {who}{first_line(claim.claimed, MAX_CELL_TEXT)}{shown}"


def _talk(part: Talk) -> Iterator[str]:
    for line in part.lines:
        yield f"{line.by}: {first_line(line.text, MAX_CELL_TEXT)}"


def _document(part: Paper) -> Iterator[str]:
    yield from map(visible_line, part.text.splitlines())


def _facts(part: Facts) -> Iterator[str]:
    for name, value in part.rows:
        yield f"{name}: {first_line(str(value), MAX_CELL_TEXT)}"


def _timers(part: Timers) -> Iterator[str]:
    for timer in part.timers:
        yield f"{local_time(timer.due)}  {timer.name}"


LINES: dict[type, Callable[[Any], Iterator[str]]] = {
    Rail: _rail,
    Tasks: _tasks,
    Ledger: _ledger,
    Claims: _claims,
    Talk: _talk,
    Paper: _document,
    Facts: _facts,
    Timers: _timers,
}


# Lists of things, as people see them.
#
# Columns are padded here and not by rich, whose tables take a millisecond a row.


ROOMY = 110
"""Columns of a terminal in which every column of a table has its place."""
GAP = 2
NARROWEST = 12
"""Columns that are left to the last column of a table, however narrow the terminal is."""


def show_runs(infos: list[RunInfo]) -> None:
    width = table_width()
    roomy = width >= ROOMY
    headings = ("run", "status", "style", *(("records", "begun") if roomy else ()), "last")
    rows = []
    for info in infos:
        status = (info.status, COLOURS.get(info.status, "white"))
        more = (str(info.length), local_time(info.created)) if roomy else ()
        rows.append((info.run_id, status, info.style, *more, local_time(info.updated)))
    print_table(headings, rows, width)


def print_table(headings: Sequence[str], rows: Sequence[Sequence[Part]], width: int) -> None:
    """Print rows in columns. Only the last column is cut; `records` are numbers and end below each other."""
    cells = [[_cell(part) for part in row] for row in rows]
    texts = [[text for text, _ in row] for row in cells]
    widths = [max(map(cell_len, column)) for column in zip(headings, *texts, strict=True)]
    widths[-1] = max(NARROWEST, min(widths[-1], width - sum(widths[:-1]) - GAP * (len(widths) - 1)))
    for row in [[(heading, "dim") for heading in headings], *cells]:
        *first, last = (
            (_padded(text, wide, heading == "records"), style)
            for (text, style), wide, heading in zip(row, widths, headings, strict=True)
        )
        parts: list[Part] = [part for cell in first for part in (cell, " " * GAP)]
        say(*parts, (last[0].rstrip(), last[1]))


def _cell(part: Part) -> tuple[str, str]:
    text, style = with_style(part)
    return visible_line(text), style


def _padded(text: str, width: int, right: bool) -> str:
    room = width - cell_len(text)
    if room < 0:
        return set_cell_size(text, width - 1) + "…"
    return " " * room + text if right else text + " " * room


def table_width() -> int:
    """Of the terminal. A program or a file that reads the table needs whole texts."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 10_000
