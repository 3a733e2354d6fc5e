"""What comes after a guard's verdict: how the run ends, and how it can go on.

A run that a guard stopped is not lost. It can be resumed (with a limit raised, if one was reached),
or forked from the last record with progress.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import asdict, replace

from .effects import Guards, Limits
from .errors import UsageError
from .events import GuardTripped

GO_ON, STOP = "continue", "stop"
"""What a person may say about a guard's verdict."""
STOPPING = frozenset({"no_progress", "circle", "courtesy", "end_marker"})
"""Guards that look at what was done. All others hold a limit."""
CIRCLING = frozenset({"no_progress", "circle"})
"""Those of them that patience puts off."""
AMOUNTS = ("turns", "calls", "tokens", "money", "seconds", "depth")
FRACTIONS = ("money", "seconds")
RAISABLE = (*AMOUNTS, "patience", "interactions")
_LIMIT_OF = {"max_turns": "turns"}
"""Which limit a verdict is about, where the guard has another name."""


def outcome_of(verdict: GuardTripped) -> str:
    return "stopped" if verdict.guard in STOPPING else "limit"


def limit_of(verdict: GuardTripped) -> str:
    """The limit that has to be raised before the run can go on; empty if none has."""
    name = verdict.guard.removeprefix("budget.")
    return "" if verdict.guard in STOPPING else _LIMIT_OF.get(name, name)


def raisable_by(verdict: GuardTripped) -> str:
    """What a person can raise to let the run continue; empty if that would change nothing."""
    return limit_of(verdict) or ("patience" if verdict.guard in CIRCLING else "")


def raises_in_words(verdict: GuardTripped, words: str) -> dict[str, float]:
    """What a person who says `continue` raises, and by how much. Raises `UsageError` for words that are not a number.

    Without a number, a limit that was reached is raised by itself, and patience stays as it is.
    """
    name, words = raisable_by(verdict), words.strip()
    if not words:
        return {name: verdict.limit} if limit_of(verdict) else {}
    if not name:
        raise UsageError(f"{words!r} cannot be used here: nothing can be raised. Answer `{GO_ON}` alone.")
    try:
        amount = float(words)
    except ValueError:
        raise UsageError(f"{words!r} is not a number. Say by how much {name} is raised: {GO_ON} 5.") from None
    return raises_of({"raise": {name: amount}})


def ways_on(run_id: str, verdict: GuardTripped) -> list[str]:
    """How a run that a guard stopped can go on, as commands."""
    limit = limit_of(verdict)
    if limit:
        half = verdict.limit / 2
        more = half if limit in FRACTIONS and half else max(1, round(half))
        ways = [f"ripstop resume {run_id} --raise {limit}={more:g}"]
    elif verdict.progress and verdict.guard in CIRCLING:
        ways = [f"ripstop resume {run_id} --raise patience={round(verdict.limit)}"]
    else:
        ways = [f"ripstop resume {run_id}"]
    return [*ways, f"ripstop fork {run_id} --at {verdict.progress}"] if verdict.progress else ways


def raises_of(arguments: Mapping[str, Any], verdict: GuardTripped | None = None) -> dict[str, float]:
    """By how much an order to go on raises which limits. Raises `UsageError` if that makes no sense.

    With a verdict: also if the limit that was reached is not among them, because the run would stop at once.
    """
    given = arguments.get("raise", {})
    for name, amount in given.items():
        if name not in RAISABLE:
            raise UsageError(f"There is no limit {name!r} to raise; there are: {', '.join(RAISABLE)}.")
        if not isinstance(amount, (int, float)) or isinstance(amount, bool) or not 0 < amount < float("inf"):
            raise UsageError(f"A limit is raised by a number above 0, not by {amount!r}.")
        if amount < 1 and name not in FRACTIONS:
            raise UsageError(f"{name} are counted in whole numbers; raise them by 1 at least, not by {amount!r}.")
    reached = limit_of(verdict) if verdict else ""
    if reached and reached not in given:
        raise UsageError(f"The run has reached its limit of {reached}; raise it: --raise {reached}=N.")
    return dict(given)


def raised(limits: Limits, guards: Guards, by: Mapping[str, float]) -> tuple[Limits, Guards]:
    """The limits and guards, raised. What has no limit stays without one."""
    changes: dict[str, Any] = {}
    for name in AMOUNTS:
        now = getattr(limits, name)
        if name in by and now is not None:
            changes[name] = now + (by[name] if isinstance(now, float) else int(by[name]))
    if "patience" in by and guards.patience:
        guards = replace(guards, patience=guards.patience + int(by["patience"]))
    return (replace(limits, **changes) if changes else limits), guards


def override_guards(guards: Guards, *wishes: Mapping[str, Any]) -> Guards:
    """Guards with some of them set otherwise; the later wins. Raises `UsageError`."""
    fields = asdict(guards)
    for wish in wishes:
        unknown = sorted(set(wish) - set(fields))
        if unknown:
            raise UsageError(f"There is no guard {unknown[0]!r}; there are: {', '.join(fields)}.")
        fields |= wish
    try:
        return msgspec.convert(fields, Guards)
    except msgspec.ValidationError as error:
        raise UsageError(f"The guards are wrong: {error}.") from error
