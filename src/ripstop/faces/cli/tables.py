"""Lists of things, as people see them.

Columns are padded here and not by rich, whose tables take a millisecond a row.
"""

import shutil
import sys
from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size

from ripstop.runtime.ports import RunInfo
from ripstop.visible_text import visible_line

from .terminal import Part, say, with_style
from .words import COLOURS, local_time

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
