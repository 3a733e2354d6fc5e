"""What is common to all commands: the journal, the model, and how to print."""

from typing import TYPE_CHECKING, Any

import click

from ripstop.settings.number_ranges import NUMBERS

from .terminal import log_to_stderr

if TYPE_CHECKING:
    from ripstop.settings.settings_file import Settings


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


class Options:
    """What is common to all commands. The same flags may stand before or after the command."""

    def __init__(
        self, store: str | None, model: str | None, base_url: str | None, as_json: bool, verbose: bool
    ) -> None:
        self.store = store
        self.model = model
        self.base_url = base_url
        self.as_json = as_json
        self.verbose = verbose

    def settings(self) -> "Settings":
        from pathlib import Path

        from ripstop.settings.settings_file import read_settings

        if self.model is not None and not self.model.strip():
            raise click.UsageError("--model is empty. Leave it out for the default, or name one: local, openai:NAME, …")
        if self.verbose:
            import logging

            log_to_stderr(logging.DEBUG)
        return read_settings(Path.cwd(), store=self.store, model=self.model, base_url=self.base_url)


class Family(click.Group):
    """Commands under one name. Who gives one of their options too early is told where it stands."""

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
                f"{error.option_name} stands after the command: {ctx.command_path} {meant} {error.option_name} …", ctx
            ) from error


def _takes(command: click.Command, option: str) -> bool:
    return any(option in parameter.opts for parameter in command.params)


def shared_options(command: Any) -> Any:
    """Lets `--store`, `--model`, `--base-url`, `--json` and `-v` stand after the command (or a family's name), too."""

    def take(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
        if value not in (None, False) and context.obj is not None:
            setattr(context.obj, parameter.name or "", value)
        return value

    for option in (
        click.option("--store", hidden=True, expose_value=False, callback=take),
        click.option("--model", hidden=True, expose_value=False, callback=take),
        click.option("--base-url", hidden=True, expose_value=False, callback=take),
        click.option("--json", "as_json", is_flag=True, hidden=True, expose_value=False, callback=take),
        click.option("-v", "--verbose", is_flag=True, hidden=True, expose_value=False, callback=take),
    ):
        command = option(command)
    return command
