"""Restoring a journal from a backup: checked first, put in place, its runs held and their folders mapped."""

from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from ripstop.engine.clock import ProcessClock
from ripstop.kernel.errors import JournalError, JournalNotFound, UsageError
from ripstop.security.consent import trusted_folders

from .plugins import Plugins
from .restoring import Folders, check_mapped, map_folders, put_in_place, unfinished_runs
from .settings.settings_file import Settings
from .stores import closing, folders_of, journal_path, make_engine, open_journal, trusted_engine


class RestoredJournal(Struct, frozen=True):
    path: Path
    kept: Path | None
    """Where the journal is that was there before; `None`: there was none."""
    runs: int
    held: int
    """Runs that had not ended, and that wait for a person now."""
    mapped: int
    """Runs whose folders were changed."""


async def restore_journal(settings: Settings, plugins: Plugins, copy: Path, folders: Folders) -> RestoredJournal:
    """Put a backup where the journal of the settings is, or was. The user has named it, and so agrees to it.

    Raises first `UnmappedFolders`, `UsageError` for a folder that is not there, or `JournalError`
    for a damaged backup.
    """
    for new in folders.values():
        if not new.is_dir():
            raise UsageError(f"There is no folder {new}, so no runs can use it. Nothing was changed.")
    path, clock = journal_path(settings), ProcessClock()
    try:
        source = open_journal(
            replace(settings, store=f"sqlite:{copy}", store_named=True), create=False, codec=plugins.registry.codec
        )
    except JournalNotFound as error:
        raise UsageError(f"There is no backup at {copy}. Nothing was changed.") from error
    except JournalError as error:  # the file is the command's argument, and not the store
        raise JournalError(str(error).replace(" with --store", "")) from error
    async with closing(source):
        if damage := await source.verify():
            where = f"{damage[0].run_id or 'journal'}@{damage[0].number}"
            raise JournalError(f"{copy} is not what was written ({where}: {damage[0].text}). Nothing was changed.")
        looking = await make_engine(source, plugins, clock)
        await check_mapped(looking, trusted_folders(path), folders)
        now = looking.clock()
    kept = put_in_place(copy, path, now)
    named = replace(settings, store_named=True)
    journal = open_journal(named, create=False, codec=plugins.registry.codec)
    async with closing(journal):
        opened = await trusted_engine(journal, named, plugins, clock, to_act=True)
        mapped = await map_folders(opened.engine, folders_of(journal), folders) if folders else 0
        held = len(await unfinished_runs(opened.engine))
        runs = sum((await journal.counts()).values())
        await opened.end()
    return RestoredJournal(path, kept, runs, held, mapped)
