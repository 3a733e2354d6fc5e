"""Opening a journal that the settings name, with an engine on it."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from ripstop.app.settings.settings_file import DEFAULT_STORE, Settings, store_path
from ripstop.engine.clock import ProcessClock
from ripstop.engine.engine import Engine
from ripstop.engine.live import Live
from ripstop.engine.ports import Journal, JournalIdentity
from ripstop.journals.sqlite.journal import SqliteJournal
from ripstop.kernel.advice import VERIFY, Advice
from ripstop.kernel.codec import Codec
from ripstop.kernel.errors import JournalError, JournalNotFound, UsageError
from ripstop.security.consent import TrustedFolders, trusted_folders
from ripstop.security.files import OURS, without_links

from .journal_trust import ForeignJournal, JournalTrust, looked_at, open_work
from .plugins import Plugins, installed
from .restoring import hold_runs, map_folders, moved_folders

log = logging.getLogger("ripstop.trust")

NOTE_INTERVAL = 10.0
"""Seconds between two times at which it is remembered how far the journal has come."""


def folders_of(journal: Journal) -> TrustedFolders:
    """The folders that the user has named for a journal."""
    return trusted_folders(journal.path or Path(OURS) / "in-memory")


def journal_path(settings: Settings) -> Path:
    """Where the journal of the settings is. Raises `UsageError` for a link, unless the user has chosen that very path:
    a relative one is in whatever project the user works in."""
    path = store_path(settings.store)
    if settings.store == DEFAULT_STORE or not (settings.store_is_named or path.is_absolute()):
        without_links(path, "--store sqlite:PATH")
    return path


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
    path = journal_path(settings)
    codec = codec or installed().registry.codec
    try:
        return SqliteJournal(path, codec, create)
    except JournalNotFound:
        if not or_empty or settings.store != DEFAULT_STORE:
            raise
        from ripstop.journals.memory import MemoryJournal

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
        said = (
            f"The journal is not what was written ({where}: {damage[0].text}), and cannot be used as it is "
            f"({type(error).__name__}). "
        )
        raise JournalError(Advice(said, VERIFY, "; restore it from a backup.")) from error
    finally:
        await journal.close()


async def make_engine(journal: Journal, plugins: Plugins, clock: ProcessClock, live: Live | None = None) -> Engine:
    with suppress(JournalError):  # a damaged journal can be shown; what reads it says what is wrong
        clock.follow(await journal.latest())
    check = plugins.check_pinned
    return Engine(journal, plugins.registry, journal.clock or clock, live, check_definition=check, follow=clock.follow)


@asynccontextmanager
async def open_engine(
    settings: Settings,
    clock: ProcessClock | None = None,
    or_empty: bool = False,
    plugins: Plugins | None = None,
    to_act: bool = False,
) -> AsyncIterator[Engine]:
    """Look at and steer the runs of a journal; a worker performs what they ask for. Looking never makes a journal.

    A journal that its user has neither made nor agreed to, or that was restored, can only be looked at: what would
    change it raises `ForeignJournal`.

    Args:
        to_act: Something is about to be changed: a journal that was restored has its runs held first.

    Raises `ForeignJournal` with `to_act`, and `JournalNotFound`; see `open_journal` for `or_empty`.
    """
    known = plugins or installed()
    journal = open_journal(settings, create=False, or_empty=or_empty, codec=known.registry.codec)
    async with closing(journal):
        opened = await trusted_engine(journal, settings, known, clock or ProcessClock(), to_act=to_act)
        if to_act and opened.refusal:
            raise opened.refusal
        try:
            yield opened.engine
        finally:
            await opened.end()


class OpenedJournal(NamedTuple):
    engine: Engine
    trust: JournalTrust | None
    """What is remembered of the journal; `None`: it is in memory."""
    refusal: ForeignJournal | None
    """Why the journal can only be looked at; `None`: it can be worked on."""

    async def note(self) -> None:
        """Remember how far the journal has come, if it is the user's."""
        if self.trust:
            await self.trust.note()

    async def try_to_note(self) -> None:
        """The same; where it cannot be remembered, work goes on: the worker meets the trouble too, or it passes."""
        await _tried(self.note())

    async def end(self) -> None:
        """Remember what is in the journal, if it is the user's and nobody else works on it. Nothing more is written."""
        if self.trust:
            await _tried(self.trust.end())


async def _tried(note: Awaitable[None]) -> None:
    try:
        await note
    except (JournalError, UsageError) as error:
        log.warning("It cannot be remembered how far the journal has come: %s", error)


@asynccontextmanager
async def noting(opened: OpenedJournal | None) -> AsyncIterator[None]:
    """Remember again and again how far the journal has come: a copy that is put back later has not come so far."""

    async def note_for_ever() -> None:
        while opened:
            await opened.try_to_note()
            await asyncio.sleep(NOTE_INTERVAL)

    task = asyncio.create_task(note_for_ever())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def trusted_engine(
    journal: Journal,
    settings: Settings,
    plugins: Plugins,
    clock: ProcessClock,
    live: Live | None = None,
    to_act: bool = False,
) -> OpenedJournal:
    """An engine on a journal. If its user has not agreed to it, it can only be looked at; if it was restored, its runs
    are held."""
    engine = await make_engine(journal, plugins, clock, live)
    if not isinstance(journal, SqliteJournal):
        return OpenedJournal(engine, None, None)
    trust = JournalTrust(journal, journal.path, settings.store_is_named, plugins.registry.codec)
    found = await trust.judge()
    if found.foreign or (found.restored and not to_act):
        refusal = trust.refusal(found, await open_work(engine))
        return OpenedJournal(await make_engine(looked_at(journal, refusal), plugins, clock, live), None, refusal)

    if not to_act:
        return OpenedJournal(engine, None, None)

    async def hold(identity: JournalIdentity, why: str) -> None:
        await hold_runs(engine, identity, why)

    await trust.settle(found, hold, engine.clock())
    if found.moved_from:
        await map_folders(engine, folders_of(journal), moved_folders(found.moved_from, journal.path))
    return OpenedJournal(engine, trust, None)
