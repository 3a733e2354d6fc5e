"""The range of every number that a user can set, in one table: settings files and command-line options use it.

Without an upper bound a number can overflow where it is used, and NaN passes every comparison that is written as
`value < least`. So a value is valid only if it is known to be inside its range.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ripstop.kernel.limits import LIMITS

ANY_KEY = "*"
"""Stands for the keys of a table that the user names, such as a provider's."""


class Range(NamedTuple):
    least: float
    most: float
    above: bool = False
    """Whether the value must be above `least`, not equal to it."""

    def holds(self, value: float) -> bool:
        """Whether a number is in the range; NaN never is."""
        return (self.least < value if self.above else self.least <= value) and value <= self.most

    def __str__(self) -> str:
        if self.above:
            return f"above {self.least:.15g} and at most {self.most:.15g}"
        return f"from {self.least:.15g} to {self.most:.15g}"


PRICE = Range(0, 10**9)

NUMBERS: dict[tuple[str, ...], Range] = {
    ("concurrency",): Range(1, 10_000),
    ("attempts",): Range(1, 1_000),
    ("models", "timeout"): Range(0, 86_400, above=True),
    **{
        ("limits", limit.name): Range(1, limit.most) if limit.is_whole else Range(0, limit.most, above=True)
        for limit in LIMITS
    },
    ("limits", "depth"): Range(1, 1_000),
    ("limits", "input_price"): PRICE,
    ("limits", "output_price"): PRICE,
    ("docs", "max_interactions"): Range(1, 1_000_000),
    ("docs", "attempts"): Range(1, 1_000),
    ("docs", "keep_days"): Range(0, 36_500),
    ("commands", "seconds"): Range(0, 86_400, above=True),
    ("mcp", ANY_KEY, "timeout"): Range(0, 86_400, above=True),
    ("retries", ANY_KEY, "attempts"): Range(1, 1_000),
    ("retries", ANY_KEY, "pause"): Range(0, 86_400),
    ("retries", ANY_KEY, "longest"): Range(0, 86_400),
    ("retries", ANY_KEY, "seconds"): Range(0, 31_536_000),
    ("windows", ANY_KEY): Range(1_000, 10**9),
    ("rate_limits", ANY_KEY): Range(0, 86_400),
    ("prices", ANY_KEY, "input"): PRICE,
    ("prices", ANY_KEY, "output"): PRICE,
}


def range_of(*keys: str) -> Range | None:
    """The range of the setting with these keys; `None` if it is not a number."""
    return NUMBERS.get(keys) or (NUMBERS.get((keys[0], ANY_KEY, *keys[2:])) if len(keys) > 1 else None)


def numbers_in(table: Mapping[str, Any], *inside: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every value of a table that is to be a number, with its keys."""
    import msgspec

    for key, value in table.items():
        if isinstance(value, msgspec.Struct):
            yield from numbers_in(msgspec.structs.asdict(value), *inside, key)
        elif range_of(*inside, key):
            yield (*inside, key), value
        elif isinstance(value, dict):
            yield from numbers_in(value, *inside, key)


def wrong_number(keys: tuple[str, ...], value: Any) -> str:
    range_ = range_of(*keys)
    if range_ is None or value is None:  # None: a limit that is not set; TOML has no such value
        return ""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return f"expected a number, got `{type(value).__name__}`"
    if range_.holds(value):
        return ""
    shown = f"{value:.15g}" if isinstance(value, float) or abs(value) < 10**15 else "a huge number"
    return f"must be {range_}, not {shown}"
