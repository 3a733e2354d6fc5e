"""A list of chores, as it is pinned."""

from msgspec import Struct


class Chores(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    name: str
    chores: tuple[str, ...]
    agent: str = "helper"
    pause: float = 0.0
    """Seconds between the last chore and the question whether it is clean."""


class ChoreArguments(Struct, frozen=True, forbid_unknown_fields=True):
    """What a run is started with (`--set KEY=VALUE`)."""

    person: str = ""
    """Who is asked; empty: anyone."""
    rounds: int = 3
    """Rounds at most."""
