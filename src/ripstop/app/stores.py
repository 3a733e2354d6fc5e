"""Opening a journal that the settings name, with an engine on it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from ripstop.app.settings.settings_file import DEFAULT_STORE, Settings, store_path
from ripstop.engine.clock import ProcessClock
from ripstop.engine.engine import Engine
from ripstop.engine.live import Live
from ripstop.engine.ports import Journal
from ripstop.journals.memory import MemoryJournal
from ripstop.journals.sqlite.journal import SqliteJournal
from ripstop.kernel.codec import Codec
from ripstop.kernel.errors import JournalError, JournalNotFound
from ripstop.security.consent import TrustedFolders, trusted_folders
from ripstop.security.files import OURS

from .plugins import Plugins, installed
from .start import without_links


def folders_of(journal: Journal) -> TrustedFolders:
    """The folders that the user has named for a journal."""
    return trusted_folders(journal.path if isinstance(journal, SqliteJournal) else Path(OURS) / "in-memory")


def open_journal(settings: Settings, create: bool, or_empty: bool = False, codec: Codec | None = None) -> Journal:
    """Open the journal that the settings name. Without `create` nothing is made.

    Args:
        settings: Name the journal.
        create: Make the journal if it is missing.
        or_empty: Return an empty journal if the default one is missing: a list of what is there is then empty.
        codec: For the styles whose runs are in it; left out: for all that are installed.

    Raises:
        JournalNotFound: It is missing, and neither `create` nor `or_empty` applies. With `or_empty`: it is not the
            default, so the user named it, perhaps wrongly.
    """
    path = store_path(settings.store)
    codec = codec or installed().registry.codec
    if settings.store == DEFAULT_STORE:
        without_links(path, "--store sqlite:PATH")
    try:
        return SqliteJournal(path, codec, create)
    except JournalNotFound:
        if not or_empty or settings.store != DEFAULT_STORE:
            raise
        return MemoryJournal(codec)


@asynccontextmanager
async def closing(journal: Journal) -> AsyncIterator[None]:
    """Close the journal at the end. What fails because the file was tampered with is said to be the file's fault."""
    try:
        yield
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, AssertionError) as error:
        damage = await journal.verify()
        if not damage:
            raise  # a bug in ripstop
        where = f"{damage[0].run_id or 'journal'}@{damage[0].number}"
        raise JournalError(
            f"The journal is not what was written ({where}: {damage[0].text}), and cannot be used as it is "
            f"({type(error).__name__}). `ripstop verify` shows more; restore it from a backup."
        ) from error
    finally:
        await journal.close()


async def make_engine(journal: Journal, plugins: Plugins, clock: ProcessClock, live: Live | None = None) -> Engine:
    with suppress(JournalError):  # a damaged journal can be shown; what reads it says what is wrong
        clock.follow(await journal.latest())
    check = plugins.check_pinned
    return Engine(journal, plugins.registry, journal.clock or clock, live, check_definition=check, follow=clock.follow)


@asynccontextmanager
async def open_engine(
    settings: Settings, clock: ProcessClock | None = None, or_empty: bool = False, plugins: Plugins | None = None
) -> AsyncIterator[Engine]:
    """Look at and steer the runs of a journal; a worker performs what they ask for. Looking never makes a journal.

    Raises `JournalNotFound`; see `open_journal` for `or_empty`.
    """
    known = plugins or installed()
    journal = open_journal(settings, create=False, or_empty=or_empty, codec=known.registry.codec)
    async with closing(journal):
        yield await make_engine(journal, known, clock or ProcessClock())
