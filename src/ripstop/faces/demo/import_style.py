"""A style that only this demonstration has: it imports a file, some rows at a time.

It is here for its fault, which a style of one's own can have: if a call imports nothing although rows are left, no case
of `decide` applies. Then nothing is open and nothing will ever happen again, so the run is stuck.
"""

import asyncio
import csv
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ripstop.app.plugin import Plugin
from ripstop.engine.performers import Refused
from ripstop.kernel.effects import CallTool, ToolReturned
from ripstop.kernel.events import Answered, Event, Started
from ripstop.kernel.parts import Facts, Part
from ripstop.kernel.run import Run
from ripstop.kernel.step import Step
from ripstop.kernel.style import News, Picture, Settled, Style, StyleKit, StyleView
from ripstop.tools.toolbox import tool


class Import(Struct, frozen=True):
    file: str


class ImportState(Struct, frozen=True):
    definition: Import
    imported: int = 0


class ImportView(StyleView[ImportState]):
    def gist(self, run: Run[ImportState]) -> str:
        return f"{run.state.imported} rows imported"

    def picture(self, run: Run[ImportState]) -> Picture:
        return Picture(where="import", progress=self.gist(run))

    def parts(self, run: Run[ImportState]) -> tuple[Part, ...]:
        rows: list[tuple[str, Any]] = [("File", run.state.definition.file), ("Rows imported", run.state.imported)]
        return (Facts(tuple(rows), "Import"),)


class ImportStyle(Style[ImportState]):
    name = "import"
    view = ImportView()

    def begin(self, definition: Import, started: Started) -> ImportState:
        return ImportState(definition)

    def evolve(self, state: ImportState, number: int, event: Event) -> ImportState:
        match event:
            case Answered(answer=ToolReturned(value={"imported": int(rows)})):
                return replace(state, imported=state.imported + rows)
        return state

    def decide(self, step: Step[ImportState], news: News) -> None:
        match news:
            case Started():
                self._import(step)
            case Settled(answer=ToolReturned(value={"left": 0})):
                step.end("completed", f"all {step.state.imported} rows are imported")
            case Settled(answer=ToolReturned(value={"imported": int(rows)})) if rows > 0:
                self._import(step)

    def _import(self, step: Step[ImportState]) -> None:
        state = step.state
        step.ask(CallTool(tool="import_rows", arguments={"file": state.definition.file, "after": state.imported}))


KIT = StyleKit(style=ImportStyle(), definition=Import)
IMPORTS = Plugin(
    name="import", kits=(f"{__name__}:KIT",), summary="Imports a file row by row; only in the demonstration."
)


# The tools of the demonstration. They touch nothing outside its folder: what a shop or a server says is in them.


DEPLOYMENT = 4.0
"""Seconds."""
BATCH = 5
"""Rows that one call imports."""
COLUMNS = 4

ORDERS = {
    "A-20931": "已于周三发出，目前在上海分拣中心，预计周五送达",
    "B-11760": "packed; the carrier collects it this afternoon",
    "B-11802": "delivered on Tuesday, signed for by a neighbour",
    "C-30418": "in production: the oak lid is made to order and leaves in nine days",
}


@tool("pure")
def release_checks(release: int) -> dict[str, Any]:
    """Run the checks of a release and say how they went."""
    return {"release": release, "tests": "214 of 214", "migrations": "none", "size": "3.1 MB"}


@tool("unsafe")
async def deploy(release: int, to: str) -> str:
    """Put a release into service."""
    await asyncio.sleep(DEPLOYMENT)
    return f"release {release} serves {to}"


@tool("pure")
def order_status(order: str) -> str:
    """Look up an order and say where it is."""
    if order not in ORDERS:
        raise Refused(f"There is no order {order!r}. Ask the customer for the number again.", fault="agent")
    return ORDERS[order]


@tool("keyed")
def reschedule(order: str, day: str, key: str) -> str:
    """Ask the carrier to deliver an order on another day."""
    if day.casefold() in ("saturday", "sunday", "周六", "周日"):
        raise Refused(f"The carrier takes no booking for {day} ({order}): it is closed at weekends.", fault="agent")
    return f"{order} comes on {day}; the carrier's number is {key[-4:]}"


@tool("pure")
def import_rows(file: str, after: int) -> dict[str, Any]:
    """Read the next rows of a file with old orders; stops before a row that is not whole."""
    with Path(file).open(encoding="utf-8", newline="") as opened:
        rows = list(csv.reader(opened))[1:]
    wanted = rows[after : after + BATCH]
    whole = next((n for n, row in enumerate(wanted) if len(row) != COLUMNS), len(wanted))
    return {"imported": whole, "left": len(rows) - after - whole}


TOOLS = (release_checks, deploy, order_status, reschedule, import_rows)
