"""What can be limited about a run, in one table.

Settings, definitions and their schema, command-line flags, the fields of the web form and what can be raised all follow
from a row. What a row does not say is how it is counted (`run.Spent`, which `folding` adds to), when a run would exceed
it (`budget`, which `guards` asks), and what the web desk calls it (`spent.NAME` and `limit.NAME` in its words).

- A row has the name of a field of `effects.Limits`, and the rows have the order of those fields.
- Nothing is imported here but the standard library: the command line reads the table for every `--help`.
"""

from typing import Literal, NamedTuple


class Limit(NamedTuple):
    """One thing of which a run can be allowed only so much."""

    name: str
    rank: int
    """Where it is in a list of limits that people read."""
    noun: str
    """One of them, if they are counted; `The <noun> limit of 5`."""
    about: str
    """What the schema of a definition says about it."""
    unit: Literal["", "$", "s"] = ""
    """What it is measured in; empty if it is counted, in whole numbers."""
    most: float = 10**12
    """The highest limit that settings, flags and forms accept."""
    words: str = ""
    """How a list says a limit that is measured, with `{}` for the amount."""
    flag_help: str = ""
    """Help for the flag of a command that starts a run; empty: it has no flag."""
    watch_help: str = ""
    """Help for the flag of a command that watches over many runs; empty: it has no flag there."""
    is_shared: bool = False
    """Whether a child gets a part of it, which is set aside until the child has reported."""

    @property
    def is_whole(self) -> bool:
        return not self.unit

    @property
    def flag(self) -> str:
        return f"--max-{self.name.replace('_', '-')}"


LIMITS = (
    Limit(
        "tokens",
        rank=3,
        noun="token",
        about="Tokens of its prompts and replies.",
        flag_help="Stop before this many tokens are spent.",
        watch_help="Stop after this many tokens.",
        is_shared=True,
    ),
    Limit(
        "money",
        rank=4,
        noun="cost",
        about="Money, in the currency of the prices.",
        unit="$",
        words="a cost of {}",
        flag_help="Stop before this much money is spent.",
        watch_help="Stop after this much money.",
        is_shared=True,
    ),
    Limit(
        "calls",
        rank=2,
        noun="call",
        about="Calls of models.",
        flag_help="Stop before more model calls than this.",
        watch_help="Stop after this many model calls.",
        is_shared=True,
    ),
    Limit(
        "seconds",
        rank=5,
        noun="time",
        about="Seconds at work.",
        unit="s",
        most=10**9,
        words="{} at work",
        flag_help="Stop after this long at work.",
        watch_help="Stop after this long.",
    ),
    Limit("turns", rank=1, noun="turn", about="Turns of its agents."),
    Limit(
        "runs",
        rank=6,
        noun="run",
        about="Runs that it starts, with those that they start.",
        flag_help="Stop before more runs than this are started below it.",
    ),
)

BY_RANK = tuple(sorted(LIMITS, key=lambda limit: limit.rank))
"""In the order that people read."""
AMOUNTS = (*(limit.name for limit in BY_RANK), "depth")
"""What `effects.Limits` can limit, prices left out."""
RAISABLE = (*AMOUNTS, "patience", "turn_calls", "interactions", "iterations", "reviews")
"""What can be raised for a run: its limits, and those of guards and styles."""
