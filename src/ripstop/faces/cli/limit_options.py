"""The options that limit a run, for every command that starts one."""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from .options import number_type

if TYPE_CHECKING:
    from ripstop.settings.settings_file import Settings

LIMITS = {
    "tokens": ("--max-tokens", "N", "Stop before this many tokens are spent."),
    "money": ("--max-money", "AMOUNT", "Stop before this much money is spent."),
    "calls": ("--max-calls", "N", "Stop before more model calls than this."),
    "seconds": ("--max-seconds", "SECONDS", "Stop after this long at work."),
}

WithLimits = Callable[["Settings"], "Settings"]
"""Settings with the limits that the command line gives for one run."""


def limit_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options. The command gets them as one argument, `with_limits`."""

    @wraps(command)
    def limited(*args: Any, no_default_limits: bool, **options: Any) -> Any:
        given = {name: options.pop(f"max_{name}") for name in LIMITS}
        chosen = {name: value for name, value in given.items() if value is not None}

        def with_limits(settings: "Settings") -> "Settings":
            from msgspec.structs import replace

            if no_default_limits:
                settings = replace(settings, default_limits=False)
            return replace(settings, limits=replace(settings.limits, **chosen))

        return command(*args, with_limits=with_limits, **options)

    limited = click.option("--no-default-limits", is_flag=True, help="Apply only limits that are set explicitly.")(
        limited
    )
    for name, (flag, unit, help) in reversed(LIMITS.items()):
        limited = click.option(flag, type=number_type("limits", name), metavar=unit, help=help)(limited)
    return limited
