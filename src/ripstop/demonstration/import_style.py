"""A style that only this demonstration has: it imports a file, some rows at a time.

It is here for its fault, which a style of one's own can have: if a call imports nothing although rows are left, no case
of `decide` applies. Then nothing is open and nothing will ever happen again, so the run is stuck.
"""

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ripstop.kernel.effects import CallTool, ToolReturned
from ripstop.kernel.events import Answered, Event, Started
from ripstop.kernel.parts import Facts, Part
from ripstop.kernel.run import Run
from ripstop.kernel.step import Step
from ripstop.kernel.style import News, Picture, Settled, Style, StyleKit
from ripstop.plugin_types import Plugin


class Import(Struct, frozen=True):
    file: str


class ImportState(Struct, frozen=True):
    definition: Import
    imported: int = 0


class ImportStyle(Style[ImportState]):
    name = "import"

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

    def gist(self, run: Run[ImportState]) -> str:
        return f"{run.state.imported} rows imported"

    def picture(self, run: Run[ImportState]) -> Picture:
        return Picture(where="import", progress=self.gist(run))

    def parts(self, run: Run[ImportState]) -> tuple[Part, ...]:
        rows: list[tuple[str, Any]] = [("File", run.state.definition.file), ("Rows imported", run.state.imported)]
        return (Facts(tuple(rows), "Import"),)


KIT = StyleKit(style=ImportStyle(), definition=Import)
IMPORTS = Plugin(
    name="import", kits=(f"{__name__}:KIT",), summary="Imports a file row by row; only in the demonstration."
)
