"""What every journal must do, whatever it keeps its records in.

    class TestMyJournal(JournalConformance):
        def open(self, codec, folder):
            return MyJournal(folder / "journal", codec)

Then pytest finds the tests. They use only what `ripstop.store_api.Journal` promises. `open` is
called once per test with a folder of its own; the journal it returns must be empty.
"""

from .conformance_lists import ListConformance
from .conformance_outbox import OutboxConformance, WorkerConformance
from .conformance_outcomes import OutcomeConformance
from .conformance_records import IdentityConformance, MaintenanceConformance, RecordConformance


class JournalConformance(
    IdentityConformance,
    RecordConformance,
    OutcomeConformance,
    ListConformance,
    WorkerConformance,
    OutboxConformance,
    MaintenanceConformance,
):
    """Subclass it, and say how a journal is opened."""
