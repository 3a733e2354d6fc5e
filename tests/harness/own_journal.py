"""Makes a journal that a test has written by hand, or copied, one that its user has made."""

import asyncio
from pathlib import Path

from ripstop.engine.ports import JournalIdentity
from ripstop.journals.sqlite.journal import SqliteJournal
from ripstop.kernel.codec import Codec
from ripstop.security.known_journals import KnownJournal, KnownJournals, new_id


async def own(path: Path) -> None:
    journal, identity = SqliteJournal(path, Codec(), create=False), JournalIdentity(new_id())
    await journal.identify(identity, await journal.identity())
    KnownJournals().keep(KnownJournal(identity.id, str(path.resolve())))
    await journal.close()


def own_journal(path: Path) -> None:
    asyncio.run(own(path))
