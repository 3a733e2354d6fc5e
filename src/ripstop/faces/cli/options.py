"""What is common to all commands: the journal, the model, and how to print."""

import getpass
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ripstop.app.settings.number_ranges import NUMBERS
from ripstop.kernel.limits import LIMITS, Limit

from .terminal import log_to_stderr

if TYPE_CHECKING:
    from ripstop.app.application import App
    from ripstop.app.settings.settings_file import Settings
    from ripstop.engine.engine import Engine
    from ripstop.tools.toolbox import Tool


# Which run a person means: by its id, or by what a style calls it.


async def resolve_run(engine: "Engine", named: str) -> str:
    """The run with that id, or of a style's own file in this folder. Raises `RunNotFound` or `UnknownStyle`."""
    from ripstop.app.plugins import installed
    from ripstop.kernel.errors import UnknownStyle

    info = await engine.journal.run(named)
    if info is not None:
        if info.style not in engine.registry.kits:  # said before its records are found to be unreadable
            raise UnknownStyle(named, info.style, ", ".join(sorted(engine.registry.kits)))
        return named
    for service in installed().services:
        run_id = service.run_named(named, Path())
        if run_id and await engine.journal.run(run_id) is not None:
            return run_id
    raise await engine.not_found(named)


def number_type(*keys: str) -> click.IntRange | click.FloatRange:
    """The type of an option that sets the same number as the setting with these keys: whole where its least is 1."""
    range_ = NUMBERS[keys]
    if range_.least == 1:
        return click.IntRange(1, int(range_.most))
    return _Number(range_.least, range_.most, min_open=range_.above)


class _Number(click.FloatRange):
    """A number in a range. NaN is in none, though no comparison with a bound finds it outside."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        return number if number == number else self.fail(f"{value!r} is not a number.", param, ctx)  # noqa: PLR0124


def pairs(values: tuple[str, ...], option: str = "--set") -> dict[str, str]:
    """KEY=VALUE options as a dictionary."""
    pairs: dict[str, str] = {}
    for value in values:
        key, equals, text = value.partition("=")
        if not equals or not key:
            raise click.UsageError(f"{option} {value!r} is not KEY=VALUE.")
        if key in pairs:
            raise click.UsageError(f"{option} sets {key!r} twice, to {pairs[key]!r} and to {text!r}. Set it once.")
        pairs[key] = text
    return pairs


class FolderPath(click.Path):
    """A folder that need not exist. An empty one, as from an unset variable of a script, is a mistake."""

    def __init__(self) -> None:
        from pathlib import Path

        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if str(value) == "":
            self.fail("the folder's name is empty.", param, ctx)
        return super().convert(value, param, ctx)


class Options:
    """What is common to all commands. The same flags can be given before or after the command."""

    def __init__(
        self,
        store: str | None,
        model: str | None,
        base_url: str | None,
        as_json: bool,
        verbose: int,
        tools: tuple[str, ...] = (),
    ) -> None:
        self.store = store
        self.model = model
        self.base_url = base_url
        self.as_json = as_json
        self.verbose = verbose
        self.tool_modules = tools
        self.allow: tuple[str, ...] = ()
        """Origins that tools can reach (`allow_option`)."""

    def other_model(self) -> str:
        """The model that a run is to use from now on; empty if none is named.

        Raises `UsageError` for one that cannot exist: said before a journal is opened.
        """
        from ripstop.app.start import possible_model

        return possible_model(self.model) if self.model else ""

    def settings(self) -> "Settings":
        from pathlib import Path

        from ripstop.app.settings.settings_file import read_settings

        if self.model is not None and not self.model.strip():
            raise click.UsageError("--model is empty. Leave it out for the default, or name one: local, openai:NAME, …")
        if self.verbose:
            log_to_stderr(self.verbose)
        return read_settings(Path.cwd(), store=self.store, model=self.model, base_url=self.base_url, allow=self.allow)

    def tools(self, settings: "Settings") -> "list[Tool]":
        """The tools of the modules that `--tools` and the settings name. Raises `NotTrusted` for a project's."""
        from ripstop.app.toolbox import tools_of_modules
        from ripstop.app.trust import Trust

        return tools_of_modules(settings, Trust(settings), self.tool_modules)

    def known_tools(self, settings: "Settings") -> list[str]:
        """The names of the tools that `--tools` and the settings bring.

        Modules without consent are not imported, and no server is started.
        """
        from ripstop.app.application import load_tools
        from ripstop.app.toolbox import pinned_tools
        from ripstop.app.trust import Trust

        refused = {refusal.named.content for refusal in Trust(settings).unagreed_tools(self.tool_modules)}
        modules = [name for name in settings.tools.modules if name not in refused]
        here = [*self.tool_modules, *(modules if settings.tools_from else ())]
        return [*(tool.name for tool in load_tools(here, modules)), *pinned_tools(settings)]

    def app(self, settings: "Settings", **more: Any) -> "App":
        """An app with the tools of the modules that `--tools` and the settings name. Raises `NotTrusted`."""
        from ripstop.app.application import App

        return App(without_tools(settings), tools=self.tools(settings), **more)


