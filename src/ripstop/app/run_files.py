"""What a run did to the files that were there before it, and bringing them back."""

import asyncio
from collections.abc import Sequence
from weakref import WeakKeyDictionary

from ripstop.engine.engine import Engine
from ripstop.engine.performers import Refused, TryAgain
from ripstop.kernel.errors import UsageError
from ripstop.tools.snapshots.run_files import FileChanges, RunFiles
from ripstop.tools.toolbox import run_workspace


async def file_changes(engine: Engine, run_id: str) -> FileChanges:
    """Which of the user's files a run removed or changed. Raises `RunNotFound`."""
    files = await _files(engine, run_id)
    try:
        return await asyncio.to_thread(files.changes)
    except (Refused, TryAgain, OSError) as error:
        return FileChanges(str(files.workspace), f"What it did to files is not known. {error}")


async def undo_files(engine: Engine, run_id: str, paths: Sequence[str]) -> dict[str, str]:
    """Bring files back as they were before the run.

    Returns the names under which what was there is kept, by path. Raises `RunNotFound`, `UsageError` while the run is
    worked on, and `Refused` for a file that cannot be brought back.
    """
    view = await engine.look(run_id)
    if view.status == "working" and await engine.has_workers():
        raise UsageError(f"{run_id} is being worked on. Wait until it has ended, or cancel it.")
    files = await _files(engine, run_id)
    return await asyncio.to_thread(files.undo, paths)


async def _files(engine: Engine, run_id: str) -> RunFiles:
    view = await engine.look(run_id)
    began = _began.setdefault(engine, {})
    if run_id not in began:  # read once: pages ask for it again and again
        began[run_id] = (await engine.journal.read(run_id, most=1))[0].at
    return RunFiles(run_workspace(run_id, view.run.settings), run_id, began[run_id])


_began: WeakKeyDictionary[Engine, dict[str, int]] = WeakKeyDictionary()
"""When runs began, by the engine that knows them."""
