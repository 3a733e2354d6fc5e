"""A fork with its own folder, so that the old run and its files stay as they are."""

import asyncio
import shutil
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

from ripstop.definitions.loading import Workflow
from ripstop.engine.engine import Engine
from ripstop.engine.forking import last_shared
from ripstop.engine.pinned_definitions import digest_of
from ripstop.kernel.errors import RunAlreadyStarted, UntrustedFolder, UsageError
from ripstop.kernel.events import Forked
from ripstop.kernel.run import Run
from ripstop.security.consent import TrustedFolders
from ripstop.tools.workspace import copy_workspace

from .plugins import Plugins
from .start import check_workspace, new_id, own_workspace, pin_with_folders
from .stores import folders_of


def fork_id(run_id: str, key: str = "") -> str:
    """The id of a fork; with a key, always the same, and another one for every run."""
    return new_id(run_id.rpartition("-")[0] or run_id, f"{run_id}\0{key}" if key else "")


async def fork_with_key(
    engine: Engine, run_id: str, at: int | None, workflow: Workflow | None, key: str
) -> Run[Any] | None:
    """The fork that was made with this key; `None` if there is none yet.

    Without `at` it is that fork wherever it begins: the run can have gone on since. Raises `RunAlreadyStarted` if the
    key was used for another record or workflow.
    """
    name = fork_id(run_id, key)
    info = await engine.journal.run(name)
    if info is None:
        return None
    own = await engine.journal.read(name, after=info.fork_at)
    forked = next((record.event for record in own if isinstance(record.event, Forked)), None)
    definition = digest_of(workflow.content) if workflow else ""
    if forked is None or (forked.run, forked.definition) != (run_id, definition):
        raise RunAlreadyStarted(name, key)
    if at is not None and last_shared(run_id, await engine.journal.read(run_id), at) != forked.at:
        raise RunAlreadyStarted(name, key)
    return (await engine.look(name)).run


async def fork_run(
    engine: Engine,
    plugins: Plugins,
    run_id: str,
    at: int | None = None,
    workflow: Workflow | None = None,
    workspace: Path | None = None,
    key: str = "",
    folders: TrustedFolders | None = None,
) -> Run[Any]:
    """Continue from a record of a run under a new id and in its own folder.

    The folder begins as a copy of the old run's files as they are now; one that has files in it is used as it is.

    With a `key` the id is always the same, so a repeat raises `RunAlreadyStarted` and changes nothing.

    Args:
        folders: Those that the user has named; left out: as they are kept for the journal.
    """
    name = fork_id(run_id, key)
    run = (await engine.look(run_id)).run
    if engine.style(run).unforkable:  # said before anything is copied
        raise UsageError(engine.style(run).unforkable)
    if workflow and workflow.style != run.started.style:
        raise UsageError(f"{run_id} is of style {run.started.style!r}, so a {workflow.style} cannot continue it.")
    folders = folders or folders_of(engine.journal)
    pinned = pin_with_folders(plugins, workflow, folders) if workflow else None
    # settings given since it began are kept, even if they were given after the record we go back to
    settings = run.settings if at is None else None

    def fork(folder: str) -> Awaitable[Run[Any]]:
        return engine.fork(
            run_id,
            at,
            name,
            workflow.content if workflow else None,
            settings=settings,
            pinned=pinned.content if pinned else None,
            definitions=pinned.definitions if pinned else None,
            workspace=folder,
        )

    if not run.settings.workspace:
        if workspace:
            raise UsageError(f"{run_id!r} has no workspace, so its fork cannot be given one.")
        return await fork("")
    old, new = Path(run.settings.workspace), (workspace or own_workspace(name)).resolve()
    check_workspace(new)
    copied = await asyncio.to_thread(_is_to_be_copied, old, new)
    if copied and not folders.cover(old):
        raise UntrustedFolder(run_id, old)
    folders.remember(new)
    if copied:
        await asyncio.to_thread(_copy_files, run_id, old, new)
    try:
        return await fork(str(new))
    except UsageError as error:
        if copied and not isinstance(error, RunAlreadyStarted):  # then the folder is that run's
            await asyncio.to_thread(shutil.rmtree, new)
        raise


def _is_to_be_copied(old: Path, new: Path) -> bool:
    return old.is_dir() and not (new.is_dir() and any(new.iterdir()))


def _copy_files(run_id: str, old: Path, new: Path) -> None:
    """Raise `UsageError` if the files cannot be copied."""
    try:
        copy_workspace(old, new)
    except OSError as error:
        way = "--workspace DIR names a folder that is used as it is, if it has files in it."
        raise UsageError(f"The files of {run_id!r} in {old} cannot be copied to {new}: {error}. {way}") from error