def without_tools(settings: "Settings") -> "Settings":
    """Settings that name no modules of tools, for a command that calls none or has loaded them."""
    from msgspec.structs import replace

    from ripstop.app.settings.settings_file import ToolSettings

    return replace(settings, tools=ToolSettings())


class Family(click.Group):
    """Commands under one name. The error for an option that is given too early says where it belongs."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            takes = [name for name, command in self.commands.items() if _takes(command, error.option_name)]
            if not takes:
                raise
            meant = next((name for name in takes if name in given), takes[0])
            raise click.UsageError(
                f"{error.option_name} goes after the command: {ctx.command_path} {meant} {error.option_name} …", ctx
            ) from error


def _takes(command: click.Command, option: str) -> bool:
    return any(option in parameter.opts for parameter in command.params)


class _SharedOptions(click.Option):
    """The first of the shared options: in the help of a command one line is for all of them."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        return "--store, --model, --base-url, --json, --tools, -v", "As for all commands; see `ripstop --help`."


def _take(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
    if value not in (None, False, (), 0) and context.obj is not None:
        setattr(context.obj, parameter.name or "", value)
    return value


def shared_options(command: Any) -> Any:
    """Allow `--store`, `--model`, `--base-url`, `--json` and `-v` also after the command (or a family's name)."""
    for option in (
        click.option("--store", cls=_SharedOptions, expose_value=False, callback=_take),
        click.option("--model", hidden=True, expose_value=False, callback=_take),
        click.option("--base-url", hidden=True, expose_value=False, callback=_take),
        click.option("--json", "as_json", is_flag=True, hidden=True, expose_value=False, callback=_take),
        click.option("--tools", "tool_modules", multiple=True, hidden=True, expose_value=False, callback=_take),
        click.option("-v", "--verbose", count=True, hidden=True, expose_value=False, callback=_take),
    ):
        command = option(command)
    return command


def allow_option(command: Any) -> Any:
    """Add `--allow`, for a command whose runs can call URLs."""
    return click.option(
        "--allow",
        multiple=True,
        metavar="URL",
        expose_value=False,
        callback=_take,
        help="Let tools call this origin, also on a private address, such as http://127.0.0.1:8080; repeatable.",
    )(command)


# The options that limit a run, for every command that starts one, or that watches many.


RUN_FLAGS = {limit: limit.flag_help for limit in LIMITS if limit.flag_help}
WATCH_FLAGS = {limit: limit.watch_help for limit in LIMITS if limit.watch_help}
METAVARS = {"": "N", "$": "AMOUNT", "s": "SECONDS"}
"""What the flag of a limit takes, by the limit's unit."""

WithLimits = Callable[["Settings"], "Settings"]
"""Settings with the limits that the command line gives for one run."""


def limit_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options. The command gets them as one argument, `with_limits`."""

    @wraps(command)
    def limited(*args: Any, no_default_limits: bool, **options: Any) -> Any:
        chosen = _take_limits(options, RUN_FLAGS)

        def with_limits(settings: "Settings") -> "Settings":
            from msgspec.structs import replace

            if no_default_limits:
                settings = replace(settings, default_limits=False)
            return replace(settings, limits=replace(settings.limits, **chosen))

        return command(*args, with_limits=with_limits, **options)

    limited = click.option("--no-default-limits", is_flag=True, help="Apply only limits that are set explicitly.")(
        limited
    )
    return _with_flags(limited, RUN_FLAGS)


def watch_limit_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command that watches many runs. It gets the given limits as one argument, `most`."""

    @wraps(command)
    def limited(*args: Any, **options: Any) -> Any:
        return command(*args, most=_take_limits(options, WATCH_FLAGS), **options)

    return _with_flags(limited, WATCH_FLAGS)


def _take_limits(options: dict[str, Any], flags: dict[Limit, str]) -> dict[str, float]:
    given = {limit.name: options.pop(f"max_{limit.name}") for limit in flags}
    return {name: value for name, value in given.items() if value is not None}


def _with_flags(command: Callable[..., Any], flags: dict[Limit, str]) -> Callable[..., Any]:
    for limit, help in reversed(flags.items()):
        type_ = number_type("limits", limit.name)
        command = click.option(limit.flag, type=type_, metavar=METAVARS[limit.unit], help=help)(command)
    return command


# Who the person at this terminal is.


def user_name() -> str:
    """The name of the user; empty if the system does not know it."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""
