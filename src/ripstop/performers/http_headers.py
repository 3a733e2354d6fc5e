"""Headers that every HTTP client of ours sends or reads."""

from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from math import isfinite

LONGEST_WAIT = 600.0
"""Seconds that a `Retry-After` can have us wait."""
UNCOMPRESSED = {"Accept-Encoding": "identity"}


def compression(headers: Mapping[str, str]) -> str:
    """How a response is compressed; empty if it is not."""
    found = headers.get("content-encoding", "").strip().lower()
    return "" if found == "identity" else found[:40]


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, at most `LONGEST_WAIT`, from a header that gives seconds or a date; `None` if it says neither.

    A date is compared with the server's own, so that a clock that is wrong on either side does no harm.
    """
    value = headers.get("retry-after", "")[:100]
    try:
        seconds = float(value)
    except ValueError:
        try:
            wait = parsedate_to_datetime(value) - parsedate_to_datetime(headers.get("date", "")[:100])
        except (ValueError, TypeError, OverflowError, IndexError):
            return None
        seconds = wait.total_seconds()
    if not isfinite(seconds):
        return None
    return min(max(0.0, seconds), LONGEST_WAIT)
