"""Which runs can be forgotten, the same for every store: those that have ended and that nothing needs any more."""

from collections.abc import Sequence

from ripstop.kernel.errors import UsageError
from ripstop.kernel.events import OUTCOMES

# Which runs make up a family: a run, the children that belong to it, and theirs.
#
# A child belongs to the run that started it if its id begins with that run's id and a dot. A named child, which several
# runs may wait for, has its own family.


def belongs_to(run_id: str, parent: str) -> bool:
    return run_id.startswith(f"{parent}.")


def check_forgettable(
    run_id: str,
    status: str | None,
    *,
    busy: bool,
    forks: Sequence[str],
    waiting: Sequence[str],
    undelivered: Sequence[str],
) -> None:
    """Raise `UsageError` if a run must stay.

    Args:
        status: As the list of runs has it; `None` if the run is not there.
        busy: A worker has a command of it in hand, or a child that it started has not ended.
        forks: Forks of it that stay.
        waiting: Runs that wait for its end and stay.
        undelivered: What its commands that are still needed need of a worker: all that an ended run can have are
            messages that are to be delivered.
    """
    if status is None:
        raise UsageError(f"There is no run {run_id!r}.")
    if status not in OUTCOMES:
        raise UsageError(f"Run {run_id!r} has not ended ({status}), so it cannot be forgotten. Cancel it first.")
    cannot = f"Run {run_id!r} cannot be forgotten"
    if busy:
        raise UsageError(f"{cannot}: calls or children of it are still being stopped. Try again later.")
    if forks:
        raise UsageError(f"{cannot}: its fork {forks[0]!r} shares its records.")
    if waiting:
        raise UsageError(f"{cannot}: run {waiting[0]!r} waits for its end.")
    if undelivered:
        number, needs = len(undelivered), ", ".join(repr(one) for one in dict.fromkeys(undelivered) if one)
        messages = f"{number} of its messages {'is' if number == 1 else 'are'} not delivered yet"
        worker = f"a worker that offers {needs}" if needs else "a worker"
        raise UsageError(f"{cannot}: {messages}. Start {worker}, and forget the run when it has delivered them.")
