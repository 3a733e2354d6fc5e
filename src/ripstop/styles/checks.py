"""What several styles check before they say that work is done: a claim, beside what was found.

- Nothing here looks at the world, and nothing knows a style: who asks has looked, and says what it found.
- A check that does not hold says so itself. Nobody's word makes it hold.
- How lines of a text are found is in `key_lines.py`.

| check | what it is about |
|---|---|
| `file_exists` | a file that is there and not empty |
| `line_exists` | a line of a report that begins as it should |
| `number_reaches` | a number within its bounds |
| `command_ends` | the exit code of a command |
| `task_is` | the state of a task in a plan |
| `no_open_blockers` | blockers, or findings, that nobody has cleared |
| `verdict_is` | the last verdict of an agent |
"""

import re
from collections.abc import Callable, Sequence

from msgspec import Struct

from ripstop.kernel.style import Reason

from .key_lines import FieldLine

MAX_SEARCHED = 200
"""Characters of a line in which a number is looked for."""
MAX_NAMED = 10
"""Blockers, tasks and the like that one check names."""
_NUMBER = re.compile(r"[-+]?(?:(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d{1,3}\b)?")
_END = " .。!！"
_ASIDE = re.compile(r"[(（][^()（）]*[)）]")
_UNIT = r"\s*[%％]?\s*(?:[^\W\d_]{1,40}|°[CF]?)?"
_STATED = re.compile(rf"({_NUMBER.pattern}){_UNIT}")
_SHARE = re.compile(
    rf"{_NUMBER.pattern}\s*(?:/|of)\s*{_NUMBER.pattern}{_UNIT}\s*[(（=]\s*({_NUMBER.pattern}\s*[%％])\s*[)）]?"
)
_BETWEEN = re.compile(r"[,;]\s+|[，；、]\s*")


class Shown(Struct, frozen=True, omit_defaults=True):
    """One thing that is claimed, beside what was found."""

    claimed: str
    shown: str
    holds: bool | None
    """None: nothing was checked."""
    by: str = ""
    """Who claims it; empty: nobody does, and it was wanted, or looked at, all the same."""

    def __str__(self) -> str:
        return f"claimed {self.claimed}; shown: {self.shown}"


def as_reason(one: Shown) -> Reason:
    who = f"{one.by} claims " if one.by else ""
    return Reason(f"{who}{one.claimed}; shown: {one.shown}", holds=one.holds, is_check=True)


def failed(checks: Sequence[Shown]) -> tuple[Shown, ...]:
    """Those that do not hold. What was not checked has not failed."""
    return tuple(one for one in checks if one.holds is False)


# The checks


def file_exists(path: str, size: int | None) -> Shown:
    """`size`: in bytes; none if there is no such file."""
    if size is None:
        return Shown(f"{path} exists", "there is no such file", False)
    return Shown(f"{path} exists", f"{size:,} bytes" if size else "it is empty", size > 0)


def line_exists(prefix: str, found: Sequence[FieldLine], allowed: Sequence[str] = ()) -> Shown:
    """A line that begins with `prefix` and goes on, with one of the words that are `allowed` if there are any."""
    good = next((line for line in found if (line.value in allowed if allowed else line.value)), None)
    claimed = f"a line {prefix!r}" + (f" with one of {', '.join(allowed)}" if allowed else "")
    if good is None:
        return Shown(claimed, found[-1].text if found else "there is no such line", False)
    return Shown(claimed, good.text, True)


def number_reaches(
    what: str, number: float | None, at_least: float | None = None, at_most: float | None = None
) -> Shown:
    """`number`: none if there is none."""
    bounds = [f"at least {at_least:g}"] if at_least is not None else []
    bounds += [f"at most {at_most:g}"] if at_most is not None else []
    claimed = " ".join((what, " and ".join(bounds))).strip()
    if number is None:
        return Shown(claimed, "there is no number", False)
    if at_least is not None and number < at_least:
        return Shown(claimed, f"{number:g}, which is less than {at_least:g}", False)
    if at_most is not None and number > at_most:
        return Shown(claimed, f"{number:g}, which is more than {at_most:g}", False)
    return Shown(claimed, f"{number:g}", True)


def command_ends(command: Sequence[str], wanted: int, ended: int | None, more: str = "") -> Shown:
    """`ended`: its exit code; none if it was not run, or stopped. `more`: why, or what it printed last."""
    claimed = f"`{' '.join(command)[:100]}` ends with {wanted}"
    code = "" if ended is None else f"exit code {ended}"
    return Shown(claimed, ": ".join(filter(None, (code, more))), ended == wanted)


def task_is(task: str, status: str, wanted: Sequence[str]) -> Shown:
    """`status`: empty if the task has none, or is gone."""
    holds = status.casefold() in (one.casefold() for one in wanted)
    return Shown(f"{task} is {' or '.join(wanted)}", f"it is {status}" if status else "it has no status", holds)


def no_open_blockers(open_ones: Sequence[str], what: str = "blocker") -> Shown:
    named = "; ".join(open_ones[:MAX_NAMED])
    more = f" and {len(open_ones) - MAX_NAMED} more" if len(open_ones) > MAX_NAMED else ""
    return Shown(f"no open {what}", f"{named}{more}" if open_ones else "none", not open_ones)


def verdict_is(by: str, said: str | None, wanted: Sequence[str]) -> Shown:
    """`said`: the last verdict; empty if the report had none, and none if there was no report."""
    claimed = f"{' or '.join(wanted)} of {by}" if wanted else f"a report of {by}"
    if said is None:
        return Shown(claimed, "there is no report", False)
    return Shown(claimed, said or "a report without a verdict", not wanted or said in wanted)


# Numbers in a text


def number_in(text: str, of_several: Callable[[list[float]], float] = lambda numbers: numbers[0]) -> float | None:
    """The number that a text is, maybe with a unit: 60 is `60 %`, `60 % (wanted: 80 %)` and `90/150 (60 %)`.

    A number among other words states nothing: `below 90 %`, `not 90 %` and `100 of 1000 lines` have none.

    Args:
        of_several: Which of several counts, as in `90 % lines, 40 % branches`; percentages before others; left out: the
            first.
    """
    if share := _SHARE.fullmatch(text.rstrip(_END)[:MAX_SEARCHED]):
        text = share[1]
    own = _ASIDE.sub("", text).strip().rstrip(_END)
    parts = _BETWEEN.split(own) if len(own) <= MAX_SEARCHED else []
    stated = [_STATED.fullmatch(part.strip()) for part in parts]
    numbers = [(_value(one[1]), "%" in one[0] or "％" in one[0]) for one in stated if one]
    if not numbers or len(numbers) < len(stated):
        return None
    return of_several([number for number, is_share in numbers if is_share] or [numbers[0][0]])


def _value(number: str) -> float:
    return float(number.replace(",", ""))
