"""Where a run can be forked: after a fact, or at the end of a step."""

from ripstop.kernel.errors import UsageError
from ripstop.kernel.events import FACTS, USE, Ended, Event, Ordered, Record


def last_shared(run_id: str, records: list[Record], at: int | None) -> int:
    """The number of the last record that a fork shares."""
    wanted = len(records) if at is None else at
    if not 1 <= wanted <= len(records):
        raise UsageError(f"Run {run_id!r} has the records 1 to {len(records)}; it cannot be forked at {wanted}.")
    cut = wanted
    if isinstance(records[cut - 1].event, FACTS):
        return cut
    while cut < len(records) and not isinstance(records[cut].event, FACTS):
        cut += 1
    if isinstance(records[cut - 1].event, Ended):
        # nothing follows an end: fork at the fact that led to it, so that it is decided anew
        while not isinstance(records[cut - 1].event, FACTS):
            cut -= 1
    return cut


def decides_nothing(event: Event) -> bool:
    """An order to use other settings leads to nothing, so there is nothing to decide anew."""
    return isinstance(event, Ordered) and event.order == USE
