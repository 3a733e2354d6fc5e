"""What a column of a journal can hold. SQLite itself accepts any value in any of them."""

from typing import Any

LATEST = 253_402_300_800_000_000
"""Microseconds: the end of the year 9999, after which a time cannot be shown."""
MOST = 2**53
"""Records of a run; every JSON reader can hold such a number."""


def is_time(value: Any) -> bool:
    return type(value) is int and 0 <= value < LATEST


def is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < MOST
