"""What comes after a guard's verdict: how the run ends, and how it can continue.

A run that a guard stopped is not lost. It can be resumed (with a limit raised, if one was reached),
or forked from the last record with progress.
"""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from .effects import AskPerson, Field, Guards, Limits, PersonAnswered
from .errors import UsageError
from .events import GuardTripped
from .limits import AMOUNTS, LIMITS, RAISABLE
from .run import GUARD
from .text_limits import shown

CONTINUE, STOP = "continue", "stop"
"""What a person may say about a guard's verdict."""
GUARD_CHOICES = {CONTINUE: "Continue", STOP: "Stop the run"}
STOPPING = frozenset(
    {"no_progress", "circle", "courtesy", "end_marker", "family", "in_doubt", "verdict_flips", "no_plan"}
)
"""Guards that look at what was done. All others hold a limit. `family`, in old journals, is `budget.runs` now."""
CIRCLING = frozenset({"no_progress", "circle"})
"""Those of them that patience puts off."""
FRACTIONS = tuple(limit.name for limit in LIMITS if not limit.is_whole)
OF_GUARDS = ("patience", "turn_calls")
"""What is raised of guards; 0 there means that nothing is limited."""
MAX_RAISE = 2**53
"""A raise above it would not be exact, and two of them could be more than a journal can hold."""
LEAST_RAISE = {"runs": 10}
"""What is proposed at least. In a family that goes on, every run that is resumed counts again."""
_LIMIT_OF = {"max_turns": "turns", "max_iterations": "iterations", "max_reviews": "reviews"}
"""Which limit a verdict is about, where the guard has another name."""


def outcome_of(verdict: GuardTripped) -> str:
    return "stopped" if verdict.guard in STOPPING else "limit"


def limit_of(verdict: GuardTripped) -> str:
    """The limit that has to be raised before the run can continue; empty if none has."""
    name = verdict.guard.removeprefix("budget.")
    return "" if verdict.guard in STOPPING else _LIMIT_OF.get(name, name)


def raisable_by(verdict: GuardTripped) -> str:
    """What a person can raise to let the run continue; empty if that would change nothing."""
    return limit_of(verdict) or ("patience" if verdict.guard in CIRCLING else "")


def raises_in_answer(verdict: GuardTripped, answer: PersonAnswered) -> dict[str, float]:
    """What a person who says `continue` raises, and by how much: in the field `raise`, or as the text of the answer.

    Without a number, a limit that was reached is doubled (or raised by `LEAST_RAISE`), and patience stays as it is.
    Raises `UsageError`.
    """
    name, said = raisable_by(verdict), answer.fields.get("raise", answer.text.strip())
    if said == "":
        return {name: max(verdict.limit, LEAST_RAISE.get(name, 0)) or 1} if limit_of(verdict) else {}
    if not name:
        raise UsageError(f"{shown(said)} cannot be used here: nothing can be raised. Answer `{CONTINUE}` alone.")
    try:
        amount = float(said)
    except (TypeError, ValueError, OverflowError):
        raise UsageError(f"{shown(said)} is not a number. Say by how much {name} is raised: {CONTINUE} 5.") from None
    check_raises({name: amount})
    return {name: amount}


def question_about_verdict(verdict: GuardTripped) -> AskPerson:
    """Ask a person whether the run may continue."""
    name = raisable_by(verdict)
    return AskPerson(
        question=f"{verdict.text} Continue?",
        purpose=GUARD,
        title=verdict.guard,
        about=verdict.evidence,
        choices=GUARD_CHOICES,
        fields={"raise": Field(label=f"Raise {name} by", type="number")} if name else {},
    )


class Way(Struct, frozen=True):
    """A way to continue after a verdict; a face turns it into a command, a button or a link."""

    action: Literal["resume", "fork", "restart"]
    raises: dict[str, float] = {}
    """For `resume`: what to raise, by how much."""
    at: int = 0
    """For `fork`: the record to go back to; 0: the last one that can be decided again."""
    stage: str = ""
    """For `restart`: where a new run of the same work has to begin."""
    accept_edits: bool = False
    """For `resume`: files whose changes stopped the run are right as they are."""


def ways_on(verdict: GuardTripped) -> list[Way]:
    """How a run that a guard stopped can continue."""
    limit = limit_of(verdict)
    raises: dict[str, float] = {}
    if limit:
        half = verdict.limit / 2
        raises = {limit: half if limit in FRACTIONS and half else max(LEAST_RAISE.get(limit, 1), round(half))}
    elif verdict.progress and verdict.guard in CIRCLING:
        raises = {"patience": round(verdict.limit)}
    ways = [Way("resume", raises)]
    return [*ways, Way("fork", at=verdict.progress)] if verdict.progress else ways


def check_raises(raises: Mapping[str, Any], verdict: GuardTripped | None = None) -> None:
    """Raise `UsageError` if limits cannot be raised so.

    With a verdict: also if the limit that was reached is not among them, because the run would stop at once.
    """
    for name, amount in raises.items():
        if name not in RAISABLE:
            raise UsageError(f"There is no limit {name!r} to raise; there are: {', '.join(RAISABLE)}.")
        if not isinstance(amount, (int, float)) or isinstance(amount, bool) or not 0 < amount <= MAX_RAISE:
            raise UsageError(f"A limit is raised by a number above 0 and up to 2**53, not by {shown(amount)}.")
        if amount < 1 and name not in FRACTIONS:
            raise UsageError(f"{name} are counted in whole numbers; raise them by 1 at least, not by {amount!r}.")
    reached = limit_of(verdict) if verdict else ""
    if reached and reached not in raises:
        raise UsageError(f"The run has reached its limit of {reached} and would stop again at once. Raise {reached}.")


def raised(limits: Limits, guards: Guards, by: Mapping[str, float]) -> tuple[Limits, Guards]:
    """The limits and guards, raised. What has no limit stays without one."""
    changes: dict[str, Any] = {}
    for name in AMOUNTS:
        now = getattr(limits, name)
        if name in by and now is not None:
            changes[name] = now + (by[name] if isinstance(now, float) else int(by[name]))
    watched = {
        name: getattr(guards, name) + int(by[name]) for name in OF_GUARDS if by.get(name) and getattr(guards, name)
    }
    return (replace(limits, **changes) if changes else limits), (replace(guards, **watched) if watched else guards)


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
