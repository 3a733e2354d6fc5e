"""Lists of things, as people see them."""

from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.table import Table

from ripstop.office.document import Document
from ripstop.runtime.ports import RunInfo
from ripstop.visible_text import visible_line

from .terminal import Part, console_for, line_of, say, with_style
from .words import COLOURS, STATUS_COLOURS, first_line, local_time

if TYPE_CHECKING:
    from rich.console import Console

ROOMY = 110
"""Columns of a terminal in which every column of a table has its place."""


def show_runs(infos: list[RunInfo]) -> None:
    """Print a line for each run. A table of rich costs ten times as much, which is seconds with thousands of runs."""
    width = _console().width
    headings = ("run", "status", "style", *(("records", "begun") if width >= ROOMY else ()), "last")
    rows: list[tuple[Part, ...]] = [tuple((heading, "dim") for heading in headings)]
    for info in infos:
        more = (f"{info.length:>7}", local_time(info.created)) if width >= ROOMY else ()
        status = (info.status, COLOURS.get(info.status, "white"))
        rows.append((info.run_id, status, info.style, *more, local_time(info.updated)))
    _say_columns(rows)


def _say_columns(rows: list[tuple[Part, ...]]) -> None:
    shown = [[(visible_line(text), style) for text, style in map(with_style, row)] for row in rows]
    widths = [max(cell_len(row[column][0]) for row in shown) for column in range(len(shown[0]))]
    for row in shown:
        gaps = [width - cell_len(text) + 1 for (text, _), width in zip(row, widths, strict=True)]
        say(*(part for cell, gap in zip(row[:-1], gaps, strict=False) for part in (cell, " " * gap)), row[-1])


def show_documents(documents: list[Document]) -> None:
    console = _console()
    roomy = console.width >= ROOMY
    table = _table("document", "status", "owner", *(("since",) if roomy else ()), "task")
    for one in documents:
        paper = one.paper
        status = line_of((paper.status, STATUS_COLOURS[paper.status]))
        since = (line_of(paper.updated),) if roomy else ()
        table.add_row(line_of(one.id), status, line_of(paper.owner), *since, line_of(first_line(paper.task, 60)))
    console.print(table)


def _console() -> "Console":
    console = console_for()
    console.soft_wrap = False
    if not console.is_terminal:
        console.width = 10_000  # whoever reads it is a program or a file, and needs whole names
    return console


def _table(name: str, *headings: str) -> Table:
    """The first column is the thing's name, which is never cut."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column(name, no_wrap=True, overflow="fold")
    for heading in headings:
        table.add_column(heading, justify="right" if heading == "records" else "left", no_wrap=True)
    return table
