"""The budget of a run for which none is set, by style.

An agent that changes a little something with every turn makes progress as far as guards can see, and a definition can
allow a million turns. So a run has a limit of calls and of time at work even if none was set.

- What is set wins: in ripstop.toml, on the command line, in Python.
- Each style says what is sensible for its runs (`Style.default_limits`).
"""

from msgspec.structs import asdict, replace

from ripstop.kernel.effects import Limits
from ripstop.text.visible_text import count

SHOWN = ("turns", "calls", "tokens", "money", "seconds")
"""The limits that are shown when a run starts."""


def with_defaults(limits: Limits, defaults: Limits) -> Limits:
    """The limits, with a style's defaults where none is set."""
    missing = {name: value for name, value in asdict(defaults).items() if getattr(limits, name) is None}
    return replace(limits, **missing)


def describe_limits(limits: Limits) -> str:
    """The limits in words, such as `200 calls, 1 h at work`; empty if there are none."""
    counted = {name: getattr(limits, name) for name in ("turns", "calls", "tokens")}
    words = [count(n, name[:-1]) for name, n in counted.items() if n is not None]
    if limits.money is not None:
        words.append(f"a cost of {limits.money:g}")
    if limits.seconds is not None:
        words.append(f"{_duration(limits.seconds)} at work")
    return ", ".join(words)


def how_to_raise(limits: Limits, is_new: bool) -> str:
    """What raises the limits that `describe_limits` shows, for a new run or for one that is resumed."""
    shown = [name for name in SHOWN if getattr(limits, name) is not None]
    later = f"--raise {shown[0] if len(shown) == 1 else 'LIMIT'}=N"
    if not is_new:
        return f"raise with {later}"
    ways = [f"--max-{name} N" for name in shown if name != "turns"]
    if "turns" in shown:  # the only one that no option of `run` sets
        ways.append("`[limits] turns` in ripstop.toml")
    return f"raise with {', '.join(ways)}, or later with resume {later}"


def _duration(seconds: float) -> str:
    for unit, length in (("h", 3600), ("min", 60)):
        if seconds >= length and seconds % length == 0:
            return f"{seconds / length:g} {unit}"
    return f"{seconds:g} s"
