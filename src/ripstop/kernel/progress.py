"""Progress: whether the turns of a run still change anything.

- A turn leaves a digest of what it decided and wrote (`TurnResult`); words are not in it.
- One agent that does the same again and again, or several that go round in a circle of two to
  seven turns, make no progress. After as many rounds as the guards have patience for, they are stopped.
- Two turns in a row of nothing but courtesy, or an end marker, stop the run too.

The trail of digests is short: only as long as the longest circle that could be found in it.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from .effects import Guards
from .events import GuardTripped, TurnResult

LONGEST_CYCLE = 7
TERMINATE = "terminate"
TALK = "If the turns are meant to be talk only, such as a debate, set `patience: 0`."
"""What to do about turns that change nothing and are meant to."""

_encode = msgspec.json.Encoder(order="sorted").encode
_NO_DIGEST = hashlib.blake2b(digest_size=6)
"""Copied for every digest, because setting one up costs more than the copy."""


class TurnDigest(Struct, frozen=True, gc=False):
    """What a turn changed, and where that is recorded."""

    agent: str
    digest: str
    number: int
    courteous: bool = False
    end_marker: bool = False


def digest(*changed: Any) -> str:
    """A short digest of what a turn changed: decisions, files, fields."""
    made = _NO_DIGEST.copy()
    made.update(_encode(changed))
    return made.hexdigest()


NOTHING = digest()
"""The digest of a turn that changed nothing at all."""


def has_end_marker(text: str, guards: Guards) -> bool:
    """Whether a text holds the end marker, wherever it is."""
    return bool(guards.end_marker) and guards.end_marker in text


def follow(trail: tuple[TurnDigest, ...], number: int, result: TurnResult, guards: Guards) -> tuple[TurnDigest, ...]:
    """The trail with one more turn in it."""
    if not result.agent:
        return trail  # no agent took the turn
    turn = TurnDigest(result.agent, result.digest, number, result.courteous, result.end_marker)
    # without patience for circles too: courtesies are compared with what their agents did before them
    longest = LONGEST_CYCLE * _rounds(guards) + 2
    return trail[1 - longest :] + (turn,)  # noqa: RUF005  (unpacking copies a whole trail once more, every turn)


def _rounds(guards: Guards) -> int:
    """After how many rounds a circle is stopped: at least two, because what was done once was not done again."""
    return guards.patience if guards.patience > 2 else 2


def review(trail: Sequence[TurnDigest], guards: Guards) -> GuardTripped | None:
    """The verdict on what was done so far, if there is one."""
    if not trail:
        return None
    last = trail[-1]
    if last.end_marker:
        text = f"{last.agent} ended the run with {guards.end_marker}."
        return GuardTripped(guard="end_marker", limit=0, value=1, text=text, evidence=(last.number,))
    verdict = _only_courtesy(trail, guards) if last.courteous else None
    if verdict:
        return verdict
    done = last.digest
    for turn in trail[-1 - LONGEST_CYCLE : -1]:
        if turn.digest == done:
            return _cycle(trail, guards)
    return None  # by far the most frequent: none of the last turns did the same


def _only_courtesy(trail: Sequence[TurnDigest], guards: Guards) -> GuardTripped | None:
    """For a last turn that was courteous: the verdict, if the turn before it was too."""
    if guards.courtesy != TERMINATE or len(trail) < 2 or not trail[-2].courteous:
        return None
    if any(_changed_something(trail, place) for place in (len(trail) - 2, len(trail) - 1)):
        return None
    agents = " and ".join(dict.fromkeys((trail[-2].agent, trail[-1].agent)))
    return GuardTripped(
        guard="courtesy",
        limit=1,
        value=2,
        text=f"{agents} exchanged nothing but courtesies, twice in a row.",
        evidence=(trail[-2].number, trail[-1].number),
        progress=_last_change(trail, len(trail) - 2),
    )


def _last_change(trail: Sequence[TurnDigest], end: int) -> int:
    """The number of the last turn before place `end` that changed something; 0 if none did."""
    return next((trail[place].number for place in range(end - 1, -1, -1) if _changed_something(trail, place)), 0)


def _changed_something(trail: Sequence[TurnDigest], place: int) -> bool:
    """Whether a turn did anything that its agent had not done the last time."""
    turn = trail[place]
    before = next((other for other in reversed(trail[:place]) if other.agent == turn.agent), None)
    return turn.digest not in (NOTHING, before.digest if before else NOTHING)


def _cycle(trail: Sequence[TurnDigest], guards: Guards) -> GuardTripped | None:
    if not guards.patience:
        return None
    done, length = trail[-1].digest, len(trail)
    for period in range(1, min(LONGEST_CYCLE, length - 1) + 1):
        if trail[-1 - period].digest != done:
            continue
        turns = period * _rounds(guards)
        if turns > length:
            return None
        rounds = trail[length - turns :]
        if all(_same(rounds[place], rounds[place - period]) for place in range(period, turns)):
            return _no_progress(trail, period, turns // period)
    return None


def _same(one: TurnDigest, other: TurnDigest) -> bool:
    return one.digest == other.digest and one.agent == other.agent


def _no_progress(trail: Sequence[TurnDigest], period: int, patience: int) -> GuardTripped:
    # the first round did something for the first time, if it did anything; what came after it only did so again
    begin = len(trail) - period * patience
    rounds = trail[begin:]
    did = [turn.number for turn in rounds[:period] if turn.digest != NOTHING]
    progress = did[-1] if did else _last_change(trail, begin)
    if period == 1:
        text = f"{rounds[0].agent} has taken {patience} turns in a row and nothing changed"
    else:
        names = " → ".join(turn.agent for turn in rounds[:period])
        text = f"{names} have gone round {patience} times and nothing changed"
    return GuardTripped(
        guard="no_progress" if period == 1 else "circle",
        limit=patience,
        value=patience,
        text=f"{text}: the same decisions and the same files."
        + (f" The last progress is record {progress}." if progress else "")
        + f" {TALK}",
        evidence=tuple(turn.number for turn in rounds),
        progress=progress,
    )
