"""Calls that the other side refused: how often, since when, what is next, and what a person can do about it.

- A refusal is a fact of its own (`CallRefused`), so it is counted once, whichever process it met. A worker that dies or
  is stopped refuses nothing.
- A call of a model that was refused until the patience of its policy is used up *pauses* the run: that is no verdict
  about the work. It is on the desk, and it is tried again with growing pauses while a worker lives, if that can help.
- A run that ended as `failed` because of such a call can be *reopened*: the call is made again, and nothing else is.
"""

from typing import Any

from msgspec import Struct

from .effects import AskPerson
from .run import OUTAGE, Refusals, Run

RETRY, GIVE_UP = "retry", "give up"
"""What a person may say about a call that is refused."""
OUTAGE_CHOICES = {RETRY: "Try again now", GIVE_UP: "Give it up"}
SHORTEST_PAUSE = 30.0
"""Seconds until a paused call is tried again; doubled each time."""
LONGEST_PAUSE = 900.0


class RetryPolicy(Struct, frozen=True, forbid_unknown_fields=True):
    """How patient a worker is with a provider that refuses calls, before the run is paused."""

    attempts: int = 7
    """Refusals of one call."""
    pause: float = 1.0
    """Seconds before the second attempt; doubled each time, unless the provider asks for another pause."""
    longest: float = 60.0
    """Seconds between two attempts at the most, unless the provider asks for more."""
    seconds: float = 300.0
    """From the first refusal of a call to the last attempt."""

    def pause_after(self, refusals: int) -> float:
        return min(self.pause * 2.0 ** min(refusals - 1, 30), self.longest)

    def is_used_up(self, refusals: int, waited: float, pause: float) -> bool:
        """Whether the run is paused now.

        Args:
            refusals: Of this call, the last one included.
            waited: Seconds since the first of them.
            pause: Seconds until the next attempt would be made.
        """
        return refusals >= self.attempts or waited + pause > self.seconds


def pause_of_outage(pauses: int) -> float:
    """Seconds until a call is tried again that has paused its run `pauses` times."""
    return min(SHORTEST_PAUSE * 2.0 ** min(pauses - 1, 30), LONGEST_PAUSE)


def question_about_outage(to: int, agent: str, by: str, reason: str) -> AskPerson:
    who = by or "the model"
    return AskPerson(
        question=f"The call of {agent} is refused by {who}: {reason}",
        purpose=OUTAGE,
        title=who,
        about=(to,),
        choices=OUTAGE_CHOICES,
    )


def refusals_of(run: Run[Any], number: int) -> Refusals | None:
    """How often an open call was refused; `None`: not at all."""
    for one in run.refused:
        if one.to == number:
            return one
    return None


def is_between_attempts(run: Run[Any], number: int) -> bool:
    """Whether an open call was refused and is not known to be made again."""
    known = refusals_of(run, number)
    return known is not None and known.waits
