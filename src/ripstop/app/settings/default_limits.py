"""The budget of a run for which none is set, by style.

An agent that changes a little something with every turn makes progress as far as guards can see, and a definition can
allow a million turns. So a run has a limit of calls and of time at work even if none was set.

- What is set wins: in ripstop.toml, on the command line, in Python.
- Each style says what is sensible for its runs (`Style.default_limits`).
"""

from msgspec.structs import asdict, replace

from ripstop.kernel.effects import Limits
from ripstop.kernel.limits import BY_RANK, Limit
from ripstop.text.plurals import count


def with_defaults(limits: Limits, defaults: Limits, starts_runs: bool = True) -> Limits:
    """The limits, with a style's defaults where none is set; one of runs only where its definition can start some."""
    if not starts_runs:
        defaults = replace(defaults, runs=None)
    missing = {name: value for name, value in asdict(defaults).items() if getattr(limits, name) is None}
    return replace(limits, **missing)


def describe_limits(limits: Limits) -> str:
    """The limits in words, such as `200 calls, 1 h at work`; empty if there are none."""
    return ", ".join(_words(limit, getattr(limits, limit.name)) for limit in _set_in(limits))


def how_to_raise(limits: Limits, is_new: bool) -> str:
    """What raises the limits that `describe_limits` shows, for a new run or for one that is resumed."""
    shown = _set_in(limits)
    later = f"--raise {shown[0].name if len(shown) == 1 else 'LIMIT'}=+N"
    if not is_new:
        return f"raise with {later}"
    ways = [f"{limit.flag} N" for limit in shown if limit.flag_help]
    ways += [f"`[limits] {limit.name}` in ripstop.toml" for limit in shown if not limit.flag_help]
    return f"raise with {', '.join(ways)}, or later with resume {later}"


def _set_in(limits: Limits) -> list[Limit]:
    return [limit for limit in BY_RANK if getattr(limits, limit.name) is not None]


def _words(limit: Limit, amount: float) -> str:
    if limit.is_whole:
        return count(int(amount), limit.noun)
    return limit.words.format(_duration(amount) if limit.unit == "s" else f"{amount:g}")


def _duration(seconds: float) -> str:
    for unit, length in (("h", 3600), ("min", 60)):
        if seconds >= length and seconds % length == 0:
            return f"{seconds / length:g} {unit}"
    return f"{seconds:g} s"
