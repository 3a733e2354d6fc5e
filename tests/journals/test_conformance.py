"""Both journals do what every journal must."""

from pathlib import Path

from ripstop.engine.ports import Journal
from ripstop.journals.memory import MemoryJournal
from ripstop.journals.sqlite.journal import SqliteJournal
from ripstop.kernel.codec import Codec
from ripstop.testing import JournalConformance


class TestMemoryJournal(JournalConformance):
    def open(self, codec: Codec, folder: Path) -> Journal:
        return MemoryJournal(codec)


class TestSqliteJournal(JournalConformance):
    def open(self, codec: Codec, folder: Path) -> Journal:
        return SqliteJournal(folder / "journal.db", codec)
