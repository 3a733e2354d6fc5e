"""Whether a run is what was written, and can be read.

- Before a process acts on a run it checks the run's own records and its pinned definition, once.
- Showing a run needs no check, so that a damaged one can be shown. But records that were tampered with can lead
  anywhere; what they lead to is an error of the journal, not a traceback.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from ripstop.kernel.errors import DefinitionError, RipstopError, RunDamaged, RunUnreadable, UnknownRecord, UnknownStyle

from .ports import Journal

UNUSABLE = (RunDamaged, RunUnreadable, UnknownRecord, UnknownStyle, DefinitionError)
"""Raised for one run that cannot be worked on; the others can."""


async def check_run(journal: Journal, run_id: str) -> None:
    """Raise `RunDamaged` unless the records of a run, and what is derived from them, are what was written."""
    damage = await journal.check_run(run_id)
    if damage:
        first = damage[0]
        raise RunDamaged(run_id, f"record {first.number}: {first.text}" if first.number else first.text, len(damage))


@contextmanager
def reading(run_id: str) -> Iterator[None]:
    """Records that do not fit together become `RunUnreadable`, whatever they have led to."""
    try:
        yield
    except RipstopError:
        raise
    except Exception as error:
        raise RunUnreadable(run_id, error) from error
