"""Lists of things, as people see them."""

from typing import TYPE_CHECKING

from rich.table import Table

from ripstop.office.document import Document
from ripstop.runtime.ports import RunInfo

from .terminal import console_for, line_of
from .words import COLOURS, STATUS_COLOURS, first_line, local_time

if TYPE_CHECKING:
    from rich.console import Console

ROOMY = 110
"""Columns of a terminal in which every column of a table has its place."""


def show_runs(infos: list[RunInfo]) -> None:
    console = _console()
    roomy = console.width >= ROOMY
    table = _table("run", "status", "style", *(("records", "begun") if roomy else ()), "last")
    for info in infos:
        status = line_of((info.status, COLOURS.get(info.status, "white")))
        more = (str(info.length), local_time(info.created)) if roomy else ()
        table.add_row(line_of(info.run_id), status, line_of(info.style), *more, local_time(info.updated))
    console.print(table)


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
