"""The clock of a process that works on a journal.

- Within the process, time is measured by a clock that cannot be set: a change of the system's clock neither holds up
  a timer nor makes one fire early.
- Time never runs backwards in a journal: a process begins with the system's time or with the latest time in the
  journal, whichever is later, and follows a process whose clock is ahead. So a clock that was set back by an hour does
  not hold up a timer for an hour; without this, `resume` would wait for that long.
- Whatever is more than a minute is said in the log.
"""

import logging
import time

from .ports import Clock

log = logging.getLogger("ripstop.clock")

SECOND = 1_000_000
LEAST_REPORTED = 60 * SECOND
"""Microseconds by which clocks must differ before a warning is logged."""
LAST_YEAR = 253_370_764_800 * SECOND
"""The beginning of the year 9999. A later time in a journal is nonsense, and is not followed."""


def system_time() -> int:
    return time.time_ns() // 1000


def elapsed_time() -> int:
    """Microseconds since some moment, those included in which the machine slept where that can be known."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000
    return time.monotonic_ns() // 1000


class ProcessClock:
    """Call it to read it, in microseconds since 1970-01-01 UTC."""

    def __init__(self, system: Clock = system_time, elapsed: Clock = elapsed_time) -> None:
        self._system = system
        self._elapsed = elapsed
        self._ahead = system() - elapsed()
        """What is added to the elapsed time."""
        self._difference = 0
        """By how much the system's clock differs from this one, as far as that was said."""

    def __call__(self) -> int:
        now = self._elapsed() + self._ahead
        difference = self._system() - now
        if abs(difference - self._difference) > LEAST_REPORTED:
            jump = _seconds(difference - self._difference)
            log.warning("The system's clock was changed by %s s; this process continues with its own time.", jump)
            self._difference = difference
        return now

    def follow(self, latest: int) -> None:
        """Never be behind a time that is in the journal."""
        behind = latest - (self._elapsed() + self._ahead)
        if behind <= 0 or latest >= LAST_YEAR:
            return
        if behind > LEAST_REPORTED:
            log.warning(
                "The clock is %s s behind the journal: it was set back, or it was ahead when the journal was written. "
                "Times continue from the latest one in the journal, so that no timer is late.",
                _seconds(behind),
            )
        self._ahead += behind
        self._difference -= behind


def _seconds(microseconds: int) -> str:
    return f"{microseconds / SECOND:+.0f}" if microseconds < 0 else f"{microseconds / SECOND:.0f}"
