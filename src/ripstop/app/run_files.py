"""What a run, with those that it started, did to the files that were there before it, and bringing them back."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from weakref import WeakKeyDictionary

from ripstop.engine.engine import Engine
from ripstop.engine.performers import Refused, TryAgain
from ripstop.kernel.errors import RipstopError, UsageError
from ripstop.kernel.events import Started
from ripstop.tools.snapshots.family_files import FamilyFiles, Member
from ripstop.tools.snapshots.run_files import FileChanges, RunFiles
from ripstop.tools.toolbox import run_workspace

MOST_LOST = 5
"""Files that are named."""


async def file_changes(engine: Engine, run_id: str) -> FileChanges:
    """Which of the user's files a run and its descendants removed or changed. Raises `RunNotFound`."""
    members = await _members(engine, run_id)
    try:
        return await asyncio.to_thread(FamilyFiles(members).changes)
    except (Refused, TryAgain, OSError) as error:
        return FileChanges(str(members[0].files.workspace), f"What it did to files is not known. {error}")


async def check_files(engine: Engine, run_id: str) -> tuple[str, ...]:
    """What to say of files that a run and its descendants made, and that are not where they made them any more.

    Raises `UsageError` if not even the folder is there: what the run has said of its files is not so, and nobody but
    its user knows what became of them.
    """
    members = await _members(engine, run_id)
    try:
        return await asyncio.to_thread(_lost, run_id, members)
    except (Refused, TryAgain, OSError):
        return ()  # what it made is not known; whoever writes there is told why


def _lost(run_id: str, members: Sequence[Member]) -> tuple[str, ...]:
    lost = list[str]()
    for member in members:
        folder, noted = member.files.workspace, member.files.noted()
        if not noted.is_on_record:
            continue
        if not folder.is_dir():
            what = "is a file now" if folder.exists() else "is not there any more"
            raise UsageError(
                f"{run_id} cannot continue: {folder}, in which it has written files, {what}. Put the folder back, or "
                "name another one: --workspace DIR. To have the run continue without its files, make an empty folder."
            )
        written = {*noted.made, *(path for path, (_, left, _) in noted.files.items() if left)}
        lost += [member.below + path for path in sorted(written) if not os.path.lexists(folder / path)]
    if not lost:
        return ()
    more = f" and {len(lost) - MOST_LOST} more" if len(lost) > MOST_LOST else ""
    return (f"{run_id} has written files that are not there any more: {', '.join(lost[:MOST_LOST])}{more}.",)


async def undo_files(engine: Engine, run_id: str, paths: Sequence[str]) -> dict[str, str]:
    """Bring files back as they were before the run and its descendants.

    Returns the names under which what was there is kept, by path. Raises `RunNotFound`, `UsageError` while one of them
    is worked on, and `Refused` for a file that cannot be brought back.
    """
    await engine.look(run_id)
    family = [info for info in [await engine.journal.run(run_id), *await engine.descendants(run_id)] if info]
    if await engine.has_workers() and (busy := next((one for one in family if one.status == "working"), None)):
        raise UsageError(f"{busy.run_id} is being worked on. Wait until it has ended, or cancel it.")
    return await asyncio.to_thread(FamilyFiles(await _members(engine, run_id)).undo, paths)


async def _members(engine: Engine, run_id: str) -> list[Member]:
    view = await engine.look(run_id)
    _, started = await _began(engine, run_id)
    workspace = run_workspace(run_id, view.run.settings)
    members = [Member(await _files(engine, run_id, str(workspace), view.run.unkept), "")]
    top = started.settings.workspace
    for info in await engine.descendants(run_id) if top else ():
        _, child = await _began(engine, info.run_id)
        below = child.settings.workspace.removeprefix(top)  # theirs is its own, or a folder in it
        if child.settings.workspace.startswith(top) and (not below or below.startswith("/")):
            files = await _files(engine, info.run_id, f"{workspace}{below}", await _unkept(engine, info.run_id))
            members.append(Member(files, f"{below.strip('/')}/" if below else ""))
    return members


async def _files(engine: Engine, run_id: str, workspace: str, unkept: str) -> RunFiles:
    at, _ = await _began(engine, run_id)
    return RunFiles(Path(workspace), run_id, at, unkept=unkept)


async def _unkept(engine: Engine, run_id: str) -> str:
    """Why files were not kept before a descendant could change them; empty also for one that cannot be read."""
    try:
        return (await engine.look(run_id)).run.unkept
    except RipstopError:
        return ""


async def _began(engine: Engine, run_id: str) -> tuple[int, Started]:
    """When a run began, and how. Read once: pages ask for it again and again."""
    known = _known.setdefault(engine, {})
    if run_id not in known:
        (record,) = await engine.journal.read(run_id, most=1)
        assert isinstance(record.event, Started)
        known[run_id] = record.at, record.event
    return known[run_id]


_known: WeakKeyDictionary[Engine, dict[str, tuple[int, Started]]] = WeakKeyDictionary()
"""How runs began, by the engine that knows them."""
