"""The parts of a run in a terminal: each of the eight kinds as text, whatever the style."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ripstop.kernel.parts import Claims, Facts, Ledger, Paper, Part, Rail, Talk, Tasks, Timers
from ripstop.visible_text import visible_line

from .paragraphs import print_indented
from .terminal import say
from .words import first_line, local_time

if TYPE_CHECKING:
    from rich.console import Console

MARKS = {"done": "●", "now": "▶", "next": "○", "skipped": "–", "failed": "✗", "open": "○", "doing": "▶"}
LONGEST = 300
MOST_LINES = 40
"""Lines of a document, and entries of a list, that are shown; `--json` has all of them."""


def show_parts(console: "Console", parts: tuple[Part, ...]) -> None:
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


def _lines(part: Part) -> Iterator[str]:
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
