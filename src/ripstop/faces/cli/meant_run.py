"""Which run a person means: by its id, or by what a style calls it."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ripstop.runtime.engine import Engine


async def run_meant(engine: "Engine", named: str) -> str:
    """The run with that id, or of a style's own file in this folder. Raises `RunNotFound` or `UnknownStyle`."""
    from ripstop.kernel.errors import UnknownStyle
    from ripstop.plugins import installed

    info = await engine.journal.run(named)
    if info is not None:
        if info.style not in engine.registry.kits:  # said before its records are found to be unreadable
            raise UnknownStyle(named, info.style, ", ".join(sorted(engine.registry.kits)))
        return named
    for service in installed().services:
        run_id = service.run_named(named, Path())
        if run_id and await engine.journal.run(run_id) is not None:
            return run_id
    raise await engine.not_found(named)
