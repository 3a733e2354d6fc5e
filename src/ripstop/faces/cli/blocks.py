"""The parts of a run in a terminal: each of the eight kinds as text, whatever the style."""

import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from markdown_it import MarkdownIt
from rich.cells import cell_len, set_cell_size
from rich.console import ConsoleOptions, RenderResult
from rich.markdown import Markdown, MarkdownElement, TextElement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ripstop.engine.ports import RunInfo
from ripstop.kernel.parts import Claims, Facts, Ledger, Paper, Rail, Talk, Tasks, Timers
from ripstop.kernel.parts import Part as PartsPart
from ripstop.text.visible_text import count, visible, visible_line

from .terminal import Part, line_of, say, say_text, text_of, with_style
from .words import COLOURS, first_line, local_time

if TYPE_CHECKING:
    from rich.console import Console

if TYPE_CHECKING:
    from rich.console import Console

if TYPE_CHECKING:
    from markdown_it.token import Token
    from rich.console import Console

    from ripstop.text.differences import DifferenceLine, Hunk


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


MARKS = {"done": "●", "now": "▶", "next": "○", "skipped": "–", "failed": "✗", "open": "○", "doing": "▶"}
LONGEST = 300
MOST_LINES = 40
"""Lines of a document, and entries of a list, that are shown; `--json` has all of them."""


def show_parts(console: "Console", parts: tuple[PartsPart, ...]) -> None:
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


def _lines(part: PartsPart) -> Iterator[str]:
    return LINES[type(part)](part)


def _rail(part: Rail) -> Iterator[str]:
    for stage in part.stages:
        yield f"{MARKS[stage.state]} {stage.name}{f'  {stage.note}' if stage.note else ''}"


def _tasks(part: Tasks) -> Iterator[str]:
    for task in part.tasks:
        after = f"  after {', '.join(task.needs)}" if task.needs else ""
        yield f"{MARKS[task.state]} {task.id}  {first_line(task.title, LONGEST)}{after}"


def _ledger(part: Ledger) -> Iterator[str]:
    for entry in part.entries:
        note = f"  ({entry.note})" if entry.note else ""
        yield f"{entry.number:>5}  {entry.by}: {first_line(entry.text, LONGEST)}{note}"


def _claims(part: Claims) -> Iterator[str]:
    for claim in part.claims:
        holds = "?" if claim.holds is None else "✓" if claim.holds else "✗"
        shown = f"  shown: {first_line(claim.shown, LONGEST)}" if claim.shown else ""
        yield f"{claim.number:>5}  {holds} {claim.by} claims: {first_line(claim.claimed, LONGEST)}{shown}"


def _talk(part: Talk) -> Iterator[str]:
    for line in part.lines:
        yield f"{line.by}: {first_line(line.text, LONGEST)}"


def _document(part: Paper) -> Iterator[str]:
    yield from map(visible_line, part.text.splitlines())


def _facts(part: Facts) -> Iterator[str]:
    for name, value in part.rows:
        yield f"{name}: {first_line(str(value), LONGEST)}"


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


# A document for a person to decide on: rendered in a terminal, elsewhere as it is; and what has changed in it.
#
# Agents write these documents, so what is rendered must not hide or pretend anything:
# - HTML, comments and definitions of links are shown as text. Rendered, they would be invisible.
# - A link shows its address next to its words, and nothing in it can be clicked. So does an image.
# - Code is not coloured: a highlighter is a large program for a hostile text to work on.


MOST_RENDERED = 200_000
"""Characters of a document that is rendered; a longer one is shown as it is."""
SIGNS = {"same": " ", "removed": "-", "added": "+"}
STYLES = {"same": "", "removed": "red", "added": "green"}


def print_document(console: "Console", text: str, most: int | None = None, rest: str = "") -> None:
    """Show a document; with `most`, only so many of its lines, and in `rest` where the others can be seen."""
    lines = text.splitlines()
    shown = text if most is None or len(lines) <= most else "\n".join(lines[:most])
    if not console.is_terminal:
        return say_text(shown)
    if len(shown) > MOST_RENDERED:
        print_indented(console, 2, shown)
    else:
        console.print(Padding(_Document(visible(shown)), (0, 0, 0, 2)), soft_wrap=False)
    if shown is not text:
        print_line(console, (f"  … {count(len(lines) - len(lines[:most]), 'more line')}: {rest}", "dim"))
    return None


def print_difference(console: "Console", hunks: "list[Hunk]", most: int | None = None, rest: str = "") -> None:
    """Show changed lines with those around them; changed words are underlined."""
    shown, total = 0, sum(len(hunk.lines) for hunk in hunks)
    for index, hunk in enumerate(hunks):
        if index:
            print_line(console, ("  …", "dim"))
        for line in hunk.lines:
            if most is not None and shown >= most:
                return print_line(console, (f"  … {count(total - shown, 'more line')}: {rest}", "dim"))
            console.print(line_of(*_line(line)), soft_wrap=True)
            shown += 1
    return None


def _line(line: "DifferenceLine") -> list[Part]:
    parts: list[Part] = [(f"  {line.new or line.old:>4} {SIGNS[line.kind]} ", STYLES[line.kind] or "dim")]
    for segment in line.segments:
        colour = STYLES[line.kind]
        partly = segment.kind != "same" and len(line.segments) > 1
        parts.append((segment.text.removesuffix("\n"), f"{colour} bold underline" if partly else colour))
    if line.kind != "same" and not line.text.endswith("\n"):
        parts.append((" (no newline at the end)", "dim"))
    return parts


class _Code(TextElement):
    """Code as it is, with what was said about it: the name of its language."""

    style_name = "markdown.code_block"

    @classmethod
    def create(cls, _: Markdown, token: "Token") -> "MarkdownElement":
        return cls(token.info.strip())

    def __init__(self, info: str) -> None:
        self._info = info

    def __rich_console__(self, console: "Console", options: ConsoleOptions) -> RenderResult:
        if self._info:
            yield Text(self._info, style="dim")
        self.text.rstrip()
        yield Padding(self.text, (0, 0, 0, 2))


class _Document(Markdown):
    elements = {**Markdown.elements, "fence": _Code, "code_block": _Code}

    def __init__(self, text: str) -> None:
        super().__init__("", hyperlinks=False)
        parser = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
        parser.disable(["reference", "image"])  # an image is then a link with a `!` before it
        self.parsed: Any = parser.parse(text)


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
